"""Which nodes are split next, and which histograms that takes: the serial scales of growth.

In: the best splits of the nodes searched last. Out: the frontier, its children, and the list of
histograms to build. One member of the team runs these, between barriers.

What is split when, and which histograms are kept, changes speed and memory only: a tree's sums are
integers, so its bits do not depend on how they were obtained.
"""

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.tree.core.formulas import child_weight, inherited_from, leaf_weight
from sklboost.tree.core.open_nodes import add_open, next_open, remove_open
from sklboost.tree.core.quantization import scales_of, unpack
from sklboost.tree.core.splitting import can_be_split
from sklboost.tree.core.thresholds import place_threshold
from sklboost.tree.core.workspace import LEFT, OWN
from sklboost.tree.options.monotone import narrow_bounds

# The root's number, and "no node". int64 by name: a literal would compile another version of a
# kernel.
ROOT = np.int64(0)
NO_NODE = np.int64(-1)
# A node is built by several threads from this many rows on; below, handing out blocks and adding up
# the parts costs more than it saves.
_MIN_SHARED_ROWS = 4096


@inlined
def take_slot(pool, counts):
    """Take a free histogram slot; there must be one."""
    counts.n_free -= 1
    return pool.free_slots[counts.n_free]


@kernel
def release_slot(node, tree, pool):
    """Give the node's slot back, if it has one."""
    slot, counts = tree.growth[node].slot, tree.counts[0]
    if slot >= 0:
        pool.free_slots[counts.n_free] = slot
        counts.n_free += 1
        tree.growth[node].slot = -1


@kernel
def start_tree(team, search, workspace):
    """Begin a tree: one node that owns all rows, to be built and searched."""
    tree, pool, counts = workspace.tree, workspace.pool, workspace.tree.counts[0]
    n_slots = len(pool.free_slots)
    for slot in range(n_slots):
        pool.free_slots[slot] = n_slots - 1 - slot
    counts.n_free = n_slots
    counts.n_nodes, counts.n_leaves = 1, 1
    counts.first_open, counts.stop_open = 0, 0
    counts.n_builds = 0
    start_leaf(ROOT, NO_NODE, tree)
    own_rows(ROOT, workspace.partition, tree)
    plan_build(ROOT, NO_NODE, tree, pool)
    tree.searched[0] = ROOT
    counts.n_searched = 1
    arrange_tasks(team, search, workspace)


@inlined
def make_leaf(node):
    """Fill the fields of a split with what a leaf has in them."""
    node.threshold = np.nan
    node.gain = 0.0
    node.feature = -1
    node.left, node.right = -1, -1
    node.default_left = 0


@kernel
def start_leaf(node, parent, tree):
    """Fill what is known of a new node at once."""
    make_leaf(tree.nodes[node])
    growth = tree.growth[node]
    growth.parent, growth.slot, growth.owns_rows, growth.n_rows = parent, -1, 0, 0
    growth.depth = tree.growth[parent].depth + 1 if parent >= 0 else 0
    for output in range(tree.outputs.shape[1]):
        own = tree.outputs[node, output]
        own.lower, own.upper = -np.inf, np.inf


@kernel
def weigh_leaf(node, search, tree):
    """Fill gradient, cover, weight and value of a node from its packed sums.

    A node without rows, which only the root of a sample may be, gets the weight 0.
    """
    outputs, parent, params = tree.outputs[node], tree.growth[node].parent, search.params
    total_cover = 0.0
    for output in range(len(outputs)):
        own, scales = outputs[output], scales_of(search.scales, output)
        own.gradient, own.hessian = unpack(tree.sums[node, OWN, output], scales)
        total_cover += own.hessian
        if own.hessian == 0.0:
            own.weight = 0.0
        elif parent < 0:
            own.weight = leaf_weight(own.gradient, own.hessian, params)
        else:
            inherited = inherited_from(tree.outputs[parent, output], params.path_smooth)
            own.weight = child_weight(own.gradient, own.hessian, inherited, params)
        own.value = params.learning_rate * own.weight
    leaf = tree.nodes[node]
    leaf.gradient, leaf.value = outputs[0].gradient, outputs[0].value
    leaf.cover = total_cover / len(outputs)


@kernel
def split_node(node, search, tree):
    """Make the split of `node`: two new leaves with their sums and values."""
    counts, split = tree.counts[0], tree.splits[node]
    left = counts.n_nodes
    counts.n_nodes += 2
    counts.n_leaves += 1
    parent = tree.nodes[node]
    parent.feature = split.feature
    parent.threshold = place_threshold(split, search.matrix)
    parent.default_left = split.default_left
    parent.gain = split.gain
    parent.left, parent.right = left, left + 1
    for output in range(tree.sums.shape[2]):
        left_sum = tree.sums[node, LEFT, output]
        tree.sums[left, OWN, output] = left_sum
        tree.sums[left + 1, OWN, output] = tree.sums[node, OWN, output] - left_sum
    for child in range(left, left + 2):
        start_leaf(child, node, tree)
        weigh_leaf(child, search, tree)
    narrow_bounds(node, tree, search.rules)


@kernel
def open_searched(params, tree, pool):
    """Put the searched nodes whose best split is worth making into the list of open nodes."""
    counts = tree.counts[0]
    for index in range(counts.n_searched):
        node = tree.searched[index]
        gain = tree.splits[node].gain
        if gain > -np.inf and gain >= params.grow_gain:
            add_open(node, params, tree)
        else:
            release_slot(node, tree, pool)
    counts.n_searched = 0


@kernel
def release_unsearched(params, tree, pool):
    """Give back the slots of nodes that were built only for their sibling's sake."""
    for index in range(tree.counts[0].n_builds):
        node = pool.builds[index].node
        if not can_be_split(node, params, tree):
            release_slot(node, tree, pool)
    tree.counts[0].n_builds = 0


