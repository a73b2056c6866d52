"""The open nodes: those whose best split has not been made yet, and which of them comes next.

Depthwise they form a queue, depth after depth; best first, a binary heap, so that taking one of
many thousand takes a few steps.
"""

from sklboost.engine.compiling import inlined, kernel


@inlined
def comes_first(key, item, other_key, other_item):
    """Whether an item is nearer to the top of a heap: the larger key, then the lower item."""
    return key > other_key or (key == other_key and item < other_item)


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
