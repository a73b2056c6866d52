"""The open nodes: those whose best split has not been made yet, and which of them comes next.

In: nodes with their best splits. Out: the next one. Depthwise they form a queue, level after level;
best first, a binary heap, so that taking one of many thousand takes a few steps.
"""

from sklboost.engine.compiling import inlined, kernel


@inlined
def comes_first(node, other, splits):
    """Tell whether `node` is split before `other`: the larger gain, then the lower number."""
    gain, other_gain = splits[node].gain, splits[other].gain
    return gain > other_gain or (gain == other_gain and node < other)


@kernel
def add_open(node, params, tree):
    """Add a node at the end of the queue, or to the heap."""
    counts, heap, splits = tree.counts[0], tree.open_nodes, tree.splits
    position = counts.stop_open
    heap[position] = node
    counts.stop_open += 1
    if params.best_first == 1:
        # the queue's start stays 0 here, so the parent of p is (p - 1) // 2
        while position > 0 and comes_first(node, heap[(position - 1) // 2], splits):
            heap[position] = heap[(position - 1) // 2]
            position = (position - 1) // 2
        heap[position] = node


@kernel
def next_open(params, tree):
    """Give the position in ``open_nodes`` of the node to be split next.

    Best first: the top of the heap. Depthwise: the first of the level, or where `max_leaves` does
    not let the whole level be split, the one of largest gain in it.
    """
    counts = tree.counts[0]
    first, stop = counts.first_open, counts.stop_open
    budget = params.max_leaves - counts.n_leaves
    if params.best_first == 1 or budget >= stop - first:
        return first
    depth = tree.growth[tree.open_nodes[first]].depth
    while tree.growth[tree.open_nodes[stop - 1]].depth > depth:
        stop -= 1
    if budget >= stop - first:
        return first
    best = first
    for position in range(first + 1, stop):
        if comes_first(tree.open_nodes[position], tree.open_nodes[best], tree.splits):
            best = position
    return best


@kernel
def remove_open(position, params, tree):
    """Take out the node that :func:`next_open` gave, leaving the others in order."""
    counts, open_nodes = tree.counts[0], tree.open_nodes
    if params.best_first == 0:
        for later in range(position, counts.first_open, -1):
            open_nodes[later] = open_nodes[later - 1]
        counts.first_open += 1
        return
    counts.stop_open -= 1
    sink(open_nodes[counts.stop_open], counts.stop_open, tree)


@kernel
def sink(node, size, tree):
    """Put `node` in the place of the top of a heap that then has `size` nodes."""
    heap, splits = tree.open_nodes, tree.splits
    position = 0
    while 2 * position + 1 < size:
        child = 2 * position + 1
        if child + 1 < size and comes_first(heap[child + 1], heap[child], splits):
            child += 1
        if comes_first(node, heap[child], splits):
            break
        heap[position] = heap[child]
        position = child
    heap[position] = node
