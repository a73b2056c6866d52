"""The names under which estimators take parameters, and helpful errors for all others.

:data:`ALIASES` and :data:`WITHOUT_EFFECT` are parameters of XGBoost that the estimators take, too.
All other tables are for error messages: what XGBoost, LightGBM, CatBoost and scikit-learn call
parameters, arguments of methods, attributes of estimators and names in the package, and what to
write here instead. Names of losses are in ``objectives/registry.py``.
"""

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from sklboost.docstrings import Class, Function
from sklboost.estimators.parameters.rules import FLAG, is_integer

# Other spellings of parameters in XGBoost, accepted here as there. "lambda" needs **{...}.
ALIASES = {
    "eta": "learning_rate",
    "min_split_loss": "gamma",
    "lambda": "reg_lambda",
    "lambda_": "reg_lambda",
    "alpha": "reg_alpha",
    "nthread": "n_jobs",
    "seed": "random_state",
}

# Objectives named as in LightGBM that have the parameter "alpha" there, and its name here.
ALPHA_OF = {"quantile": "quantile_alpha", "huber": "huber_slope"}


class Ignored(NamedTuple):
    """A parameter of XGBoost without effect here."""

    accepts: Callable[[Any], bool]  # whether a value asks for what is done here anyway
    remedy: str  # what to do with another value


def _one_of(*values: Any) -> Callable[[Any], bool]:
    return lambda value: any(isinstance(value, type(one)) and value == one for one in values)


def _is_flag(value: Any) -> bool:
    return value is None or FLAG.holds(value) or (is_integer(value) and value in (0, 1))


def _is_count(value: Any) -> bool:
    return value is None or is_integer(value)


_HISTOGRAMS = "trees are always grown from histograms, leave it out"
_ONLY_CPU = "there is only the CPU, leave it out"
_PRINTED = "set 'verbose' instead"
_OF_CLASSIFIERS = "it is a parameter of classifiers"
WITHOUT_EFFECT = {
    "tree_method": Ignored(_one_of(None, "auto", "hist"), _HISTOGRAMS),
    "device": Ignored(_one_of(None, "cpu"), _ONLY_CPU),
    "gpu_id": Ignored(_one_of(None, -1), _ONLY_CPU),
    "predictor": Ignored(_one_of(None, "auto", "cpu_predictor"), _ONLY_CPU),
    "feature_types": Ignored(
        _one_of(None), "give a list of 'c' and 'q', or name categories in 'categorical_features'"
    ),
    "verbosity": Ignored(_is_count, _PRINTED),
    "silent": Ignored(_is_flag, _PRINTED),
    "process_type": Ignored(_one_of(None, "default"), "trees are always new ones, leave it out"),
    "updater": Ignored(_one_of(None, "grow_quantile_histmaker"), _HISTOGRAMS),
    "seed_per_iteration": Ignored(
        _is_flag, "rows and features are drawn anew for each round, leave it out"
    ),
    "max_cached_hist_node": Ignored(_is_count, "the memory is limited anyway, leave it out"),
    "validate_parameters": Ignored(_is_flag, "parameters are always validated, leave it out"),
    "use_label_encoder": Ignored(_is_flag, "labels of any kind are understood, leave it out"),
    "num_class": Ignored(_is_count, "the classes are read from y, leave it out"),
    "class_weight": Ignored(_one_of(None), _OF_CLASSIFIERS),
    "scale_pos_weight": Ignored(_one_of(None, 1, 1.0), _OF_CLASSIFIERS),
    "calibrated_prior": Ignored(_one_of(None, False), _OF_CLASSIFIERS),
}


def are_categories(feature_types: Any) -> list[bool] | None:
    """Return which features XGBoost's `feature_types` calls categories; None if it is no list."""
    if not isinstance(feature_types, list | tuple | np.ndarray):
        return None
    kinds = list(feature_types)
    is_known = all(isinstance(kind, str) and kind in _FEATURE_TYPES for kind in kinds)
    return [kind == "c" for kind in kinds] if is_known else None


