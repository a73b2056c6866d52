"""Which nodes are split next, and which histograms that takes: the serial steps of growth.

One member of the team does them. Nodes that have been searched and whose split is worth making are
*open*: in a queue, depth by depth, or in a heap where the node of largest gain is split first. The
ones that are split now are the *frontier*. Their children get histograms if they may be split in
turn. In a symmetric tree all searched nodes are split at once, or wait for the next split.
"""

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.tree.core import options
from sklboost.tree.core.formulas import leaf_weight, similarity_at, split_gain
from sklboost.tree.core.partition import place_threshold
from sklboost.tree.core.quantization import hessian_of, scales_of, unpack
from sklboost.tree.core.workspace import LEFT, OWN

# The root's number, and "no node". int64 by name: a literal would compile another version of a
# kernel.
ROOT = np.int64(0)
NO_NODE = np.int64(-1)
# A node is built by several threads from this many rows on; below, handing out blocks and adding up
# the parts costs more than it saves.
_MIN_SHARED_ROWS = 4096


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
    counts.n_builds, counts.n_pruned, counts.n_common = 0, 0, 0
    start_leaf(ROOT, NO_NODE, tree)
    count_rows(ROOT, workspace)
    plan_build(ROOT, NO_NODE, tree, pool)
    tree.searched[0] = ROOT
    counts.n_searched = 1
    arrange_tasks(team, search, workspace)


@kernel
def split_next_nodes(search, workspace):
    """Split the nodes whose turn it is; the frontier are those whose children may be split in turn.

    Children at the depth limit, or of the last split that `max_leaves` allows, are leaves for good:
    their rows are never listed and their histograms never built.
    """
    tree, pool, params = workspace.tree, workspace.pool, search.params
    counts = tree.counts[0]
    # the slots of nodes that were built only for their siblings' sake
    for index in range(counts.n_builds):
        node = pool.builds[index].node
        if not can_be_split(node, params, tree):
            release_slot(node, tree, pool)
    counts.n_builds = 0
    if params.symmetric == 1:
        options.split_depth(search, workspace)
        return
    open_searched(params, tree, pool)
    counts.n_frontier = 0
    n_reserved = np.int64(0)
    while counts.first_open < counts.stop_open and counts.n_leaves < params.max_leaves:
        position = next_open(params, tree)
        node = tree.open_nodes[position]
        depth = tree.growth[node].depth
        if counts.n_frontier > 0 and depth > tree.growth[tree.frontier[0]].depth:
            return  # first the nodes of one depth: they share the leaves that are left
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
def open_searched(params, tree, pool):
    """Add the searched nodes whose best split is worth making to the open nodes."""
    counts = tree.counts[0]
    for index in range(counts.n_searched):
        node = tree.searched[index]
        if is_worth_making(tree.splits[node].gain, params):
            add_open(node, params, tree)
        else:
            release_slot(node, tree, pool)
    counts.n_searched = 0


@inlined
def is_worth_making(gain, params):
    """Whether a split of this gain is grown."""
    return gain > -np.inf and gain >= params.grow_gain


@kernel
def plan_builds(team, search, workspace):
    """List the histograms that the frontier's children need, after their rows were divided."""
    tree, pool, params = workspace.tree, workspace.pool, search.params
    counts = tree.counts[0]
    for index in range(counts.n_frontier):
        node = tree.frontier[index]
        left, right = np.int64(tree.nodes[node].left), np.int64(tree.nodes[node].right)
        tree.growth[node].owns_rows = 0
        count_rows(left, workspace)
        count_rows(right, workspace)
        for child in range(left, left + 2):
            if can_be_split(child, params, tree):
                tree.searched[counts.n_searched] = child
                counts.n_searched += 1
        # the fewest rows possible: of the smaller child, and the other is parent minus that
        smaller, larger = left, right
        if tree.growth[right].n_rows < tree.growth[left].n_rows:
            smaller, larger = right, left
        needs_larger = can_be_split(larger, params, tree)
        if needs_larger and tree.growth[node].slot >= 0:
            plan_build(smaller, larger, tree, pool)
            continue
        release_slot(node, tree, pool)
        if can_be_split(smaller, params, tree):
            plan_build(smaller, NO_NODE, tree, pool)
        if needs_larger:
            plan_build(larger, NO_NODE, tree, pool)
    arrange_tasks(team, search, workspace)


# --- nodes


@kernel
def start_leaf(node, parent, tree):
    """Fill what is known of a new node at once."""
    make_leaf(tree.nodes[node])
    growth = tree.growth[node]
    growth.parent, growth.slot, growth.owns_rows, growth.n_rows = parent, -1, 0, 0
    growth.depth = tree.growth[parent].depth + 1 if parent >= 0 else 0
    for output in range(tree.outputs.shape[1]):
        tree.outputs[node, output].lower = -np.inf
        tree.outputs[node, output].upper = np.inf
        tree.outputs[node, output].spread = -1.0
        tree.outputs[node, output].total_weight = -1.0


