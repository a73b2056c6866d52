"""What a picture or a page needs to know of a fitted estimator."""

from typing import Any, NamedTuple

from sklearn.utils.validation import check_is_fitted

from sklboost.engine.model import Model
from sklboost.estimators.base import BaseBooster
from sklboost.estimators.input.feature_names import Encodings
from sklboost.estimators.input.feature_tables import categories_by_code
from sklboost.estimators.predict.derivations import output_names


class FittedModel(NamedTuple):
    """The model of an estimator, and the names of what it is about.

    Attributes
    ----------
    model : Model
    feature_names : list of str
    encodings : tuple of Encoding, or None
        What features became numbers by. None: they were numbers.
    levels : list
        For each feature that is a category, for each of its codes the levels that have it; may be
        empty for all others.
    output_names : list of str, shape (n_outputs,)
        Of the raw scores: classes, labels, targets. Of a single one may be empty.
    """

    model: Model
    feature_names: list[str]
    encodings: Encodings
    categories: list[list[list[Any]]]
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
    return FittedModel(
        estimator.model_,
        estimator._feature_names(),
        estimator._encodings,
        categories_by_code(estimator._encodings),
        output_names(estimator),
    )