@kernel
def has_slots(node, n_reserved, tree, pool):
    """Tell whether the children of `node` can have histograms; make room if it is the first."""
    counts = tree.counts[0]
    n_needed = 1 if tree.growth[node].slot >= 0 else 2
    # the histograms of nodes that will be split last go first; theirs are built anew in time
    position = counts.stop_open
    while n_reserved == 0 and counts.n_free < n_needed and position > counts.first_open:
        position -= 1
        if tree.open_nodes[position] != node:
            release_slot(tree.open_nodes[position], tree, pool)
    return counts.n_free - n_reserved >= n_needed


@kernel
def choose_frontier(search, workspace):
    """Split the nodes whose turn it is; list those whose children may be split in turn.

    Children at the depth limit, or of the last split that `max_leaves` allows, are leaves for good:
    their rows are never listed and their histograms never built.
    """
    tree, pool, params = workspace.tree, workspace.pool, search.params
    counts = tree.counts[0]
    release_unsearched(params, tree, pool)
    open_searched(params, tree, pool)
    counts.n_frontier = 0
    n_reserved = np.int64(0)
    while counts.first_open < counts.stop_open and counts.n_leaves < params.max_leaves:
        position = next_open(params, tree)
        node = tree.open_nodes[position]
        depth = tree.growth[node].depth
        if counts.n_frontier > 0 and depth > tree.growth[tree.frontier[0]].depth:
            return  # a level is finished before the next begins: its nodes share the leaves left
        is_last = depth + 1 >= params.max_depth or counts.n_leaves + 1 == params.max_leaves
        if not is_last and not has_slots(node, n_reserved, tree, pool):
            return
        remove_open(position, params, tree)
        split_node(node, search, tree)
        if is_last:
            release_slot(node, tree, pool)
            continue
        n_reserved += 1 if tree.growth[node].slot >= 0 else 2
        tree.frontier[counts.n_frontier] = node
        counts.n_frontier += 1
        if params.best_first == 1:
            return


@kernel
def own_rows(node, partition, tree):
    """Note that `node` owns rows, and how many of them count."""
    n_rows = 0
    for block in range(partition.n_counted):
        n_rows += partition.stop[block, node] - partition.start[block, node]
    tree.growth[node].n_rows = n_rows
    tree.growth[node].owns_rows = 1


@kernel
def plan_build(node, sibling, tree, pool):
    """List a histogram to be built; with a sibling, that one takes the parent's slot."""
    counts = tree.counts[0]
    if sibling >= 0:
        parent = tree.growth[node].parent
        tree.growth[sibling].slot = tree.growth[parent].slot
        tree.growth[parent].slot = -1
    tree.growth[node].slot = take_slot(pool, counts)
    build = pool.builds[counts.n_builds]
    build.node, build.sibling = node, sibling
    counts.n_builds += 1


@kernel
def plan_children(left, right, params, tree, pool):
    """Plan the histograms of two children: of those that can be split, the fewest rows possible."""
    growth, counts = tree.growth, tree.counts[0]
    smaller, larger = left, right
    if growth[right].n_rows < growth[left].n_rows:
        smaller, larger = right, left
    for child in range(left, left + 2):
        if can_be_split(child, params, tree):
            tree.searched[counts.n_searched] = child
            counts.n_searched += 1
    parent = growth[left].parent
    needs_smaller = can_be_split(smaller, params, tree)
    needs_larger = can_be_split(larger, params, tree)
    if needs_larger and growth[parent].slot >= 0:
        plan_build(smaller, larger, tree, pool)
        return
    release_slot(parent, tree, pool)
    if needs_smaller:
        plan_build(smaller, NO_NODE, tree, pool)
    if needs_larger:
        plan_build(larger, NO_NODE, tree, pool)


@kernel
def plan_builds(team, search, workspace):
    """List the histograms that the frontier's children need, after their rows were divided."""
    tree, pool, counts = workspace.tree, workspace.pool, workspace.tree.counts[0]
    for index in range(counts.n_frontier):
        node = tree.frontier[index]
        left, right = np.int64(tree.nodes[node].left), np.int64(tree.nodes[node].right)
        tree.growth[node].owns_rows = 0
        own_rows(left, workspace.partition, tree)
        own_rows(right, workspace.partition, tree)
        plan_children(left, right, search.params, tree, pool)
    arrange_tasks(team, search, workspace)


@kernel
def arrange_tasks(team, search, workspace):
    """Cut the coming work into tasks for the team.

    Builds that are worth several threads move to the front of the list; few searched nodes are cut
    into chunks of features.
    """
    tree, pool, counts = workspace.tree, workspace.pool, workspace.tree.counts[0]
    builds = pool.builds
    counts.n_shared = 0
    counts.n_chunks = 1
    if team.size == 1:
        return
    n_features = len(search.matrix.places)
    counts.n_chunks = max(1, min(n_features, 4 * team.size // max(1, counts.n_searched)))
    n_rows = 0
    for index in range(counts.n_builds):
        n_rows += tree.growth[builds[index].node].n_rows
    least = max(_MIN_SHARED_ROWS, n_rows // (2 * team.size))
    most_shared = (pool.accumulators.shape[1] - 1) // pool.histograms.shape[1]
    for index in range(counts.n_builds):
        is_large = tree.growth[builds[index].node].n_rows >= least
        if is_large and counts.n_shared < most_shared:
            node, sibling = builds[index].node, builds[index].sibling
            builds[index] = builds[counts.n_shared]
            builds[counts.n_shared].node = node
            builds[counts.n_shared].sibling = sibling
            counts.n_shared += 1
    pool.accumulator_used[:, :] = 0
