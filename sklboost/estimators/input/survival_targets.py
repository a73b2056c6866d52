"""Survival times as users give them, and what a fit learns of them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any, Self

import numpy as np
from sklearn.utils import check_array, check_consistent_length

from sklboost.data.frames import adapter_for, dask_kind, is_frame
from sklboost.estimators.input.rows import one_each, row_values
from sklboost.estimators.input.targets import (
    RegressionTargets,
    Targets,
    apply,
    distinct_labels,
    listed,
    places_among,
)
from sklboost.estimators.parameters.boosters import Parameters
from sklboost.objectives.domains import refuse_first
from sklboost.objectives.loss import Loss
from sklboost.objectives.losses.aft import AcceleratedFailureTime
from sklboost.objectives.losses.cox import Cox, risk_sets
from sklboost.objectives.start_values import of_parts


@dataclass(frozen=True, eq=False)
class SurvivalTargets(Targets):
    """Times of events, each with a lower and an upper bound.

    Encoded, a row has four numbers: the bounds; when it was first observed, -inf for from the
    start; and the number of its stratum.
    """

    strata: np.ndarray  # labels, sorted, shape (n_strata,); empty: there are none
    # float64, shape (n_times,): of events, sorted, and the last at which a row was observed; all of
    # them positive, or the first may be 0
    times: np.ndarray
    # float64, shape (n_strata or 1, n_times): of Cox's model the cumulative hazard at these times
    # of a row of raw score `centres`; of others no rows
    hazards: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    # float64, shape (n_strata or 1,): the largest raw scores of the training rows, for which no
    # hazard is too large for a number
    centres: np.ndarray = field(default_factory=lambda: np.empty(0))

    task = "survival"
    numeric = True
    stays = True
    size = 1
    classes = None

    @classmethod
    def read(cls, y: Any, name: str, caller: str = "") -> np.ndarray:
        """Return records of bounds and times."""
        return read_survival(y, name, caller)

    @classmethod
    def read_parts(cls, opened: Callable[[Callable[..., Any]], Any], name: str, caller: str) -> Any:
        """Return a column of records; only all rows show whether two numbers are bounds."""
        column = opened(partial(read_survival, name=name, caller=caller, is_part=True))
        return column if column is None or column.ndim == 1 else _bounds(column, name)

    @classmethod
    def learn(cls, y: np.ndarray, weight: np.ndarray, parameters: Parameters) -> Self:
        """Find strata and times."""
        strata = np.empty(0)
        if _has_strata(y):
            strata = distinct_labels(apply(itemgetter("stratum"), y), "y, strata")
        return cls(strata, _times(*(apply(itemgetter(end), y) for end in ("lower", "upper"))))

    def of_more(self, y: np.ndarray, weight: np.ndarray, parameters: Any) -> Targets:
        """Return the same strata, and the times of all rows."""
        return replace(self, times=_times(y[:, 0], y[:, 1]))

    def encode(self, y: np.ndarray, name: str) -> np.ndarray:
        """Return the numbers of each row; ValueError for strata that the fit has not had."""
        has_strata = _has_strata(y)
        if has_strata != (len(self.strata) > 0):
            given, of_fit = ("strata", "none") if has_strata else ("no strata", "some")
            raise ValueError(f"{name} has {given}, and y of the fit {of_fit}: give both, or none")
        return apply(encoded_records, y, strata=self.strata, name=name)

    def decode(self, y: np.ndarray) -> np.ndarray:
        """Return records as scikit-survival has them; of bounds if there are any."""
        lower, upper = y[:, 0], y[:, 1]
        is_event = lower == upper
        is_plain = (is_event | (upper == np.inf)).all()
        first = ("event", np.bool_) if is_plain else ("lower", np.float64)
        fields: list[tuple[str, Any]] = [first, ("time" if is_plain else "upper", np.float64)]
        columns = [is_event, lower] if is_plain else [lower, upper]
        if (y[:, 2] > -np.inf).any():
            fields.append(("entry_time", np.float64))
            columns.append(y[:, 2])
        if len(self.strata) > 0:
            fields.append(("stratum", self.strata.dtype))
            columns.append(self.strata[y[:, 3].astype(np.intp)])
        records = np.empty(len(y), fields)
        for (name, _), values in zip(fields, columns, strict=True):
            records[name] = values
        return records

    def strata_for_holdout(self, y: np.ndarray) -> np.ndarray:
        """Return whether a row is known to have had its event."""
        return (y.T[1] < np.inf).astype(np.float64)

    def needs(self, y: np.ndarray, loss: Loss) -> dict[str, np.ndarray]:
        """Return what the loss needs, and the strata: each has a baseline of its own."""
        return {**loss.needs(y), "row": y.T[3]}

    def words_of(self, number: float) -> str:
        """Return the name of the stratum."""
        return f" of stratum {self.strata.tolist()[int(number)]!r}" if len(self.strata) > 0 else ""

    def reads_scores(self, loss: Loss) -> bool:
        """Whether there are baseline hazards."""
        return isinstance(loss, Cox)

    def finish(
        self, loss: Loss, raw_score: np.ndarray, y: np.ndarray, weight: np.ndarray
    ) -> tuple[Targets, np.ndarray]:
        """Return the targets with the baseline hazards of each stratum, and no shift.

        By Breslow's estimator, or Efron's if ties are.
        """
        assert isinstance(loss, Cox)
        risk = risk_sets(np.ascontiguousarray(y.T))
        found, _ = loss.hazards(risk, raw_score, weight)
        hazards = np.empty((len(risk.strata) - 1, len(self.times)))
        for stratum, of_stratum in enumerate(hazards):
            steps = slice(risk.strata[stratum], risk.strata[stratum + 1])
            last = np.searchsorted(risk.times[steps], self.times, side="right") - 1
            of_stratum[:] = found.sums[:, steps].sum(axis=0)[last]
        return replace(self, hazards=hazards, centres=found.tops), np.zeros(1)

    def codes_of(self, strata: Any, n_rows: int) -> np.ndarray:
        """Return the numbers of the strata of rows to be predicted, int, shape (n_samples,)."""
        if strata is None:
            if len(self.strata) > 1:
                raise ValueError(
                    f"the model was fitted with the strata {self.strata.tolist()}, each with a "
                    "baseline of its own: pass strata, one for each row"
                )
            return np.zeros(n_rows, dtype=np.intp)
        if len(self.strata) == 0:
            raise ValueError("strata are given, but the model was fitted without: leave them out")
        labels = one_each(strata, "strata", "stratum", n_rows)
        return stratum_codes(labels, self.strata, "strata")

    def cumulative_hazards(
        self, loss: Loss, raw_score: np.ndarray, codes: np.ndarray
    ) -> np.ndarray:
        """Return the cumulative hazards of rows at all times, shape (n_samples, n_times)."""
        has_formula = isinstance(loss, AcceleratedFailureTime)
        if len(self.times) == 0 or not (has_formula or len(self.centres) > 0):
            raise ValueError(
                "the model was trained by XGBoost, which keeps neither the times of events nor "
                "baseline hazards: predict, and predict_quantile of 'survival:aft', do without; "
                "continue the model here (init_model) to have them"
            )
        if isinstance(loss, AcceleratedFailureTime):  # a type checker reads no names
            return loss.cumulative_hazards(self.times, raw_score)
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = np.exp(raw_score - self.centres[codes])
            hazards: np.ndarray = self.hazards[codes] * ratio[:, np.newaxis]
        return np.nan_to_num(hazards, nan=0.0, posinf=np.inf)  # 0 times an infinite ratio


def _times(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return the times of events, and the last at which a row was observed, sorted."""
    found = [(np.empty(0), 0.0), *of_parts(events_and_last, lower, upper)]
    events, last = zip(*found, strict=True)
    return np.unique(np.append(np.concatenate(events), max(last)))


