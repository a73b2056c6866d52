"""Cost-complexity pruning (`ccp_alpha`): branches that gain less than alpha a split are removed.

The gain of a whole branch counts: it may go although each of its last splits gains enough.
"""

from sklboost.engine.compiling import late
from sklboost.tree.core.frontier import make_leaf


@late()
def prune_weakest_links(tree, params):
    """Leave the smallest subtree of the least cost, a leaf costing alpha.

    A branch is worth the gain of its splits, less alpha for each; one that is worth nothing goes.
    From the bottom up this is the subtree that repeatedly collapsing the weakest link ends with
    (Breiman et al. 1984, theorem 3.10). Alpha is ``params.ccp_alpha`` times the root's cover:
    times the number of rows for squared error, where gain is what the sum of squared errors loses.
    """
    nodes, growth = tree.nodes, tree.growth
    alpha = params.ccp_alpha * nodes[0].cover
    for node in range(tree.counts[0].n_nodes - 1, -1, -1):
        growth[node].worth = 0.0
        left, right = nodes[node].left, nodes[node].right
        if left < 0:
            continue
        growth[node].worth = nodes[node].gain - alpha + growth[left].worth + growth[right].worth
        if growth[node].worth <= 0.0:
            growth[node].worth = 0.0
            make_leaf(nodes[node])
