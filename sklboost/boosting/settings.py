"""The task of a training, a record, and the user's parameters, cast once.

A value of another type would compile every kernel once more, so nothing else makes `TreeParams` and
`FeatureRules`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from sklboost.data.features import Features
from sklboost.engine.model import Trees
from sklboost.engine.structs import BinCuts, FeatureRules, TrainingBins, TreeParams
from sklboost.objectives.loss import FillDerivatives, Loss
from sklboost.tree.core.machines import Machines
from sklboost.tree.core.quantization import WeightScale

# Beyond any tree that memory could hold: "no limit" without a second code path.
_NO_LIMIT = 2**31
# The type that each field of TreeParams is cast to: int or float.
_TYPES: dict[str, Any] = get_type_hints(TreeParams)
# Values of `multi_strategy`, by ``TreeParams.multi_output``.
STRATEGIES = ("one_output_per_tree", "multi_output_tree")


class Dropout(NamedTuple):
    """Which rounds ``booster="dart"`` drops, and how much weight the new round gets."""

    rate_drop: float  # fraction of the rounds
    skip_drop: float  # probability that a round drops none
    one_drop: bool  # whether at least one round is dropped unless dropping is skipped
    by_weight: bool  # whether rounds of large weight are likelier to be dropped
    # whether the new round counts as much as the dropped ones together, not as one of them
    as_forest: bool


class BoostingTask(NamedTuple):
    """The rows, the loss and the settings of a training: all that decides on the trees it grows."""

    X: Features  # the features that `matrix` was made from
    matrix: TrainingBins
    cuts: BinCuts  # how the values became bins
    # float64, shape (n_targets, n_samples): one target may be float32, and numbers of classes
    # uint8, if the loss is a built-in one. As the weights, it may be a RemoteColumn.
    y: Any
    weight: Any  # float64, shape (n_samples,) or (0,): positive; empty: all 1
    # float64, shape (n_samples,) or (0,): the same without the weights of classes: how many rows
    # each counts as
    sample_weight: Any
    # float64, shape (n_outputs, n_samples): before the first round. Modified by each round. It may
    # be a RemoteColumn, too, of one output.
    raw_score: Any
    base_score: np.ndarray  # float64, shape (n_outputs,): of the model before its first tree
    trees_before: Trees  # of the model that is continued
    loss: Loss
    params: TreeParams
    rules: FeatureRules
    seed: int  # of the random rounding of gradients
    sampling_seed: int  # of the draws of rows and features
    dropout: Dropout | None  # None unless ``booster="dart"``
    keep_pruned: bool  # whether the trees before pruning are kept, too
    # Where each of several machines has some of the rows; None: there is one
    machines: Machines | None = None
    weight_scale: WeightScale | None = None  # of the rows of all; None: that of `weight`
    # returns the elementwise maximum of an array of float64 over all machines, which all call it
    largest: Callable[[np.ndarray], np.ndarray] = np.asarray
    # the same, and the sum of one of int64, for linear leaves; None: there is one machine
    of_leaves: tuple[Callable[[np.ndarray], np.ndarray], ...] | None = None
    # in place of the loss's `prepare`, where rows of other machines decide on derivatives of these
    prepare: Callable[..., FillDerivatives] | None = None

    @property
    def n_outputs(self) -> int:
        """Number of raw scores per row."""
        return self.loss.n_outputs

    @property
    def n_tree_outputs(self) -> int:
        """Number of outputs that one tree has values for."""
        return self.params.n_tree_outputs(self.n_outputs)

    @property
    def trees_per_round(self) -> int:
        """Number of trees that a round adds."""
        return self.params.trees_per_round(self.n_outputs)


def tree_params(
    *,
    gamma: float,
    pruning: str,
    max_delta_step: float,
    max_depth: int,
    max_leaves: int,
    grow_policy: str,
    sampling_method: str,
    multi_strategy: str,
    **settings: float,
) -> TreeParams:
    """Return the settings of a tree, every one cast to the type that :class:`TreeParams` declares.

    Parameters named here are translated; all others are fields of :class:`TreeParams` as they are.
    ``0`` means no limit for `max_depth`, `max_leaves` and `max_delta_step`. The pruning modes
    become two gains: the least that is grown and the least that pruning leaves.
    """
    # "full" grows everything, "post" gains above 0, "pre" only what gamma would leave
    smallest = math.nextafter(0.0, 1.0)
    grow_gain = {"full": -np.inf, "post": smallest, "pre": max(float(gamma), smallest)}[pruning]
    settings |= dict(
        grow_gain=grow_gain,
        prune_gain=-np.inf if pruning == "pre" else gamma,
        max_delta_step=float(max_delta_step) or np.inf,
        max_depth=min(int(max_depth) or _NO_LIMIT, _NO_LIMIT),
        max_leaves=min(int(max_leaves) or _NO_LIMIT, _NO_LIMIT),
        best_first=grow_policy == "lossguide",
        symmetric=grow_policy == "symmetric",
        gradient_based=sampling_method == "gradient_based" and settings["subsample"] < 1.0,
        multi_output=STRATEGIES.index(multi_strategy),
    )
    return TreeParams(**{name: _TYPES[name](value) for name, value in settings.items()})


def feature_rules(
    n_features: int,
    *,
    signs: Sequence[int] | None = None,
    groups: Sequence[Sequence[int]] | str | None = None,
    weights: Sequence[float] | None = None,
) -> FeatureRules:
    """Return the rules for single features; None: no such rule.

    `signs` are -1, 0 or 1, `weights` not negative, one for each feature; equal weights are no rule.
    `groups` have numbers of the features that may be together on a path.
    """
    weight_array = np.array([] if weights is None else weights, dtype=np.float64)
    if len(set(weight_array.tolist())) == 1:
        weight_array = weight_array[:0]
    most_together = _NO_LIMIT
    if isinstance(groups, str):
        # all features are one group, of which a path may have two, or one
        most_together = {"pairwise": 2, "no_interactions": 1}[groups]
        groups = [range(n_features)]
    bits = np.empty((0, 0), dtype=np.uint64)
    if groups is not None:  # the groups of each feature as bits of 64-bit words
        bits = np.zeros((n_features, len(groups) // 64 + 1), dtype=np.uint64)
        for number, group in enumerate(groups):
            bits[np.asarray(group, dtype=np.intp), number // 64] |= np.uint64(1 << number % 64)
    return FeatureRules(
        signs=np.array(signs if signs is not None and any(signs) else [], dtype=np.int64),
        groups=bits,
        most_together=most_together,
        weights=weight_array,
    )
