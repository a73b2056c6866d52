"""What must be true of a fit, whatever its parameters and data are."""

import hashlib
import io
import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier

from sklboost import XGBDistributionLite, XGBSurvivalLite, load_model
from sklboost.files.errors import NotExpressibleError
from tests.soak.cases import Case
from tests.soak.columns import BINS, CARRIERS, carry, draw_frame, draw_matrix

ALLOWED = (ValueError, TypeError)
# Words of NumPy, pandas or Python for what a user cannot understand.
FOREIGN_WORDS = re.compile(
    r"broadcast|out of bounds|cannot reshape|zero-size array|reduction operation|unhashable|"
    r"unexpected keyword|positional argument|not subscriptable|has no attribute|object is not|"
    r"setting an array element|truth value|numba|Cannot cast|could not convert|cannot convert|"
    r"need at least one array|arrays must all|probabilities (do not|are not)|math domain"
)
_SPARSE = ("csr", "csc")


def check(case: Case, number: int, *, only_digest: bool = False) -> str:
    """Return "refused", or "fitted" and a digest of the model and of its predictions.

    Raises
    ------
    AssertionError
        If a promise is broken.
    Exception
        Any but ValueError or TypeError, if an error or a warning is none that users should see.
    """
    # kernels that are not compiled heed the state
    with quiet("ignore" if only_digest else ["warn", "raise", "ignore"][number % 3]):
        try:
            model = case.fit()
        except ALLOWED as error:
            if not str(error) or FOREIGN_WORDS.search(str(error)):
                raise AssertionError(f"{_place(error)}: {error} -- {case}") from error
            return "refused"
        try:
            told = outputs(model, case.X)
            for promise in () if only_digest else PROMISES:
                promise(case, model, told, number)
        except Exception as error:
            raise AssertionError(f"{_place(error)}: {error} -- {case}") from error
    return f"fitted {digest(model, case.X)}"


def _place(error: Exception) -> str:
    """Return the kind of an error, and the innermost function of ours that it came through."""
    names, traceback = ["?"], error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if "sklboost" in code.co_filename or "soak" in code.co_filename:
            names.append(f"{code.co_name}:{traceback.tb_lineno}")
        traceback = traceback.tb_next
    return f"{type(error).__name__} in {' > '.join(names[-3:])}"


@contextmanager
def quiet(state: str = "raise") -> Iterator[None]:
    """Make warnings that are not for users errors, and teams of threads worth it for few rows."""
    with warnings.catch_warnings(), np.errstate(all=state):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        with mock.patch("sklboost.estimators.fit.fitting.VALUES_PER_THREAD", 1):
            yield


def outputs(model: Any, X: Any) -> np.ndarray:
    """Return predictions: of a classifier probabilities."""
    return model.predict_proba(X) if is_classifier(model) else model.predict(X)


def other_outputs(model: Any, X: Any) -> np.ndarray:
    """Return what a model of a distribution or of survival times predicts besides."""
    if isinstance(model, XGBDistributionLite):
        return model.predict_quantile(X, [0.1, 0.9])
    if isinstance(model, XGBSurvivalLite) and len(model._fitted.targets.strata) == 0:
        return model.predict_cumulative_hazard_function(X, return_array=True)
    return np.empty(0)


def digest(model: Any, X: Any) -> str:
    """Return a digest of the trees and the predictions."""
    nodes, told = model.model_.nodes, outputs(model, X)
    parts = [nodes[name].tobytes() for name in nodes.dtype.names]
    parts += [np.ascontiguousarray(model.model_.base_score).tobytes()]
    parts += [np.ascontiguousarray(told).tobytes(), other_outputs(model, X).tobytes()]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


# --- promises: (case, model, its predictions, number of the case)


