"""Gradients and metrics of rankings in slow, plain Python, as the formulas are written."""

import itertools

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


def chances_of_orders(scores):
    """All orders, each with its chance by the law of Plackett and Luce."""
    powers = np.exp(scores - np.max(scores))
    for order in itertools.permutations(range(len(scores))):
        left = [powers[list(order[position:])].sum() for position in range(len(order))]
        yield np.prod(powers[list(order)] / left), order


def neighbours(mode, labels, scores, orders, top=32, decay=0.85):
    """Mean gradients and hessians of the neighbours in orders, given with their chances."""
    gradient, hessian = np.zeros(len(labels)), np.zeros(len(labels))
    for chance, order in orders:
        ranked = [labels[document] for document in order]
        for rank in range(min(len(order) - 1, top)):
            if ranked[rank] == ranked[rank + 1]:
                continue
            worth = worth_of_exchange(mode, ranked, rank, top, decay)
            high, low = order[rank], order[rank + 1]
            if labels[high] < labels[low]:
                high, low = low, high
            probability = 1.0 / (1.0 + np.exp(min(scores[low] - scores[high], 700.0)))
            gradient[high] -= chance * worth * (1.0 - probability)
            gradient[low] += chance * worth * (1.0 - probability)
            for document in (high, low):
                hessian[document] += chance * worth * 2.0 * probability * (1.0 - probability)
    return gradient, hessian


def worth_of_exchange(mode, ranked, rank, top, decay):
    """What exchanging a document and the next one changes."""
    if mode == "classic":
        return abs(ranked[rank] - ranked[rank + 1]) * (1.0 - decay) * decay**rank
    if mode in ("ndcg", "map"):
        return change_of(f"rank:{mode}", ranked, rank, rank + 1, top, True)
    exchanged = list(ranked)
    exchanged[rank], exchanged[rank + 1] = ranked[rank + 1], ranked[rank]
    places = -np.arange(len(ranked))
    return abs(value_of(mode, ranked, places) - value_of(mode, exchanged, places))


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
