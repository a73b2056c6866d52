"""What survival times mean: how a loss reads them, and the baseline that makes scores hazards."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from sklboost.estimators.input.arguments import one_each
from sklboost.estimators.input.survival_targets import read_survival
from sklboost.estimators.input.target_kinds import Targets
from sklboost.estimators.input.targets import listed, places_among
from sklboost.estimators.parameters.groups import Parameters
from sklboost.objectives.loss import Loss
from sklboost.objectives.losses.aft import AcceleratedFailureTime
from sklboost.objectives.losses.cox import Cox, risk_sets


@dataclass(frozen=True, eq=False)
class SurvivalTargets(Targets):
    """Times of events, each with a lower and an upper bound.

    Encoded, a row has four numbers: the bounds; when it was first observed, -inf for from the
    start; and the number of its stratum.

    Attributes
    ----------
    strata : ndarray, shape (n_strata,)
        Their labels, sorted; empty: there are none.
    times : ndarray of float64, shape (n_times,)
        Times of events, sorted, and the last at which a row was observed; all of them positive, or
        the first may be 0.
    hazards : ndarray of float64, shape (n_strata or 1, n_times)
        Of Cox's model: the cumulative hazard at these times of a row of raw score `centres`. Of
        others, no rows.
    centres : ndarray of float64, shape (n_strata or 1,)
        The largest raw scores of the training rows, for which no hazard is too large for a number.
    """

    strata: np.ndarray
    times: np.ndarray
    hazards: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    centres: np.ndarray = field(default_factory=lambda: np.empty(0))

    task = "survival"
    numeric = True
    size = 1
    classes = None
    reads_scores = True

    @classmethod
    def read(cls, y: Any, name: str, caller: str = "") -> np.ndarray:
        """Return records of bounds and times."""
        return read_survival(y, name, caller)

    @classmethod
    def learn(cls, y: np.ndarray, weight: np.ndarray, parameters: Parameters) -> Self:
        """Find strata and times."""
        strata = np.unique(y["stratum"]) if _has_strata(y) else np.empty(0)
        return cls(strata, _times(y["lower"], y["upper"]))

    def of_more(self, y: np.ndarray, weight: np.ndarray, parameters: Any) -> Targets:
        """Return the same strata, and the times of all rows."""
        return replace(self, times=_times(y[:, 0], y[:, 1]))

    def encode(self, y: np.ndarray, name: str) -> np.ndarray:
        """Return the numbers of each row; ValueError for strata that the fit has not had."""
        has_strata = _has_strata(y)
        if has_strata != (len(self.strata) > 0):
            given, of_fit = ("strata", "none") if has_strata else ("no strata", "some")
            raise ValueError(f"{name} has {given}, and y of the fit {of_fit}: give both, or none")
        codes = self.codes(y["stratum"], name) if has_strata else np.zeros(len(y))
        return np.column_stack([y["lower"], y["upper"], y["entry_time"], codes])

    def codes(self, strata: np.ndarray, name: str) -> np.ndarray:
        """Return the numbers of strata."""
        codes = places_among(self.strata, strata)
        unknown = sorted(set(map(repr, listed(strata[codes < 0]))))
        if unknown:
            raise ValueError(
                f"{name} has strata that the fit had no rows of, {', '.join(unknown)}: they have "
                f"no baseline; the strata are {listed(self.strata)}"
            )
        return codes.astype(np.float64)

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

    def parts(self, y: np.ndarray) -> np.ndarray:
        """Return whether a row is known to have had its event."""
        return (y[:, 1] < np.inf).astype(np.float64)

    def needs(self, y: np.ndarray, loss: Loss) -> dict[str, np.ndarray]:
        """Return what the loss needs, and the strata: each has a baseline of its own."""
        return {**loss.needs(y), "row": y[:, 3]}

    def words_of(self, number: float) -> str:
        """Return the name of the stratum."""
        return f" of stratum {self.strata.tolist()[int(number)]!r}" if len(self.strata) > 0 else ""

    def finish(
        self, loss: Loss, raw_score: np.ndarray, y: np.ndarray, weight: np.ndarray
    ) -> tuple[Targets, np.ndarray]:
        """Return the targets with the baseline hazards of each stratum, and no shift.

        By Breslow's estimator, or Efron's if ties are.
        """
        if not isinstance(loss, Cox):
            return super().finish(loss, raw_score, y, weight)
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
        return self.codes(labels, "strata").astype(np.intp)

    def cumulative_hazards(
        self, loss: Loss, raw_score: np.ndarray, codes: np.ndarray
    ) -> np.ndarray:
        """Return the cumulative hazards of rows at all times, shape (n_samples, n_times)."""
        if isinstance(loss, AcceleratedFailureTime):
            return loss.cumulative_hazards(self.times, raw_score)
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = np.exp(raw_score - self.centres[codes])
            hazards: np.ndarray = self.hazards[codes] * ratio[:, np.newaxis]
        return np.nan_to_num(hazards, nan=0.0, posinf=np.inf)  # 0 times an infinite ratio


def _times(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return the times of events, and the last at which a row was observed, sorted."""
    bounds = np.concatenate([lower, upper])
    last = bounds[np.isfinite(bounds)].max(initial=0.0)
    return np.unique(np.append(upper[np.isfinite(upper)], last))


def _has_strata(y: np.ndarray) -> bool:
    return "stratum" in (y.dtype.names or ())
