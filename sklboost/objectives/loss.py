"""Losses: gradients and hessians of targets and raw scores. They know nothing of trees.

:class:`Loss` is what users inherit from, too; :class:`RowLoss` makes the blocks of a loss that is a
formula of one row. The rounds do not know the loss they are compiled with: :func:`fill_gradients`
calls its block by its address, so a loss that a user has written in numba runs like one of ours.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from sklboost.docstrings import describe_methods
from sklboost.engine.compiling import address_of, inlined, is_compiled_by_user, kernel
from sklboost.engine.parallel import ThreadTeam
from sklboost.objectives.blocks import (
    BLOCK_ROWS,
    LEAST_HESSIAN,
    LOSS_TYPES,
    NO_FAULT,
    Formula,
    call_loss,
    derivatives_by_block,
    gradient_block,
    parameter_itself,
    users_block,
)
from sklboost.objectives.domains import ANYWHERE, Domain, check_domain, predictions_of, raw_score_of
from sklboost.objectives.metric import Metric, losses_of_rows
from sklboost.objectives.start_values import find_constants, mean_over_targets

# fill(round_, raw_score, gradient, hessian) fills the last two, float32; all (n_outputs, n_samples)
FillDerivatives = Callable[[int, np.ndarray, np.ndarray, np.ndarray], None]


class Loss:
    """A loss: its gradients, and the meaning of its raw scores.

    To write one, inherit from this class, override what differs, and give an instance as
    ``objective``: at least :meth:`gradients`, or `row_derivatives`. Targets `y` have shape
    (n_targets, n_samples), and NaN is a target that is not known; for a classifier they are the
    positions of the labels in ``classes_``. Raw scores have shape (n_outputs, n_samples). Weights
    of shape (0,) are all 1.

    Attributes
    ----------
    name : str
        The objective, as XGBoost calls it. Default: the name of the class.
    n_outputs : int
        Raw scores per row, so trees per round. For two classes 1, for more one each.
    row_derivatives : function compiled with numba, or None
        ``row_derivatives(y_true, y_pred) -> (gradient, hessian)`` of the numbers of one row and
        output. Training then runs in compiled code only, many rounds a call.
    takes_weight : bool
        Whether :meth:`gradients` has a third parameter, the weights, and multiplies by them.
    parameters : ndarray of float64, shape (n_outputs,)
        A number for each output, such as the alpha of a quantile.
    block : Kernel or None
        Fills gradients and hessians of a range of rows, see ``sklboost/objectives/blocks.py``; made
        from `row_derivatives`. None: :meth:`gradients` is called once a round.
    link : str
        What raw scores are: ``"identity"``, predictions; ``"log"``, their logarithms; ``"logit"``,
        log-odds; ``"softmax"``, logarithms of class probabilities up to a constant; ``"other"``,
        what :meth:`predictions` and :meth:`raw_of` say.
    largest_step : float
        The largest absolute value of a leaf weight, for losses whose parabola is soon far from the
        loss itself. Infinite: no limit.
    hessian_is_bound : bool
        Whether the hessian is larger than the second derivative in places, because that is 0 or
        less there or falls so fast that Newton's steps would have no end.
    hessian_is_one : bool
        Whether the hessian of every row is 1, so that cover is the number of rows.
    renewal : ndarray of float64, shape (n_outputs,) or (0,)
        Where the hessian says nothing, leaf weights are renewed after the tree is grown: they
        become the quantile of this alpha of ``y - raw score`` in each leaf, rows weighted with
        hessians. Empty: they are not renewed.
    can_repeat : bool
        Whether a row of weight 2 is the row twice, so that rows whose weights are whole numbers may
        be repeated before `subsample` draws from them. Set it to False where the derivatives of a
        row depend on other rows, such as their number.
    made_of : mapping of str to str
        Parameters of the estimator that a built-in loss was made of, besides `parameters`.

    See Also
    --------
    check_loss : Compares the derivatives with finite differences.

    Examples
    --------
    Half the squared error of logarithms; predictions are always positive:

    >>> import numpy as np
    >>> from sklboost import Loss, XGBRegressorLite, check_loss
    >>> class SquaredErrorOfLogarithms(Loss):
    ...     link = "log"
    ...
    ...     def gradients(self, y, raw_score):
    ...         return raw_score - np.log(y), np.ones_like(raw_score)
    ...
    ...     def value(self, y, raw_score, weight):
    ...         return np.mean((raw_score - np.log(y)) ** 2) / 2
    >>> check_loss(SquaredErrorOfLogarithms(), y=[1.0, 10.0, 100.0])
    >>> model = XGBRegressorLite(objective=SquaredErrorOfLogarithms(), min_child_weight=0)
    >>> model.fit([[0], [1], [2]], [1.0, 10.0, 100.0]).predict([[2]]).round()
    array([100.])
    """

    name = ""
    n_outputs = 1
    row_derivatives: Any = None
    takes_weight = False
    parameters = np.zeros(1)
    block: Any = None
    link = "identity"
    largest_step = np.inf
    hessian_is_bound = False
    hessian_is_one = False
    renewal = np.empty(0)
    can_repeat = True
    has_own_unit = False  # raw scores are in a unit of the targets of the fit
    made_of: Mapping[str, Any] = MappingProxyType({})
    # What a regressor's `score` is, of targets, predictions, both (n_..., n_samples), and weights.
    # None: R².
    d2: Any = None
    chosen_by = "objective"  # the parameter of the estimator, for errors
    # Of raw scores, where these are neither targets nor classes.
    output_names: ClassVar[tuple[str, ...]] = ()
    # The row of the targets that has numbers of groups: a loss that `prepare`s needs all rows of a
    # group at once. None: it is not known which it needs.
    group_row: int | None = None
    # Metrics of raw scores besides the registry's; the first is the default.
    own_metrics: tuple[Metric, ...] = ()

    def __init_subclass__(cls) -> None:
        """Name a class that has no name, and make the block of a compiled function of rows."""
        if "name" not in vars(cls):
            cls.name = cls.__name__
        if "row_derivatives" in vars(cls):
            function = getattr(vars(cls)["row_derivatives"], "__func__", cls.row_derivatives)
            if not is_compiled_by_user(function):
                raise TypeError(
                    f"{cls.__name__}.row_derivatives={function!r}: compile it with numba.njit, or "
                    "write a method gradients(y, raw_score)"
                )
            # without self, whether it was written as a static method or not
            cls.row_derivatives = staticmethod(function)
            cls.block = staticmethod(users_block(function))

    def gradients(self, y: np.ndarray, raw_score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient and hessian of rows of weight 1.

        Returns
        -------
        tuple of ndarray, each of shape (n_outputs, n_samples)
        """
        if self.row_derivatives is None and self.block is not None:
            return derivatives_by_block(self.block, self.parameters, y, raw_score)
        if self.row_derivatives is None:
            raise NotImplementedError(
                f"{type(self).__name__} needs a method gradients(y, raw_score)"
            )
        both = np.empty((2, *raw_score.shape))
        for output, scores in enumerate(raw_score):
            for row, score in enumerate(scores):
                target = y[output % len(y), row]
                both[:, output, row] = self.row_derivatives(float(target), float(score))
        return both[0], both[1]

    def prepare(
        self, team: ThreadTeam, y: np.ndarray, weight: np.ndarray, seed: int, n_before: Any = None
    ) -> FillDerivatives | None:
        """Return what fills the derivatives of a round, where these depend on other rows.

        For losses of this package. None: the rounds call `block`, or ask for :meth:`gradients`.

        Parameters
        ----------
        team : ThreadTeam
        weight : ndarray of float64, shape (n_samples,) or (0,)
            Derivatives are multiplied by them later.
        seed : int
            Of what is drawn.
        n_before : ndarray of int64, shape (n_groups,), optional
            For rows of some groups only, how many of all rows are in groups before each. None: the
            rows are all.

        Returns
        -------
        callable or None
            ``fill(round_, raw_score, gradient, hessian)``.
        """
        return None

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Return the mean loss, which is shown where there is no metric to show.

        Returns
        -------
        float
        """
        raise NotImplementedError(
            f"{self.name} has no value: write a method value(y, raw_score, weight)"
        )

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the constant raw scores of least loss; 0 if not known.

        Returns
        -------
        ndarray of float64, shape (n_outputs,)
        """
        return np.zeros(self.n_outputs)

    def unit(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Return the hessian of a typical row if it depends on the unit of the targets, else 1.

        Whatever is compared with sums of hessians or derived from them (`reg_lambda`, `reg_alpha`,
        `gamma`, `min_child_weight`) is counted in it, as if the loss were divided by it.

        Parameters
        ----------
        raw_score : ndarray of float64, shape (n_outputs, n_samples) or (0, 0)
            What the training starts from, if that differs from row to row: margins, or the scores
            of a continued model. Empty: the same for all rows.

        Returns
        -------
        float
        """
        return 1.0

    def raw_of(self, prediction: float) -> np.ndarray:
        """Return the raw scores that stand for a prediction, as `base_score` is.

        Parameters
        ----------
        prediction : float

        Returns
        -------
        ndarray of float64, shape (n_outputs,)

        Raises
        ------
        ValueError
            If the loss has no such prediction.
        """
        return np.full(self.n_outputs, raw_score_of(self.link, prediction, self.name))

    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        """Return the predictions that raw scores stand for.

        Returns
        -------
        ndarray of float64, shape (n_samples,) or (n_samples, n_outputs)
        """
        return by_rows(predictions_of(self.link, raw_score))

    def probabilities(self, raw_score: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes, by the link ``"logit"`` or ``"softmax"``.

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes)
        """
        if self.link == "logit":
            log_odds = np.empty((raw_score.shape[1], 2))
            np.negative(raw_score[0], out=log_odds[:, 0])
            log_odds[:, 1] = raw_score[0]
            probabilities: np.ndarray = expit(log_odds)
            return probabilities
        return by_rows(predictions_of(self.link, raw_score))

    @property
    def of_metrics(self) -> dict[str, Any]:
        """The parameters that metrics have in common with the loss, by name."""
        return dict(self.made_of)

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for the first target that the loss is not defined for.

        Parameters
        ----------
        y : ndarray of float64, shape (n_samples,) or (n_samples, n_targets)
            NaN among several targets is one that is not known.
        name : str
            Of the argument, for the error.
        """

    def needs(self, y: np.ndarray) -> dict[str, np.ndarray]:
        """Return what there must be among the rows to learn from them.

        Parameters
        ----------
        y : ndarray, shape (n_samples,) or (n_samples, n_targets)

        Returns
        -------
        dict of str to ndarray of float64, shape (n_samples,)
            For each need, in words: a number where a row meets it, else NaN. Rows with different
            numbers cannot stand in for one another. By default a known value of each of several
            targets.
        """
        columns = enumerate(y.T if y.ndim > 1 else ())
        return {f"known value of y[:, {i}]": meets(~np.isnan(column)) for i, column in columns}


describe_methods(
    Loss,
    {
        "y": "y : ndarray of float64, shape (n_targets, n_samples)",
        "raw_score": "raw_score : ndarray of float64, shape (n_outputs, n_samples)",
        "weight": "weight : ndarray of float64, shape (n_samples,) or (0,)",
    },
)


def meets(rows: np.ndarray) -> np.ndarray:
    """Return 0 for the rows of a mask, which meet a need, and NaN for the others."""
    with np.errstate(all="ignore"):
        numbers: np.ndarray = np.true_divide(0.0, rows)  # of a column on a cluster it is one, too
    return numbers


def lacking(loss: Loss, y: np.ndarray) -> str:
    """Return the first need of a loss that none of these rows meets; empty: they meet all."""
    return next((need for need, of in loss.needs(y).items() if np.isnan(of).all()), "")


def by_rows(raw_score: np.ndarray) -> np.ndarray:
    """Return a copy of raw scores of shape (n_outputs, n_samples) in the shape that users know."""
    return raw_score[0].copy() if len(raw_score) == 1 else raw_score.T.copy()


def first_derivatives(
    loss: Loss, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Return gradient and hessian of the first round, of a loss that prepares; float64."""
    both = np.empty((2, *raw_score.shape), np.float32)
    with ThreadTeam(1) as team:
        fill = loss.prepare(team, y, weight, 0)
        assert fill is not None
        fill(0, raw_score, both[0], both[1])
    return both.astype(np.float64)


if TYPE_CHECKING:
    row_formula = staticmethod
else:

    def row_formula(function):
        """Make a formula of one row in the class of a loss static, inlined where it is used."""
        return staticmethod(inlined(function))


class RowLoss(Loss):
    """A loss whose outputs each depend on their own raw score only: a formula of one row.

    A subclass has `derivatives` and `row_value` of ``(target, raw_score, parameter)``, each a
    :func:`row_formula`: only within the loop over rows do they become vector instructions, ten
    times faster for formulas with two e^x (Tweedie, focal). With several targets there is an output
    for each, or one for each of the `parameters`.
    """

    parameter = ""  # of the estimator, of which there can be several values: an output for each
    targets: Domain = ANYWHERE  # that it is defined for
    derivatives: Callable[..., Any]
    row_value: Callable[..., Any]
    formula: ClassVar[Formula]  # of `row_value`, for metrics
    # Far below the hessians of all rows, whatever the unit of the targets.
    least_hessian: ClassVar[float] = LEAST_HESSIAN
    # What `row_value` gets as its third number; kernel of (raw_score, parameter).
    term: Callable[..., Any] = staticmethod(parameter_itself)

    def __init_subclass__(cls) -> None:
        """Make the block of a loss that has derivatives of its own, and the formula."""
        if "derivatives" in vars(cls):
            block = gradient_block(cls.derivatives, least_hessian=cls.least_hessian)
            cls.block = staticmethod(block)
        if hasattr(cls, "row_value"):
            cls.formula = Formula(cls.row_value, cls.link, cls.term, targets=cls.targets)

    def __init__(self, n_targets: int = 1, parameters: tuple[float, ...] = (0.0,)):
        self.n_outputs = n_targets * len(parameters)
        # output o has target o % n_targets
        self.parameters = np.repeat(np.array(parameters, dtype=np.float64), n_targets)

    @property
    def of_metrics(self) -> dict[str, Any]:
        """The parameter, if there is one."""
        return {self.parameter: self.parameters} if self.parameter else {}

    def row_values(self, y: np.ndarray, raw_score: np.ndarray) -> np.ndarray:
        """Return the loss of each row and output, shape (n_outputs, n_samples)."""
        return losses_of_rows(self.formula, self.parameters, y, raw_score)

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Return the mean loss of the known targets, over all outputs."""
        return mean_over_targets(self.row_values(y, raw_score), y, weight)

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the constants at which the mean gradients are 0, by Newton's method."""
        return find_constants(self, y, weight)

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for a target outside of `targets`."""
        if self.targets is not ANYWHERE:
            check_domain(y, self.targets, name, self.name)


# --- as the rounds run it


class CompiledLoss(NamedTuple):
    """A loss as rounds know it."""

    is_compiled: int  # 0: the derivatives are filled from Python before each round
    address: Any  # of its block
    # float64, shape (n_outputs,): of a user's function: what its derivatives are multiplied by,
    # shape (2 * n_outputs,)
    parameters: np.ndarray
    # int64, shape (n_threads,): what the blocks returned that each member called, the first that is
    # not ``NO_FAULT``
    faults: np.ndarray
    faulty_round: np.ndarray  # int64, shape (1,): the round in which that was
    scratch: np.ndarray  # float64, shape (n_threads, 3, BLOCK_ROWS): two of blocks, short targets


def compile_loss(loss: Loss, n_threads: int) -> CompiledLoss:
    """Compile the block of a loss, if it has one."""
    # one for each output, also where the loss of a user has none
    parameters = np.resize(loss.parameters, max(len(loss.parameters), loss.n_outputs))
    if loss.row_derivatives is not None:
        parameters = np.ones(2 * loss.n_outputs)  # factors: a user's function has no parameter
    return CompiledLoss(
        is_compiled=int(loss.block is not None),
        address=0 if loss.block is None else address_of(loss.block, LOSS_TYPES),
        parameters=parameters,
        faults=np.full(n_threads, NO_FAULT),
        faulty_round=np.zeros(1, dtype=np.int64),
        scratch=np.empty((n_threads, 3, BLOCK_ROWS)),
    )


class TargetArrays(NamedTuple):
    """The targets of the rows, in one of three forms; the others are empty.

    Short ones become float64 for a block of rows at a time, since eight bytes a row are as much as
    all the raw scores.
    """

    values: np.ndarray  # float64, shape (n_targets, n_samples) or (1, 0)
    singles: np.ndarray  # float32, shape (n_samples,) or (0,)
    codes: np.ndarray  # uint8, shape (n_samples,) or (0,): numbers of classes


def targets_of(y: np.ndarray) -> TargetArrays:
    """Return targets for a kernel: float64, shape (n_targets, n_samples), or short, one a row."""
    none = TargetArrays(np.empty((1, 0)), np.empty(0, np.float32), np.empty(0, np.uint8))
    if y.dtype == np.uint8:
        return none._replace(codes=y[0])
    if y.dtype == np.float32:
        return none._replace(singles=y[0])
    return none._replace(values=y)


@kernel
def fill_gradients(team, loss, targets, raw_score, gradient, hessian, rows):
    """Fill gradient and hessian, float32, of rows ``[start, stop)``, at most 256."""
    y, scratch, first = targets.values, loss.scratch[team.rank], np.int64(0)
    if y.shape[1] < raw_score.shape[1]:
        # the third row of the scratch; blocks use the others
        y, first = scratch[2:], np.int64(rows[0])
        # short targets: one of the two is empty
        codes = targets.codes[rows[0] : rows[1]]
        singles, values = targets.singles[rows[0] : rows[1]], y[0]
        for row in range(len(codes)):
            values[row] = codes[row]
        for row in range(len(singles)):
            values[row] = singles[row]
    of_y, parameters = (np.int64(rows[0]), np.int64(rows[1]), first), loss.parameters
    fault = call_loss(loss.address, of_y, y, raw_score, parameters, gradient, hessian, scratch)
    if fault != NO_FAULT and loss.faults[team.rank] == NO_FAULT:
        loss.faults[team.rank] = fault
