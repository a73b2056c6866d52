"""The kernels of ``tree/options`` that growing a tree calls where a parameter asks for them.

Nothing of this runs in a plain fit: one output, features of numbers in columns of their own and
not of few values, all rows and all features in every tree, no constraints. Each name stands for the
kernel of the same name in the module that is given, which is imported and compiled when it is first
needed.
"""

from sklboost.engine.compiling import found_in


@found_in("sklboost.tree.options.row_sampling")
def draw_rows(team, derivatives, key, params, sample, workspace):
    """Divide the rows of the root into those drawn and those left out (`subsample`)."""


@found_in("sklboost.tree.options.column_sampling")
def draw_columns(team, matrix, draws, params, workspace):
    """Choose the features of a tree, and copy the columns that they are in (`colsample_bytree`)."""


@found_in("sklboost.tree.options.column_sampling")
def list_node_features(node, rank, tree, params, sample):
    """List the features that a node may be split on; return how many.

    For `colsample_bylevel`, `colsample_bynode` and `interaction_constraints`.
    """


@found_in("sklboost.tree.options.constrained_weights")
def narrow_bounds(node, tree, rules):
    """Set the bounds of the leaf weights below a split (`monotone_constraints`)."""


@found_in("sklboost.tree.options.constrained_weights")
def hold_weights(node, search, tree):
    """Move a node's leaf weights towards its parent's and into its bounds.

    For `path_smooth` and `monotone_constraints`.
    """


@found_in("sklboost.tree.options.scanning")
def fill_counts(team, gradients):
    """Copy the counts of rows to the strips (`min_child_samples`)."""


@found_in("sklboost.tree.options.scanning")
def has_rows_for_two(node, params, tree):
    """Whether a node has rows enough for two children (`min_child_samples`)."""


@found_in("sklboost.tree.options.scanning")
def scan_special_feature(search, workspace, task, feature, best):
    """Replace `best` if a split of `feature` has a larger gain.

    For categories, sparse features that share a column, trees of several outputs,
    `monotone_constraints`, `path_smooth`, `extra_trees` and `min_child_samples`.
    """


@found_in("sklboost.tree.options.scanning")
def complete_split(node, task, matrix, workspace):
    """Store what a node's best split has beyond that of a number and one output."""


@found_in("sklboost.tree.options.scanning")
def move_split(node, target, tree):
    """Move a node's best split and the categories that it lists to another number."""


@found_in("sklboost.tree.options.feature_cells")
def fill_special_sides(split, categories, matrix, sides):
    """Note which bins of a column go left, for categories and features that share a column."""


@found_in("sklboost.tree.options.joint_columns")
def take_apart(built, column, cells, histogram, n_before):
    """Move the sums of a joint column to the columns it is made of, but for the first."""


@found_in("sklboost.tree.options.several_outputs")
def fill_strips(team, gradients):
    """Copy the packed gradients of all outputs to strips, which histograms are built from."""


@found_in("sklboost.tree.options.several_outputs")
def add_rows_to_strip(bins, packed, row_list, columns, accumulator):
    """Add rows to the cells of columns ``[start, stop)``, four outputs at once."""


@found_in("sklboost.tree.options.several_outputs")
def add_few_rows_to_strip(bins, packed, row_list, sign, starts, histogram):
    """Add rows, times `sign`, to a histogram itself, four outputs at once."""


@found_in("sklboost.tree.options.several_outputs")
def sum_root_of_several(matrix, workspace):
    """Fill the root's sums of all outputs."""


@found_in("sklboost.tree.options.shared_roots")
def take_root(team, roots, lane, workspace):
    """Fill a root's histogram from those that were built with the roots of other outputs."""


@found_in("sklboost.tree.options.cost_complexity")
def prune_weakest_links(tree, params):
    """Leave the smallest subtree of the least cost, a leaf costing `ccp_alpha`."""


@found_in("sklboost.tree.options.renewal")
def renew_leaves(team, matrix, derivatives, renewal, rules, params, workspace):
    """Set every leaf to a quantile of its rows' residuals, for losses with a `renewal`."""
