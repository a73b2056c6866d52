"""What scripts in processes of their own ask about compilation: fits of all kinds, signatures.

The script must set ``NUMBA_CACHE_DIR`` to an empty folder before it imports this: only what is
compiled now tells of the kernels that other kernels call.
"""

import importlib
import pkgutil

import numpy as np
from numba.core.dispatcher import Dispatcher

import sklboost
from sklboost import XGBClassifierLite, XGBRegressorLite


def make_features(n_samples=20_000):  # enough for a team of threads
    random = np.random.default_rng(0)
    X = random.normal(size=(n_samples, 6)).astype(np.float32).astype(float)
    X[::7, 2] = np.nan
    return X


def fit_all(X, values, **more_settings):
    """Fit both estimators on `X` in many ways; `values` are the same, as float64."""
    n = len(values)
    signal = np.nan_to_num(values).sum(axis=1)
    labels = (signal > 0).astype(int)
    leaf_wise = dict(grow_policy="lossguide", max_depth=0, max_leaves=np.int32(8), gamma=1)
    other_types = dict(reg_lambda=np.float32(2), learning_rate=1, base_score=np.float32(1))
    limits = dict(max_delta_step=3, reg_alpha=np.float64(1), min_child_weight=2, max_bin=20)
    by_gradient = dict(subsample=0.3, sampling_method="gradient_based", colsample_bytree=1)
    vector_trees = dict(multi_strategy="multi_output_tree")
    for estimator, y, weight, settings in [
        (XGBRegressorLite, signal, None, {}),
        (XGBRegressorLite, signal.astype(np.float32), np.ones(n), dict(n_jobs=2)),
        (XGBClassifierLite, labels, np.ones(n, dtype=int), dict(n_jobs=np.int64(2))),
        (XGBClassifierLite, np.digitize(signal, [-1, 1]), None, dict(random_state=1)),
        (XGBClassifierLite, np.digitize(signal, [-1, 1]), None, vector_trees),
        (XGBRegressorLite, values[:, 1:4], None, {}),
        (XGBClassifierLite, np.asfortranarray(values[:, 1:4] > 0), np.ones(n), {}),
        (XGBRegressorLite, np.arange(n) % 5, None, leaf_wise | other_types | limits),
        (XGBRegressorLite, signal, None, dict(pruning="pre")),
        (XGBRegressorLite, signal, None, dict(gamma=1, keep_pruned=True)),
        (XGBRegressorLite, signal, None, dict(subsample=np.float32(0.5), colsample_bynode=0.5)),
        (XGBClassifierLite, labels, np.arange(n) + 1, by_gradient | dict(random_state=1)),
    ]:
        settings = settings | more_settings
        validation = dict(X_val=X, y_val=y, sample_weight_val=weight)
        model = estimator(n_estimators=2, **settings)
        model.fit(X, y, sample_weight=weight, **validation)
        model.predict(X)
        model.predict(X[:3])
        model.apply(X)
        list(model.staged_predict(X))
        model.trees_to_dataframe()
        if not settings.get("linear_tree"):
            model.shap_values(X[:100])
            model.shap_interaction_values(X[:3], X_background=X[3:5])
        assert len(model.feature_importances_) == model.n_features_in_


def signatures():
    """Give the signatures of each kernel that were compiled, for kernels and for Python."""
    found = {}
    for module in pkgutil.walk_packages(sklboost.__path__, "sklboost."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Dispatcher):
                key = f"{value.py_func.__module__}.{value.py_func.__name__}"
                compiled = [*value.signatures, *value.entry.signatures]
                found[key] = sorted({str(signature) for signature in compiled})
    return found
