"""Small models of every kind that a model file can hold, and the rows that they are asked about.

Data are formulas, not random numbers: they are the same for ever.
"""

import datetime
import decimal
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sklboost import (
    XGBClassifierLite,
    XGBDistributionLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBRFClassifierLite,
    XGBRFRegressorLite,
    XGBSurvivalLite,
    bin_features,
    survival_targets,
)
from sklboost.objectives.registry import OBJECTIVES

N_ROWS = 60
_I = np.arange(N_ROWS)
X = np.column_stack([(_I * step % 61) / 61.0 for step in (17, 29, 41)])
X[::7, 1] = np.nan
NUMBER = 3.0 * X[:, 0] + np.nan_to_num(X[:, 1]) * (X[:, 2] > 0.5) + 0.25
SHARE = NUMBER / 5.0
SEVERAL = np.column_stack([NUMBER, -NUMBER, X[:, 2]])
CLASS = np.digitize(NUMBER, [1.2, 2.4])
IS_HIGH = (NUMBER > 1.8).astype(int)
LABELS = np.column_stack([NUMBER > 1.2, NUMBER > 2.4])

_TINY = dict(n_estimators=2, max_depth=2, random_state=0, n_jobs=1)
_VECTOR = dict(multi_strategy="multi_output_tree")
_PARTS = np.array([4, 1, 3, 0, 2])[_I % 5]  # of columns of categories


def _regressor(y: Any = NUMBER, features: Any = X, fit: Any = None, **parameters: Any) -> Any:
    return XGBRegressorLite(**_TINY | parameters).fit(features, y, **fit or {})


def _classifier(y: Any = IS_HIGH, features: Any = X, fit: Any = None, **parameters: Any) -> Any:
    return XGBClassifierLite(**_TINY | parameters).fit(features, y, **fit or {})


def _one_split(task: str, objective: str) -> Callable[[], Any]:
    targets = {"regression": SHARE, "binary": IS_HIGH, "multiclass": CLASS, "multilabel": LABELS}
    fit = _regressor if task == "regression" else _classifier
    return lambda: fit(targets[task], objective=objective, n_estimators=1, max_depth=1)


def _with(column: Any) -> pd.DataFrame:
    """Return a frame of a column and a feature of numbers."""
    return pd.DataFrame({"special": column, "number": X[:, 0]})


def _of_column(column: Any, **parameters: Any) -> Callable[[], Any]:
    return lambda: _regressor(NUMBER + (_PARTS == 2), _with(column), **parameters)


def _of_categories(categories: list[Any]) -> Callable[[], Any]:
    return _of_column(pd.Categorical([categories[k] for k in _PARTS]))


def _continued() -> Any:
    return _regressor(n_estimators=1, fit=dict(init_model=_regressor(n_estimators=1)))


def _refitted() -> Any:
    settings = dict(early_stopping_rounds=2, refit=True, warm_start=True, n_estimators=6)
    return _classifier(**settings)


