"""Models as ONNX graphs: importing this module lets skl2onnx convert the estimators.

By themselves and within pipelines, ``skl2onnx.to_onnx(pipeline, X[:1])``. It needs skl2onnx: ``pip
install "sklboost[onnx]"``. The first part of the file makes the nodes of a graph: inputs to
features, trees, raw scores to predictions. The second has the converters that skl2onnx calls.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

try:
    from skl2onnx import update_registered_converter
except ImportError as error:
    raise ImportError('sklboost.onnx needs skl2onnx: pip install "sklboost[onnx]"') from error
from onnx import TensorProto
from onnx.helper import np_dtype_to_tensor_dtype
from onnx.numpy_helper import from_array
from skl2onnx.common.data_types import (
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from skl2onnx.common.utils_classifier import get_label_classes

from sklboost.data.encoding import Encoding
from sklboost.data.table import LARGEST_EXACT
from sklboost.engine.model import Model
from sklboost.estimators.base import BaseBooster
from sklboost.estimators.classifier import XGBClassifierLite
from sklboost.estimators.distribution import XGBDistributionLite
from sklboost.estimators.forests import XGBRFClassifierLite, XGBRFRegressorLite
from sklboost.estimators.predict.fitted_model import FittedModel, fitted_model
from sklboost.estimators.ranker import XGBRankerLite
from sklboost.estimators.regressor import XGBRegressorLite
from sklboost.estimators.survival import XGBSurvivalLite
from sklboost.objectives.domains import IDENTITY, LOG, LOG_ODDS, SOFTMAX
from sklboost.objectives.loss import Loss
from sklboost.objectives.losses.classes import HingeLoss, OneVsRest
from sklboost.objectives.losses.regression import OrderedAlphas, SquaredLogError
from sklboost.tree.predict.category_bits import listed_categories

__all__ = ["input_types", "register"]

_ML_DOMAIN = "ai.onnx.ml"  # the domain of trees and of the encoding of categories
# skl2onnx writes nothing later than version 3 of this domain, the first to have trees of float64.
_ML_VERSION = 3
_ML_VERSIONS = {"LabelEncoder": 2, "TreeEnsembleRegressor": _ML_VERSION}


class _Graph:
    """A part of the graph that skl2onnx makes; `scope` and `container` are what converters get."""

    def __init__(self, scope: Any, container: Any):
        self._scope, self._container = scope, container

    def add(
        self,
        op_type: str,
        *inputs: str,
        result: str | None = None,
        n_results: int = 1,
        **attributes: Any,
    ) -> str:
        """Add a node and return the name of its first result, a new one if none is given."""
        names = [self._scope.get_unique_variable_name(op_type) for _ in range(n_results)]
        if result is not None:
            names[0] = result
        version = _ML_VERSIONS.get(op_type)
        self._container.add_node(
            op_type,
            list(inputs),
            names,
            op_domain="" if version is None else _ML_DOMAIN,
            op_version=version,
            name=self._scope.get_unique_operator_name(op_type),
            **attributes,
        )
        return names[0]

    def cast(self, values: str, dtype: Any, result: str | None = None) -> str:
        """Add a node that converts values to a NumPy dtype."""
        return self.add("Cast", values, result=result, to=np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def filled(self, like: str, value: float) -> str:
        """Add a table of one number in the shape of another table."""
        shape = self.add("Shape", like)
        return self.add("ConstantOfShape", shape, value=from_array(np.array([value])))

    def constant(self, values: Any) -> str:
        """Add a constant: numbers of their own dtype, or text."""
        array = np.asarray(values)
        name = self._scope.get_unique_variable_name("constant")
        is_text = array.dtype.kind in "UO"
        kind = TensorProto.STRING if is_text else np_dtype_to_tensor_dtype(array.dtype)
        content = [text.encode() for text in array.flat] if is_text else array.ravel().tolist()
        self._container.add_initializer(name, kind, list(array.shape), content)
        return name


_INT64 = np.iinfo(np.int64)


class _Column(NamedTuple):
    """A feature, the input that has its values, and in which of how many columns of it."""

    feature: int
    variable: Any
    position: int
    width: int
    is_category: bool


def _add_features(graph: _Graph, inputs: Sequence[Any], fitted: FittedModel) -> str:
    """Add what makes one table of all features, shape (n_samples, n_features), of the inputs."""
    pieces = []
    # neighbouring numbers of one input stay together
    for _, group in itertools.groupby(
        _columns(inputs, fitted),
        lambda column: (column.variable.full_name, column.feature if column.is_category else -1),
    ):
        columns = list(group)
        first, values = columns[0], columns[0].variable.full_name
        if len(columns) < first.width:
            positions = graph.constant(np.array([column.position for column in columns]))
            values = graph.add("Gather", values, positions, axis=1)
        add = _add_codes if first.is_category else _add_numbers
        pieces.append(add(graph, values, first, fitted))
    return pieces[0] if len(pieces) == 1 else graph.add("Concat", *pieces, axis=1)


def _columns(inputs: Sequence[Any], fitted: FittedModel) -> list[_Column]:
    """Return where each feature is; ValueError if the inputs are others than the model's."""
    n_features = fitted.model.n_features
    shapes = [variable.type.shape for variable in inputs]
    # the width may be unknown: then an only input has all features
    unknown = n_features if len(inputs) == 1 else 1
    widths = [(shape[1] if len(shape) == 2 else None) or unknown for shape in shapes]
    if sum(widths) != n_features:
        raise ValueError(
            f"the inputs {_names(inputs)} have {sum(widths)} columns, and the model has "
            f"{n_features} features: pass initial_types=sklboost.onnx.input_types(model), or rows "
            "that the model predicts as X"
        )
    places = [
        (variable, position, width)
        for variable, width in zip(inputs, widths, strict=True)
        for position in range(width)
    ]
    encodings = fitted.encodings or (Encoding(),) * n_features
    for encoding, name in zip(encodings, fitted.feature_names, strict=True):
        _category_keys(encoding, name)  # refuses what a graph cannot read
    return [
        _Column(feature, *places[place], encodings[feature].kind == "category")
        for feature, place in enumerate(_order(inputs, fitted))
    ]


