"""Model files: an estimator of ours and, where XGBoost can express it, the same for XGBoost."""

from collections.abc import Mapping
from typing import Any

from sklboost.estimators.files.documents import (
    estimator_document,
    read_estimator,
    read_kind,
)
from sklboost.estimators.files.meanings import meaning_of
from sklboost.estimators.predict.fitted_model import fitted_model
from sklboost.files.documents import (
    OUR_KEY,
    file_type,
    join_document,
    parse_document,
    read_bytes,
    write_bytes,
)
from sklboost.files.errors import ModelFileError
from sklboost.files.sections import Section
from sklboost.files.xgboost.writing import learner_document

FORMATS = ("xgboost", "sklboost")


def save(estimator: Any, target: Any, format_: str, raw_format: str | None) -> None:
    """Write a fitted estimator to a path or file object."""
    if format_ not in FORMATS:
        raise ValueError(f"format={format_!r}: it must be one of {', '.join(map(repr, FORMATS))}")
    kind = file_type(target, raw_format)
    section = estimator_document(estimator)
    others = _for_xgboost(estimator) if format_ == "xgboost" else {}
    write_bytes(target, join_document(section, others, kind))


def _for_xgboost(estimator: Any) -> dict[str, Any]:
    """Return what XGBoost reads of the file."""
    fitted = fitted_model(estimator)
    return learner_document(fitted.model, meaning_of(fitted, estimator))


def load(source: Any, expected: type | Mapping[str, type]) -> Any:
    """Return the fitted estimator in a path, file object or bytes.

    `expected` is its class, or the classes that it may be of by their names.
    """
    data, name = read_bytes(source)
    try:
        document = Section(parse_document(data, name), name)
        ours = document.get(OUR_KEY)
        if ours is None:
            raise ModelFileError(f"{name}: no key {OUR_KEY!r}")
        kind = expected if isinstance(expected, type) else expected[read_kind(ours)]
        return read_estimator(ours, kind)
    except RecursionError:
        raise ModelFileError(f"{name}: values are nested too deeply") from None
