"""The rows that a page explains: what they are, where they end in each tree, what features add.

In: a fitted estimator and a user's rows. Out: dicts and lists, which the scripts of the page read.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sklboost.data.features import Features
from sklboost.estimators.input.check_features import features
from sklboost.estimators.parameters.rules import is_integer
from sklboost.estimators.predict.derivations import conclusion
from sklboost.estimators.predict.node_rows import feature_values
from sklboost.estimators.predict.raw_scores import add_rounds, leaves
from sklboost.inspection.derivation.formulas import number
from sklboost.inspection.derivation.words import Words
from sklboost.inspection.page.tokens import column, compared
from sklboost.inspection.shap.contributions import add_contributions
from sklboost.objectives.links import predictions_of

# Rows that are shown if it is not said which.
_FIRST_ROWS = 20
# Predictions of a row that its summary lists.
_MOST_PREDICTIONS = 6
_LINKED = {"logit": "Probability", "log": "Prediction"}


def row_contents(
    estimator: Any, X: Any, y: Any, rows: Sequence[int] | None, words: Words
) -> dict[str, Any]:
    """Give what the page shows of rows.

    Parameters
    ----------
    estimator : BaseBooster
        Fitted.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets), or None
    rows : sequence of int, or None
        Which of them; None: the first few.
    words : Words

    Raises
    ------
    ValueError
        If there are no such rows, if `y` has another length, and as `predict` does.
    """
    known, model = features(estimator, X), estimator.model_
    targets = None if y is None else _targets(y, len(known))
    chosen = _chosen(rows, len(known))
    known = known[chosen]
    raw_score = estimator._start(known, None)
    add_rounds(model, known, (0, model.n_rounds), raw_score, estimator.n_jobs)
    added = None if model.linear is not None else _contributions(estimator, known)
    start = raw_score.T if added is None else raw_score.T - added.sum(axis=2)
    return {
        "labels": [f"{row}" for row in chosen.tolist()],
        "summaries": _summaries(estimator, raw_score, words, targets, chosen),
        "values": [_value_texts(row, words) for row in feature_values(known)],
        "leaves": leaves(model, known, estimator.n_jobs).tolist(),
        "start": list(map(column, start.tolist())),
        "contributions": None
        if added is None
        else [[column(own) for own in row] for row in added.tolist()],
        "why_none": "There are no SHAP values of linear leaves.",
        "link": (link := _link(estimator, raw_score)),
        "linked": _LINKED.get(link, ""),
    }


def mean_contributions(rows: dict[str, Any], n_features: int) -> np.ndarray | None:
    """Give the mean absolute contribution of each feature to a row, summed over outputs."""
    if rows["contributions"] is None:
        return None
    values = np.array(rows["contributions"], dtype=np.float64)
    return np.abs(values).sum(axis=1).mean(axis=0).reshape(n_features)


def _chosen(rows: Sequence[int] | None, n_rows: int) -> np.ndarray:
    if rows is None:
        return np.arange(min(n_rows, _FIRST_ROWS))
    listed = np.ravel(rows).tolist()
    wrong = [row for row in listed if not (is_integer(row) and 0 <= row < n_rows)]
    if wrong or not listed:
        raise ValueError(
            f"rows={listed if not listed else wrong[0]!r}: list numbers of rows of X, from 0 to "
            f"{n_rows - 1}"
        )
    return np.array(listed, dtype=np.intp)


def _targets(y: Any, n_rows: int) -> np.ndarray:
    targets = np.asarray(y)
    if targets.ndim == 0 or len(targets) != n_rows:
        raise ValueError(
            f"y has shape {targets.shape}, but X has {n_rows} rows: pass the targets of these rows"
        )
    return targets


def _contributions(estimator: Any, known: Features) -> np.ndarray:
    """Give SHAP values, shape (n_rows, n_outputs, n_features)."""
    model = estimator.model_
    added = np.zeros((len(known), model.n_outputs, model.n_features))
    add_contributions(model, known, (0, model.n_trees), None, estimator.n_jobs, added)
    return added


def _link(estimator: Any, raw_score: np.ndarray) -> str:
    """Name the link that gives a prediction of each raw score alone, if there is one."""
    link = estimator._loss.link
    if link not in _LINKED:
        return "identity"
    alone = predictions_of(link, raw_score).T
    given = estimator._link(estimator._loss)(raw_score).reshape(len(alone), -1)
    return link if np.allclose(alone, given[:, -alone.shape[1] :]) else "identity"


def _value_texts(values: np.ndarray, words: Words) -> list[str]:
    """Write the values of a row as its user has them."""
    texts = []
    for feature, value in enumerate(values.tolist()):
        by_code = words.categories[feature] if feature < len(words.categories) else ()
        if np.isnan(value):
            texts.append("missing")
        elif len(by_code) > 0:
            texts.append(" or ".join(map(repr, by_code[int(value)])))
        else:
            texts.append(str(compared(value)))
    return texts


def _summaries(
    estimator: Any,
    raw_score: np.ndarray,
    words: Words,
    targets: np.ndarray | None,
    chosen: np.ndarray,
) -> list[str]:
    """Say for each row what is predicted, and what its target is."""
    predictions = estimator._link(estimator._loss)(raw_score)
    predictions = predictions.reshape(len(chosen), -1)
    names = _prediction_names(estimator, predictions.shape[1], words)
    summaries = []
    for index, own in enumerate(predictions):
        order = np.argsort(-own, kind="stable")[:_MOST_PREDICTIONS] if len(own) > 1 else [0]
        listed = ", ".join(f"{names[k]} {number(float(own[k]))}" for k in order)
        more = f", and {len(own) - len(order)} more" if len(own) > len(order) else ""
        parts = [f"Prediction: {listed}{more}.", conclusion(estimator, raw_score[:, [index]])]
        if targets is not None:
            parts.append(f"y: {targets[chosen[index]].tolist()!r}.")
        summaries.append(" ".join(filter(None, parts)))
    return summaries


def _prediction_names(estimator: Any, n_predictions: int, words: Words) -> list[str]:
    classes = getattr(estimator, "classes_", None)
    if classes is not None and n_predictions == len(classes):
        return [f"{label!r}" for label in classes.tolist()]
    return list(words.outputs) if n_predictions == len(words.outputs) else [""] * n_predictions