def _order(inputs: Sequence[Any], fitted: FittedModel) -> Sequence[int]:
    """Return the column of each feature: by name if the inputs are the columns of a frame."""
    given, known = _names(inputs), fitted.feature_names
    if len(given) < len(known) or not set(given) & set(known):
        return range(len(known))
    if sorted(given) != sorted(known):
        raise ValueError(
            f"the inputs are {given}, and the features of the model are {known}: give the inputs "
            "these names, in any order, or none of them"
        )
    return [given.index(name) for name in known]


def _names(inputs: Sequence[Any]) -> list[str]:
    return [variable.raw_name for variable in inputs]


# --- numbers


def _add_numbers(graph: _Graph, values: str, column: _Column, fitted: FittedModel) -> str:
    kind, missing = column.variable.type, fitted.features.missing
    if isinstance(kind, StringTensorType):
        raise ValueError(
            f"the input {column.variable.raw_name!r} is text, and the feature "
            f"{fitted.feature_names[column.feature]!r} of the model holds numbers: pass "
            "initial_types=sklboost.onnx.input_types(model), or encode the text in the pipeline"
        )
    if not isinstance(kind, DoubleTensorType):
        values = graph.cast(values, np.float64)
    if math.isnan(missing):
        return values
    # as NumPy compares float32 with a number of Python
    marker = np.float64(np.float32(missing) if isinstance(kind, FloatTensorType) else missing)
    is_missing = graph.add("Equal", values, graph.constant(marker))
    return graph.add("Where", is_missing, graph.constant(np.float64(np.nan)), values)


# --- categories


def _category_keys(encoding: Encoding, name: str) -> list[Any]:
    """Return the categories of a feature as text or int, as graphs can look them up."""
    if encoding.kind == "time" or len(encoding.ranks) > 0:
        kind = "times" if encoding.kind == "time" else "integers beyond 2^53"
        raise ValueError(
            f"the feature {name!r} holds {kind}, which ONNX cannot compare: turn it into smaller "
            "numbers, such as days since a date, before fit"
        )
    values = encoding.listed_categories
    if encoding.is_of_text:
        return values
    is_whole = [  # NumPy's spans of time are integers, too
        not isinstance(v, np.timedelta64)
        and (isinstance(v, Integral) or (isinstance(v, float) and v.is_integer()))
        for v in values
    ]
    if not all(is_whole) or not all(_INT64.min <= v <= _INT64.max for v in values):
        strange = values[is_whole.index(False)] if False in is_whole else max(values, key=abs)
        raise ValueError(
            f"the feature {name!r} has the category {strange!r}: in ONNX all categories of a "
            "feature are text, or all are integers of 64 bits; turn them into text before fit"
        )
    return [int(value) for value in values]


