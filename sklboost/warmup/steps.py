"""What warmup runs: tiny fits and predictions that together need every kernel.

They need each in every version that a user's fit or prediction can need: for float32 and float64
values, bins of one and of two bytes, categories, sparse values, each loss.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.engine.backend import BACKEND, Backend
from sklboost.estimators.classifier import XGBClassifierLite
from sklboost.estimators.input.bin_features import bin_features
from sklboost.estimators.predict.fitted_model import fitted_model
from sklboost.estimators.regressor import XGBRegressorLite
from sklboost.inspection.tables import node_table
from sklboost.objectives.blocks import Formula, address_of_losses
from sklboost.objectives.links import IDENTITY, LOG, LOG_ODDS, SOFTMAX
from sklboost.objectives.registry import METRICS

_BINS_OF_ONE_BYTE, _BINS_OF_TWO_BYTES = 256, 300
# The links of the losses.
_LINKS = {"regression": (IDENTITY, LOG), "binary": (LOG_ODDS,), "multiclass": (SOFTMAX,)}
# So many that a sample of them chooses the cuts.
_MANY_ROWS = 200_001


def steps() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield titles and calls; each compiles what the ones before it did not need."""
    if BACKEND is not Backend.COMPILER:
        return
    X = np.arange(300, dtype=np.float64)[:, np.newaxis]
    X_single = X.astype(np.float32)
    many = np.arange(_MANY_ROWS, dtype=np.float64)[:, np.newaxis]
    one, two = _BINS_OF_ONE_BYTE, _BINS_OF_TWO_BYTES
    yield "float64 features, regression", lambda: _fit_and_predict(X, one)
    yield "float32 features", lambda: _fit_and_predict(X_single, one)
    yield "two classes", lambda: _classify(X, 2)
    yield "three classes", lambda: _classify(X, 3)
    linear: dict[str, Any] = dict(linear_tree=True, subsample=0.5)
    yield "linear leaves", lambda: _fit_and_predict(X, one, **linear)
    yield "SHAP values", lambda: _explain(X)
    yield "SHAP values, categories", lambda: _explain(X, categorical_features=[0])
    yield "linear leaves, float32 features", lambda: _fit_and_predict(X_single, one, **linear)
    yield "metrics", _compile_metrics
    yield "bin_features", lambda: _fit_and_predict(bin_features(X, one), one)
    yield "more than 200,000 rows", lambda: _fit_and_predict(many, one)
    yield "more than 256 bins", lambda: _fit_and_predict(X, two)
    yield "more than 256 bins, float32 features", lambda: _fit_and_predict(X_single, two)
    yield "more than 256 bins, bin_features", lambda: _fit_and_predict(bin_features(X, two), two)
    yield "more than 256 bins, linear leaves", lambda: _fit_and_predict(X, two, **linear)
    categorical: dict[str, Any] = dict(categorical_features=[0])
    for title, categories, changes in [
        ("categories", X % 7, categorical),
        ("more than 256 categories", X, categorical),
        ("categories, linear leaves", X % 7, categorical | linear),
    ]:
        # codes of categories are float32, and float64 beside numbers that are
        table = np.hstack([categories, X / 7])
        yield title, partial(_fit_and_predict, categories, one, **changes)
        yield f"{title}, float64", partial(_fit_and_predict, table, one, **changes)
    yield "sparse features", lambda: _fit_and_predict(csr_array(X), one)
    yield "sparse features, float32", lambda: _fit_and_predict(csr_array(X_single), one)
    yield "sparse features, more than 256 bins", lambda: _fit_and_predict(csr_array(X), two)


def _compile_metrics() -> None:
    for task, links in _LINKS.items():
        for entry in METRICS[task]:
            for link in links:
                if isinstance(entry.of, Formula):
                    address_of_losses(entry.of, link)


def _fit_and_predict(
    X: np.ndarray | csr_array | BinnedMatrix, max_bin: int, **changes: Any
) -> None:
    settings = dict(n_estimators=1, max_depth=1, max_bin=max_bin, n_jobs=1) | changes
    model = XGBRegressorLite(**settings)
    y = np.arange(X.shape[0])
    model.fit(X, y, X_val=X, y_val=y)
    model.predict(X)
    model.apply(X)
    fitted = fitted_model(model)
    node_table(fitted.model, fitted.feature_names, fitted.categories)


def _explain(X: np.ndarray, **changes: Any) -> None:
    model = XGBRegressorLite(n_estimators=1, max_depth=1, n_jobs=1, **changes).fit(X, X[:, 0])
    model.shap_values(X[:1])


def _classify(X: np.ndarray, n_classes: int) -> None:
    model = XGBClassifierLite(n_estimators=1, max_depth=1, n_jobs=1)
    y = np.arange(len(X)) % n_classes
    model.fit(X, y, X_val=X, y_val=y)