def predictions_are_numbers(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    assert told.shape[0] == len(case.y)
    assert np.isfinite(told).all(), "a prediction is not finite"
    if not is_classifier(model):
        return
    assert ((told >= 0.0) & (told <= 1.0)).all(), "no probability"
    if told.ndim == 2 and case.y.ndim == 1:
        assert_allclose(told.sum(axis=1), 1.0, rtol=1e-9)
        # raw scores may differ where their probabilities are rounded to the same
        is_clear = (told == told.max(axis=1, keepdims=True)).sum(axis=1) == 1
        labels = model.classes_[told.argmax(axis=1)]
        assert_array_equal(model.predict(case.X)[is_clear], labels[is_clear])


def stages_end_in_the_prediction(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    staged = model.staged_predict_proba if is_classifier(model) else model.staged_predict
    *_, last = staged(case.X)
    assert_array_equal(last, told)
    leaves = model.apply(case.X)
    assert len(leaves) == len(case.y)
    assert (leaves >= 0).all()


def rows_alone_are_rows_together(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    row = number % len(case.y)
    assert_array_equal(outputs(model, case.X[row : row + 1])[0], told[row])


def threads_change_no_bit(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    for n_jobs in (1, 2, 3):
        again = case.fit(n_jobs=n_jobs)
        assert digest(again, case.X) == digest(model, case.X), f"n_jobs={n_jobs}"


def carriers_change_no_bit(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    if isinstance(case.X, pd.DataFrame):
        return
    # bins are made of all rows, which count the same
    kinds = [*CARRIERS, *[BINS] * _trains_on_all_rows(case)]
    kind = kinds[number % len(kinds)]
    arguments = case.arguments
    if "X_val" in arguments:
        if kind == BINS:
            return
        arguments = arguments | {"X_val": carry(arguments["X_val"], kind, 0)}
    try:
        X = carry(case.X, kind, case.parameters.get("max_bin", 256))
        again = case._replace(arguments=arguments).fit(X)
    except ALLOWED as error:
        # other libraries' tables may hold less, and bins have no values
        if kind not in (*_SPARSE, BINS):
            raise AssertionError(f"{kind}: {error}") from error
        return
    assert digest(again, X) == digest(model, case.X), kind


def _trains_on_all_rows(case: Case) -> bool:
    names = {*case.parameters, *case.arguments}
    some = {"sample_weight", "class_weight", "scale_pos_weight"}
    some |= {"early_stopping_rounds", "callbacks", "preset"}
    return some.isdisjoint(names) and (case.y.ndim == 1 or not np.isnan(case.y).any())


def copies_are_the_model(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    assert digest(pickle.loads(pickle.dumps(model)), case.X) == digest(model, case.X), "pickled"
    again = clone(model).fit(case.X, case.y, **case.arguments)
    assert digest(again, case.X) == digest(model, case.X), "fitted again"
    if "callbacks" in case.parameters:
        return  # which no file holds
    file, raw_format = io.BytesIO(), ["json", "ubj"][number % 2]
    try:
        model.save_model(file, raw_format=raw_format)
    except NotExpressibleError:  # by XGBoost
        model.save_model(file, raw_format=raw_format, format="sklboost")
    assert digest(load_model(file.getvalue()), case.X) == digest(model, case.X), "from a file"


def weights_are_copies(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    weight = case.arguments.get("sample_weight")
    is_whole = weight is not None and (weight == np.floor(weight)).all()
    # rows are held out whole, and linear leaves, drawn by gradients ... are not promised
    if not is_whole or not UNPROMISED_OF_COPIES.isdisjoint(case.parameters):
        return
    if len(case.y) > MOST_DRAWN_BY_VALUES:
        return
    counts = weight.astype(int)
    rows = np.repeat(np.arange(len(weight)), counts)
    arguments = {
        name: value[rows] if name in ("groups", "base_margin", "qid") else value
        for name, value in case.arguments.items()
        if name != "sample_weight"
    }
    if "qid" in arguments:
        if "subsample" in case.parameters or "xendcg" in case.parameters.get("objective", ""):
            return  # drawn by row
        copies = np.concatenate([np.arange(count) for count in counts])
        arguments["qid"] = arguments["qid"] * (1 + counts.max()) + copies
    X = case.X.iloc[rows] if isinstance(case.X, pd.DataFrame) else case.X[rows]
    again = case._replace(y=case.y[rows], arguments=arguments).fit(X)
    with np.errstate(all="ignore"):
        middle = np.median(told)
        scale = 1e-4 * np.abs(told - middle).max() + 1e-9 * np.abs(told).max()
        assert_allclose(outputs(again, case.X), told, rtol=0.0, atol=scale)


def other_rows_are_predicted(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    random = np.random.default_rng(number)
    draw = draw_frame if isinstance(case.X, pd.DataFrame) else draw_matrix
    other = draw(random, 20, case.X.shape[1])
    if isinstance(other, pd.DataFrame):
        other = case.X.iloc[random.integers(0, len(case.X), 20)].reset_index(drop=True)
        for name in other:
            if isinstance(other[name].dtype, pd.CategoricalDtype):
                other[name] = pd.Categorical([*other[name][:10], *["unseen"] * 10])
    try:
        assert np.isfinite(outputs(model, other)).all(), "a prediction of other rows"
    except ALLOWED as error:
        if "categor" not in str(error):
            raise


def contributions_add_up(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    if case.parameters.get("linear_tree") or case.X.shape[1] > 100:
        return
    rows = case.X[:5]
    margin = np.asarray(model.predict(rows, output_margin=True))
    parts = model.predict(rows, pred_contribs=True)
    with np.errstate(all="ignore"):
        largest = np.abs(model.model_.values).sum() + np.abs(margin).max()
        assert_allclose(parts.sum(axis=-1), margin, rtol=1e-6, atol=1e-9 * largest)


MOST_DRAWN_BY_VALUES = 4096  # rows, of which others are drawn by their numbers
UNPROMISED_OF_COPIES = {
    *("linear_tree", "sampling_method", "early_stopping_rounds", "callbacks", "preset"),
    *("ties", "lambdarank_pair_method"),
}
PROMISES: list[Callable[[Case, Any, np.ndarray, int], None]] = [
    predictions_are_numbers,
    stages_end_in_the_prediction,
    rows_alone_are_rows_together,
    threads_change_no_bit,
    carriers_change_no_bit,
    copies_are_the_model,
    weights_are_copies,
    other_rows_are_predicted,
    contributions_add_up,
]
