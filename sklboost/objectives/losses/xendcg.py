"""Gradients of a whole list at once: the cross entropy XE-NDCG of softmax scores and drawn gains.

A query's raw scores become probabilities ``p = softmax(s)``, and its relevances l a distribution q
in proportion to ``2^l - u``, with u drawn from [0, 1) for each document and round. The loss is the
cross entropy of p and q. Bruch (2021), "An Alternative Cross Entropy Loss for Learning-to-Rank";
the gradient is developed up to third order, as in LightGBM's ``rank_xendcg``: with d_0 = p - q and
``t = d / (1 - p)``, each next term is ``d = p (sum(t) - t)``. The hessian is ``p (1 - p)``.
"""

import numpy as np

from sklboost.engine.compiling import kernel
from sklboost.engine.elementary import exp_of_negative
from sklboost.engine.hashing import hash_key, mix_bits
from sklboost.engine.parallel import assemble, share
from sklboost.objectives.blocks import LEAST_HESSIAN

_ORDERS = 3
# What 1 - p is at least, where one document has all the probability.
_LEAST_REST = 1e-15
_INVERSE_2_TO_32 = 2.0**-32


@kernel
def fill_cross_entropy(team, round_key, queries, gains, raw_score, derivatives, scratch):
    """Fill gradient and hessian, float32, of this member's queries.

    Parameters
    ----------
    team : Team
    round_key : int
        Of the draws.
    queries : Queries
    gains : ndarray of float64, shape (n_samples,)
        ``2^l`` of each document, in the order of ``queries.rows``.
    raw_score : ndarray of float64, shape (n_samples,)
    derivatives : tuple of ndarray of float32, shape (n_samples,)
        Filled.
    scratch : ndarray of float64, shape (n_threads, 4, longest query)
    """
    if not assemble(team):
        return
    begin, end = share(team, len(queries.rows))
    for query in range(len(queries.starts) - 1):
        start, stop = queries.starts[query], queries.starts[query + 1]
        if begin <= start < end:
            rows, own_gains = queries.rows[start:stop], gains[start:stop]
            key = hash_key(np.int64(round_key), np.int64(start), np.int64(0))
            fill_query(key, rows, own_gains, raw_score, derivatives, scratch[team.rank])


@kernel
def fill_query(key, rows, gains, raw_score, derivatives, scratch):
    """Fill the derivatives of the documents of a query."""
    gradient, hessian = derivatives
    n_documents = len(rows)
    probabilities, terms = scratch[0, :n_documents], scratch[1, :n_documents]
    sums, rests = scratch[2, :n_documents], scratch[3, :n_documents]
    highest = raw_score[rows[0]]
    for index in range(n_documents):
        sums[index] = raw_score[rows[index]]
        highest = max(highest, sums[index])
        key = mix_bits(key ^ np.uint64(0x9E3779B9))
        terms[index] = gains[index] - np.float64(key) * _INVERSE_2_TO_32
    for index in range(n_documents):
        probabilities[index] = exp_of_negative(sums[index] - highest)
    total, total_gain = 0.0, 0.0
    for index in range(n_documents):
        total += probabilities[index]
        total_gain += terms[index]
    for index in range(n_documents):
        probabilities[index] /= total
        rests[index] = max(1.0 - probabilities[index], _LEAST_REST)
        terms[index] = probabilities[index] - terms[index] / total_gain
        sums[index] = 0.0
    for order in range(_ORDERS if n_documents > 1 else 0):
        of_all = 0.0
        for index in range(n_documents):
            sums[index] += terms[index]
            terms[index] /= rests[index]
            of_all += terms[index]
        for index in range(n_documents if order + 1 < _ORDERS else 0):
            terms[index] = probabilities[index] * (of_all - terms[index])
    for index in range(n_documents):
        gradient[rows[index]] = sums[index]
        hessian[rows[index]] = max(probabilities[index] * rests[index], LEAST_HESSIAN)
