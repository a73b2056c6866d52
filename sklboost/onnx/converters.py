"""The converters that skl2onnx calls for an estimator, and their registration."""

from typing import Any

import numpy as np
from skl2onnx import update_registered_converter
from skl2onnx.common.data_types import (
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from skl2onnx.common.utils_classifier import get_label_classes

from sklboost.data.table import LARGEST_EXACT
from sklboost.estimators.base import BaseBooster
from sklboost.estimators.classifier import XGBClassifierLite
from sklboost.estimators.predict.fitted_model import FittedModel, fitted_model
from sklboost.onnx.graph import (
    ML_DOMAIN,
    ML_VERSION,
    Graph,
    add_class_scores,
    add_features,
    add_labels,
    add_sums,
    category_keys,
    prediction_formula,
)

# --- types of the outputs


def set_regressor_types(operator: Any) -> None:
    """Set the type of the predictions, shape (n_samples, n_outputs)."""
    fitted = _convertible(operator)
    n_samples = operator.inputs[0].get_first_dimension()
    operator.outputs[0].set_type(_number_type(operator)([n_samples, fitted.model.n_outputs]))


def set_classifier_types(operator: Any) -> None:
    """Set the types of labels, and of probabilities or raw scores, shape (n_samples, n_classes)."""
    fitted, classes = _convertible(operator), _classes(operator)
    n_samples = operator.inputs[0].get_first_dimension()
    is_multilabel = fitted.targets.task == "multilabel"
    kind = StringTensorType if classes.dtype == object else Int64TensorType
    operator.outputs[0].set_type(kind([n_samples, len(classes)] if is_multilabel else [n_samples]))
    operator.outputs[1].set_type(_number_type(operator)([n_samples, len(classes)]))


def _number_type(operator: Any) -> type:
    """Return float64 if an input is, unless the next node takes float32 only, as a ZipMap does."""
    output = operator.outputs[-1]
    is_double = [isinstance(variable.type, DoubleTensorType) for variable in operator.inputs]
    # skl2onnx has set the type of the first input, and converters around this one may change it
    is_narrowed = is_double[0] and isinstance(output.type, FloatTensorType)
    is_zipped = any(
        other.type == "SklearnZipMap" and output in other.inputs
        for other in operator.scope_inst.operators.values()
    )
    return (
        DoubleTensorType if any(is_double) and not (is_narrowed or is_zipped) else FloatTensorType
    )


def _classes(operator: Any) -> np.ndarray:
    """Return the labels, int64 or objects of text; ValueError if there are others."""
    labels = get_label_classes(operator.scope_inst, operator.raw_operator).tolist()
    if all(isinstance(label, str) for label in labels):
        return np.array(labels, dtype=object)
    try:
        numbers = np.array([int(label) for label in labels], dtype=np.int64)
    except (OverflowError, TypeError, ValueError):
        numbers = np.empty(0, dtype=np.int64)
    if numbers.tolist() != labels:
        raise ValueError(
            f"the classes are {labels}: in ONNX all of them are text, or all are integers of 64 "
            "bits; fit with labels that are text"
        )
    return numbers


# --- nodes


@np.errstate(all="ignore")
def convert_regressor(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of predictions, or of raw scores if the option asks for them."""
    fitted, graph = _convertible(operator), _graph(scope, container)
    scores = _add_scores(graph, operator, fitted)
    if not _wants_raw_scores(operator):
        formula = prediction_formula(fitted)
        assert formula is not None  # _convertible has asked
        scores = formula(graph, scores, fitted)
    _add_numbers(graph, scores, operator.outputs[0])


@np.errstate(all="ignore")
def convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of labels, and of probabilities, or raw scores if the option asks for them."""
    fitted, graph = _convertible(operator), _graph(scope, container)
    scores = _add_scores(graph, operator, fitted)
    label, number = operator.outputs
    labels = add_labels(graph, scores, fitted, _classes(operator))
    graph.add("Identity", labels, result=label.full_name)
    formula = add_class_scores if _wants_raw_scores(operator) else prediction_formula(fitted)
    assert formula is not None  # _convertible has asked
    _add_numbers(graph, formula(graph, scores, fitted), number)


def _graph(scope: Any, container: Any) -> Graph:
    version = container.target_opset_any_domain(ML_DOMAIN)
    if version < ML_VERSION:
        raise ValueError(
            f"target_opset has {ML_DOMAIN!r}: {version}, and trees of float64 came with "
            f"{ML_VERSION}: pass target_opset={{'': 18, {ML_DOMAIN!r}: {ML_VERSION}}}"
        )
    return Graph(scope, container)


def _add_scores(graph: Graph, operator: Any, fitted: FittedModel) -> str:
    """Add the raw scores, shape (n_samples, n_outputs), float64."""
    features = add_features(graph, operator.inputs, fitted)
    sums = add_sums(graph, features, fitted.model)
    return graph.add("Add", sums, graph.constant(fitted.model.base_score + fitted.shift))


def _add_numbers(graph: Graph, numbers: str, output: Any) -> None:
    is_double = isinstance(output.type, DoubleTensorType)
    graph.cast(numbers, np.float64 if is_double else np.float32, result=output.full_name)


# --- what can be converted


def _wants_raw_scores(operator: Any) -> bool:
    options = operator.scope_inst.get_options(operator.raw_operator, {"raw_scores": False})
    return bool(options["raw_scores"])


def _convertible(operator: Any) -> FittedModel:
    """Return the model of an estimator; ValueError if no graph predicts what it predicts."""
    fitted = fitted_model(operator.raw_operator)
    name = fitted.features.estimator_name
    if fitted.model.linear is not None:
        raise ValueError(
            f"this {name} has linear leaves, and the leaves of ONNX's trees are constant: fit with "
            "linear_tree=False"
        )
    if _wants_raw_scores(operator):
        return fitted
    remedy = f"convert with options={{{name}: {{'raw_scores': True}}}}, and"
    if fitted.has_margin:
        raise ValueError(
            f"this {name} was fitted with base_margin, for which a graph has no input: {remedy} "
            "add the margins to the scores before you make predictions of them"
        )
    if prediction_formula(fitted) is None:
        raise ValueError(
            f"{fitted.loss.chosen_by}={fitted.loss.name} computes predictions by a method of its "
            f"own, which is Python and no part of a graph: {remedy} make predictions of the scores"
        )
    return fitted


# skl2onnx gives whatever has the option "zipmap" the outputs of a classifier.
_CLASSIFIER_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [False, True],
    "raw_scores": [True, False],
}
_REGRESSOR_OPTIONS = {"raw_scores": [True, False]}


def register(estimator_class: type) -> None:
    """Let skl2onnx convert the estimators of a class.

    The classes of this package are registered when ``sklboost.onnx`` is imported. A class that
    inherits from one of them has to be registered itself, as skl2onnx does not look at base
    classes.

    Parameters
    ----------
    estimator_class : type
        A subclass of an estimator of this package that predicts as its base class does.

    Raises
    ------
    TypeError
        If it is no such class.

    Examples
    --------
    >>> import sklboost.onnx
    >>> from sklboost import XGBRegressorLite
    >>> class Price(XGBRegressorLite):
    ...     pass
    >>> sklboost.onnx.register(Price)
    """
    if issubclass(estimator_class, XGBClassifierLite):
        update_registered_converter(
            *(estimator_class, "SklboostClassifier", set_classifier_types, convert_classifier),
            options=_CLASSIFIER_OPTIONS,
        )
    elif issubclass(estimator_class, BaseBooster):
        update_registered_converter(
            *(estimator_class, "SklboostRegressor", set_regressor_types, convert_regressor),
            options=_REGRESSOR_OPTIONS,
        )
    else:
        raise TypeError(
            f"{estimator_class.__name__} is no subclass of XGBClassifierLite, XGBRegressorLite or "
            "another estimator of sklboost: register it with skl2onnx.update_registered_converter"
        )


def input_types(estimator: Any) -> list[tuple[str, Any]]:
    """Return the inputs of the graph of an estimator, as skl2onnx's `initial_types`.

    Parameters
    ----------
    estimator : XGBClassifierLite or XGBRegressorLite
        Fitted.

    Returns
    -------
    list of tuple
        Name and type of each input: ``X``, a table of float64, if all features are numbers; else an
        input of shape (n_samples, 1) for each feature, of text for categories of text.

    Examples
    --------
    >>> import pandas as pd
    >>> import sklboost.onnx
    >>> from sklboost import XGBRegressorLite
    >>> X = pd.DataFrame({"size": [1.0, 2.0, 3.0], "color": ["red", "blue", "red"]})
    >>> model = XGBRegressorLite(categorical_features=["color"]).fit(X, [1.0, 2.0, 3.0])
    >>> sklboost.onnx.input_types(model)
    [('size', DoubleTensorType(shape=[None, 1])), ('color', StringTensorType(shape=[None, 1]))]
    """
    fitted = fitted_model(estimator)
    if fitted.encodings is None:
        return [("X", DoubleTensorType([None, fitted.model.n_features]))]
    types = []
    for name, encoding in zip(fitted.feature_names, fitted.encodings, strict=True):
        keys = category_keys(encoding, name)
        kind = DoubleTensorType
        if encoding.is_of_text:
            kind = StringTensorType
        elif any(abs(key) > LARGEST_EXACT for key in keys):
            kind = Int64TensorType
        types.append((name, kind([None, 1])))
    return types