_FEATURE_TYPES = ("c", "q", "i", "int", "float")
_OTHERS = {
    "n_estimators": "iterations max_iter n_iter n_trees nrounds num_boost_round num_iteration "
    "num_iterations num_round num_rounds num_tree num_trees",
    "learning_rate": "lr shrinkage shrinkage_rate",
    "base_score": "boost_from_average init",
    "booster": "boost boosting boosting_type",
    "rate_drop": "drop_rate",
    "sample_type": "uniform_drop",
    "normalize_type": "xgboost_dart_mode",
    "objective": "app application criterion loss loss_function objective_type",
    "quantile_alpha": "quantile",
    "max_depth": "depth",
    "max_leaves": "max_leaf max_leaf_nodes num_leaf num_leaves",
    "max_bin": "border_count max_bins",
    "reg_lambda": "l2 l2_leaf_reg l2_regularization lambda_l2",
    "reg_alpha": "l1 l1_regularization lambda_l1",
    "gamma": "min_gain_to_split min_impurity_decrease min_split_gain",
    "min_child_weight": "min_hessian min_sum_hessian min_sum_hessian_in_leaf "
    "min_sum_hessian_per_leaf",
    "min_child_samples": "min_data min_data_in_leaf min_data_per_leaf min_samples_leaf",
    "max_delta_step": "max_leaf_output max_tree_output",
    "extra_trees": "extra_tree",
    "linear_tree": "linear_trees",
    "max_cat_to_onehot": "one_hot_max_size",
    "subsample": "bagging bagging_fraction max_samples sub_row",
    "sampling_method": "bootstrap_type data_sample_strategy",
    "colsample_bytree": "colsample feature_fraction sub_feature",
    "colsample_bylevel": "rsm",
    "colsample_bynode": "feature_fraction_bynode max_features sub_feature_bynode",
    "categorical_features": "cat_column cat_feature cat_features categorical_column "
    "categorical_feature",
    "monotone_constraints": "mc monotone_constraint monotonic_cst",
    "interaction_constraints": "interaction_cst",
    "early_stopping_rounds": "early_stopping early_stopping_round n_iter_no_change od_wait",
    "validation_fraction": "eval_fraction",
    "eval_metric": "metric metric_types metrics scoring",
    "max_time": "max_train_time time_limit",
    "n_jobs": "nthreads num_thread num_threads thread_count",
    "random_state": "random_seed",
    "verbose": "logging_level verbose_eval",
    "class_weight": "auto_class_weights class_weights is_unbalance unbalance unbalanced_sets",
}
# Names in LightGBM, CatBoost and scikit-learn -> the parameter that does the same here.
OTHER_NAMES = {name: own for own, names in _OTHERS.items() for name in names.split()}
# The same for arguments of fit and predict.
OTHER_ARGUMENTS = {
    "eval_X": "X_val",
    "eval_y": "y_val",
    "eval_sample_weight": "sample_weight_eval_set",
    "init_score": "base_margin",
    "eval_init_score": "base_margin_eval_set",
    "raw_score": "output_margin",
    "pred_contrib": "pred_contribs",
    "ntree_limit": "iteration_range",
    "num_iteration": "iteration_range",
}

_NODES = "trees_to_dataframe() has the nodes, get_score() the importances, model_ the arrays"
_BOOSTER = f"to_xgboost() makes one; {_NODES}"
_AFTER_STOPPING = "it is known after early stopping only: set early_stopping_rounds"

