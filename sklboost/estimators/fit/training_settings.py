"""From the user's parameters to the settings of a training: trees, dropout, base score."""

from typing import Any

import numpy as np

from sklboost.boosting.callbacks import EarlyStopping
from sklboost.boosting.settings import STRATEGIES, Dropout, tree_params
from sklboost.engine.structs import TreeParams
from sklboost.estimators.fit.continuing import Continued
from sklboost.estimators.input.rows import Rows
from sklboost.estimators.parameters.boosting import BoostingParameters
from sklboost.estimators.parameters.groups import Parameters
from sklboost.estimators.parameters.rules import names_of
from sklboost.estimators.parameters.trees import SamplingParameters, TreeParameters
from sklboost.objectives.loss import Loss

TREE_PARAMETERS = (
    "learning_rate",
    *(name for name in names_of(TreeParameters) if name not in ("max_bin", "keep_pruned")),
    *names_of(SamplingParameters),
)
# Of the cover of one row among 4,096, which is rounded to an integer: three rows of weight 1/3 have
# the cover 1.
_ROUNDING = 2.0**-21
# Counted in rows, so in the unit of the loss's hessians.
_PER_ROW = (
    *("reg_lambda", "reg_alpha", "gamma", "min_child_weight"),
    *("path_smooth", "cat_smooth"),
)


@np.errstate(all="ignore")
def tree_settings(
    parameters: Parameters, n_parallel_trees: int, loss: Loss, rows: Rows, raw_score: np.ndarray
) -> TreeParams:
    """Return the settings of the trees that are grown for a loss on these rows.

    `raw_score` is what the rounds of this loss start from, see `Loss.unit`.
    """
    settings = {name: getattr(parameters, name) for name in TREE_PARAMETERS}
    unit = loss.unit(rows.targets, raw_score, rows.weight)
    settings |= {name: unit * settings[name] for name in _PER_ROW}
    params = tree_params(**settings, num_parallel_tree=n_parallel_trees)
    if not _cover_counts_rows(params, loss, rows.weight):
        least_cover = params.min_child_weight * (1.0 - _ROUNDING)
        params = params._replace(min_child_weight=least_cover)
    elif params.min_child_samples > 0:
        least_cover = max(params.min_child_weight, float(params.min_child_samples))
        params = params._replace(min_child_weight=least_cover, min_child_samples=0)
    step = min(params.max_delta_step, loss.largest_step)
    return params._replace(max_delta_step=float(step))


def _cover_counts_rows(params: TreeParams, loss: Loss, weight: np.ndarray) -> bool:
    """Whether cover is the number of rows, so that they need not be counted once more."""
    if not loss.hessian_is_one or params.gradient_based == 1:
        return False
    return bool((weight == np.floor(weight)).all())


def dropout_of(parameters: BoostingParameters) -> Dropout | None:
    """Return how rounds are dropped; None unless ``booster="dart"``."""
    if parameters.booster != "dart":
        return None
    return Dropout(
        rate_drop=float(parameters.rate_drop),
        skip_drop=float(parameters.skip_drop),
        one_drop=bool(parameters.one_drop),
        by_weight=parameters.sample_type == "weighted",
        as_forest=parameters.normalize_type == "forest",
    )


def drops_rounds(parameters: BoostingParameters) -> bool:
    """Whether rounds are trained without some earlier ones."""
    dropout = dropout_of(parameters)
    return dropout is not None and (dropout.rate_drop > 0.0 or dropout.one_drop)


def is_sampling(parameters: Parameters) -> bool:
    """Whether rows, features, thresholds or rounds are drawn at random."""
    fractions = (
        parameters.subsample,
        parameters.colsample_bytree,
        parameters.colsample_bylevel,
        parameters.colsample_bynode,
    )
    return min(fractions) < 1.0 or parameters.extra_trees or drops_rounds(parameters)


def stops_early(parameters: Parameters) -> bool:
    """Whether early stopping was asked for."""
    return parameters.early_stopping_rounds is not None or any(
        isinstance(callback, EarlyStopping) for callback in parameters.callbacks or ()
    )


def raw_base_score(base_score: Any, loss: Loss, n_targets: int) -> np.ndarray:
    """Return the raw scores, shape (n_outputs,), of predictions given as `base_score`.

    Raises
    ------
    ValueError
        If there are too few or too many, or one is no prediction that the loss can give.
    """
    sizes = sorted({n_targets, loss.n_outputs})  # several classes, or quantiles of one target
    if np.ndim(base_score) > 0 and len(base_score) not in sizes:
        raise ValueError(
            f"base_score={base_score!r}: y has {n_targets} target(s) and {loss.name} "
            f"{loss.n_outputs} raw score(s) a row, so it must be one number, or a list of "
            f"{' or '.join(map(str, sizes))}"
        )
    values = np.ravel(base_score).astype(np.float64)
    raw = np.array([loss.raw_of(float(value)) for value in values])
    outputs = np.arange(loss.n_outputs)
    return raw[outputs % len(values), outputs]  # output o has target o % n_targets, and class o


def check_combination(
    parameters: Parameters, n_parallel_trees: int, continued: Continued | None
) -> None:
    """Raise ValueError for parameters that do not go together, or with the continued model."""
    if n_parallel_trees > 1 and parameters.sampling_method == "gradient_based":
        raise ValueError(
            f"sampling_method='gradient_based' with {n_parallel_trees} parallel trees: it reweighs "
            "the gradients, which the trees of a round share; use sampling_method='uniform', or "
            "num_parallel_tree=1"
        )
    if parameters.linear_tree and parameters.multi_strategy == "multi_output_tree":
        raise ValueError(
            "linear_tree=True does not go with multi_strategy='multi_output_tree', whose leaves "
            "are constant: set linear_tree=False, or multi_strategy='one_output_per_tree'"
        )
    if parameters.booster == "dart" and parameters.linear_tree:
        raise ValueError(
            "linear_tree=True does not go with booster='dart', which scales constant leaves only: "
            "set linear_tree=False, or booster='gbtree'"
        )
    if continued is None:
        return
    if parameters.booster == "dart":
        raise ValueError(
            f"booster='dart' changes the weights of earlier rounds, so it cannot continue "
            f"{continued.name}: fit anew, or continue with booster='gbtree'"
        )
    before = continued.model.params_of(0)
    if before.num_parallel_tree != n_parallel_trees:
        raise ValueError(
            f"a round would have {n_parallel_trees} parallel trees, but those of {continued.name} "
            f"have {before.num_parallel_tree}: continue with "
            f"num_parallel_tree={before.num_parallel_tree}"
        )
    strategy = STRATEGIES[before.multi_output]
    if continued.model.n_outputs > 1 and strategy != parameters.multi_strategy:
        raise ValueError(
            f"multi_strategy={parameters.multi_strategy!r}, but {continued.name} was fitted with "
            f"{strategy!r}: continue with the same"
        )