def _add_codes(graph: _Graph, values: str, column: _Column, fitted: FittedModel) -> str:
    """Add the look-up of a category's codes; unknown ones and missing values become NaN."""
    assert fitted.encodings is not None
    encoding, name = fitted.encodings[column.feature], fitted.feature_names[column.feature]
    if encoding.is_coded:
        # numbers rounded down; those that are no code become the last one, NaN stays
        codes = graph.add("Floor", _add_numbers(graph, values, column, fitted))
        last = graph.constant(np.float64(encoding.n_categories - 1))
        is_below = graph.add("Less", codes, graph.constant(np.float64(0.0)))
        is_none = graph.add("Or", is_below, graph.add("Greater", codes, last))
        return graph.add("Where", is_none, last, codes)
    keys, kind = _category_keys(encoding, name), column.variable.type
    if not keys:  # the training has no value, so all are unknown
        return graph.filled(values, np.nan)
    if encoding.is_of_text != isinstance(kind, StringTensorType):
        raise ValueError(
            f"the input {column.variable.raw_name!r} is {type(kind).__name__}, and the categories "
            f"of the feature {name!r} are {'text' if encoding.is_of_text else 'numbers'}: pass "
            "initial_types=sklboost.onnx.input_types(model)"
        )
    tables: dict[str, Any] = dict(
        values_floats=encoding.codes.astype(float).tolist(), default_float=math.nan
    )
    if encoding.is_of_text:
        found = graph.add("LabelEncoder", values, keys_strings=keys, **tables)
        return graph.cast(found, np.float64)
    if not isinstance(kind, Int64TensorType) and any(abs(key) > LARGEST_EXACT for key in keys):
        raise ValueError(
            f"the feature {name!r} has categories beyond 2^53: declare the input "
            f"{column.variable.raw_name!r} as Int64TensorType"
        )
    whole = graph.cast(values, np.int64)
    found = graph.cast(graph.add("LabelEncoder", whole, keys_int64s=keys, **tables), np.float64)
    if not isinstance(kind, FloatTensorType | DoubleTensorType):
        return found
    # 1.5 and NaN are no categories, whatever integer they become
    is_whole = graph.add("Equal", graph.cast(whole, np.float64), graph.cast(values, np.float64))
    return graph.add("Where", is_whole, found, graph.constant(np.float64(np.nan)))


# --- trees

# Sums are given as float32. Leaf values in parts make them as exact as float64.
_N_PARTS = 3
_DIGITS_OF_FLOAT32 = 23  # one less, for the rounding of each tree's values
_NODE_DTYPE = np.dtype(
    [
        ("tree", np.int64),
        ("node", np.int64),  # counted from the tree's root
        ("feature", np.int64),
        ("mode", "U9"),
        ("value", np.float64),
        ("true", np.int64),
        ("false", np.int64),
        ("missing_true", np.int64),
    ]
)


def _add_sums(graph: _Graph, features: str, model: Model) -> str:
    """Add the sums of the leaf values of all trees, shape (n_samples, n_outputs), as float64."""
    sums = graph.add("TreeEnsembleRegressor", features, **_attributes(model))
    targets = np.arange(_N_PARTS * model.n_outputs).reshape(_N_PARTS, -1)
    exact = graph.cast(sums, np.float64)
    parts = [graph.add("Gather", exact, graph.constant(part), axis=1) for part in targets]
    return graph.add("Sum", *reversed(parts))  # the smallest first