_TIMES = np.datetime64("2020-01-01", "D") + 40 * _PARTS
_LARGE = 2**62 + _PARTS
_COLUMNS: dict[str, Any] = {
    "datetime": _TIMES,
    "datetime of nanoseconds": _TIMES.astype("M8[ns]") + _PARTS,
    "timedelta": (_TIMES - _TIMES[0]).astype("m8[s]"),
    "ranks of int64": _LARGE,
    "ranks of uint64": _LARGE.astype(np.uint64) * 2,
    "ranks of times": np.datetime64("2020-01-01", "ns") + _LARGE // 2**4,
    "booleans": _PARTS % 2 == 0,
}
_CATEGORIES: dict[str, list[Any]] = {
    "text": ["a", "b", "c", "ü", ""],
    "integers": [-3, 0, 7, 2**40, 1],
    "floats": [0.1, -0.0, 1e300, 5e-324, 2.5],
    "booleans": [True, False, True, False, True],
    "mixed": ["1", 1.5, True, 3, "a"],
    "intervals": list(pd.interval_range(0, 5)),
    "intervals of times": list(pd.interval_range(pd.Timestamp("2020"), periods=5, closed="left")),
    "timestamps": [
        pd.Timestamp("2020-01-01 00:00:00.000000001"),
        *pd.date_range("2021", periods=4),
    ],
    "timedeltas": list(pd.timedelta_range("1h", periods=5)),
    "dates": [datetime.date(2020, 1, day) for day in range(1, 6)],
    "decimals": [decimal.Decimal(text) for text in ("0.1", "1E+3", "-7", "0.10001", "3")],
    "tuples": [("a", 1), ("a", 2), ("b", 1), ("b", 2.5), ("c", None)],
}
_LABEL_TYPES: dict[str, np.ndarray] = {
    "text": np.array(["no", "yes"]),
    "wide text": np.array(["no", "yes"], dtype="<U200"),
    "text objects": np.array(["no", "yes"], dtype=object),
    "booleans": np.array([False, True]),
    "integers": np.array([-7, 10**15]),
    "unsigned": np.array([1, 2], dtype=np.uint64) + 2**63,
    "floats": np.array([1.0, 5.0], dtype=np.float32),
    "days": np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"),
    "spans": np.array([1, 2], dtype="m8[h]"),
}
_NAMES: dict[str, list[Any]] = {
    "text": ["a", "b <&>\n", "ü"],
    "numbers": [10, 20, 30],
    "tuples": [("a", 1), ("a", 2), ("b", None)],
}

MODELS: dict[str, Callable[[], Any]] = {
    "regression": _regressor,
    "several targets": lambda: _regressor(SEVERAL),
    "vector trees": lambda: _regressor(SEVERAL, **_VECTOR),
    "vector trees of one target": lambda: _regressor(**_VECTOR),
    "two classes": _classifier,
    "three classes": lambda: _classifier(CLASS),
    "three classes, vector trees": lambda: _classifier(CLASS, **_VECTOR),
    "one class": lambda: _classifier(np.ones(N_ROWS)),
    "labels": lambda: _classifier(LABELS),
    "labels, vector trees": lambda: _classifier(LABELS.astype(float), **_VECTOR),
    "quantiles": lambda: _regressor(
        SEVERAL[:, :2], objective="reg:quantileerror", quantile_alpha=[0.2, 0.5, 0.8]
    ),
    "expectile": lambda: _regressor(
        objective="reg:expectileerror", expectile_alpha=np.array([0.3, 0.9])
    ),
    "linear leaves": lambda: _regressor(linear_tree=True),
    "linear leaves, categories": _of_column(pd.Categorical(_PARTS), linear_tree=True),
    "dart": lambda: _regressor(booster="dart", rate_drop=0.5, n_estimators=4),
    "parallel trees": lambda: _regressor(num_parallel_tree=3, subsample=0.6),
    "forest of regressors": lambda: XGBRFRegressorLite(**_TINY).fit(X, NUMBER),
    "forest of classifiers": lambda: XGBRFClassifierLite(**_TINY).fit(X, CLASS),
    "pruned": lambda: _regressor(gamma=0.5, max_depth=4),
    "pruned, kept": lambda: _regressor(gamma=0.5, max_depth=4, keep_pruned=True),
    "leaf by leaf": lambda: _regressor(grow_policy="lossguide", max_depth=0, max_leaves=5),
    "calibrated": lambda: _classifier(
        calibrated_prior=True, class_weight={0: 0.5, 1: np.float64(4.0)}
    ),
    "class weights of text": lambda: _classifier(
        np.array(["no", "yes"])[IS_HIGH], class_weight={"no": 3, "yes": 1}
    ),
    "early stopping": lambda: _classifier(
        n_estimators=20, early_stopping_rounds=1, learning_rate=1.0
    ),
    "early stopping and refit": lambda: _classifier(
        n_estimators=20, early_stopping_rounds=1, refit=True, learning_rate=1.0
    ),
    "refit to be continued": _refitted,
    "validation log": lambda: _classifier(
        eval_metric=["auc", "logloss"], fit=dict(eval_set=[(X, IS_HIGH), (X[:30], IS_HIGH[:30])])
    ),
    "monotone": lambda: _regressor(monotone_constraints=(1, 0, -1)),
    "monotone by text": lambda: _regressor(monotone_constraints="(1,0,-1)"),
    "monotone by name": lambda: _regressor(
        features=pd.DataFrame(X, columns=list("abc")), monotone_constraints={"a": 1, "c": -1}
    ),
    "interactions": lambda: _regressor(interaction_constraints=[[0, 1], (2,)]),
    "weights of features": lambda: _regressor(
        feature_weights=np.array([1.0, 2.0, 0.0]), colsample_bytree=0.7
    ),
    "default by None": lambda: _regressor(max_depth=None, learning_rate=None),
    "scalars of NumPy": lambda: _regressor(
        learning_rate=np.float32(0.3), max_depth=np.int8(2), base_score=np.array([0.25])
    ),
    "base margin": lambda: _regressor(fit=dict(base_margin=NUMBER / 2)),
    "base scores": lambda: _classifier(CLASS, base_score=[0.1, 0.2, 0.3]),
    "continued": _continued,
    "bins": lambda: _regressor(features=bin_features(X)),
    "missing value": lambda: _regressor(features=np.nan_to_num(X, nan=-1.0), missing=-1.0),
    "missing or not": lambda: _regressor(np.isnan(X[:, 1]) * 5.0, X[:, [1]], max_depth=1),
    "constant": lambda: _regressor(np.ones(N_ROWS)),
    **{f"column of {name}": _of_column(values) for name, values in _COLUMNS.items()},
    **{f"categories of {name}": _of_categories(of) for name, of in _CATEGORIES.items()},
    "declared categories": _of_column(_PARTS, categorical_features=["special"]),
    "one category": _of_categories(["a"] * 5),
    **{
        f"labels of {name}": lambda values=values: _classifier(values[IS_HIGH], n_estimators=1)
        for name, values in _LABEL_TYPES.items()
    },
    **{
        f"names of {name}": lambda names=names: _regressor(
            features=pd.DataFrame(X, columns=pd.Index(names, tupleize_cols=False)), n_estimators=1
        )
        for name, names in _NAMES.items()
    },
    **{
        f"{task}, {objective.name}": _one_split(task, objective.name)
        for task, objectives in OBJECTIVES.items()
        for objective in objectives
        if task not in ("ranking", "survival")
        if task != "multilabel" or objective is objectives[-1]
    },
}


