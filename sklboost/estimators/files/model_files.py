"""Model files: an estimator of ours and, where XGBoost can express it, the same for XGBoost."""

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sklboost.estimators.files.documents import (
    estimator_document,
    fit_document,
    read_estimator,
    read_fit,
    read_kind,
)
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.estimators.predict.fitted_model import FittedModel, trained_model
from sklboost.files.documents import (
    OUR_KEY,
    file_type,
    join_document,
    parse_document,
    read_bytes,
    read_ubjson,
    write_bytes,
    write_ubjson,
)
from sklboost.files.sections import NotExpressibleError, Section
from sklboost.objectives.custom import FunctionLoss, StoredLoss
from sklboost.objectives.registry import is_built_in

FORMATS = ("auto", "xgboost", "sklboost")


def save(
    kind: type,
    parameters: Mapping[str, Any],
    fitted: FittedModel,
    target: Any,
    formats: tuple[str, str | None],
) -> None:
    """Write a fitted estimator of a class to a path or file object.

    `formats` are the arguments `format` and `raw_format` of the method.
    """
    format_, raw_format = formats
    if format_ not in FORMATS:
        raise ValueError(f"format={format_!r}: it must be one of {', '.join(map(repr, FORMATS))}")
    raw_format = file_type(target, raw_format)
    section, others = estimator_document(kind, parameters, fitted.state), {}
    if format_ != "sklboost":
        from sklboost.estimators.files.foreign_models import xgboost_document  # not for loading

        try:
            others = xgboost_document(fitted)
        except NotExpressibleError as error:
            if format_ == "xgboost":
                error.args = (f"{error}; save_model(path) keeps the model for sklboost alone",)
                raise
            section["not_for_xgboost"] = str(error)
            logging.getLogger("sklboost").info("the model file is for sklboost alone: %s", error)
    data = join_document(section, others, raw_format)
    if left_out := [name for name in parameters if name not in section["parameters"]]:
        is_opaque = fitted.loss.link == "other" and not is_built_in(fitted.loss)
        predicts = "raw scores only (output_margin=True)" if is_opaque else "the same"
        warn_user(
            f"left out of the model file: {', '.join(left_out)}, since files hold neither code "
            f"nor objects of such classes. A loaded model predicts {predicts}; before another fit "
            "give it what is left out by set_params, or keep the model with pickle"
        )
    write_bytes(target, data)


def load(source: Any, kind_of: Callable[[str], type]) -> Any:
    """Return the fitted estimator in a path, file object or bytes.

    `kind_of` gives the class of estimators of a name.
    """
    data, name = read_bytes(source)
    document = Section(parse_document(data, name), name)
    if (ours := document.get(OUR_KEY)) is not None:
        return read_estimator(ours, kind_of(read_kind(ours)), name)
    from sklboost.estimators.files.foreign_models import read_xgboost

    return read_xgboost(document, kind_of)


def model_to_continue(source: Any, kind: type) -> Any:
    """Return a model that `fit` is given, of whatever library or in a file, as one of a class.

    Anything else, fitted estimators of ours above all, is returned as it is.
    """
    from sklboost.estimators.files.foreign_models import (
        estimator_of_lightgbm,
        estimator_of_xgboost,
    )

    def kind_of(name: str) -> type:
        return kind

    if hasattr(source, "get_booster") or hasattr(source, "save_raw"):
        return estimator_of_xgboost(source, kind_of)
    if hasattr(source, "booster_") or hasattr(source, "model_to_string"):
        return estimator_of_lightgbm(source, kind_of)
    if isinstance(source, str | bytes | bytearray | os.PathLike) or hasattr(source, "read"):
        return load(source, kind_of)
    return source


# --- in files of skops


@np.errstate(all="ignore")
def plain_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a fit as skops can keep them: a document, and a loss of the user's.

    Raises
    ------
    ValueError
        If they hold what no file can.
    """
    trained = trained_model(attributes)
    is_known = is_built_in(trained.loss) or isinstance(trained.loss, StoredLoss)
    own = None if is_known else trained.loss
    return {
        "document": write_ubjson(fit_document(attributes)),
        "estimator_name": trained.features.estimator_name,
        "own_loss": own.function if isinstance(own, FunctionLoss) else own,
    }


@np.errstate(all="ignore")
def read_attributes(document: bytes, estimator_name: str, own_loss: Any) -> dict[str, Any]:
    """Return the attributes of a fit from what :func:`plain_attributes` made of them.

    Raises
    ------
    ModelFileError
        If the document is damaged.
    """
    section = Section(read_ubjson(document, "the fit"), "the fit")
    return read_fit(section, estimator_name, own_loss)