# Attributes of estimators there, or of other estimators here -> where to find the same.
OTHER_ATTRIBUTES = {
    "get_booster": _BOOSTER,
    "booster_": _NODES,
    "estimators_": _NODES,
    "to_lightgbm": "save_model and to_xgboost are for XGBoost and treelite, sklboost.onnx for ONNX",
    "get_xgb_params": "get_params() returns the parameters",
    "best_iteration_": _AFTER_STOPPING,
    "best_score_": _AFTER_STOPPING,
    "coef_": "trees have no coefficients; shap_values(X) says what each feature adds to a row",
    "decision_function": "predict(X, output_margin=True) returns raw scores",
    "predict_proba": "a regressor predicts numbers; probabilities are for XGBClassifierLite",
    "feature_names_in_": "only columns whose names are all strings give it",
    "feature_name_": "it is feature_names_in_",
    "n_features_": "it is n_features_in_",
    "n_iter_": "it is n_estimators_",
    "validation_score_": "evals_result_ has the metrics of every round",
    "train_score_": "evals_result_ has the metrics of every round; of the training if X_val is X",
}

# Classes of what LightGBM's functions of callbacks return -> what to take here.
CALLBACKS_OF_LIGHTGBM = {
    "_EarlyStoppingCallback": "set early_stopping_rounds, or take sklboost.EarlyStopping",
    "_LogEvaluationCallback": "set verbose, the number of rounds between two lines",
    "_RecordEvaluationCallback": "leave it out, evals_result_ has the metrics of every round",
    "_ResetParameterCallback": "take sklboost.LearningRateScheduler; other parameters stay",
}

# Members of the packages -> what to take here.
OTHER_MEMBERS = {
    **{f"XGB{kind}": f"XGB{kind}Lite" for kind in ("Classifier", "Ranker", "Regressor")},
    **{f"XGBRF{kind}": f"XGBRF{kind}Lite" for kind in ("Classifier", "Regressor")},
    **{f"LGBM{kind}": f"XGB{kind}Lite" for kind in ("Classifier", "Ranker", "Regressor")},
    "callback": "sklboost.EarlyStopping and the other callbacks",
    "TrainingCheckPoint": "Checkpoint",
    "early_stopping": "EarlyStopping",
    "train": "XGBRegressorLite(...).fit(X, y) or XGBClassifierLite(...).fit(X, y)",
    "cv": "sklearn.model_selection.cross_validate(model, X, y)",
    "Booster": "load_model(path), from_xgboost(booster) or from_lightgbm(booster)",
    "DMatrix": "X itself, or sklboost.bin_features(X)",
    "Dataset": "X itself, or sklboost.bin_features(X)",
    "to_graphviz": "plot_tree",
    "plot_metric": "sklboost.displays.plot_learning_curve",
}

# Similarity, from 0 to 1, below which a name is not the misspelling of another.
_NEAR = 0.75


class UnknownParameterError(TypeError, ValueError):
    """A parameter that the estimator does not have, or that is given under two names.

    It is a TypeError, which Python's constructors raise, and a ValueError, which scikit-learn's
    ``set_params`` raises.
    """


