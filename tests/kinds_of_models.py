"""Fits of all kinds, and a digest of each model: for code that must give the same bits as another.

Needs nothing but what the package requires, so that it also runs where only a wheel is installed.
"""

import argparse
import hashlib
import io
import json
import pickle
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import is_classifier

from sklboost import XGBClassifierLite, XGBRegressorLite, bin_features, load_model
from sklboost.objectives.registry import METRICS, OBJECTIVES, MetricEntry

N_ROWS, MANY_ROWS = 2_000, 20_000  # the latter are enough for a team of threads
N_EXPLAINED = 5  # rows with SHAP values
TASKS = {"positive": "regression", "labels": "binary", "classes": "multiclass"}


class Kind(NamedTuple):
    """A fit: names of its features and its targets, and the parameters that are not the default."""

    features: str
    targets: str
    parameters: dict[str, Any]
    is_validated: bool = False

    def fit(self) -> Any:
        estimator = XGBClassifierLite if self.targets in _CLASSES else XGBRegressorLite
        X, y = data(self.features)
        settings = dict(n_estimators=4, n_jobs=2, random_state=0) | self.parameters
        validation = dict(X_val=X, y_val=y[self.targets]) if self.is_validated else {}
        return estimator(**settings).fit(X, y[self.targets], **validation)

    def digest(self, model: Any) -> str:
        """Return a digest of a fitted model, of what it predicts and how it explains that."""
        X, _ = data(self.features)
        predict = model.predict_proba if is_classifier(model) else model.predict
        seen = [model.model_, predict(X), predict(X[:1]), model.apply(X), model.intercept_]
        if self.is_validated:
            seen.append(json.dumps(model.evals_result_))
        if not model.linear_tree:
            some = X[:N_EXPLAINED]
            seen += [model.shap_values(some), model.shap_interaction_values(some)]
            if self.features not in {"sparse", "bins"}:
                seen.append(model.shap_values(some, X_background=X[5:8]))
        digest = hashlib.sha256()
        _add(seen, digest)
        return digest.hexdigest()


def _add(value: Any, digest: Any) -> None:
    """Add all arrays and numbers in a value, which may be groups of others, to a digest."""
    if isinstance(value, (tuple, list)):
        for part in value:
            _add(part, digest)
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.shape} {value.dtype.str}".encode() + value.tobytes())
    else:
        digest.update(repr(value).encode())


# --- data


_CLASSES = {"labels", "classes", "several labels"}


@cache
def data(features: str) -> tuple[Any, dict[str, np.ndarray]]:
    """Return the features of this name, and the targets by their names."""
    random = np.random.default_rng(0)
    n_rows = MANY_ROWS if features == "many" else N_ROWS
    X = random.normal(size=(n_rows, 8))
    X[::7, 2] = np.nan
    X[:, 3] = random.integers(0, 5, n_rows)
    X[:, 4] = random.integers(0, 40, n_rows)
    X[:, 5] = np.exp(3 * X[:, 5])
    signal = X[:, 0] + np.nan_to_num(X[:, 2]) * (X[:, 3] > 2) + (X[:, 4] % 7) / 3
    signal += np.log(X[:, 5]) / 3 + random.normal(size=n_rows)
    positive = np.abs(signal) + 0.01
    targets = {
        "signal": signal,
        "positive": positive,
        "shares": positive / positive.max(),
        "labels": (signal > 1.0).astype(int),
        "classes": np.digitize(signal, [0.0, 2.0]),
        "several": np.column_stack([signal, signal**2, np.abs(signal)]),
        "several labels": np.column_stack([signal > 0.0, signal > 2.0]).astype(int),
    }
    forms = {
        "single": lambda: X.astype(np.float32),
        "sparse": lambda: csr_array(np.where(random.random((n_rows, 60)) < 0.04, X[:, [0]], 0.0)),
        "bins": lambda: bin_features(X),
    }
    return forms.get(features, lambda: X)(), targets


# --- kinds


