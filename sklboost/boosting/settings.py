"""From the user's parameters to the strict settings of a tree."""

import numpy as np

from sklboost.structs import TreeParams

# Beyond any tree that memory could hold: "no limit" without a second code path.
_NO_LIMIT = 2**31


def tree_params(
    *,
    learning_rate: float,
    reg_lambda: float,
    reg_alpha: float,
    gamma: float,
    min_child_weight: float,
    max_delta_step: float,
    max_depth: int,
    max_leaves: int,
    grow_policy: str,
    pruning: str,
    subsample: float,
    colsample_bytree: float,
    colsample_bylevel: float,
    colsample_bynode: float,
    sampling_method: str,
    multi_strategy: str,
) -> TreeParams:
    """Cast the settings of a tree once and for all.

    ``0`` means no limit for `max_depth`, `max_leaves` and `max_delta_step`. The pruning modes
    become two gains: the least that is grown and the least that pruning leaves.
    """
    # "full" grows everything; the others, gains above 0; and "pre" only what gamma would leave
    smallest = float(np.nextafter(0.0, 1.0))
    grow_gain = {"full": -np.inf, "post": smallest, "pre": max(float(gamma), smallest)}[pruning]
    return TreeParams(
        learning_rate=float(learning_rate),
        reg_lambda=float(reg_lambda),
        reg_alpha=float(reg_alpha),
        min_child_weight=float(min_child_weight),
        max_delta_step=float(max_delta_step) or np.inf,
        grow_gain=grow_gain,
        prune_gain=-np.inf if pruning == "pre" else float(gamma),
        subsample=float(subsample),
        colsample_bytree=float(colsample_bytree),
        colsample_bylevel=float(colsample_bylevel),
        colsample_bynode=float(colsample_bynode),
        gradient_based=int(sampling_method == "gradient_based" and subsample < 1.0),
        max_depth=min(int(max_depth) or _NO_LIMIT, _NO_LIMIT),
        max_leaves=min(int(max_leaves) or _NO_LIMIT, _NO_LIMIT),
        best_first=int(grow_policy == "lossguide"),
        multi_output=int(multi_strategy == "multi_output_tree"),
    )
