"""A case: an estimator, its parameters and data, the same for the same seed and number."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sklboost import (
    EarlyStopping,
    XGBClassifierLite,
    XGBDistributionLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBRFClassifierLite,
    XGBRFRegressorLite,
    XGBSurvivalLite,
    survival_targets,
)
from sklboost.objectives.registry import DISTRIBUTIONS, OBJECTIVES
from tests.soak.columns import LABELS, TARGETS, Random, draw_frame, draw_matrix

# More often than others, as they are by users.
REGRESSORS = [*[XGBRegressorLite] * 3, XGBRFRegressorLite]
CLASSIFIERS = [*[XGBClassifierLite] * 3, XGBRFClassifierLite]
OTHERS = [XGBDistributionLite, XGBRankerLite, XGBSurvivalLite]
ESTIMATORS = [*REGRESSORS * 2, *CLASSIFIERS * 2, *OTHERS]
# What is mostly refused.
_ONE_ROUND = ["num_parallel_tree", "early_stopping_rounds", "booster", "warm_start", "callbacks"]
_SELDOM_WITH = {
    XGBRFRegressorLite: _ONE_ROUND,
    XGBRFClassifierLite: _ONE_ROUND,
    XGBDistributionLite: ["base_score", "monotone_constraints", "eval_metric"],
    XGBRankerLite: ["base_score", "eval_metric"],
    XGBSurvivalLite: ["base_score", "eval_metric"],
}


class Case(NamedTuple):
    """A fit.

    Attributes
    ----------
    estimator : type
    parameters : dict
    X : ndarray of float64 or DataFrame
    y : ndarray
    arguments : dict
        Of `fit`.
    """

    estimator: type
    parameters: dict[str, Any]
    X: Any
    y: np.ndarray
    arguments: dict[str, Any]

    def fit(self, X: Any = None, **changes: Any) -> Any:
        """Fit on its own features or on `X`, with other values of some parameters."""
        model = self.estimator(**self.parameters | changes)
        return model.fit(self.X if X is None else X, self.y, **self.arguments)

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        kind = "frame" if isinstance(self.X, pd.DataFrame) else "numbers"
        return f"{self.estimator.__name__}({given}), {kind} {self.X.shape}, {[*self.arguments]}"


def draw_case(seed: int, number: int, *, is_tiny: bool = False) -> Case:
    """Return case `number`; a tiny one is soon done by kernels that are not compiled, too."""
    random = np.random.default_rng([seed, number])
    n_rows, n_features = _draw_shape(random, is_tiny)
    is_frame = random.random() < 0.25
    X = (draw_frame if is_frame else draw_matrix)(random, n_rows, n_features)
    estimator = ESTIMATORS[random.integers(len(ESTIMATORS))]
    names = estimator().get_params()
    parameters = {
        name: draw(random, n_features)
        for name, draw in PARAMETERS.items()
        if name in names and random.random() < _likely(name)
    }
    if random.random() < 0.5:  # as other libraries have categories in columns of numbers
        for feature in parameters.get("categorical_features", ()):
            _set_codes(random, X, feature)
    y = _draw_targets_of(estimator, random, X)
    # a preset compares many fits
    for name in [*_SELDOM_WITH.get(estimator, ()), *["preset"] * (n_rows > 300)]:
        parameters.pop(name, None)
    if is_tiny:  # its float32 numbers are rounded in another way where kernels are interpreted
        parameters.pop("sampling_method", None)
    if estimator is XGBDistributionLite and random.random() < 0.8:  # that few rows have splits
        parameters |= {"gamma": 0.0, "min_child_samples": 1}
    parameters["n_estimators"] = int(random.integers(1, 4 if is_tiny else 12))
    parameters.setdefault("random_state", int(random.integers(100)))
    objectives = _objectives_of(estimator)
    if objectives and random.random() < 0.4:
        parameters["objective"] = objectives[random.integers(len(objectives))]
    arguments = _draw_arguments(random, X, y)
    if estimator is XGBRankerLite:
        arguments = _with_queries(random, arguments, n_rows)
    return Case(estimator, parameters, X, y, arguments)


def _draw_shape(random: Random, is_tiny: bool) -> tuple[int, int]:
    if is_tiny:
        return int(random.choice([1, 2, 5, 12, 25])), int(random.choice([1, 2, 3]))
    if random.random() < 0.02:
        return int(random.choice([5, 60])), 3000
    n_rows = int(random.choice([1, 2, 3, 7, 30, 100, 300, 1000, 5000]))
    return n_rows, int(random.choice([1, 2, 3, 5, 9, 40 if n_rows < 1000 else 9]))


def _set_codes(random: Random, X: Any, feature: int) -> None:
    codes = random.choice([3, 7, 12, 45], len(X))
    if isinstance(X, pd.DataFrame):
        X.isetitem(feature, codes)
    else:
        X[:, feature] = codes


def _draw_signal(random: Random, X: Any) -> np.ndarray:
    """Return noise, and what a column says: the order of numbers, or which value it is."""
    if isinstance(X, pd.DataFrame):
        known = pd.factorize(X.iloc[:, 0])[0] % 3
    else:
        known = 4.0 * np.argsort(np.argsort(X[:, 0])) / len(X)
    return random.normal(size=len(X)) + known


def _draw_targets(random: Random, X: Any) -> np.ndarray:
    kinds = list(TARGETS)
    columns = []
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        kind = kinds[random.integers(len(kinds))]
        columns.append(TARGETS[kind](random, _draw_signal(random, X)))
    if len(columns) == 1:
        return columns[0]
    y = np.column_stack(columns).astype(np.float64)
    if random.random() < 0.5:
        y[random.random(y.shape) < 0.2] = np.nan
    return y


def _draw_labels(random: Random, X: Any) -> np.ndarray:
    n_rows = len(X)
    n_classes = random.choice([2, 2, 2, 3, 6])
    codes = np.clip(_draw_signal(random, X), 0, n_classes - 1).astype(int)
    if random.random() < 0.1:  # several labels a row
        return (random.random((n_rows, 2)) < 0.5).astype(int)
    return LABELS[[*LABELS][random.integers(len(LABELS))]](codes)


def _draw_targets_of(estimator: type, random: Random, X: Any) -> np.ndarray:
    if estimator in CLASSIFIERS:
        return _draw_labels(random, X)
    if estimator in REGRESSORS:
        return _draw_targets(random, X)
    n_rows, signal = len(X), _draw_signal(random, X)
    if estimator is XGBRankerLite:
        return np.clip(np.round(signal), 0, 4 if random.random() < 0.7 else 1) + 0.0
    if estimator is XGBDistributionLite:
        kinds = ["plain", "ties", "constant", "heavy tails", "counts", "counts", "positive"]
        return TARGETS[kinds[random.integers(len(kinds))]](random, signal)
    time = np.exp(np.clip(signal, -3, 3))
    if random.random() < 0.3:
        time = np.ceil(time)
    entry = [None, time / 2][random.integers(2)]
    strata = [None, None, random.integers(0, 3, n_rows)][random.integers(3)]
    if random.random() < 0.3:
        upper = time * random.choice([1.0, 1.5, np.inf], n_rows)
        return survival_targets(lower=time, upper=upper, strata=strata)
    return survival_targets(random.random(n_rows) < 0.7, time, entry_time=entry, strata=strata)


def _objectives_of(estimator: type) -> list[str]:
    tasks = {XGBRankerLite: ["ranking"], XGBSurvivalLite: ["survival"], XGBDistributionLite: []}
    usual = ["binary", "multiclass"] if estimator in CLASSIFIERS else ["regression"]
    return [own.name for task in tasks.get(estimator, usual) for own in OBJECTIVES[task]]


def _with_queries(random: Random, arguments: dict[str, Any], n_rows: int) -> dict[str, Any]:
    """Return arguments of a ranker: rows of several queries, in any order."""
    qid = random.integers(0, random.choice([1, 3, max(1, n_rows // 5)]), n_rows)
    given = {name: value for name, value in arguments.items() if name != "groups"}
    if "sample_weight" in given:
        given["sample_weight"] = given["sample_weight"][qid % n_rows]
    if "X_val" in given:
        given["qid_val"] = random.integers(0, 3, len(given["y_val"]))
    return given | {"qid": qid}


def _draw_arguments(random: Random, X: Any, y: np.ndarray) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    n_rows = len(y)
    if random.random() < 0.4:
        weights = [
            random.integers(0, 4, n_rows).astype(float),
            random.exponential(size=n_rows),
            10.0 ** random.uniform(-9, 9, n_rows),
            np.full(n_rows, 1 / n_rows),
        ]
        arguments["sample_weight"] = weights[random.integers(len(weights))]
    if random.random() < 0.15:
        arguments["groups"] = random.integers(0, 4, n_rows)
    if random.random() < 0.2:
        rows = random.random(n_rows) < 0.5
        arguments |= {"X_val": X[rows], "y_val": y[rows]}
    if random.random() < 0.1 and y.ndim == 1:
        arguments["base_margin"] = random.normal(size=n_rows)
    return arguments


# --- parameters


def _one_of(*values: Any) -> Callable[[Random, int], Any]:
    return lambda random, n_features: values[random.integers(len(values))]


def _draw_monotone(random: Random, n_features: int) -> Any:
    return random.integers(-1, 2, n_features).tolist()


def _draw_interactions(random: Random, n_features: int) -> Any:
    if random.random() < 0.3:
        return ["pairwise", "no_interactions"][random.integers(2)]
    features = random.permutation(n_features).tolist()
    cut = random.integers(0, n_features + 1)
    return [part for part in (features[:cut], features[cut // 2 :]) if part]


def _draw_categorical(random: Random, n_features: int) -> Any:
    return np.flatnonzero(random.random(n_features) < 0.4).tolist()


PARAMETERS: dict[str, Callable[[Random, int], Any]] = {
    "preset": _one_of("auto"),
    "learning_rate": _one_of(0.0, 1e-9, 0.1, 1.0, 1.9),
    "base_score": _one_of(0.5, 0.1, 2.0),
    "num_parallel_tree": _one_of(2, 3),
    "booster": _one_of("dart"),
    "rate_drop": _one_of(0.3, 1.0),
    "skip_drop": _one_of(0.3, 1.0),
    "one_drop": _one_of(True),
    "sample_type": _one_of("weighted"),
    "normalize_type": _one_of("forest"),
    "quantile_alpha": _one_of(0.1, [0.1, 0.5, 0.9]),
    "expectile_alpha": _one_of(0.1, [0.2, 0.8]),
    "huber_slope": _one_of(1e-3, 5.0),
    "fair_c": _one_of(1e-3, 5.0),
    "tweedie_variance_power": _one_of(1.0, 1.1, 1.9, 2.0),
    "focal_gamma": _one_of(0.0, 0.5, 5.0),
    "max_depth": _one_of(0, 1, 2, 3, 12),
    "max_leaves": _one_of(2, 3, 8, 100, 10**6),
    "grow_policy": _one_of("lossguide", "symmetric"),
    "max_bin": _one_of(2, 3, 16, 1000, 65535),
    "reg_lambda": _one_of(0.0, 1e-300, 10.0, 1e300),
    "reg_alpha": _one_of(0.1, 1e3),
    "gamma": _one_of(1e-9, 0.5, 1e9),
    "min_child_weight": _one_of(0.0, 5e-6, 3.0, 1e9),
    "min_child_samples": _one_of(1, 3, 20),
    "max_delta_step": _one_of(1e-3, 1.0),
    "pruning": _one_of("full", "pre"),
    "ccp_alpha": _one_of(1e-3, 1.0),
    "keep_pruned": _one_of(True),
    "path_smooth": _one_of(0.5, 100.0),
    "extra_trees": _one_of(True),
    "linear_tree": _one_of(True),
    "linear_lambda": _one_of(0.0, 10.0),
    "max_cat_to_onehot": _one_of(1, 2, 100),
    "max_cat_threshold": _one_of(1, 3),
    "cat_smooth": _one_of(0.0, 100.0),
    "max_ctr_complexity": _one_of(1),
    "multi_strategy": _one_of("multi_output_tree"),
    "subsample": _one_of(0.01, 0.5, 0.9),
    "sampling_method": _one_of("gradient_based"),
    "colsample_bytree": _one_of(0.01, 0.5),
    "colsample_bylevel": _one_of(0.01, 0.5),
    "colsample_bynode": _one_of(0.01, 0.5),
    "categorical_features": _draw_categorical,
    "enable_categorical": _one_of(False),
    "unknown_category": _one_of("error"),
    "missing": _one_of(0.0, -1.0, 1e300),
    "monotone_constraints": _draw_monotone,
    "interaction_constraints": _draw_interactions,
    "feature_weights": lambda random, n_features: random.integers(0, 3, n_features).tolist(),
    "early_stopping_rounds": _one_of(1, 3),
    "validation_fraction": _one_of(0.01, 0.5),
    "validation_split": _one_of("time"),
    "eval_metric": _one_of("rmse", "mae", ["logloss", "error"]),
    "refit": _one_of(True),
    "max_time": _one_of(60.0),
    "callbacks": lambda random, n_features: [EarlyStopping(2)],
    "warm_start": _one_of(True),
    "n_jobs": _one_of(1, 2, -1),
    "random_state": _one_of(0, 2**32 - 1),
    "importance_type": _one_of("weight", "total_gain", "cover", "total_cover"),
    "class_weight": _one_of("balanced"),
    "scale_pos_weight": _one_of(0.01, 3.0),
    "calibrated_prior": _one_of(True),
    "distribution": _one_of(*DISTRIBUTIONS),
    "ties": _one_of("efron"),
    "aft_loss_distribution": _one_of("logistic", "extreme"),
    "aft_loss_distribution_scale": _one_of(0.1, 3.0),
    "lambdarank_pair_method": _one_of("mean"),
    "lambdarank_num_pair_per_sample": _one_of(1, 3),
    "lambdarank_normalization": _one_of(False),
    "lambdarank_score_normalization": _one_of(False),
    "lambdarank_unbiased": _one_of(True),
    "lambdarank_bias_norm": _one_of(0.0, 2.0),
    "ndcg_exp_gain": _one_of(False),
    "yeti_mode": _one_of("classic", "mrr"),
    "yeti_permutations": _one_of(1),
    "yeti_decay": _one_of(0.0, 0.5),
}
# Not drawn: what is printed. `n_estimators` and `objective` are drawn with the case.
NOT_DRAWN = {"verbose", "n_estimators", "objective"}
_SELDOM = {
    **{"distribution": 0.8, "ties": 0.3, "lambdarank_pair_method": 0.4},
    **{"preset": 0.03, "linear_tree": 0.05, "booster": 0.1, "early_stopping_rounds": 0.1},
    **{"callbacks": 0.03, "eval_metric": 0.05, "enable_categorical": 0.02, "missing": 0.05},
    **{"unknown_category": 0.05, "categorical_features": 0.1, "validation_split": 0.05},
}


def _likely(name: str) -> float:
    """Return how often a parameter is drawn: not so often that most cases are refused."""
    return _SELDOM.get(name, 0.12)