def _attributes(model: Model) -> dict[str, Any]:
    """Return the attributes of the node that has all trees."""
    tree_of_nodes = np.repeat(np.arange(model.n_trees), np.diff(model.tree_starts))
    nodes = _with_chains(model, _nodes(model, tree_of_nodes))
    leaves = np.flatnonzero(model.nodes.left < 0)
    trees = tree_of_nodes[leaves]
    parts = _parts(model.values[:, leaves], trees)
    # output o has the targets o, n_outputs + o, ...
    first_outputs = trees * len(model.values) % model.n_outputs
    outputs = first_outputs + np.arange(len(model.values))[:, np.newaxis]
    targets = outputs + model.n_outputs * np.arange(_N_PARTS)[:, np.newaxis, np.newaxis]
    n_values = parts.size // len(leaves)  # of a leaf
    return dict(
        n_targets=_N_PARTS * model.n_outputs,
        nodes_treeids=nodes["tree"].tolist(),
        nodes_nodeids=nodes["node"].tolist(),
        nodes_featureids=nodes["feature"].tolist(),
        nodes_modes=nodes["mode"].tolist(),
        nodes_values_as_tensor=from_array(nodes["value"].copy(), "nodes_values"),
        nodes_truenodeids=nodes["true"].tolist(),
        nodes_falsenodeids=nodes["false"].tolist(),
        nodes_missing_value_tracks_true=nodes["missing_true"].tolist(),
        target_treeids=np.tile(trees, n_values).tolist(),
        target_nodeids=np.tile(leaves - model.tree_starts[trees], n_values).tolist(),
        target_ids=targets.ravel().tolist(),
        target_weights_as_tensor=from_array(parts.ravel(), "target_weights"),
    )


def _parts(values: np.ndarray, trees: np.ndarray) -> np.ndarray:
    """Return leaf values as several numbers each, of which float32 holds the sums.

    Each part except the last is rounded to a power of two such that all sums of it are float32
    numbers; the last is the rest. All have the shape of `values`, (n_tree_outputs, n_leaves).
    """
    parts = []
    for _ in range(_N_PARTS - 1):
        largest = np.zeros(trees[-1] + 1)
        np.maximum.at(largest, trees, np.abs(values).max(axis=0))
        # no sum is 2^exponent or more; beyond 2^-100 float32 soon ends
        exponent = max(-100, np.frexp(largest.sum())[1])
        step = np.ldexp(1.0, exponent - _DIGITS_OF_FLOAT32)
        parts.append(np.rint(values / step) * step)
        values = values - parts[-1]
    return np.stack([*parts, values])


def _nodes(model: Model, trees: np.ndarray) -> np.ndarray:
    """Return all nodes; splits on a set of categories have the threshold NaN."""
    nodes = np.zeros(len(model.nodes), dtype=_NODE_DTYPE)
    is_split = model.nodes.left >= 0
    nodes["tree"] = trees
    nodes["node"] = np.arange(len(nodes)) - model.tree_starts[trees]
    nodes["mode"] = np.where(is_split, "BRANCH_LT", "LEAF")
    for name, values in (
        ("feature", model.nodes.feature),
        ("value", model.nodes.threshold),
        ("true", model.nodes.left),
        ("false", model.nodes.right),
        ("missing_true", model.nodes.default_left),
    ):
        nodes[name] = np.where(is_split, values, 0)
    return nodes


def _with_chains(model: Model, nodes: np.ndarray) -> np.ndarray:
    """Return the nodes with a chain of them for each set of categories."""
    links = []
    n_nodes = np.diff(model.tree_starts)
    for position in np.flatnonzero(np.isnan(nodes["value"])).tolist():
        chain = _chain(nodes[position], listed_categories(model.tops.bits, position))
        tree, n_more = chain["tree"][0], len(chain) - 1
        chain["node"][1:] = n_nodes[tree] + np.arange(n_more)
        chain["false"][:-1] = chain["node"][1:]
        n_nodes[tree] += n_more
        nodes[position] = chain[0]
        links.append(chain[1:])
    if not links:
        return nodes
    nodes = np.concatenate([nodes, *links])
    return nodes[np.lexsort([nodes["node"], nodes["tree"]])]  # the root of each tree comes first


def _chain(split: np.void, codes: np.ndarray) -> np.ndarray:
    """Return a node for each place between codes that go left and codes that go right.

    Codes below the first place go right, those up to the second one left, and so on; missing values
    pass all nodes but the first that leads to the left. The nodes have no links to one another yet.
    """
    starts, stops = np.setdiff1d(codes, codes + 1), np.setdiff1d(codes + 1, codes)
    # without any code, missing values alone go left
    places = np.stack([starts, stops], axis=1).ravel() if len(codes) > 0 else np.zeros(2)
    chain = split.repeat(len(places))
    chain["value"] = places
    chain["true"][::2] = split["false"]
    chain["missing_true"] = 0
    chain["missing_true"][1] = split["missing_true"]
    return chain