def events_and_last(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the distinct times of events, and the last at which a row was observed, or 0."""
    bounds, events = np.concatenate([lower, upper]), upper[np.isfinite(upper)]
    return np.unique(events), bounds[np.isfinite(bounds)].max(initial=0.0)


def encoded_records(y: np.ndarray, strata: np.ndarray, name: str) -> np.ndarray:
    """Return four numbers of each record, see :class:`SurvivalTargets`."""
    codes = stratum_codes(y["stratum"], strata, name) if _has_strata(y) else np.zeros(len(y))
    return np.column_stack([y["lower"], y["upper"], y["entry_time"], codes])


def stratum_codes(labels: np.ndarray, strata: np.ndarray, name: str) -> np.ndarray:
    """Return the numbers of strata, int64; ValueError for others."""
    codes = places_among(strata, labels)
    unknown = sorted(set(map(repr, listed(labels[codes < 0]))))
    if unknown:
        raise ValueError(
            f"{name} has strata that the fit had no rows of, {', '.join(unknown)}: they have "
            f"no baseline; the strata are {listed(strata)}"
        )
    return codes


def _has_strata(y: np.ndarray) -> bool:
    return "stratum" in (y.dtype.names or ())


_FORMS = (
    "a frame or a structured array of event (bool, or 0 and 1) and time, as "
    "sklboost.survival_targets(event, time) makes it; of lower and upper bounds, "
    "survival_targets(lower=..., upper=...); or numbers, times of events where positive, and of "
    "censoring where negative"
)


def survival_targets(
    event: Any = None,
    time: Any = None,
    *,
    lower: Any = None,
    upper: Any = None,
    entry_time: Any = None,
    strata: Any = None,
) -> np.ndarray:
    """Put times until an event together: the targets of :class:`sklboost.XGBSurvivalLite`.

    Parameters
    ----------
    event : array-like of bool, shape (n_samples,), optional
        Whether the event was observed. False: the row is censored, its event is later than `time`.
    time : array-like of shape (n_samples,), optional
        When it was, or when the row was last observed; not negative.
    lower, upper : array-like of shape (n_samples,), optional
        In place of these two, bounds between which the event was: equal ones where its time is
        known, an infinite upper one if it was later (right censoring), 0 or ``-inf`` as the lower
        one if it was earlier (left censoring).
    entry_time : array-like of shape (n_samples,), optional
        From when on the row was observed (left truncation): before `time`. None: from the start.
    strata : array-like of shape (n_samples,), optional
        Groups of rows whose hazards are not compared: each has a baseline of its own.

    Returns
    -------
    structured ndarray, shape (n_samples,)
        Fields ``event`` and ``time``, which scikit-survival takes, too, or ``lower`` and ``upper``;
        ``entry_time`` and ``stratum`` only if they were given.

    Raises
    ------
    ValueError
        If neither pair is given, or both; for other lengths, and for what are no such times.

    Examples
    --------
    >>> from sklboost import survival_targets
    >>> survival_targets(event=[True, False], time=[3.0, 5.0])
    array([( True, 3.), (False, 5.)], dtype=[('event', '?'), ('time', '<f8')])
    >>> survival_targets(lower=[3, 5, 0], upper=[3, float("inf"), 2])["upper"]
    array([ 3., inf,  2.])
    """
    pairs = {"event": event, "time": time, "lower": lower, "upper": upper}
    given = [name for name, values in pairs.items() if values is not None]
    if given not in (["event", "time"], ["lower", "upper"]):
        raise ValueError(f"survival_targets got {given}: give event and time, or lower and upper")
    fields = {
        name: row_values(pairs[name], name, "events" if name == "event" else "times")
        for name in given
    }
    if given[0] == "event":
        fields["event"] = _flags(fields["event"], "event")
    _add_fields(fields, entry_time, strata)
    y = _records(fields, "survival_targets")
    _standard(y, "survival_targets")
    return y


def read_survival(y: Any, name: str, caller: str = "", *, is_part: bool = False) -> np.ndarray:
    """Return targets of any form as records of lower, upper, entry_time and, if given, stratum.

    Of a part of the rows two columns without names are returned as they are, float64.
    """
    if y is None:
        RegressionTargets.read(y, name, caller)
    y = y.compute() if dask_kind(y) else y
    table = adapter_for(y) if is_frame(y) else None
    if table is not None and table.n_columns > 1:
        fields = {
            str(field): row_values(table.column(i), f"{field} of {name}", "times", numeric=False)
            for i, field in enumerate(table.names or ())
        }
        return _standard(_records(fields, name), name)
    if isinstance(y, np.ndarray) and y.dtype.names is not None:
        return _standard(y, name)
    array = np.asarray(row_values(y, name, "times"))
    if array.ndim == 2 and array.shape[1] == 2:
        array = check_array(array, dtype=np.float64, ensure_all_finite=False, input_name=name)
        return array if is_part else _bounds(array, name)
    if array.ndim > 1 and array.shape[1] > 2:
        raise ValueError(f"{name} has shape {array.shape}: targets are {_FORMS}")
    times = RegressionTargets.read(array, name, caller).astype(np.float64)
    refuse_first(
        times == 0,
        times,
        name,
        "0 is neither positive, the time of an event, nor "
        "negative, that of censoring; use sklboost.survival_targets(event, time)",
    )
    lower = np.abs(times)
    upper = np.where(times > 0, lower, np.inf)
    return _standard(_records({"lower": lower, "upper": upper}, name), name)


def with_fields(y: np.ndarray, entry_time: Any, strata: Any) -> np.ndarray:
    """Return records of :func:`read_survival` with these arguments of `fit`, unless None."""
    fields = {name: y[name] for name in y.dtype.names or ()}
    for name, argument, values in (
        ("entry_time", "entry_time", entry_time),
        ("stratum", "strata", strata),
    ):
        is_given = values is not None and name in fields
        if is_given and (name != "entry_time" or (y[name] > -np.inf).any()):
            raise ValueError(f"{argument} is given, and y has the field {name!r}: give it once")
    _add_fields(fields, entry_time, strata)
    return _standard(_records(fields, "y"), "y")


def _add_fields(fields: dict[str, np.ndarray], entry_time: Any, strata: Any) -> None:
    """Add what is given with an entry for each row."""
    n_rows = next(iter(fields.values())).size
    if entry_time is not None:
        fields["entry_time"] = one_each(entry_time, "entry_time", "times", n_rows, numeric=True)
    if strata is not None:
        fields["stratum"] = one_each(strata, "strata", "stratum", n_rows)


def _records(fields: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Put columns together to a structured array."""
    for key, values in fields.items():
        if values.ndim != 1:
            raise ValueError(f"{key} of {name} has shape {values.shape}: it must be 1-D")
    check_consistent_length(*fields.values())
    floats = ("time", "lower", "upper", "entry_time")
    columns = {
        key: _numbers(values, f"{key} of {name}") if key in floats else values
        for key, values in fields.items()
    }
    records = np.empty(
        len(next(iter(columns.values()))),
        [(key, values.dtype) for key, values in columns.items()],
    )
    for key, values in columns.items():
        records[key] = values
    return records


def _numbers(values: np.ndarray, name: str) -> np.ndarray:
    values = row_values(values, name, "times")
    if values.dtype.kind not in "iufO":
        raise ValueError(f"{name} has dtype {values.dtype}: times are numbers")
    return values.astype(np.float64)


def _flags(values: np.ndarray, name: str) -> np.ndarray:
    """Return whether there was an event: bool, or numbers 0 and 1."""
    if values.ndim != 1:
        return values  # which is refused with the other columns
    is_other = np.ones(values.shape, dtype=bool)
    if values.dtype.kind in "biufO":
        is_other = ~np.isin(values, (0, 1))
    if is_other.any():
        place, other = int(np.argmax(is_other)), values[is_other][0]
        is_of_r = values.dtype.kind in "iufO" and np.isin(values, (1, 2)).all()
        hint = ". If 1 is censored and 2 an event, as R may have it, pass event == 2"
        raise ValueError(
            f"{name}[{place}]={other!s}: it must be True, or 1, for an event, else False or 0"
            + (hint if is_of_r else "")
        )
    return values.astype(bool)


def _bounds(bounds: Any, name: str) -> Any:
    """Read two columns without names as bounds; ValueError for what may be events and times."""
    lower, upper = bounds.T
    for number, column in enumerate((lower, upper)):
        if ((column == 0) | (column == 1)).all() and not (lower == upper).all():
            raise ValueError(
                f"{name} has two columns without names, and y[:, {number}] has nothing but 0 and "
                "1: if these are events, pass "
                f"sklboost.survival_targets(event=y[:, {number}], time=y[:, {1 - number}]); if the "
                "columns are bounds of times, survival_targets(lower=y[:, 0], upper=y[:, 1])"
            )
    return apply(records_of_bounds, bounds, name=name)


def records_of_bounds(bounds: np.ndarray, name: str) -> np.ndarray:
    """Return checked records of two columns."""
    return _standard(_records({"lower": bounds[:, 0], "upper": bounds[:, 1]}, name), name)


def _standard(y: np.ndarray, name: str) -> np.ndarray:
    """Return checked records of lower, upper, entry_time and, if given, stratum."""
    all_fields = list(y.dtype.names or ())
    fields = [field for field in all_fields if field not in ("entry_time", "stratum")]
    if y.ndim != 1 or len(fields) < 2:
        raise ValueError(
            f"{name} has shape {y.shape} and fields {all_fields}: targets are {_FORMS}"
        )
    if len(fields) > 2:
        raise ValueError(
            f"{name} has fields {sorted(fields[2:])}: beside two of times there may be "
            "'entry_time' and 'stratum'; a time when a row was censored first, or competing "
            "events, are not known"
        )
    if set(fields) == {"lower", "upper"}:
        lower, upper = (_numbers(y[field], f"{field} of {name}") for field in ("lower", "upper"))
    else:
        event = _event_field(y, fields, name)
        time = fields[1 - fields.index(event)]
        lower = _numbers(y[time], f"{time} of {name}")
        is_time = np.isfinite(lower) & (lower >= 0.0)
        refuse_first(~is_time, lower, f"{time} of {name}", "times are finite and >= 0")
        upper = np.where(_flags(y[event], f"{event} of {name}"), lower, np.inf)
    entry = np.full(len(y), -np.inf)
    if "entry_time" in all_fields:
        entry = _numbers(y["entry_time"], f"entry_time of {name}")
    lower = np.where(lower == -np.inf, 0.0, lower)
    _check_times(lower, upper, entry, name)
    standard = {"lower": lower, "upper": upper, "entry_time": entry}
    if "stratum" in all_fields:
        standard["stratum"] = one_each(y["stratum"], f"stratum of {name}", "stratum", len(y))
        try:
            np.unique(standard["stratum"])
        except TypeError as error:
            raise ValueError(f"{name}, strata: labels must have an order; {error}") from None
    return _records(standard, name)


# What users call a column of events, in small letters, and 0 and 1 are no times in.
_EVENTS = (
    *("event", "events", "event_observed", "observed", "event_occurred", "is_event", "status"),
    *("death", "dead", "died", "failure", "failed", "churn", "churned"),
)


def _event_field(y: np.ndarray, fields: list[str], name: str) -> str:
    """Return which of two fields is the event: bool if the other is not, or named so."""
    of_bool = [field for field in fields if y[field].dtype.kind == "b"]
    named = [field for field in fields if field.lower() in _EVENTS]
    found = {*of_bool, *named} if len(of_bool) < 2 else set(named or fields[:1])
    if len(found) != 1:
        first, second = fields
        raise ValueError(
            f"{name} has the fields {fields}, and it is not clear which of them is the event: if "
            f"it is {first!r}, pass sklboost.survival_targets(event=y[{first!r}], "
            f"time=y[{second!r}]), if it is {second!r}, the reverse; bool says so, too, or the "
            "names 'event' and 'time'. Bounds are called 'lower' and 'upper'"
        )
    event = found.pop()
    if event.lower() in ("censored", "is_censored"):
        time = fields[1 - fields.index(event)]
        raise ValueError(
            f"{name} has the field {event!r}, and True is an event here: if it says which rows are "
            f"censored, pass sklboost.survival_targets(event=~y[{event!r}], time=y[{time!r}]), "
            "else call it 'event'"
        )
    return event


def _check_times(lower: np.ndarray, upper: np.ndarray, entry: np.ndarray, name: str) -> None:
    """Raise ValueError for the first row whose times are none, or in no order."""
    of_lower, of_upper = f"lower bound of {name}", f"upper bound of {name}"
    refuse_first(np.isnan(lower), lower, of_lower, "leave out rows without a target")
    refuse_first(np.isnan(upper), upper, of_upper, "leave out rows without a target")
    refuse_first(~((lower >= 0.0) & (lower < np.inf)), lower, of_lower, "times are finite and >= 0")
    refuse_first(upper < lower, upper, of_upper, "it is below the lower bound")
    is_late = (entry != -np.inf) & ~(entry < lower)
    refuse_first(
        is_late, entry, f"entry_time of {name}", "a row is observed from before its time on"
    )
