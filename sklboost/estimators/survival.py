"""The estimator of survival times, and the functions of time that it predicts."""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_consistent_length

from sklboost.docstrings import described_like
from sklboost.estimators.base import BaseBooster
from sklboost.estimators.input.rows import FitArguments, row_weights
from sklboost.estimators.input.survival_targets import SurvivalTargets, read_survival, with_fields
from sklboost.estimators.parameters.docstrings import documented
from sklboost.estimators.parameters.kinds import SurvivalParameters
from sklboost.estimators.parameters.names import checks_arguments
from sklboost.estimators.predict.fitted_model import by_partitions, from_raw_scores
from sklboost.objectives.losses.aft import AcceleratedFailureTime
from sklboost.objectives.metrics import concordance


@documented(init=False)
class XGBSurvivalLite(SurvivalParameters, BaseBooster):
    """Gradient boosted trees for times until an event, some of which are censored.

    It follows the conventions of scikit-survival, which need not be installed: `y` is a structured
    array of events and times (:func:`sklboost.survival_targets`), predictions are risk scores (the
    greater, the sooner the event), and `score` is the concordance index. For "survival:cox" the
    risk score of a row is the logarithm of its hazard ratio, up to a constant that all rows of a
    model share; for "survival:aft" it is minus the location of the logarithm of the time.

    >>> import numpy as np
    >>> from sklboost import XGBSurvivalLite, survival_targets
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(300, 2))
    >>> time, censored = random.exponential(np.exp(-X[:, 0])), random.exponential(2.0, size=300)
    >>> y = survival_targets(time < censored, np.minimum(time, censored))
    >>> model = XGBSurvivalLite(n_estimators=50, learning_rate=0.1, max_depth=2).fit(X, y)
    >>> print(round(model.score(X, y), 1))
    0.8
    >>> survives = model.predict_survival_function([[-1, 0], [1, 0]])
    >>> print(survives[0](1.0) > 0.5 > survives[1](1.0))
    True

    Attributes
    ----------
    unique_times_ : ndarray of float64, shape (n_times,)
        The times of events in the training rows, and the last at which one was observed.
    """

    _kind = SurvivalTargets
    _parameter_group = SurvivalParameters

    @checks_arguments
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        entry_time: Any = None,
        strata: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        base_margin_val: Any = None,
        eval_set: Any = None,
        sample_weight_eval_set: Any = None,
        base_margin_eval_set: Any = None,
        groups: Any = None,
        base_margin: Any = None,
        init_model: Any = None,
        xgb_model: Any = None,
        verbose: bool | int | None = None,
    ) -> Self:
        """Train on rows `X` with times `y`.

        Parameters
        ----------
        y : structured array-like of shape (n_samples,)
            Two fields, or columns of a frame, in any order: whether the event was observed, bool,
            or 0 and 1 and called ``event`` or ``status``, and its time, or that of censoring. Or
            ``lower`` and ``upper``, bounds of the time of the event, which may be two columns of
            numbers, too. Perhaps ``entry_time`` and ``stratum`` as well
            (:func:`sklboost.survival_targets`). Numbers alone, as in XGBoost, are times of events
            if positive, and minus times of censoring if negative; 0 is refused.
        sample_weight : array-like of shape (n_samples,), optional
            Weight 2 is equivalent to the row twice, except for events at one time with
            ``ties="efron"``, and where rows are held out. Weight 0 leaves the row out.
        entry_time : array-like of shape (n_samples,), optional
            From when on each row was observed (left truncation). None: from the start, or as in
            `y`.
        strata : array-like of shape (n_samples,), optional
            Groups of rows whose hazards are not compared: each has a baseline of its own. None: one
            group, or as in `y`. Validation data has its strata in its targets.
        """
        arguments = FitArguments.of(locals())
        if entry_time is not None or strata is not None:
            y = with_fields(read_survival(y, "y", type(self).__name__), entry_time, strata)
        return super().fit(X, y, **arguments._asdict())

    @property
    def unique_times_(self) -> np.ndarray:
        """Times of events, and the last one: where predicted functions have values."""
        return self._fitted.targets.times  # type: ignore[attr-defined]

    @by_partitions
    def predict_time(self, X: Any, *, base_margin: Any = None) -> np.ndarray:
        """Predict the time of the event of each row, for "survival:aft".

        It is ``e^-risk``, as XGBoost predicts it: the median if the distribution is normal or
        logistic, and the time until which 63 % have had their event if it is extreme.

        Returns
        -------
        ndarray of float64, shape (n_samples,)

        Raises
        ------
        ValueError
            For "survival:cox".
        """
        fitted, raw_score = self._scored(X, base_margin)
        if fitted.loss.name != "survival:aft":
            raise ValueError(
                f"predict_time: objective={fitted.loss.name!r} has no formula for times; take them "
                "from predict_survival_function, or choose 'survival:aft'"
            )
        with np.errstate(over="ignore"):
            times: np.ndarray = np.exp(-raw_score[0])
        return times

    @by_partitions
    def predict_quantile(
        self, X: Any, q: Any, *, strata: Any = None, base_margin: Any = None
    ) -> np.ndarray:
        """Predict by when each row has had its event with a given probability.

        For "survival:cox" the first of `unique_times_` at which the survival function of the row is
        ``1 - q`` or less, infinite if it is greater at all of them: more rows than that outlived
        what was observed. For "survival:aft" it follows from the distribution, and is finite.

        Parameters
        ----------
        q : float or array-like of shape (n_quantiles,)
            Probabilities between 0 and 1: 0.5 is the median.
        strata : array-like of shape (n_samples,), optional
            Strata of the rows, if the model was fitted with strata.

        Returns
        -------
        ndarray of float64, shape (n_samples,) or (n_samples, n_quantiles)
            Times; a column per probability if `q` is an array.

        Raises
        ------
        ValueError
            If `q` is no probability between 0 and 1.
        """
        levels = np.asarray(q)
        is_valid = levels.ndim <= 1 and levels.size > 0 and levels.dtype.kind == "f"
        if not is_valid or not ((levels > 0.0) & (levels < 1.0)).all():
            raise ValueError(
                f"q={q!r:.100}: it must be a number between 0 and 1, or a list of such numbers"
            )
        fitted, raw_score = self._scored(X, base_margin)
        targets: Any = fitted.targets
        columns = np.atleast_1d(levels).astype(np.float64)
        codes = targets.codes_of(strata, raw_score.shape[1])
        if isinstance(fitted.loss, AcceleratedFailureTime):
            times = fitted.loss.quantiles(columns, raw_score)
        else:
            hazards = targets.cumulative_hazards(fitted.loss, raw_score[0], codes)
            following = np.append(targets.times, np.inf)
            # the hazards of a row rise with the times
            places = [(hazards < -np.log1p(-level)).sum(axis=1) for level in columns]
            times = following[np.column_stack(places)]
        return times if levels.ndim else times[:, 0]

    @described_like(predict_quantile)
    @by_partitions
    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False, *, strata: Any = None, base_margin: Any = None
    ) -> np.ndarray:
        """Predict the cumulative hazard of each row as a function of time.

        For "survival:cox" that is the baseline of its stratum (Breslow's estimator from the
        training rows, or Efron's with ``ties="efron"``) times the exponential of its risk score;
        for "survival:aft" it follows from the distribution.

        Parameters
        ----------
        return_array : bool, default=False
            Return values at `unique_times_` instead of functions.

        Returns
        -------
        ndarray
            Step functions, shape (n_samples,), each with the attributes `x`, `y` and `domain`, to
            be called with times; or float64, shape (n_samples, n_times).
        """
        times, hazards = self._hazards(X, strata, base_margin)
        return hazards if return_array else step_functions(times, hazards, first=0.0)

    @described_like(predict_cumulative_hazard_function)
    @by_partitions
    def predict_survival_function(
        self, X: Any, return_array: bool = False, *, strata: Any = None, base_margin: Any = None
    ) -> np.ndarray:
        """Predict the probability of each row to have had no event yet as a function of time.

        It is ``exp(-H)`` with the cumulative hazard H.

        Returns
        -------
        ndarray
            As of :meth:`predict_cumulative_hazard_function`.
        """
        times, hazards = self._hazards(X, strata, base_margin)
        survival = np.exp(-hazards)
        return survival if return_array else step_functions(times, survival, first=1.0)

    @from_raw_scores
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return Harrell's concordance index: how often the row of more risk has its event first.

        Over the pairs of rows in which that is known. Equal risks count half. Rows of different
        strata are not compared, nor those that were not observed at the same time.

        Parameters
        ----------
        y : structured array-like of shape (n_samples,)
            As for `fit`. Strata may be others.
        sample_weight
            A pair has the product of its weights.

        Returns
        -------
        float
            From 0 to 1; 0.5 is what chance would give.

        Raises
        ------
        ValueError
            If there is no such pair of rows.
        """
        risk, times = self.predict(X), read_survival(y, "y")
        check_consistent_length(risk, times)
        weight = row_weights(sample_weight, risk)
        targets = SurvivalTargets.learn(times, weight, self)
        index = concordance(targets.encode(times, "y"), risk, weight)
        if np.isnan(index):
            raise ValueError(
                "score: in no pair of rows of y is it known whose event was first, so there "
                "is no concordance"
            )
        return index

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: plain numbers as targets are positive, and one a row."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.target_tags.positive_only = True
        return tags

    def _hazards(self, X: Any, strata: Any, base_margin: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return times and the cumulative hazards of rows, shape (n_samples, n_times)."""
        fitted, raw_score = self._scored(X, base_margin)
        targets: Any = fitted.targets
        codes = targets.codes_of(strata, raw_score.shape[1])
        return targets.times, targets.cumulative_hazards(fitted.loss, raw_score[0], codes)