# --- predictions

_LARGEST = 700.0  # the largest exponent of e, as in sklboost/objectives/domains.py
_Formula = Callable[[_Graph, str, FittedModel], str]


def _prediction_formula(fitted: FittedModel) -> _Formula | None:
    """Return what adds the predictions, of a classifier its probabilities, to a graph.

    None if the loss computes them by a method of its own, which is not known here.
    """
    if fitted.targets.is_constant:
        return lambda graph, scores, fitted: graph.filled(scores, 1.0)
    method = fitted.targets.link(fitted.loss)
    return _FORMULAS.get(getattr(method, "__func__", method))


def _add_class_scores(graph: _Graph, scores: str, fitted: FittedModel) -> str:
    """Add a raw score for each class; the scores of two classes are each other's negative."""
    if not _is_of_two_classes(fitted):
        return scores
    return graph.add("Concat", graph.add("Neg", scores), scores, axis=1)


def _add_labels(graph: _Graph, scores: str, fitted: FittedModel, classes: np.ndarray) -> str:
    """Add the most probable class of each row; of several labels 1 for each likely one."""
    if fitted.targets.task == "multilabel":
        return graph.cast(_is_positive(graph, scores), np.int64)
    if _is_of_two_classes(fitted):
        number = graph.cast(_is_positive(graph, scores), np.int64)
        number = graph.add("Reshape", number, graph.constant(np.array([-1])))
    else:
        number = graph.add("ArgMax", scores, axis=1, keepdims=0)
    return graph.add("Gather", graph.constant(classes), number)


def _is_of_two_classes(fitted: FittedModel) -> bool:
    return fitted.targets.task == "binary" and not fitted.targets.is_constant


def _is_positive(graph: _Graph, scores: str) -> str:
    return graph.add("Greater", scores, graph.constant(0.0))


def _softmax(graph: _Graph, scores: str) -> str:
    return graph.add("Softmax", scores, axis=1)


def _exponentials(graph: _Graph, scores: str) -> str:
    in_range = graph.add("Max", scores, graph.constant(-_LARGEST))
    return graph.add("Exp", graph.add("Min", in_range, graph.constant(_LARGEST)))


_LINKS: dict[str, Callable[[_Graph, str], str]] = {
    IDENTITY: lambda graph, scores: scores,
    LOG: _exponentials,
    LOG_ODDS: lambda graph, scores: graph.add("Sigmoid", scores),
    SOFTMAX: _softmax,
}


def _by_link(graph: _Graph, scores: str, fitted: FittedModel) -> str:
    return _LINKS[fitted.loss.link](graph, scores)


def _class_probabilities(graph: _Graph, scores: str, fitted: FittedModel) -> str:
    return _by_link(graph, _add_class_scores(graph, scores, fitted), fitted)


def _in_order(graph: _Graph, scores: str, fitted: FittedModel) -> str:
    """Sort the alphas of each target: output ``a * n_targets + t`` is alpha a of target t."""
    n_outputs, n_targets = fitted.model.n_outputs, fitted.targets.size
    n_alphas = n_outputs // n_targets
    if n_alphas == 1:
        return scores
    by_alpha = graph.constant(np.array([-1, n_alphas, n_targets]))
    alphas, all_of_them = graph.add("Reshape", scores, by_alpha), graph.constant([n_alphas])
    ordered = graph.add("TopK", alphas, all_of_them, n_results=2, axis=1, largest=0)
    return graph.add("Reshape", ordered, graph.constant(np.array([-1, n_outputs])))


def _powers_less_one(graph: _Graph, scores: str, fitted: FittedModel) -> str:
    powers = graph.add("Exp", graph.add("Min", scores, graph.constant(_LARGEST)))
    return graph.add("Sub", powers, graph.constant(1.0))


def _one_vs_rest(graph: _Graph, scores: str, fitted: FittedModel) -> str:
    """Divide logistic probabilities by their sum: as logarithms, none of which rounds to 0."""
    # log(1 / (1 + e^-z)) = min(z, 0) - log(1 + e^-|z|); onnxruntime has no Softplus of float64
    decay = graph.add("Exp", graph.add("Neg", graph.add("Abs", scores)))
    rest = graph.add("Log", graph.add("Add", decay, graph.constant(1.0)))
    logarithms = graph.add("Sub", graph.add("Min", scores, graph.constant(0.0)), rest)
    return _softmax(graph, logarithms)


