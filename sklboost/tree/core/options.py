"""The kernels of ``tree/options`` that growing a tree calls where a parameter asks for them.

Nothing of this runs in a plain fit: one output, features of numbers in columns of their own and
not of few values, all rows and all features in every tree, no constraints. ``tree/options`` imports
this room, so a kernel is fetched from there when a caller is first compiled: ``options.draw_rows``.
"""

from importlib import import_module
from typing import Any

# The module of tree/options that has a kernel; and the parameters, or the data, that need it.
_PLACES = {
    # subsample
    "draw_rows": "row_sampling",
    # colsample_bytree
    "draw_columns": "column_sampling",
    # colsample_bylevel, colsample_bynode, interaction_constraints
    "list_node_features": "column_sampling",
    # monotone_constraints
    "narrow_bounds": "constrained_weights",
    # path_smooth, monotone_constraints
    "constrain_weights": "constrained_weights",
    # min_child_samples
    "fill_counts": "scanning",
    "has_rows_for_two": "scanning",
    # grow_policy="symmetric"
    "find_common_split": "symmetric_trees",
    "choose_common_split": "symmetric_trees",
    "split_depth": "symmetric_trees",
    # categories, sparse features that share a column, trees of several outputs,
    # monotone_constraints, path_smooth, extra_trees, min_child_samples
    "scan_special_feature": "scanning",
    "complete_split": "scanning",
    "copy_split": "scanning",
    # columns of few values, which are added up together
    "unjoin_columns": "shared_columns",
    # trees of several outputs
    "fill_strips": "several_outputs",
    "add_rows_to_strip": "several_outputs",
    "add_few_rows_to_strip": "several_outputs",
    # several trees a round
    "take_root": "several_outputs",
    # losses with a renewal, such as the absolute error
    "renew_leaves": "renewal",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    kernel = getattr(import_module(f"sklboost.tree.options.{_PLACES[name]}"), name)
    globals()[name] = kernel  # a call in Python, where nothing is compiled, looks no further
    return kernel
