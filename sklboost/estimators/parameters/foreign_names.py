"""Names in XGBoost, LightGBM, CatBoost and scikit-learn, and what to write here instead.

:data:`ALIASES` and :data:`WITHOUT_EFFECT` are parameters of XGBoost that the estimators take, too.
All other tables are for error messages: parameters, arguments of methods, attributes of estimators,
names in the package. Names of losses are in ``objectives/registry.py``.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

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
