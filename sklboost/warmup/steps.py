"""The steps of a warm-up: tiny fits and predictions that together need every kernel.

They need each in every version that a user's fit, prediction or inspection can need: for float32
and float64 values, bins of one and of two bytes, categories, sparse values, each loss and metric.
The machine code of a wheel is made of what they need, and has nothing else.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, get_type_hints

import numpy as np
from scipy.sparse import csr_array

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.cuts import weigh_distinct
from sklboost.data.features import training_bins
from sklboost.distributed.exchange import add_cells, pack_cells
from sklboost.engine.parallel import ThreadTeam, assemble, state_size, tell_helpers
from sklboost.engine.structs import TreeParams
from sklboost.estimators.classifier import XGBClassifierLite
from sklboost.estimators.fit.check_loss import check_loss
from sklboost.estimators.input.bins import bin_features
from sklboost.estimators.parameters.boosters import LOSS_DEFAULTS
from sklboost.estimators.predict.fitted_model import fitted_model
from sklboost.estimators.ranker import XGBRankerLite
from sklboost.estimators.regressor import XGBRegressorLite
from sklboost.estimators.survival import XGBSurvivalLite
from sklboost.inspection.tables import node_table
from sklboost.objectives.blocks import Formula, address_of_losses, can_read
from sklboost.objectives.domains import LINKS
from sklboost.objectives.loss import Loss, compile_loss
from sklboost.objectives.metrics import aucpr, ranking_auc
from sklboost.objectives.registry import DISTRIBUTIONS, METRICS, OBJECTIVES, find_distribution
from sklboost.tree.core.quantization import weigh
from sklboost.tree.core.workspace import allocate_workspace
from sklboost.tree.options.categories import keep_spreads, sum_spreads

_FLOATS = (np.float32, np.float64)
_BINS_OF_ONE_BYTE, _BINS_OF_TWO_BYTES = 256, 300
# Whose losses are no sums over rows alone.
_OF_ALL_ROWS = {"ranking", "survival"}
# So many that a sample of them chooses the cuts.
_MANY_ROWS = 200_001


def steps() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield titles and calls; each compiles what the ones before it did not need."""
    X = np.arange(300, dtype=np.float64)[:, np.newaxis]
    X_single = X.astype(np.float32)
    many = np.arange(_MANY_ROWS, dtype=np.float64)[:, np.newaxis]
    one, two = _BINS_OF_ONE_BYTE, _BINS_OF_TWO_BYTES
    yield "teams of threads", _assemble_team
    yield "float64 features, regression", lambda: _fit_and_predict(X, one)
    yield "float32 features", lambda: _fit_and_predict(X_single, one)
    yield "predictions of many rows", lambda: _predict_many(X)
    yield "predictions of many rows, float32 features", lambda: _predict_many(X_single)
    yield "two classes", lambda: _classify(X, 2)
    yield "three classes", lambda: _classify(X, 3)
    linear: dict[str, Any] = dict(linear_tree=True, subsample=0.5)
    yield "linear leaves", lambda: _fit_and_predict(X, one, **linear)
    symmetric: dict[str, Any] = dict(grow_policy="symmetric", colsample_bylevel=0.5)
    yield "symmetric trees", lambda: _fit_and_predict(X, one, **symmetric)
    yield "SHAP values", lambda: _explain(X)
    yield "SHAP values, categories", lambda: _explain(X, categorical_features=[0])
    yield "derivations", lambda: _derive(X)
    yield "linear leaves, float32 features", lambda: _fit_and_predict(X_single, one, **linear)
    yield "losses", _compile_losses
    yield "rankings", lambda: _rank(X)
    yield "survival times", lambda: _survive(X)
    yield "metrics", _compile_metrics
    yield "metrics of predictions", lambda: _classify(X, 2, objective="hinge")
    yield "losses in Python", lambda: _fit_and_predict(X, one, objective=_HalfOfSquares())
    yield "checks of losses", lambda: check_loss(_HalfOfSquares(), X[:, 0])
    yield "dart", lambda: _fit_and_predict(X, one, booster="dart")
    yield "rows held out", lambda: _hold_out(X)
    yield "rows held out, sparse features", lambda: _hold_out(csr_array(X))
    yield "bin_features", lambda: _fit_and_predict(bin_features(X, one), one)
    yield "more than 200,000 rows", lambda: _fit_and_predict(many, one)
    yield "few values", lambda: [weigh_distinct(many.astype(t), 0, np.empty(0)) for t in _FLOATS]
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
        # codes of categories are float32, or float64 where another column has float64 numbers
        table = np.hstack([categories, X / 7])
        yield title, partial(_fit_and_predict, categories, one, **changes)
        yield f"{title}, float64", partial(_fit_and_predict, table, one, **changes)
    yield "categories, several machines", lambda: _add_up_spreads(X % 7)
    yield "histograms, several machines", _add_up_cells
    yield "sparse features", lambda: _fit_and_predict(csr_array(X), one)
    yield "sparse features, float32", lambda: _fit_and_predict(csr_array(X_single), one)
    yield "sparse features, more than 256 bins", lambda: _fit_and_predict(csr_array(X), two)


def _compile_losses() -> None:
    losses: list[Loss] = [find_distribution(name)() for name in DISTRIBUTIONS]
    for task, objectives in OBJECTIVES.items():
        if task not in _OF_ALL_ROWS:
            size = 3 if task == "multiclass" else 1
            losses += [objective.make(size, LOSS_DEFAULTS) for objective in objectives]
    y = np.ones((1, 1))
    for loss in losses:
        raw_score = np.zeros((loss.n_outputs, 1))
        compile_loss(loss, 1)
        loss.gradients(y, raw_score)
        loss.value(y, raw_score, np.empty(0))