def _by_xgboost(y: Any, features: Any = X, **parameters: Any) -> Callable[[], Any]:
    import xgboost

    kind = xgboost.XGBRegressor if y.dtype.kind == "f" else xgboost.XGBClassifier
    settings = _TINY | dict(enable_categorical=True, tree_method="hist") | parameters
    return lambda: kind(**settings).fit(features, y)


# Made by XGBoost, for which there is a reader.
BY_XGBOOST: dict[str, Callable[[], Any]] = {
    "xgboost regression": lambda: _by_xgboost(NUMBER)(),
    "xgboost three classes": lambda: _by_xgboost(CLASS)(),
    "xgboost two classes": lambda: _by_xgboost(IS_HIGH)(),
    "xgboost labels": lambda: _by_xgboost(LABELS.astype(int))(),
    "xgboost vector trees": lambda: _by_xgboost(SEVERAL, **_VECTOR)(),
    "xgboost dart": lambda: _by_xgboost(NUMBER, booster="dart", rate_drop=0.5)(),
    "xgboost quantiles": lambda: _by_xgboost(
        NUMBER, objective="reg:quantileerror", quantile_alpha=[0.2, 0.8]
    )(),
    "xgboost categories": lambda: _by_xgboost(
        NUMBER + (_PARTS == 2), _with(pd.Categorical([[*"abcde"][k] for k in _PARTS]))
    )(),
}


def _read(path: str) -> Any:
    from sklboost import from_lightgbm, from_xgboost

    data = (Path(__file__).parent / "data" / path).read_bytes()
    return (from_lightgbm if path.endswith(".txt") else from_xgboost)(data)


# Made by other libraries, read and saved by us: codes for categories, no report of a fit, leaves
# whose linear terms have no limits.
READ: dict[str, Callable[[], Any]] = {
    "read one hot": lambda: _read("xgboost-3.2-one_hot.json"),
    "read linear leaves": lambda: _read("lightgbm_linear.txt"),
}


