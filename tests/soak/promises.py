"""What must be true of a fit, whatever its parameters and data are."""

import hashlib
import io
import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier

from sklboost import (
    Loss,
    XGBDistributionLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBRFClassifierLite,
    XGBRFRegressorLite,
    XGBSurvivalLite,
    load_model,
    survival_targets,
)
from sklboost.files.sections import NotExpressibleError
from tests.soak.cases import Case
from tests.soak.columns import (
    BINS,
    CARRIERS,
    CASTS,
    HOLDERS,
    carry,
    draw_frame,
    draw_matrix,
    hold,
)

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


# --- promises about two fits of one problem


def _without(parameters: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name not in names}


def _margin(model: Any, X: Any, **arguments: Any) -> np.ndarray:
    return np.asarray(model.predict(X, output_margin=True, **arguments)).reshape(len(X), -1)


def offsets_are_margins(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    """For losses of differences an offset in y and in base_margin changes nothing."""
    n_rows = len(case.y)
    if case.estimator is not XGBRegressorLite or n_rows > FEW_ROWS:
        return
    random = np.random.default_rng(number)
    name = DIFFERENCES[random.integers(len(DIFFERENCES))]
    parameters = _without(case.parameters, UNPROMISED_OF_OFFSETS) | {"objective": name}
    if parameters.get("learning_rate", 0.0) >= 1.0:  # a leaf's median would be right to the bit
        parameters["learning_rate"] = 0.3
    # whole numbers of a unit: sums with them are exact
    y = np.round(random.standard_t(2, n_rows) * 2**20) / 2**20
    offset = np.round(random.choice([10.0, 1e5]) * 2**10 * random.random(n_rows)) / 2**10
    if random.random() < 0.5:
        offset[:] = offset[0]
    kept = _without(case.arguments, {"X_val", "y_val", "base_margin"})
    given, moved = dict(kept), dict(kept)
    is_held_out = random.random(n_rows) < 0.5
    if is_held_out.any() and random.random() < 0.5:
        parameters["early_stopping_rounds"] = 2
        given |= {"X_val": case.X[is_held_out], "y_val": y[is_held_out]}
        moved |= given | {"y_val": (y + offset)[is_held_out]}
        moved["base_margin_val"] = offset[is_held_out]
    n_outputs = np.size(case.estimator(**parameters).get_params().get(OF_OUTPUTS.get(name, ""), 0))
    if n_outputs > 1:
        moved |= {
            argument: np.column_stack([values] * n_outputs)
            for argument, values in {"base_margin": offset, **moved}.items()
            if argument.startswith("base_margin")
        }
    plain = Case(case.estimator, parameters | {"base_score": 0.0}, case.X, y, given).fit()
    other = Case(
        *(case.estimator, parameters, case.X, y + offset), {"base_margin": offset, **moved}
    ).fit()
    if "X_val" in given and plain.n_estimators_ != other.n_estimators_:
        # a metric may not change in a round, but for its last bits
        assert_allclose(other.best_score_, plain.best_score_, rtol=1e-6, err_msg=f"{name}")
        return
    assert_array_equal(other.apply(case.X), plain.apply(case.X), f"leaves of {name}, {parameters}")
    margin = moved.get("base_margin", offset)
    difference = _margin(other, case.X, base_margin=margin) - offset[:, np.newaxis]
    assert_allclose(
        *(difference, _margin(plain, case.X)),
        rtol=0.0,
        atol=1e-6 * (1.0 + np.abs(y).max()),
        err_msg=f"{name}, {parameters}",
    )


def margins_are_models_before(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    """`init_model`, of a loss of the same link, is its raw scores as `base_margin`."""
    name = model._fitted.loss.name
    is_large = len(case.y) > FEW_ROWS or model.model_.n_outputs > 1
    # a shift is no tree; and draws depend on the number of the round
    is_unpromised = "calibrated_prior" in case.parameters or name in {"rank:xendcg", "rank:yeti"}
    if is_large or is_unpromised or isinstance(model, FORESTS) or "base_margin" in case.arguments:
        return
    parameters = _without(case.parameters, UNPROMISED_OF_MARGINS) | {"n_estimators": 3}
    same_link = next((names for names in SAME_LINKS if name in names), ())
    if same_link:
        parameters["objective"] = same_link[number % len(same_link)]
    given = case.arguments
    margins = {"base_margin": model.predict(case.X, output_margin=True)}
    if "X_val" in given and len(given["y_val"]):
        parameters["early_stopping_rounds"] = 2
        margins["base_margin_val"] = model.predict(given["X_val"], output_margin=True)
    fits = []
    for more in ({"init_model": model}, margins):
        try:
            fits.append(case._replace(parameters=parameters, arguments=given | more).fit())
        except ALLOWED as error:
            fits.append(str(error))
    more, again = fits
    if isinstance(more, str) or isinstance(again, str):  # other losses may not take such targets
        assert isinstance(more, str) == isinstance(again, str), f"refused: {more} or: {again}"
        return
    loss = more._fitted.loss
    if type(loss).unit is not Loss.unit and loss.name == name:
        return  # more of one training, whose unit is that of its start
    words = f"{parameters} after {name}"
    assert_array_equal(more.apply(case.X)[:, model.model_.n_trees :], again.apply(case.X), words)
    one, other = _margin(more, case.X), _margin(again, case.X, base_margin=margins["base_margin"])
    with np.errstate(all="ignore"):
        assert_allclose(one, other, rtol=1e-6, atol=1e-6 * np.abs(one).max(), err_msg=words)


def factors_of_weights_cancel(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    """A factor of all weights is nothing new, if all that is measured in weight has it as well."""
    # the noise of categories is the less, the more rows they have; pairs and sums of outputs tie
    if hasattr(model, "categories_") or isinstance(model, UNPROMISED_FACTORS):
        return
    if len(case.y) > FEW_ROWS or not UNPROMISED_OF_FACTORS.isdisjoint(case.parameters):
        return
    weight = case.arguments.get("sample_weight", np.ones(len(case.y)))
    values = case.estimator(**case.parameters).get_params()
    if values["reg_lambda"] > 1e100:  # gains are nearly 0
        return
    if weight.max() > 1e6 * weight[weight > 0].min():  # light rows count as one unit
        return
    for factor in FACTORS:
        names = [name for name in IN_UNITS_OF_WEIGHT if values.get(name)]
        if factor < 1 and "min_child_samples" in names:
            return
        again = case._replace(arguments=case.arguments | {"sample_weight": factor * weight}).fit(
            **{name: factor * values[name] for name in names}
        )
        gains = [fit.model_.nodes["gain"][0] for fit in (model, again)]
        with np.errstate(all="ignore"):
            assert_allclose(gains[1], factor * gains[0], rtol=1e-3, err_msg=f"gain, {factor}")
            # of splits that are as good another one may be taken
            if np.array_equal(again.apply(case.X), model.apply(case.X)):
                unit = np.abs(told).max() + isinstance(model, XGBSurvivalLite)
                assert_allclose(outputs(again, case.X), told, rtol=0.0, atol=1e-4 * unit)


# --- promises about what is given in other hands


class Held(NamedTuple):
    """What of a fit is given in other hands.

    Attributes
    ----------
    name : str
        Of the argument of `fit`.
    field : str
        Of targets of survival; else empty.
    values : ndarray
    holder : str
    """

    name: str
    field: str
    values: np.ndarray
    holder: str

    def __str__(self) -> str:
        return f"{self.field or self.name} as {self.holder}"

    @property
    def words(self) -> str:
        """What an error has to say, a regular expression: the name of the argument or field."""
        name = (self.field or self.name).removesuffix("_val")  # "sample_weight of X_val"
        return rf"\b{name}".replace("stratum", "strat(a|um)")

    def fit(self, case: Case, is_missing: np.ndarray | None = None) -> Any:
        """Fit with the values in these hands, perhaps without some."""
        held = hold(self.values[self.field] if self.field else self.values, self.holder, is_missing)
        if self.field:
            fields = {name: self.values[name] for name in self.values.dtype.names or ()}
            fields[self.field] = held
            if "stratum" in fields:
                fields["strata"] = fields.pop("stratum")
            held = survival_targets(**fields)
        if self.name == "y":
            return case._replace(y=held).fit()
        return case._replace(arguments=case.arguments | {self.name: held}).fit()


def _held_of(case: Case, random: np.random.Generator, *, with_casts: bool) -> Held:
    """Choose an argument with a value for each row, and other hands for it."""
    given = {"y": case.y} | case.arguments
    names = [name for name in given if name != "X_val" and len(given[name])]
    name = names[random.integers(len(names))]
    values, field = given[name], ""
    if values.dtype.names:
        field = values.dtype.names[random.integers(len(values.dtype.names))]
    is_number = values.dtype.kind in "biuf"
    holders = [*HOLDERS, *["mixed", *CASTS] * (is_number and with_casts)]
    return Held(name, field, values, holders[random.integers(len(holders))])


def other_types_change_no_bit(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    """y and what else has a value a row, in another type: the same bits, or refused by its name."""
    held = _held_of(case, np.random.default_rng(number), with_casts=True)
    try:
        again = held.fit(case)
    except ALLOWED as error:
        if not re.search(held.words, str(error)):
            raise AssertionError(f"{held}: refused without its name: {error}") from error
        return
    assert digest(again, case.X) == digest(model, case.X), str(held)
    if is_classifier(model):
        assert_array_equal(np.asarray(again.classes_), np.asarray(model.classes_), str(held))


def missing_values_are_refused(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    """Of y and of what else has a value a row; those of one of several targets are not known."""
    random = np.random.default_rng(number)
    held = _held_of(case, random, with_casts=False)
    shape = held.values.shape
    counts = case.arguments.get("sample_weight", np.ones(len(case.y)))[: shape[0]] > 0
    is_missing = random.random(shape) < 0.1
    is_missing[counts & (np.cumsum(counts) == 1)] = True
    is_read = held.name != "groups" or "early_stopping_rounds" in case.parameters
    if not counts.any() or is_missing.all() or not is_read:
        return
    if len(shape) == 2 and held.name != "base_margin":
        if held.name == "y":
            _are_not_known(case, held, is_missing)
        return
    n_rows = np.count_nonzero(is_missing.reshape(len(is_missing), -1).any(axis=1))
    words = rf"{held.words}(?s:.*)\b{n_rows}\b.{{0,12}}\brow"
    dtype = held.values.dtype[held.field] if held.field else held.values.dtype
    if held.holder == "pandas" and dtype.kind == "f":  # NaN, as in an array
        words = held.words
    try:
        held.fit(case, is_missing)
    except ALLOWED as error:
        if re.search(words, str(error)):
            return
        raise AssertionError(f"{held}, {n_rows} rows missing: {error}") from error
    raise AssertionError(f"{held}, {n_rows} rows missing: not refused")


def _are_not_known(case: Case, held: Held, is_missing: np.ndarray) -> None:
    try:
        expected = case._replace(y=np.where(is_missing, np.nan, case.y)).fit()
    except ALLOWED:  # nothing is known of a target
        return
    again = held.fit(case, is_missing)
    assert digest(again, case.X) == digest(expected, case.X), f"{held}, some not known"


# --- promises about what others read


def tables_give_the_predictions(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    """Rows that walk down `trees_to_dataframe()` get the raw scores, but for a constant."""
    table, n_outputs = model.trees_to_dataframe(), model.model_.n_outputs
    if "Slopes" in table and isinstance(case.X, pd.DataFrame):
        return  # lines of times, or of integers that are no float64
    nodes = {record["ID"]: record for record in table.to_dict("records")}
    rows = np.random.default_rng(number).permutation(len(case.y))[:8]
    X = case.X
    if not isinstance(X, pd.DataFrame):
        X = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    columns = {name: X[name].array for name in X}
    walked = np.zeros((len(rows), n_outputs))
    for place, row in enumerate(rows):
        for tree in range(model.model_.n_trees):
            node = nodes[f"{tree}-0"]
            while node["Feature"] != "Leaf":
                value = columns[node["Feature"]][row]
                node = nodes[node[_side(node, value, case.parameters.get("missing", np.nan))]]
            if isinstance(node["Gain"], list):
                walked[place] += node["Gain"]
            else:
                walked[place, tree % n_outputs] += node["Gain"] + _line(node, columns, row)
    margin = _margin(model, case.X)[rows]
    with np.errstate(all="ignore"):
        largest = np.abs(margin).max() + np.abs(model.model_.values).sum()
        assert_allclose(walked - walked[0], margin - margin[0], rtol=1e-9, atol=1e-9 * largest)


def _side(node: dict[str, Any], value: Any, missing: float) -> str:
    """Return which column of the table says where a value goes."""
    if pd.isna(value) or (not isinstance(value, str) and value == missing):
        return "Missing"
    if isinstance(node["Category"], list):
        return "Yes" if value in node["Category"] else "No"
    return "Yes" if value < node["Split"] else "No"


def _line(leaf: dict[str, Any], columns: dict[str, Any], row: int) -> float:
    """Return what the line of a leaf adds: nothing where a value is missing or infinite."""
    if not isinstance(leaf.get("Slopes"), dict):
        return 0.0
    values = {name: columns[name][row] for name in leaf["Slopes"]}
    if not np.isfinite([*values.values()]).all():
        return 0.0
    terms = (leaf["Slopes"][name] * (values[name] - leaf["Centres"][name]) for name in values)
    return float(np.clip(leaf["Shift"] + sum(terms), leaf["Least"], leaf["Most"]))


def other_libraries_predict_the_same(case: Case, model: Any, told: np.ndarray, number: int) -> None:
    """XGBoost predicts the same of numbers that it tells apart, in any table."""
    if len(case.y) > FEW_ROWS or not np.isfinite(np.abs(model.model_.values).sum()):
        return
    tables, margin = _tables(case.X, model), case.arguments.get("base_margin")
    own = _margin(model, tables["as given"], base_margin=margin)
    unit = 1e-30 + np.abs(own).max() + np.abs(model.model_.values).sum()  # float32 has no less
    if is_classifier(model):  # XGBoost keeps the probability that it starts from in float32
        unit += 0.02 * np.exp(np.minimum(np.abs(model.model_.base_score), 30.0)).max()
    try:
        predict = _in_xgboost(model)
    except ALLOWED:
        return
    for kind, table in tables.items():
        try:
            scores = np.asarray(predict(table, margin)).reshape(own.shape)
        except Exception:  # XGBoost's, of any kind
            continue
        assert_allclose(scores, own, rtol=0.0, atol=1e-5 * unit, err_msg=kind)


def _in_xgboost(model: Any) -> Callable[[Any, Any], np.ndarray]:
    booster, file = xgboost.Booster(), io.BytesIO()
    model.save_model(file, raw_format="ubj")
    booster.load_model(bytearray(file.getvalue()))
    return lambda X, margin: booster.predict(
        xgboost.DMatrix(X, base_margin=margin, enable_categorical=True, nthread=1),
        output_margin=True,
    )


def _told_apart(values: np.ndarray) -> np.ndarray:
    """Return finite numbers that float32 holds, and none so small that it loses digits."""
    values = np.clip(values, -1e38, 1e38)
    return np.where(np.abs(values) < 1e-30, 0.0, values).astype(np.float32).astype(np.float64)


def _tables(X: Any, model: Any) -> dict[str, Any]:
    """Return rows of such numbers, and the same categories, in tables that the others may take."""
    known = {*getattr(model, "categories_", ())}
    frame = pd.DataFrame(X)
    names = {name for i, name in enumerate(frame) if not known.isdisjoint((name, i, f"f{i}"))}
    for name in {*frame} - names:
        if frame[name].dtype.kind in "iuf":
            frame[name] = _told_apart(frame[name].to_numpy(float, na_value=np.nan))
    given = frame if isinstance(X, pd.DataFrame) else frame.to_numpy()
    frame = frame.rename(columns=str)
    columns = {str(name): frame[str(name)].astype("category") for name in names}
    tables = {"as given": given, "pandas": frame, "categories": frame.assign(**columns)}
    dtypes = [getattr(dtype, "categories", pd.Index([""])).dtype.kind for dtype in frame.dtypes]
    if not {*"iufb"}.isdisjoint(dtypes):  # XGBoost reads numbers of another order in odd ways
        return tables
    turned = {
        name: column.cat.set_categories(column.cat.categories[::-1])
        for name, column in columns.items()
    }
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    return tables | {
        "categories in another order": frame.assign(**turned),
        "Arrow": arrow,
        "polars": pl.from_arrow(arrow),
    }


FEW_ROWS = 300
FORESTS = (XGBRFClassifierLite, XGBRFRegressorLite)  # draw rows by default
# Losses of the difference of target and prediction, and which parameter has several outputs.
DIFFERENCES = (
    *("reg:squarederror", "reg:absoluteerror", "reg:quantileerror", "reg:expectileerror"),
    *("reg:huber", "reg:pseudohubererror", "reg:logcosh", "reg:fair"),
)
OF_OUTPUTS = {"reg:quantileerror": "quantile_alpha", "reg:expectileerror": "expectile_alpha"}
SAME_LINKS = [
    DIFFERENCES,
    ("count:poisson", "reg:gamma", "reg:tweedie"),
    ("binary:logistic", "binary:focal"),
]
# Which rows are drawn or held out depends on the targets; and metrics that are no differences.
UNPROMISED_OF_OFFSETS = {
    *("preset", "base_score", "subsample", "sampling_method", "early_stopping_rounds"),
    *("callbacks", "eval_metric", "linear_tree"),
}
# What is drawn depends on the number of the round.
UNPROMISED_OF_MARGINS = UNPROMISED_OF_OFFSETS | {
    *("booster", "colsample_bytree", "colsample_bylevel", "colsample_bynode", "extra_trees"),
    *("refit", "warm_start", "lambdarank_pair_method"),
    *("lambdarank_unbiased", "max_ctr_complexity"),
}
UNPROMISED_FACTORS = (XGBDistributionLite, XGBRankerLite, *FORESTS)
UNPROMISED_OF_FACTORS = {"subsample", "sampling_method", "preset", "ties"}
FACTORS = (4, 0.3)  # the second is rounded
IN_UNITS_OF_WEIGHT = (
    *("reg_lambda", "reg_alpha", "gamma", "min_child_weight", "min_child_samples"),
    *("linear_lambda", "path_smooth", "cat_smooth"),
)
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
    offsets_are_margins,
    margins_are_models_before,
    factors_of_weights_cancel,
    other_types_change_no_bit,
    missing_values_are_refused,
    tables_give_the_predictions,
    other_libraries_predict_the_same,
]