def _rank(X: np.ndarray) -> None:
    y = np.arange(len(X)) % 2
    for objective in OBJECTIVES["ranking"]:
        model = XGBRankerLite(objective=objective.name, n_estimators=1, max_depth=1, n_jobs=1)
        model.set_params(min_child_weight=0.0)  # of cross entropy all hessians add up to 1
        model.fit(X, y, group=[len(X)]).score(X, y, group=[len(X)])


def _survive(X: np.ndarray) -> None:
    y = np.arange(len(X)) + 1.0
    for objective in OBJECTIVES["survival"]:
        model = XGBSurvivalLite(objective=objective.name, n_estimators=1, max_depth=1, n_jobs=1)
        model.fit(X, y, X_val=X, y_val=y).score(X, y)
        model.predict_cumulative_hazard_function(X[:1])


class _HalfOfSquares(Loss):
    """A loss as users write them."""

    def gradients(self, y: np.ndarray, raw_score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return raw_score - y, np.ones_like(raw_score)

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        return float(np.mean((raw_score - y) ** 2) / 2.0)


def _compile_metrics() -> None:
    # several labels have the same kernels as two classes
    formulas = dict.fromkeys(entry.of for task in METRICS for entry in METRICS[task])
    for formula, link in product(formulas, LINKS):
        if isinstance(formula, Formula) and can_read(formula, link):
            address_of_losses(formula, link)
    # areas under curves have kernels of their own
    labels, scores, weight = np.array([0.0, 1.0, 1.0]), np.arange(3.0), np.ones(3)
    aucpr(labels, scores, weight)
    ranking_auc(np.column_stack([labels, np.zeros(3)]), scores, weight)


def _assemble_team() -> None:
    with ThreadTeam(2) as team:
        team.run(assemble)
    # only calls of machine code are told of in cells
    state, words = np.zeros(state_size(2), dtype=np.int64), np.zeros((2, 2), dtype=np.int64)
    tell_helpers(state, words, np.zeros(2, dtype=np.int64))


def _fit_and_predict(
    X: np.ndarray | csr_array | BinnedMatrix, max_bin: int, **changes: Any
) -> None:
    settings = dict(n_estimators=1, max_depth=1, max_bin=max_bin, n_jobs=1) | changes
    model = XGBRegressorLite(**settings)
    y = np.arange(X.shape[0])
    model.fit(X, y, X_val=X, y_val=y)
    model.predict(X)
    model.predict(X[:1])
    model.apply(X)
    fitted = fitted_model(model)
    node_table(fitted.model, fitted.names)


def _predict_many(X: np.ndarray) -> None:
    # so many splits and rows that values are ranked first
    model = XGBRegressorLite(n_estimators=100, max_depth=1, learning_rate=0.01, n_jobs=1)
    model.fit(X, X[:, 0]).predict(np.resize(X, (1024, 1)))


def _add_up_cells() -> None:
    histograms, slots = np.zeros((2, 1, 3), dtype=np.int64), np.zeros(1, dtype=np.int64)
    part, (start, stop) = np.empty(3, dtype=np.int64), np.array([0, 3])
    pack_cells(histograms, slots, slots, start, stop, part)
    part.flags.writeable = False  # as what comes from other machines
    add_cells(histograms, slots, slots, slots + 1, start, stop, part)


def _add_up_spreads(X: np.ndarray) -> None:
    with ThreadTeam(1) as team:
        matrix, _ = training_bins(team, X, np.empty(0), _BINS_OF_ONE_BYTE)
    # a tree of one leaf, without a split to search for
    smallest = {name: kind(1) for name, kind in get_type_hints(TreeParams).items()}
    workspace = allocate_workspace(matrix, TreeParams(**smallest), 1, 1)
    gradient, hessian = np.zeros((2, 1, len(X)), dtype=np.float32)
    derivatives = weigh(gradient, hessian, np.empty(0), 1)
    sums = np.empty((0, 1, 2), dtype=np.int64)
    sum_spreads(derivatives, workspace, sums)
    keep_spreads(derivatives, workspace, sums)


def _explain(X: np.ndarray, **changes: Any) -> None:
    model = XGBRegressorLite(n_estimators=1, max_depth=1, n_jobs=1, **changes).fit(X, X[:, 0])
    model.shap_values(X[:1])


def _derive(X: np.ndarray) -> None:
    y = X[:, 0]
    model = XGBRegressorLite(n_estimators=1, max_depth=1, n_jobs=1, path_smooth=1.0, reg_alpha=1.0)
    model.fit(X, y).explain_split(0)
    model.cost_complexity_pruning_path(X, y)


def _hold_out(X: np.ndarray | csr_array) -> None:
    model = XGBRegressorLite(n_estimators=1, max_depth=1, n_jobs=1)
    model.set_params(early_stopping_rounds=1, validation_fraction=0.5).fit(X, np.arange(X.shape[0]))


def _classify(X: np.ndarray, n_classes: int, **changes: Any) -> None:
    model = XGBClassifierLite(n_estimators=1, max_depth=1, n_jobs=1, **changes)
    y = np.arange(len(X)) % n_classes
    model.fit(X, y, X_val=X, y_val=y)
