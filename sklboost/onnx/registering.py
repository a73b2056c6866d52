"""Estimators among those that skl2onnx converts, and the types of the inputs of their graphs."""

from typing import Any

from skl2onnx import update_registered_converter
from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

from sklboost.data.table import LARGEST_EXACT
from sklboost.estimators.base import BaseBooster
from sklboost.estimators.classifier import XGBClassifierLite
from sklboost.estimators.predict.fitted_model import fitted_model
from sklboost.onnx.converters import (
    convert_classifier,
    convert_regressor,
    set_classifier_types,
    set_regressor_types,
)
from sklboost.onnx.features import category_keys

# skl2onnx sets up the outputs of whatever has the option "zipmap" as those of a classifier.
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
