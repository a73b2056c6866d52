"""Which booster an estimator asks for, and what goes with it.

In: an estimator and the model it continues. Out: the settings of dropout, or errors.
"""

from typing import Any

from sklboost.boosting.settings import STRATEGIES, Dropout
from sklboost.estimators.fit.continuing import Continued


def dropout_of(estimator: Any) -> Dropout | None:
    """Give how rounds are dropped; None unless ``booster="dart"``."""
    if estimator.booster != "dart":
        return None
    return Dropout(
        rate_drop=float(estimator.rate_drop),
        skip_drop=float(estimator.skip_drop),
        one_drop=bool(estimator.one_drop),
        by_weight=estimator.sample_type == "weighted",
        as_forest=estimator.normalize_type == "forest",
    )


def drops_rounds(estimator: Any) -> bool:
    """Tell whether it may be drawn which rounds are left out."""
    return estimator.booster == "dart" and bool(estimator.rate_drop > 0.0 or estimator.one_drop)


def check_booster(estimator: Any, continued: Continued | None) -> None:
    """Raise ValueError for parameters that do not go together, or with the continued model.

    Raises
    ------
    ValueError
        If ``booster="dart"`` is to continue a model, a round is to have more trees or fewer than
        those of the continued model or trees of another kind, or its trees share gradients that one
        would reweigh.
    """
    _, n_parallel = estimator._rounds_and_trees
    if n_parallel > 1 and estimator.sampling_method == "gradient_based":
        raise ValueError(
            f"sampling_method='gradient_based' with {n_parallel} parallel trees: it reweighs the "
            "gradients, which the trees of a round share; use sampling_method='uniform', or "
            "num_parallel_tree=1"
        )
    if estimator.linear_tree and estimator.multi_strategy == "multi_output_tree":
        raise ValueError(
            "linear_tree=True does not go with multi_strategy='multi_output_tree', whose leaves "
            "are constant: set linear_tree=False, or multi_strategy='one_output_per_tree'"
        )
    if estimator.booster == "dart" and estimator.linear_tree:
        raise ValueError(
            "linear_tree=True does not go with booster='dart', which scales constant leaves only: "
            "set linear_tree=False, or booster='gbtree'"
        )
    if continued is None:
        return
    if estimator.booster == "dart":
        raise ValueError(
            f"booster='dart' changes the weights of earlier rounds, so it cannot continue "
            f"{continued.name}: fit anew, or continue with booster='gbtree'"
        )
    before = continued.model.params_of(0).num_parallel_tree
    if before != n_parallel:
        raise ValueError(
            f"a round would have {n_parallel} parallel trees, but those of {continued.name} have "
            f"{before}: continue with num_parallel_tree={before}"
        )
    strategy = STRATEGIES[continued.model.params_of(0).multi_output]
    if continued.model.n_outputs > 1 and strategy != estimator.multi_strategy:
        raise ValueError(
            f"multi_strategy={estimator.multi_strategy!r}, but {continued.name} was fitted with "
            f"{strategy!r}: continue with the same"
        )