@kernel
def make_leaf(node):
    """Turn a node into a leaf: reset the fields that describe its split."""
    node.threshold = np.nan
    node.gain = 0.0
    node.feature = -1
    node.left, node.right = -1, -1
    node.default_left = 0


@kernel
def weigh_leaf(node, search, tree):
    """Fill gradient, cover, similarity and value of a node from its packed sums.

    A node without rows, which only the root of a sample may be, gets the weight 0.
    """
    leaf, growth, outputs, params = tree.nodes[node], tree.growth[node], tree.outputs, search.params
    total_hessian, n_outputs = 0.0, outputs.shape[1]
    for index in range(n_outputs):
        output = outputs[node, index]
        scales = scales_of(search.scales, index)
        output.gradient, output.hessian = unpack(tree.sums[node, OWN, index], scales)
        output.weight = 0.0
        if output.hessian > 0.0:
            output.weight = leaf_weight(output.gradient, output.hessian, params)
        total_hessian += output.hessian
    has_bounds = len(search.columns.rules.signs) > 0
    if growth.parent >= 0 and (has_bounds or params.path_smooth > 0.0):
        options.constrain_weights(node, search, tree)
    growth.similarity = 0.0
    for index in range(n_outputs):
        output = outputs[node, index]
        output.value = params.learning_rate * output.weight
        gradient, hessian, weight = output.gradient, output.hessian, output.weight
        growth.similarity += similarity_at(gradient, hessian, weight, params)
    leaf.gradient, leaf.value = outputs[node, 0].gradient, outputs[node, 0].value
    leaf.cover = total_hessian / n_outputs


@kernel
def split_node(node, search, tree):
    """Make the split of `node`: two new leaves with their sums and values."""
    counts, split, rules = tree.counts[0], tree.splits[node], search.columns.rules
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
    if split.n_listed > 0:
        # the gain of the rows; the split was chosen for less, see tree/options/categories.py
        sides = tree.growth[left].similarity, tree.growth[left + 1].similarity
        parent.gain = split_gain(sides[0], sides[1], tree.growth[node].similarity)
    if len(rules.signs) > 0:
        options.narrow_bounds(node, tree, rules)


@inlined
def can_be_split(node, params, tree):
    """Whether a node's rows and cover leave room for two children."""
    if params.min_child_samples > 0 and not options.has_rows_for_two(node, params, tree):
        return False
    return tree.growth[node].n_rows >= 2 and tree.nodes[node].cover >= 2.0 * params.min_child_weight


@kernel
def count_rows(node, workspace):
    """Count the rows of `node`, without those that sampling left out; from now on it owns them."""
    tree, partition = workspace.tree, workspace.partition
    n_rows = 0
    for block in range(partition.n_counted):
        n_rows += partition.stop[block, node] - partition.start[block, node]
    tree.growth[node].n_rows = n_rows
    tree.growth[node].owns_rows = 1
    if workspace.machines.size > 1:
        tree.growth[node].n_rows = estimate_rows(node, workspace)


@late("int64")
def estimate_rows(node, workspace):
    """Estimate the rows that a node owns on all machines, the same on each: by its hessian.

    A row has an integer hessian of at least 1. What has one row is never taken for less than one,
    or two for one; all else that depends on the number is speed.
    """
    tree, n_samples = workspace.tree, workspace.machines.n_samples
    if node == ROOT:
        return np.int64(n_samples)
    hessian = hessian_of(tree.sums[node, OWN, 0])
    share = np.float64(hessian) / np.float64(hessian_of(tree.sums[ROOT, OWN, 0]))
    return max(min(hessian, np.int64(2)), np.int64(share * n_samples))


# --- open nodes


@kernel
def add_open(node, params, tree):
    """Add a node at the end of the queue, or to the heap."""
    counts, nodes, gains = tree.counts[0], tree.open_nodes, tree.open_gains
    position, gain = counts.stop_open, tree.splits[node].gain
    counts.stop_open += 1
    if params.best_first == 1:
        # the queue's start stays 0 here, so the parent of p is (p - 1) // 2
        above = (position - 1) // 2
        while position > 0 and comes_first(gain, node, gains[above], nodes[above]):
            gains[position], nodes[position] = gains[above], nodes[above]
            position, above = above, (above - 1) // 2
    gains[position], nodes[position] = gain, node