def read_params(cls: Any, objective: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `set_params` is given, of an estimator of some `objective`, under our names."""
    _check_alpha({"objective": objective, **given})
    return read_names(given, _arguments(cls.__init__), cls.__name__, _unused(cls))


def read_names(
    given: Mapping[str, Any],
    known: Collection[str],
    owner: str,
    unused: Mapping[str, Ignored] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return parameters under the names that they have here, and leave out what has no effect."""
    read: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    for name, value in given.items():
        own = name if name in known else ALIASES.get(name, name)
        if name == "feature_types" and are_categories(value) is not None:
            own, value = "categorical_features", are_categories(value)
        if own.partition("__")[0] not in known:
            _check_ignored(name, value, known, owner, unused)
        elif own not in read or read[own] is None:
            read[own], spelled[own] = value, name
        elif value is not None:
            raise UnknownParameterError(
                f"{spelled[own]}={read[own]!r} and {name}={value!r}: {owner} has one parameter for "
                f"both; give {own!r} alone"
            )
    return read


def _check_alpha(given: Mapping[str, Any]) -> None:
    """Raise UnknownParameterError for an `alpha` that LightGBM and XGBoost read differently."""
    objective, alpha = given.get("objective"), given.get("alpha")
    if alpha is not None and isinstance(objective, str) and objective in ALPHA_OF:
        raise UnknownParameterError(
            f"alpha={alpha!r} with objective={objective!r}: LightGBM's alpha is "
            f"{ALPHA_OF[objective]!r} here, XGBoost's is 'reg_alpha'; give one of these"
        )


def _check_ignored(
    name: str, value: Any, known: Collection[str], owner: str, unused: Mapping[str, Ignored]
) -> None:
    """Raise UnknownParameterError unless this is a value without effect of a known name."""
    ignored = unused.get(name, WITHOUT_EFFECT.get(name))
    if ignored is None:
        near = _nearest(name, {**dict.fromkeys(WITHOUT_EFFECT), **_spellings([*known, *unused])})
        remedy = "" if near is None else f" did you mean {near!r}?"
        raise UnknownParameterError(
            f"{owner} has no parameter {name!r};{remedy} help({owner}) lists its parameters"
        )
    if not ignored.accepts(value):
        raise UnknownParameterError(
            f"{name}={value!r} is not supported by {owner}: {ignored.remedy}"
        )


def checks_arguments(method: Function) -> Function:
    """Decorate a method: a helpful TypeError for an argument that it does not have.

    None for a parameter of the estimator says nothing: XGBoost's `fit` once had some of them.
    """
    check = argument_check(method)

    @functools.wraps(method)
    def checked(self: Any, *arguments: Any, **named: Any) -> Any:
        if named:
            check(self, named)
        try:
            return method(self, *arguments, **named)
        except TypeError as error:
            where, text = f"{method.__qualname__}()", str(error)
            if not text.startswith(where):
                raise
            own = f"{type(self).__name__}.{method.__name__}()"
            raise TypeError(own + text.removeprefix(where)) from None

    return checked  # type: ignore[return-value]  # the signature is the same


def methods_checked(cls: Class) -> Class:
    """Decorate the methods of a class, also inherited ones, to name unknown arguments."""
    for name in filter(lambda name: not name.startswith("_"), dir(cls)):
        method = inspect.getattr_static(cls, name)
        is_own = inspect.isfunction(method) and method.__module__.startswith("sklboost.")
        if is_own and not _takes_any(method):
            checked = checks_arguments(method)
            checked.__qualname__, checked.__module__ = f"{cls.__name__}.{name}", cls.__module__
            setattr(cls, name, checked)
    return cls


def argument_check(method: Function) -> Callable[[Any, dict[str, Any]], None]:
    """Return the check of a method's named arguments, which may take some of them out."""
    known = _arguments(method)

    def check(self: Any, named: dict[str, Any]) -> None:
        for name in [name for name in named if name not in known]:
            if named[name] is None and name in _arguments(type(self).__init__):
                del named[name]
            else:
                where = f"{type(self).__name__}.{method.__name__}()"
                remedy = _remedy(name, known, type(self))
                raise TypeError(f"{where} got an unexpected keyword argument {name!r}{remedy}")

    return check


def _remedy(name: str, known: list[str], cls: Any) -> str:
    """Name the nearest of the arguments of a method and the parameters of its class."""
    others = {other: own for other, own in OTHER_ARGUMENTS.items() if own in known}
    arguments = {**dict(zip(known, known, strict=True)), **others}
    spellings = {**_spellings(_arguments(cls.__init__)), **arguments}
    near = _nearest(name, spellings)
    if near in known:
        return f"; did you mean {near!r}?"
    listed = f"the arguments are {', '.join(known)}"
    if near is None:
        return f": {listed}"
    own = f": {near!r} is a parameter of the estimator, {cls.__name__}({near}=...)"
    return own if name in spellings else f"{own}; {listed}"


def _spellings(known: Collection[str]) -> dict[str, str]:
    """Return these parameters by all names that they have anywhere."""
    elsewhere = {**OTHER_NAMES, **ALIASES}
    return {
        **{name: own for name, own in elsewhere.items() if own in known},
        **{name: name for name in known},
    }


def _nearest(name: str, meant: Mapping[str, str | None]) -> str | None:
    """Return what a name means or may be a misspelling of; None if it is near to nothing."""
    near = [name] if name in meant else difflib.get_close_matches(name.lower(), meant, 1, _NEAR)
    return meant[near[0]] or near[0] if near else None


# --- constructors


def _unused(group: type) -> dict[str, Ignored]:
    """Return the parameters that a class has no use for: their defaults, or None, change nothing.

    A user's class need be no dataclass.
    """
    return {
        name: Ignored(functools.partial(_is_idle, known.default), known.metadata["unused"])
        for name, known in getattr(group, "__dataclass_fields__", {}).items()
        if "unused" in known.metadata
    }


def _is_idle(default: Any, value: Any) -> bool:
    if isinstance(default, float) and isinstance(value, Real):  # an equal number of any type
        return bool(value == default)
    return value is None or (type(value) is type(default) and bool(value == default))


def _arguments(method: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(method).parameters)[1:]


def wrap_constructor(estimator: type) -> None:
    """Make the constructor of a class read the names of its parameters, or show them all.

    It keeps the signature, from which scikit-learn reads the parameters.
    """
    owner = next(base for base in estimator.__mro__ if "__init__" in vars(base))
    constructor = vars(owner)["__init__"]
    if "__dataclass_fields__" in vars(owner):  # it was made of the parameters
        estimator.__init__ = _reading_names(constructor, owner)  # type: ignore[misc]
        # Python's errors name a function so, such as for a parameter given twice by a subclass
        estimator.__init__.__qualname__ = f"{estimator.__qualname__}.__init__"  # type: ignore[misc]
        estimator.__init__.__module__ = estimator.__module__  # type: ignore[misc]
    elif _takes_any(constructor):
        estimator.__init__ = _passing_on(constructor, estimator)  # type: ignore[misc]


def _reading_names(constructor: Callable[..., None], group: type) -> Callable[..., None]:
    """Wrap the constructor of a dataclass: other names for its arguments, and helpful errors."""
    parameters = inspect.signature(constructor).parameters.values()
    # help() shows names and defaults; types are in the docstring and, for type checkers, the source
    signature = inspect.Signature([own.replace(annotation=own.empty) for own in parameters])
    known, unused = list(signature.parameters)[1:], _unused(group)

    @functools.wraps(constructor)
    def __init__(self: Any, *arguments: Any, **parameters: Any) -> None:  # noqa: N807
        owner = type(self).__name__
        if arguments:
            raise TypeError(
                f"{owner} takes no positional arguments: name them, {owner}(n_estimators=100)"
            )
        _check_alpha(parameters)
        own = read_names(parameters, known, owner, unused)
        constructor(self, **own)
        self._note_given(own)

    # scikit-learn asks for it whenever it reads parameters, and making it takes 0.4 ms
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def _takes_any(constructor: Callable[..., None]) -> bool:
    parameters = inspect.signature(constructor).parameters.values()
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def _passing_on(constructor: Callable[..., None], cls: type) -> Callable[..., None]:
    """Wrap a constructor with ``**kwargs``: its signature names the parameters of the bases, too.

    So scikit-learn finds all of them, to copy the estimator and to set them.
    """

    @functools.wraps(constructor)
    def __init__(self: Any, *arguments: Any, **parameters: Any) -> None:  # noqa: N807
        constructor(self, *arguments, **parameters)

    named: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        if "__init__" not in vars(base):
            continue
        of_base = inspect.signature(base.__init__).parameters  # type: ignore[misc]
        for name, parameter in of_base.items():
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                kind = parameter.KEYWORD_ONLY if named else parameter.kind
                named.setdefault(name, parameter.replace(kind=kind))
        if not _takes_any(base.__init__):  # type: ignore[misc]
            break
    __init__.__signature__ = inspect.Signature(list(named.values()))  # type: ignore[attr-defined]
    return __init__