def absolute_error(y_true: np.ndarray, y_pred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A user's loss."""
    return np.sign(y_pred - y_true), np.ones_like(y_pred)


def _name_of(metric: MetricEntry) -> str:
    if metric.parameter is None:
        return metric.name
    return f"{metric.name}@{metric.parameter.default or 0.3}"


_SAMPLED = dict(subsample=0.5, colsample_bytree=0.5, colsample_bynode=0.7)
_BY_GRADIENT = dict(subsample=0.3, sampling_method="gradient_based")
_CATEGORIES = dict(categorical_features=[3, 4])
_VECTOR = dict(multi_strategy="multi_output_tree")
_BOUNDED = dict(reg_alpha=1.0, max_delta_step=2.0, path_smooth=3.0, min_child_weight=2.0)

KINDS = {
    "single": Kind("single", "signal", {}),
    "bins": Kind("bins", "labels", dict(max_bin=256)),
    "many rows": Kind("many", "labels", {}, is_validated=True),
    "many rows, sampled": Kind("many", "classes", _SAMPLED),
    "many rows, by gradient": Kind("many", "labels", _BY_GRADIENT),
    "many rows, categories": Kind("many", "signal", _CATEGORIES),
    "more than 256 bins": Kind("numbers", "signal", dict(max_bin=1000), is_validated=True),
    "more than 256 bins, float32": Kind("single", "classes", dict(max_bin=1000)),
    "sampled": Kind("numbers", "labels", _SAMPLED),
    "by gradient": Kind("numbers", "labels", _BY_GRADIENT),
    "categories": Kind("numbers", "labels", _CATEGORIES, is_validated=True),
    "categories, bin by bin": Kind("numbers", "labels", _CATEGORIES | dict(max_cat_to_onehot=50)),
    "categories, vector trees": Kind("numbers", "classes", _CATEGORIES | _VECTOR),
    "vector trees": Kind("numbers", "several", _VECTOR),
    "several targets": Kind("numbers", "several", {}),
    "several labels": Kind("numbers", "several labels", {}),
    "sparse": Kind("sparse", "labels", {}, is_validated=True),
    "sparse, vector trees": Kind("sparse", "classes", _VECTOR),
    "monotone": Kind("numbers", "signal", dict(monotone_constraints=[1, -1, 0, 0, 0, 0, 1, 0])),
    "interactions": Kind(
        "numbers", "signal", dict(interaction_constraints=[[0, 1, 2], [3, 4, 5, 6]])
    ),
    "quantiles": Kind(
        "numbers",
        "signal",
        dict(objective="reg:quantileerror", quantile_alpha=[0.1, 0.5, 0.9]),
    ),
    "linear leaves": Kind("numbers", "signal", dict(linear_tree=True)),
    "linear leaves, categories": Kind("single", "signal", dict(linear_tree=True) | _CATEGORIES),
    "leaf by leaf": Kind(
        "numbers", "signal", dict(grow_policy="lossguide", max_depth=0, max_leaves=20, gamma=1.0)
    ),
    "one split a depth": Kind("numbers", "signal", dict(grow_policy="symmetric")),
    "pruned": Kind("numbers", "signal", dict(ccp_alpha=0.01, keep_pruned=True)),
    "bounded": Kind("numbers", "signal", _BOUNDED | dict(extra_trees=True)),
    "forest": Kind("numbers", "signal", dict(num_parallel_tree=3, subsample=0.6)),
    "dart": Kind("numbers", "signal", dict(booster="dart", rate_drop=0.3, n_estimators=8)),
    "early stopping": Kind(
        "numbers", "labels", dict(n_estimators=30, learning_rate=1.0, early_stopping_rounds=3)
    ),
    "loss in Python": Kind("numbers", "signal", dict(objective=absolute_error)),
}
# every loss, and every metric of its task
KINDS |= {
    objective.name: Kind(
        "numbers",
        "shares" if objective.name == "reg:logistic" else targets,
        dict(objective=objective.name),
    )
    for targets, task in TASKS.items()
    for objective in OBJECTIVES[task]
}
KINDS |= {
    f"metrics, {task}": Kind(
        "numbers",
        "shares" if task == "regression" else targets,
        dict(eval_metric=[_name_of(metric) for metric in METRICS[task]]),
        is_validated=True,
    )
    for targets, task in TASKS.items()
}


# A model file holds no code.
IN_FILES = {name: kind for name, kind in KINDS.items() if name != "loss in Python"}


def file_of(model: Any, raw_format: str = "ubj", format: str = "sklboost") -> bytes:
    """Return the model file of a model."""
    file = io.BytesIO()
    model.save_model(file, format=format, raw_format=raw_format)
    return file.getvalue()


def main() -> None:
    """Print the digests of all kinds, of models fitted here or of pickled ones."""
    parser = argparse.ArgumentParser(description="Print a digest of a model of every kind.")
    parser.add_argument("--save", type=Path, help="a pickle to write the models to")
    parser.add_argument("--load", type=Path, help="a pickle of models to take")
    parser.add_argument("--files", action="store_true", help="the pickle has model files")
    arguments = parser.parse_args()
    if arguments.load:
        models = pickle.loads(arguments.load.read_bytes())
    else:
        models = {name: kind.fit() for name, kind in KINDS.items()}
    if arguments.files and arguments.load:
        models = {name: load_model(file) for name, file in models.items()}
    if arguments.save:
        saved = {n: file_of(model) for n, model in models.items() if n in IN_FILES}
        arguments.save.write_bytes(pickle.dumps(saved if arguments.files else models))
    print(json.dumps({name: KINDS[name].digest(model) for name, model in models.items()}))


if __name__ == "__main__":
    from tests.kinds_of_models import main  # as a module: pickles name the functions in it

    main()