# --- functions of time, constant between some times


class StepFunction:
    """A function of time that changes at given times only, as scikit-survival's class of this name.

    Called with times, it returns ``y[i]`` for ``x[i] <= time < x[i + 1]``, and `first` for times
    before ``x[0]``.

    Parameters
    ----------
    x : ndarray of float64, shape (n_steps,)
        Times, sorted.
    y : ndarray of float64, shape (n_steps,)
        The value from each of them on.
    first : float
        The value before the first.

    Attributes
    ----------
    domain : tuple of float
        Times that it can be called with, from 0 to the last of `x`: later ones are not known.
    """

    def __init__(self, x: np.ndarray, y: np.ndarray, *, first: float):
        self.x = x
        self.y = y
        self.first = first

    @property
    def domain(self) -> tuple[float, float]:
        """The first and the last time it can be called with."""
        return 0.0, float(self.x[-1])

    def __call__(self, x: Any) -> Any:
        """Return the value at times.

        Parameters
        ----------
        x : float or array-like

        Returns
        -------
        float or ndarray of float64, of the shape of `x`

        Raises
        ------
        ValueError
            For times outside the domain.
        """
        times = np.asarray(x, dtype=np.float64)
        first, last = self.domain
        if not ((times >= first) & (times <= last)).all():
            raise ValueError(
                f"x={x!r:.100}: times must be from {first:g} to {last:g}, the last known"
            )
        values = np.append(self.first, self.y)[np.searchsorted(self.x, times, side="right")]
        return float(values) if values.ndim == 0 else values

    def __repr__(self) -> str:
        return f"StepFunction(x={self.x!r}, y={self.y!r}, first={self.first!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StepFunction):
            return NotImplemented
        mine, theirs = (self.x, self.y), (other.x, other.y)
        return self.first == other.first and all(map(np.array_equal, mine, theirs))

    __hash__ = None  # type: ignore[assignment]  # arrays can change


def step_functions(x: np.ndarray, y: np.ndarray, *, first: float) -> np.ndarray:
    """Return an array of functions, one for each row of `y`, shape (n_samples, n_steps)."""
    functions = np.empty(len(y), dtype=object)
    for row, values in enumerate(y):
        functions[row] = StepFunction(x, values, first=first)
    return functions