@kernel
def next_open(params, tree):
    """Return the position in ``open_nodes`` of the node to be split next.

    Best first: the top of the heap. Depthwise: the first, or where `max_leaves` does not let all
    nodes of its depth be split, the one of largest gain among these.
    """
    counts, nodes, gains = tree.counts[0], tree.open_nodes, tree.open_gains
    first, stop = counts.first_open, counts.stop_open
    budget = params.max_leaves - counts.n_leaves
    if params.best_first == 1 or budget >= stop - first:
        return first
    depth = tree.growth[nodes[first]].depth
    while tree.growth[nodes[stop - 1]].depth > depth:
        stop -= 1
    if budget >= stop - first:
        return first
    best = first
    for position in range(first + 1, stop):
        if comes_first(gains[position], nodes[position], gains[best], nodes[best]):
            best = position
    return best


@kernel
def remove_open(position, params, tree):
    """Take out the node at the position that :func:`next_open` returned."""
    counts, nodes, gains = tree.counts[0], tree.open_nodes, tree.open_gains
    if params.best_first == 0:
        for later in range(position, counts.first_open, -1):
            gains[later], nodes[later] = gains[later - 1], nodes[later - 1]
        counts.first_open += 1
        return
    counts.stop_open -= 1
    gains[0], nodes[0] = gains[counts.stop_open], nodes[counts.stop_open]
    sink(gains, nodes, 0, counts.stop_open)


@inlined
def sink(keys, items, position, stop):
    """Let the item at `position` of a heap of `stop` items sink to where it belongs."""
    key, item = keys[position], items[position]
    child = 2 * position + 1
    while child < stop:
        if child + 1 < stop and comes_first(
            keys[child + 1], items[child + 1], keys[child], items[child]
        ):
            child += 1
        if comes_first(key, item, keys[child], items[child]):
            break
        keys[position], items[position] = keys[child], items[child]
        position, child = child, 2 * child + 1
    keys[position], items[position] = key, item


@inlined
def comes_first(key, item, other_key, other_item):
    """Whether an item is nearer to the top of a heap: the larger key, then the lower item."""
    return key > other_key or (key == other_key and item < other_item)


# --- histograms


@kernel
def plan_build(node, sibling, tree, pool):
    """List the histograms of a node to be built; a sibling takes the parent's slot."""
    growth, counts = tree.growth, tree.counts[0]
    if sibling >= 0:
        parent = growth[node].parent
        growth[sibling].slot, growth[parent].slot = growth[parent].slot, -1
    counts.n_free -= 1
    growth[node].slot = pool.free_slots[counts.n_free]
    for strip in range(pool.histograms.shape[1]):
        build = pool.builds[counts.n_builds]
        build.node, build.sibling, build.strip = node, sibling, strip
        counts.n_builds += 1


@kernel
def has_slots(node, n_reserved, tree, pool):
    """Whether the children of `node` can have histograms; make room if it is the first."""
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
def release_slot(node, tree, pool):
    """Release the histogram slot of a node, if it has one."""
    slot, counts = tree.growth[node].slot, tree.counts[0]
    if slot >= 0:
        pool.free_slots[counts.n_free] = slot
        counts.n_free += 1
        tree.growth[node].slot = -1


@kernel
def arrange_tasks(team, search, workspace):
    """Cut the coming work into tasks for the team.

    Builds that are worth several threads move to the front of the list; few of the others are cut
    into chunks of columns, few searched nodes into chunks of features.
    """
    tree, pool, counts = workspace.tree, workspace.pool, workspace.tree.counts[0]
    counts.n_shared = 0
    counts.n_chunks, counts.n_build_chunks = 1, 1
    if team.size == 1 and pool.in_order == 0:
        return
    n_features, n_searches = len(search.matrix.places), max(1, counts.n_searched)
    # a symmetric tree has one search for a split of all these nodes, and each member has its share
    n_chunks = max(1, min(n_features, 4 * team.size // n_searches))
    counts.n_chunks = team.size if search.params.symmetric == 1 else n_chunks
    n_rows = 0
    for index in range(counts.n_builds):
        n_rows += tree.growth[pool.builds[index].node].n_rows
    least = 0 if pool.in_order == 1 else max(_MIN_SHARED_ROWS, n_rows // (2 * team.size))
    most_shared = pool.accumulators.shape[1] - 1
    for index in range(counts.n_builds):
        build, first = pool.builds[index], pool.builds[counts.n_shared]
        if tree.growth[build.node].n_rows >= least and counts.n_shared < most_shared:
            node, sibling, strip = build.node, build.sibling, build.strip
            pool.builds[index] = first
            first.node, first.sibling, first.strip = node, sibling, strip
            counts.n_shared += 1
    n_alone = counts.n_builds - counts.n_shared
    counts.n_build_chunks = max(1, min(team.size, 2 * team.size // max(1, n_alone)))