def _steps(graph: _Graph, scores: str, fitted: FittedModel) -> str:
    return graph.cast(_is_positive(graph, scores), np.float64)


def _two_steps(graph: _Graph, scores: str, fitted: FittedModel) -> str:
    is_one = _steps(graph, scores, fitted)
    return graph.add("Concat", graph.add("Sub", graph.constant(1.0), is_one), is_one, axis=1)


# By the method that computes the same of arrays: losses with other methods are not here.
_FORMULAS: dict[Any, _Formula] = {
    Loss.predictions: _by_link,
    Loss.probabilities: _class_probabilities,
    OrderedAlphas.predictions: _in_order,
    SquaredLogError.predictions: _powers_less_one,
    OneVsRest.probabilities: _one_vs_rest,
    HingeLoss.predictions: _steps,
    HingeLoss.probabilities: _two_steps,
}


# --- types of the outputs


def _set_regressor_types(operator: Any) -> None:
    """Set the type of the predictions, shape (n_samples, n_outputs)."""
    fitted = _convertible(operator)
    n_samples = operator.inputs[0].get_first_dimension()
    operator.outputs[0].set_type(_number_type(operator)([n_samples, fitted.model.n_outputs]))


def _set_classifier_types(operator: Any) -> None:
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
def _convert_regressor(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of predictions, or of raw scores if the option asks for them."""
    fitted, graph = _convertible(operator), _graph(scope, container)
    scores = _add_scores(graph, operator, fitted)
    if not _wants_raw_scores(operator):
        formula = _prediction_formula(fitted)
        assert formula is not None  # _convertible has asked
        scores = formula(graph, scores, fitted)
    _add_result(graph, scores, operator.outputs[0])


@np.errstate(all="ignore")
def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of labels, and of probabilities, or raw scores if the option asks for them."""
    fitted, graph = _convertible(operator), _graph(scope, container)
    scores = _add_scores(graph, operator, fitted)
    label, number = operator.outputs
    labels = _add_labels(graph, scores, fitted, _classes(operator))
    graph.add("Identity", labels, result=label.full_name)
    formula = _add_class_scores if _wants_raw_scores(operator) else _prediction_formula(fitted)
    assert formula is not None  # _convertible has asked
    _add_result(graph, formula(graph, scores, fitted), number)


def _graph(scope: Any, container: Any) -> _Graph:
    version = container.target_opset_any_domain(_ML_DOMAIN)
    if version < _ML_VERSION:
        raise ValueError(
            f"target_opset has {_ML_DOMAIN!r}: {version}, and trees of float64 came with "
            f"{_ML_VERSION}: pass target_opset={{'': 18, {_ML_DOMAIN!r}: {_ML_VERSION}}}"
        )
    return _Graph(scope, container)


def _add_scores(graph: _Graph, operator: Any, fitted: FittedModel) -> str:
    """Add the raw scores, shape (n_samples, n_outputs), float64."""
    features = _add_features(graph, operator.inputs, fitted)
    sums = _add_sums(graph, features, fitted.model)
    return graph.add("Add", sums, graph.constant(fitted.model.base_score + fitted.shift))


def _add_result(graph: _Graph, numbers: str, output: Any) -> None:
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
    if _prediction_formula(fitted) is None:
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
            *(estimator_class, "SklboostClassifier", _set_classifier_types, _convert_classifier),
            options=_CLASSIFIER_OPTIONS,
        )
    elif issubclass(estimator_class, BaseBooster):
        update_registered_converter(
            *(estimator_class, "SklboostRegressor", _set_regressor_types, _convert_regressor),
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
        keys = _category_keys(encoding, name)
        kind = DoubleTensorType
        if encoding.is_of_text:
            kind = StringTensorType
        elif any(abs(key) > LARGEST_EXACT for key in keys):
            kind = Int64TensorType
        types.append((name, kind([None, 1])))
    return types


for _estimator in (
    *(XGBClassifierLite, XGBRegressorLite, XGBRFClassifierLite, XGBRFRegressorLite),
    *(XGBRankerLite, XGBDistributionLite, XGBSurvivalLite),
):
    register(_estimator)
