"""What a picture or a page needs to know of a fitted estimator."""

from typing import Any, NamedTuple

from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from sklboost.estimators.base import BaseBooster
from sklboost.estimators.feature_tables import Encodings
from sklboost.model import Model


class FittedModel(NamedTuple):
    """The model of an estimator, and the names of what it is about.

    Attributes
    ----------
    model : Model
    feature_names : list of str
    encodings : tuple of Encoding, or None
        What features became numbers by. None: they were numbers.
    output_names : list of str, shape (n_outputs,)
        Of the raw scores: classes, labels, or numbers.
    """

    model: Model
    feature_names: list[str]
    encodings: Encodings
    output_names: list[str]


def fitted_model(estimator: Any) -> FittedModel:
    """Read a fitted estimator.

    Parameters
    ----------
    estimator : BaseBooster

    Raises
    ------
    TypeError
        If it is none of this package's.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    """
    if not isinstance(estimator, BaseBooster):
        raise TypeError(
            f"{estimator!r} is no estimator of sklboost, so its trees are not known: pass a fitted "
            "XGBRegressorLite or XGBClassifierLite; of a pipeline its last step, pipeline[-1]"
        )
    check_is_fitted(estimator)
    model = estimator.model_
    return FittedModel(
        model,
        estimator._feature_names(),
        estimator._encodings,
        _output_names(estimator, model.n_outputs),
    )


def _output_names(estimator: Any, n_outputs: int) -> list[str]:
    if is_classifier(estimator):
        classes = estimator.classes_.tolist()
        if n_outputs == 1 and len(classes) == 2:  # one raw score, the log-odds of the second class
            return [f"class {classes[1]}"]
        if n_outputs == len(classes):
            return [f"class {label}" for label in classes]
    return [f"output {k}" for k in range(n_outputs)]
