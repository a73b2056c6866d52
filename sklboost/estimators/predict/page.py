"""A model as one HTML page, and the rows that the page explains."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from sklboost.data.features import Features
from sklboost.estimators.input.rows import row_values
from sklboost.estimators.parameters.boosters import Parameters
from sklboost.estimators.parameters.rules import is_integer, value_of
from sklboost.estimators.predict.explanations import conclusion, contributions, feature_values
from sklboost.estimators.predict.fitted_model import FittedModel, leaves
from sklboost.inspection.derivation import number
from sklboost.inspection.page import (
    column,
    curve_contents,
    html_document,
    importance,
    importances_of_splits,
    model_contents,
)
from sklboost.objectives.domains import predictions_of

# Rows that are shown by default.
_FIRST_ROWS = 20
# Predictions of a row that its summary lists.
_MOST_PREDICTIONS = 6
_LINKED = {"logit": "Probability", "log": "Prediction"}


def model_page(
    fitted: FittedModel,
    parameters: Parameters,
    given: tuple[Any, Any, Sequence[int] | None],
    derivations: bool,
    title: str | None,
) -> str:
    """Return the HTML of a model; `given` are X, y and rows, as `to_html` has them."""
    X, y, rows = given
    for name, value in (("y", y), ("rows", rows)):
        if X is None and value is not None:
            raise ValueError(f"{name} is given without X: pass the rows that it is for")
    importances = importances_of_splits(fitted.model)
    explained = None
    if X is not None:
        known = fitted.read(X)
        explained = row_contents(fitted, known, y, _chosen(rows, len(known)))
        if explained["contributions"] is not None:
            about = "Mean absolute SHAP value of the rows on this page"
            added = np.abs(np.array(explained["contributions"], dtype=np.float64))
            mean = added.sum(axis=1).mean(axis=0).reshape(fitted.model.n_features)
            importances.append(importance("SHAP", about, mean))
    n_trees = fitted.model.n_trees
    title = title or f"{fitted.features.estimator_name}, {n_trees} tree{'s' * (n_trees != 1)}"
    contents = {
        "facts": _facts(fitted, parameters),
        "rows": explained,
        "importances": importances,
        "curves": curve_contents(
            fitted.state["evals_result_"],
            fitted.state["_first_round"],
            fitted.state.get("best_iteration_"),
        ),
        **model_contents(fitted.model, fitted.names, derivations),
    }
    return html_document(title, contents)


def _facts(fitted: FittedModel, parameters: Parameters) -> list[tuple[str, str]]:
    """The facts at the top of the page: sizes, and the parameters that were changed."""
    model = fitted.model
    facts = [
        ("rounds", str(model.n_rounds)),
        ("trees", str(model.n_trees)),
        ("leaves", str(int((model.nodes.left < 0).sum()))),
        ("features", str(model.n_features)),
        ("objective", fitted.loss.name),
    ]
    for known in fields(parameters):
        value = value_of(parameters, known.name)
        if known.name != "objective" and repr(value) != repr(known.default):
            facts.append((known.name, repr(value)))
    return facts


def _chosen(rows: Sequence[int] | None, n_rows: int) -> np.ndarray:
    """Numbers of the rows to explain."""
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


def row_contents(fitted: FittedModel, X: Features, y: Any, chosen: np.ndarray) -> dict[str, Any]:
    """The chosen rows of `X`, for the scripts of the page."""
    model = fitted.model
    targets = None if y is None else _targets(y, len(X))
    known = X[chosen]
    raw_score = fitted.raw_scores(known)
    start, added = raw_score.T, None
    if model.linear is None:
        added = contributions(fitted, known, (0, model.n_trees)).transpose(0, 2, 1)
        start = start - added.sum(axis=2)
    link = _link(fitted, raw_score)
    return {
        "labels": [f"{row}" for row in chosen.tolist()],
        "summaries": _summaries(fitted, raw_score, targets, chosen),
        "values": [
            [fitted.names.value_text(feature, value) for feature, value in enumerate(row)]
            for row in feature_values(known).tolist()
        ],
        "leaves": leaves(model, known, fitted.n_jobs).tolist(),
        "start": list(map(column, start.tolist())),
        "contributions": None
        if added is None
        else [list(map(column, outputs)) for outputs in added.tolist()],
        "why_none": "There are no SHAP values for models with linear leaves.",
        "link": link,
        "linked": _LINKED.get(link, ""),
    }


def _targets(y: Any, n_rows: int) -> np.ndarray:
    targets = np.asarray(row_values(y, "y", "targets", numeric=False, unknown=True, records=True))
    if targets.ndim == 0 or len(targets) != n_rows:
        raise ValueError(
            f"y has shape {targets.shape}, but X has {n_rows} rows: pass the targets of these rows"
        )
    return targets


def _link(fitted: FittedModel, raw_score: np.ndarray) -> str:
    """Name of the link that gives a prediction of each raw score alone, if there is one."""
    link = fitted.loss.link
    if link not in _LINKED:
        return "identity"
    alone = predictions_of(link, raw_score).T
    given = fitted.predictions(raw_score).reshape(len(alone), -1)
    return link if np.allclose(alone, given[:, -alone.shape[1] :]) else "identity"


def _summaries(
    fitted: FittedModel, raw_score: np.ndarray, targets: np.ndarray | None, chosen: np.ndarray
) -> list[str]:
    """A sentence for each row on its predictions and its target."""
    predictions = fitted.predictions(raw_score).reshape(len(chosen), -1)
    names = _prediction_names(fitted, predictions.shape[1])
    heading = "Prediction" if fitted.classes is None else "Probabilities"
    known = None if targets is None else targets[chosen].tolist()
    summaries = []
    for index, row in enumerate(predictions):
        order = np.argsort(-row, kind="stable")[:_MOST_PREDICTIONS] if len(row) > 1 else [0]
        texts = [number(float(row[k])) for k in order]
        if names[0]:
            texts = [f"{names[k]} ({text})" for k, text in zip(order, texts, strict=True)]
        more = f", and {len(row) - len(order)} more" if len(row) > len(order) else ""
        parts = [conclusion(fitted, raw_score[:, [index]]), f"{heading}: {', '.join(texts)}{more}."]
        if known is not None:
            parts.append(f"True value: {known[index]!r}.")
        summaries.append(" ".join(filter(None, parts)))
    return summaries


def _prediction_names(fitted: FittedModel, n_predictions: int) -> list[str]:
    if fitted.classes is not None and n_predictions == len(fitted.classes):
        return [f"{label!r}" for label in fitted.classes]
    names = fitted.output_names
    return names if n_predictions == len(names) else [""] * n_predictions
