"""Gradients and metrics of rankings in slow, plain Python, as the formulas are written."""

import numpy as np


def order_of(scores):
    """Documents from the highest score to the lowest, equal ones as they come."""
    return sorted(range(len(scores)), key=lambda document: (-scores[document], document))


def gain(label, is_exponential=True):
    return 2.0**label - 1.0 if is_exponential else label


def dcg(labels, most, is_exponential=True):
    """Discounted gains of labels in their order."""
    return sum(
        gain(label, is_exponential) / np.log2(rank + 2)
        for rank, label in enumerate(labels)
        if rank < most
    )


def average_precision_sum(labels):
    """Sum of the precisions at relevant documents."""
    return sum(sum(labels[: rank + 1]) / (rank + 1) for rank, label in enumerate(labels) if label)


def change_of(metric, labels, upper, lower, most, is_exponential):
    """What exchanging two ranks changes in the metric; the DCG is relative to the best one."""
    if metric == "rank:pairwise":
        return 1.0
    exchanged = list(labels)
    exchanged[upper], exchanged[lower] = exchanged[lower], exchanged[upper]
    if metric == "rank:map":
        before, after = average_precision_sum(labels), average_precision_sum(exchanged)
        return abs(before - after) / sum(labels)
    best = dcg(sorted(labels, reverse=True), most, is_exponential)
    everything = len(labels)
    before, after = (dcg(order, everything, is_exponential) for order in (labels, exchanged))
    return abs(before - after) / best


def lambdas(metric, labels, scores, pairs=None, ratios=None, **settings):
    """Gradients and hessians of the documents of one query, and the losses of positions.

    `pairs` are ranks, (upper, lower); None: those of the top.
    """
    defaults = dict(top=32, is_normalized=True, divides=True, is_exponential=True, n_drawn=1)
    settings = defaults | settings
    order, n_documents = order_of(scores), len(scores)
    ranked = [labels[document] for document in order]
    top = settings["top"] if pairs is None else n_documents
    if pairs is None:
        n_above = min(top, n_documents)
        pairs = [(a, b) for a in range(n_above) for b in range(a + 1, n_documents)]
        is_drawn = False
    else:
        is_drawn = True
    gradient, hessian, total = np.zeros(n_documents), np.zeros(n_documents), 0.0
    losses = np.zeros((2, n_documents))
    for upper, lower in pairs:
        if ranked[upper] == ranked[lower]:
            continue
        high, low = (upper, lower) if ranked[upper] > ranked[lower] else (lower, upper)
        weight = change_of(metric, ranked, upper, lower, top, settings["is_exponential"])
        high, low = order[high], order[low]
        difference = scores[high] - scores[low]
        if settings["divides"] and max(scores) != min(scores):
            weight /= abs(difference) + 0.01
        probability = 1.0 / (1.0 + np.exp(-difference))
        loss = -np.log(probability) * weight
        if ratios is not None and max(high, low) < len(ratios[0]):
            plus, minus = ratios[0][high], ratios[1][low]
            losses[0, high] += loss / minus
            losses[1, low] += loss / plus
            weight /= plus * minus
        pull = (1.0 - probability) * weight
        gradient[high] -= pull
        gradient[low] += pull
        for document in (high, low):
            hessian[document] += 2.0 * probability * (1.0 - probability) * weight
        total += 2.0 * pull
    factor = 1.0
    if settings["is_normalized"] and is_drawn:
        factor = 1.0 / settings["n_drawn"]
    elif settings["is_normalized"] and total > 0.0:
        factor = np.log2(1.0 + total) / total
    return factor * gradient, factor * hessian, losses


def ratios_of(losses_of_queries, weights, n_positions, exponent):
    """The ratios of positions after a round, from the losses of all queries."""
    sums = np.zeros((2, n_positions))
    for losses, weight in zip(losses_of_queries, weights, strict=True):
        n_documents = min(n_positions, losses.shape[1])
        sums[:, :n_documents] += weight * losses[:, :n_documents]
    return (sums / sums[:, :1]) ** exponent


def cross_entropy(labels, scores, draws):
    """Gradients and hessians of XE-NDCG, as LightGBM computes them."""
    probabilities = np.exp(scores - np.max(scores))
    probabilities /= probabilities.sum()
    wanted = 2.0 ** np.asarray(labels) - draws
    term = probabilities - wanted / wanted.sum()
    gradient = term.copy()
    for _ in range(2):
        parts = term / (1.0 - probabilities)
        term = probabilities * (parts.sum() - parts)
        gradient += term
    return gradient, probabilities * (1.0 - probabilities)


def value_of(metric, labels, scores, most=None, empty=1.0, is_exponential=True):
    """A metric of one query."""
    ranked = [labels[document] for document in order_of(scores)]
    most = len(ranked) if most is None else most
    if metric == "ndcg":
        best = dcg(sorted(labels, reverse=True), most, is_exponential)
        return dcg(ranked, most, is_exponential) / best if best else empty
    hits = ranked[:most]
    if metric == "map":
        n_relevant = sum(labels)
        return average_precision_sum(hits) / min(n_relevant, most) if n_relevant else empty
    if metric == "pre":
        return sum(hits) / len(hits)
    first = next((rank for rank, label in enumerate(hits) if label > 0), None)
    return 0.0 if first is None else 1.0 / (first + 1)
