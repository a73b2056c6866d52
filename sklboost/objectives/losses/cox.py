"""Cox's partial likelihood of survival times: who of those at risk has the event.

A row i with raw score f, the logarithm of its hazard ratio, is at risk at time t if
``entry_i < t <= time_i``. With weights w, let S be the sum of ``w e^f`` over the rows at risk at an
event time, E the part of S of its events, d their number and D the sum of their weights. The loss
is, over the event times of all strata,

==================== ===========================================================================
ties                 sum over event times
==================== ===========================================================================
Breslow              ``D log S - sum of w f over the events``
Efron                ``D / d * sum over l < d of log(S - l / d E) - sum of w f over the events``
==================== ===========================================================================

divided by the sum of the weights of all events. They are the same where no two events have one
time. Raw scores may all be shifted by a constant, which changes nothing.

Sources: Cox (1972), "Regression Models and Life-Tables"; Breslow (1974); Efron (1977); with
weights and entry times as in R's ``coxph``: Therneau & Grambsch (2000), "Modeling Survival Data",
chapter 3.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.elementary import exp, log
from sklboost.engine.parallel import ThreadTeam, assemble, share
from sklboost.objectives.blocks import LARGEST, LEAST_HESSIAN, limited
from sklboost.objectives.domains import refuse_first
from sklboost.objectives.loss import FillDerivatives, Loss, first_derivatives, meets

# Raw scores so far below the largest of their stratum count as that far below: no sum is 0.
_DEEPEST = -300.0
# Rows of an encoded target, see `sklboost/estimators/input/survival_targets.py`.
_TIME, _UPPER, _ENTRY, _STRATUM = range(4)


class RiskSets(NamedTuple):
    """Which rows are at risk at which event times, computed once for a training.

    A *step* is an event time of a stratum; before its first, each stratum has a step at which
    nothing happens. Steps are in the order of strata, and of time in each.
    """

    # int64, shape (n_samples,): the last step at which a row is at risk, and the last at which it
    # is not yet
    last: np.ndarray
    before: np.ndarray
    # bool, shape (n_samples,): whether the row has its event, which is at its last step
    is_event: np.ndarray
    # int64, shape (n_samples,): the rows, sorted by these
    by_last: np.ndarray
    by_before: np.ndarray
    # int64, shape (n_steps + 1,): where the rows of a step begin
    last_starts: np.ndarray
    before_starts: np.ndarray
    strata: np.ndarray  # int64, shape (n_strata + 1,): where the steps of a stratum begin
    # float64, shape (n_steps,): event times; -inf for the first step of each stratum
    times: np.ndarray


class Hazards(NamedTuple):
    """Cumulative hazards of rows whose raw score is the largest of their stratum."""

    # float64, shape (2, n_steps): up to and with each step, as a number and what rounding has cost
    # it
    sums: np.ndarray
    # float64, shape (n_steps,): by how much less the rows with an event at a step count in it
    # (Efron)
    tied: np.ndarray
    tops: np.ndarray  # float64, shape (n_strata,): the largest raw scores


class Cox(Loss):
    """The partial likelihood; predictions are logarithms of hazard ratios.

    Gradients are of the sum over all events. With H the sum of D / S over the event times at
    which row i is at risk, they are ``w (e^f H - [event])``. The hessian is the bound ``w e^f H``
    of the second derivative, which is less by the sum of ``(w e^f / S)^2 D``: as a rule little, and
    a part in which a row of weight 2 is not the row twice.

    `ties` is ``"breslow"`` or ``"efron"``.
    """

    name = "survival:cox"
    n_targets = 4
    group_row = _STRATUM
    takes_weight = True
    hessian_is_bound = True
    # A hazard is to its logarithm what a mean count is: see `Poisson`.
    largest_step = 2.0

    def __init__(self, ties: str = "breslow"):
        self.ties = ties
        self.can_repeat = ties == "breslow"  # copies of an event are tied
        self.made_of = {"ties": ties}

    def hazards(
        self, risk: RiskSets, raw_score: np.ndarray, weight: np.ndarray
    ) -> tuple[Hazards, float]:
        """Return the hazards, and the loss as a sum; scores have shape (1, n_samples)."""
        n_steps, n_strata = len(risk.times), len(risk.strata) - 1
        hazards = Hazards(np.empty((2, n_steps)), np.empty(n_steps), np.empty(n_strata))
        loss = _add_hazards(risk, raw_score[0], weight, self.ties == "efron", hazards)
        return hazards, float(loss)

    def prepare(
        self, team: ThreadTeam, y: np.ndarray, weight: np.ndarray, seed: int, n_before: Any = None
    ) -> FillDerivatives:
        """Sort the rows, and return what fills the derivatives of a round."""
        risk, strata = risk_sets(y), y[_STRATUM].astype(np.int64)

        def fill(
            round_: int, raw_score: np.ndarray, gradient: np.ndarray, hessian: np.ndarray
        ) -> None:
            hazards, _ = self.hazards(risk, raw_score, weight)
            of_rows = (strata, raw_score[0], gradient[0], hessian[0])
            team.run(_fill_derivatives, risk, hazards, of_rows)

        return fill

    def gradients(
        self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient and hessian of the sum over all events, weight included."""
        weight = np.empty(0) if weight is None else weight
        both = first_derivatives(self, y, raw_score, weight) * (weight if len(weight) else 1.0)
        return both[0], both[1]

    def check_targets(self, y: np.ndarray, name: str) -> None:
        time, upper, *_ = y.T
        refuse_first(
            (upper != time) & (upper < np.inf),
            *(upper, f"upper bound of {name}"),
            f"objective={self.name!r} needs times of events, or of right censoring",
        )

    def needs(self, y: np.ndarray) -> dict[str, np.ndarray]:
        """Return the strata of the rows that had an event."""
        return {"event": y.T[_STRATUM] + meets(y.T[_UPPER] < np.inf)}

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Return the negative logarithm of the partial likelihood per event; NaN without any."""
        risk = risk_sets(y)
        _, loss = self.hazards(risk, raw_score, weight)
        events = weight[risk.is_event].sum() if len(weight) else risk.is_event.sum()
        return loss / float(events) if events > 0 else math.nan


def risk_sets(y: np.ndarray) -> RiskSets:
    """Sort rows of encoded targets, float64, shape (4, n_samples)."""
    time, entry, stratum = y[_TIME], y[_ENTRY], y[_STRATUM].astype(np.int64)
    is_event = y[_UPPER] == time
    last, before = np.empty((2, len(time)), dtype=np.int64)
    strata, times = [0], [np.empty(0)]
    for number in range(int(stratum.max(initial=-1)) + 1):
        rows = np.flatnonzero(stratum == number)
        of_stratum = np.append(-np.inf, np.unique(time[rows[is_event[rows]]]))
        last[rows] = strata[-1] + np.searchsorted(of_stratum, time[rows], side="right") - 1
        before[rows] = strata[-1] + np.searchsorted(of_stratum, entry[rows], side="right") - 1
        times.append(of_stratum)
        strata.append(strata[-1] + len(of_stratum))
    steps = np.arange(strata[-1] + 1)
    by_last, by_before = np.argsort(last, kind="stable"), np.argsort(before, kind="stable")
    return RiskSets(
        *(last, before, is_event, by_last, by_before),
        np.searchsorted(last[by_last], steps),
        np.searchsorted(before[by_before], steps),
        np.array(strata),
        np.concatenate(times),
    )


@kernel
def _add_hazards(risk, raw_score, weight, is_efron, hazards):
    """Fill the hazards; return the loss, not divided by the weights of the events.

    From the last step of each stratum to its first, rows come to be at risk with their last step,
    and leave with the last step before they are. Sums keep what rounding takes from them, so that
    what is left when large terms have gone is right.
    """
    loss = 0.0
    for stratum in range(len(risk.strata) - 1):
        start, stop = risk.strata[stratum], risk.strata[stratum + 1]
        top = -math.inf
        for place in range(risk.last_starts[start], risk.last_starts[stop]):
            top = max(top, raw_score[risk.by_last[place]])
        hazards.tops[stratum] = top
        total, rest = 0.0, 0.0
        for step in range(stop - 1, start, -1):
            tied, n_events, event_weight = 0.0, 0, 0.0
            for place in range(risk.last_starts[step], risk.last_starts[step + 1]):
                row = risk.by_last[place]
                row_weight = weight[row] if len(weight) > 0 else 1.0
                term = row_weight * _below(raw_score[row], top)
                total, rest = _add(total, rest, term)
                if risk.is_event[row]:
                    tied += term
                    n_events += 1
                    event_weight += row_weight
                    loss -= row_weight * max(raw_score[row] - top, _DEEPEST)
            for place in range(risk.before_starts[step], risk.before_starts[step + 1]):
                row = risk.by_before[place]
                row_weight = weight[row] if len(weight) > 0 else 1.0
                total, rest = _add(total, rest, -row_weight * _below(raw_score[row], top))
            at_risk = max(total + rest, tied)
            n_terms = n_events if is_efron else 1
            each, hazard, less = event_weight / n_terms, 0.0, 0.0
            for term in range(n_terms):
                share = term / n_terms
                left = at_risk - share * tied
                loss += each * log(left)
                hazard += each / left
                less += share * each / left
            hazards.sums[0, step], hazards.tied[step] = hazard, less
        _add_up(hazards.sums, start, stop)
        hazards.tied[start] = 0.0
    return loss


@kernel
def _add_up(sums, start, stop):
    """Replace the hazards of the steps of a stratum by their sums."""
    total, rest = 0.0, 0.0
    sums[0, start], sums[1, start] = 0.0, 0.0
    for step in range(start + 1, stop):
        total, rest = _add(total, rest, sums[0, step])
        sums[0, step], sums[1, step] = total, rest


@kernel
def _fill_derivatives(team, risk, hazards, of_rows):
    """Fill the derivatives of all rows, divided by their weights; those never at risk have none."""
    if not assemble(team):
        return
    strata, raw_score, gradient, hessian = of_rows
    start, stop = share(team, len(raw_score))
    for row in range(start, stop):
        last, before = risk.last[row], risk.before[row]
        hazard = hazards.sums[0, last] - hazards.sums[0, before]
        hazard += hazards.sums[1, last] - hazards.sums[1, before]
        if risk.is_event[row]:
            hazard -= hazards.tied[last]
        expected = _below(raw_score[row], hazards.tops[strata[row]]) * hazard
        gradient[row] = min(expected - (1.0 if risk.is_event[row] else 0.0), LARGEST)
        hessian[row] = limited(expected, LEAST_HESSIAN)


@inlined
def _add(total, rest, value):
    """Return a sum and what rounding has cost it so far, with a value more (Knuth's two-sum)."""
    added = total + value
    part = added - total
    return added, rest + ((total - (added - part)) + (value - part))


@inlined
def _below(score, top):
    """Return ``e^(score - top)``."""
    return exp(max(score - top, _DEEPEST))
