"""From the user's parameters to the strict settings of a tree."""

from collections.abc import Sequence

import numpy as np

from sklboost.engine.structs import FeatureRules, TreeParams

# Beyond any tree that memory could hold: "no limit" without a second code path.
_NO_LIMIT = 2**31
# Values of `multi_strategy`, by ``TreeParams.multi_output``.
STRATEGIES = ("one_output_per_tree", "multi_output_tree")


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
    ccp_alpha: float,
    subsample: float,
    colsample_bytree: float,
    colsample_bylevel: float,
    colsample_bynode: float,
    sampling_method: str,
    path_smooth: float,
    extra_trees: bool,
    linear_tree: bool,
    linear_lambda: float,
    multi_strategy: str,
    num_parallel_tree: int,
    max_cat_to_onehot: int,
    max_cat_threshold: int,
    cat_smooth: float,
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
        ccp_alpha=float(ccp_alpha),
        subsample=float(subsample),
        colsample_bytree=float(colsample_bytree),
        colsample_bylevel=float(colsample_bylevel),
        colsample_bynode=float(colsample_bynode),
        gradient_based=int(sampling_method == "gradient_based" and subsample < 1.0),
        path_smooth=float(path_smooth),
        extra_trees=int(extra_trees),
        max_depth=min(int(max_depth) or _NO_LIMIT, _NO_LIMIT),
        max_leaves=min(int(max_leaves) or _NO_LIMIT, _NO_LIMIT),
        best_first=int(grow_policy == "lossguide"),
        linear_tree=int(linear_tree),
        linear_lambda=float(linear_lambda),
        multi_output=STRATEGIES.index(multi_strategy),
        num_parallel_tree=int(num_parallel_tree),
        max_cat_to_onehot=int(max_cat_to_onehot),
        max_cat_threshold=int(max_cat_threshold),
        cat_smooth=float(cat_smooth),
    )


def feature_rules(
    n_features: int,
    *,
    signs: Sequence[int] | None = None,
    groups: Sequence[Sequence[int]] | str | None = None,
    weights: Sequence[float] | None = None,
) -> FeatureRules:
    """Cast what was laid down for single features; None: nothing.

    Parameters
    ----------
    n_features : int
    signs : sequence of -1, 0 or 1, optional
        One a feature.
    groups : sequence of sequence of int, "pairwise" or "no_interactions", optional
        Numbers of the features that may be together on a path.
    weights : sequence of float, optional
        One a feature, positive. If they are all equal, nothing is laid down.
    """
    own_weights = np.array([] if weights is None else weights, dtype=np.float64)
    if len(set(own_weights.tolist())) == 1:
        own_weights = own_weights[:0]
    most_together = _NO_LIMIT
    if isinstance(groups, str):
        # all features are one group, of which a path may have two, or one
        most_together = {"pairwise": 2, "no_interactions": 1}[groups]
        groups = [range(n_features)]
    return FeatureRules(
        signs=np.array([0] * n_features if signs is None else signs, dtype=np.int64),
        groups=_as_bits(groups, n_features),
        most_together=most_together,
        weights=own_weights,
    )


def _as_bits(groups: Sequence[Sequence[int]] | None, n_features: int) -> np.ndarray:
    """Give for each feature the set of its groups, 64 of them a word; empty without groups."""
    if groups is None:
        return np.empty((0, 0), dtype=np.uint64)
    sets = np.zeros((n_features, len(groups) // 64 + 1), dtype=np.uint64)
    for number, group in enumerate(groups):
        sets[np.asarray(group, dtype=np.intp), number // 64] |= np.uint64(1 << number % 64)
    return sets