def _survival(**parameters: Any) -> Any:
    strata = dict(strata=np.where(IS_HIGH, "high", "low")) if "ties" in parameters else {}
    y = survival_targets(_I % 3 > 0, np.round(9.0 / NUMBER, 1), **strata)
    return XGBSurvivalLite(**_TINY | parameters).fit(X, y)


_QUERIES = np.repeat(np.arange(6), 10)
# Kinds that came later: the place decides on the form of the file.
LATER: dict[str, Callable[[], Any]] = {
    "survival, cox": lambda: _survival(),
    "survival, strata": lambda: _survival(ties="efron"),
    "ranking": lambda: XGBRankerLite(**_TINY).fit(X, CLASS, qid=_QUERIES),
    "ranking, whole lists": lambda: XGBRankerLite(objective="rank:xendcg", **_TINY).fit(
        X, CLASS, qid=_QUERIES
    ),
    "distribution, normal": lambda: XGBDistributionLite(gamma=0.0, **_TINY).fit(X, NUMBER),
    "distribution, zero-inflated": lambda: XGBDistributionLite(
        distribution="zero_inflated_poisson", gamma=0.0, **_TINY
    ).fit(X, CLASS),
    "survival, aft": lambda: XGBSurvivalLite(
        objective="survival:aft", aft_loss_distribution="logistic", **_TINY
    ).fit(X, np.column_stack([NUMBER + 1.0, NUMBER + np.where(IS_HIGH, np.inf, 1.0)])),
}
ALL = {**MODELS, **BY_XGBOOST, **READ, **LATER}


def rows_of(name: str) -> Any:
    """Return the rows that a model is asked about, which it was trained on."""
    if name.startswith("column of "):
        return _with(_COLUMNS[name.removeprefix("column of ")])
    if name.startswith("categories of "):
        of = _CATEGORIES[name.removeprefix("categories of ")]
        return _with(pd.Categorical([of[k] for k in _PARTS]))
    if name.startswith("names of "):
        names = _NAMES[name.removeprefix("names of ")]
        return pd.DataFrame(X, columns=pd.Index(names, tupleize_cols=False))
    special = {
        "xgboost categories": _with(pd.Categorical([[*"abcde"][k] for k in _PARTS])),
        "linear leaves, categories": _with(pd.Categorical(_PARTS)),
        "declared categories": _with(_PARTS),
        "one category": _with(pd.Categorical(["a"] * N_ROWS)),
        "read one hot": np.column_stack([X[:, :2], _I % 11]),
        "monotone by name": pd.DataFrame(X, columns=list("abc")),
        "missing value": np.nan_to_num(X, nan=-1.0),
        "missing or not": X[:, [1]],
    }
    return special.get(name, X)


def results_of(model: Any, name: str) -> dict[str, Any]:
    """Return what a model says about its rows, floats to the last bit, as JSON has it."""
    rows = rows_of(name)[:10]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a model that was trained with base_margin
        margin = model.predict(rows, output_margin=True)
        predictions = model.predict(rows)
    curves = {}
    if isinstance(model, XGBSurvivalLite):
        strata = None if model._fitted.targets.strata.size == 0 else ["high", "low"] * 5
        hazards = model.predict_cumulative_hazard_function(rows, True, strata=strata)
        curves = {"hazards": [value.hex() for value in hazards.ravel().tolist()]}
    return curves | {
        "margin": [value.hex() for value in np.ravel(margin).tolist()],
        "leaves": model.apply(rows).ravel().tolist(),
        "type": str(predictions.dtype),
        "labels": predictions.astype(str).tolist() if predictions.dtype.kind != "f" else [],
        "intercept": [value.hex() for value in np.ravel(model.intercept_).tolist()],
    }


def file_name(name: str, raw_format: str) -> str:
    """Return the name of the golden file of a model."""
    return f"{re.sub('[^a-z0-9]+', '_', name.lower())}.{raw_format}"


def rows_by_file(path: str) -> Any:
    """Return the rows that the model of a golden file is asked about."""
    stem = path.partition(".")[0]
    return rows_of(next(name for name in ALL if file_name(name, "") == f"{stem}."))
