"""The losses of a row that metrics are means of, with the scale they read and their domain.

To add one: a short kernel in :mod:`~sklboost.objectives.metrics.errors` or
:mod:`~sklboost.objectives.metrics.likelihoods`, and a :class:`Formula` here.
"""

from collections.abc import Callable
from typing import NamedTuple

from sklboost.objectives.metrics import class_losses, domains, errors, likelihoods
from sklboost.objectives.metrics.domains import ANYWHERE, Domain
from sklboost.objectives.metrics.scales import ANY, LOG, LOG_ODDS, MEAN, PROBABILITY


class Formula(NamedTuple):
    """A loss of a row.

    Attributes
    ----------
    row_loss : callable
        A kernel ``row_loss(target, prediction, term)``, all float64; of several classes, what makes
        the block, as those in :mod:`sklboost.objectives.metrics.class_losses`.
    reads : str
        The scale that it reads predictions on, see :mod:`sklboost.objectives.metrics.scales`.
    term : callable
        A kernel ``term(prediction, parameter)`` that gives the loss its term: the parameter itself,
        or a part that takes long and has no parameter.
    targets, predictions : Domain
        Where it is defined.
    is_of_classes : bool
        Whether it reads all raw scores of a row together.
    """

    row_loss: Callable
    reads: str
    term: Callable = errors.parameter_itself
    targets: Domain = ANYWHERE
    predictions: Domain = ANYWHERE
    is_of_classes: bool = False


SQUARED_ERROR = Formula(errors.squared_error, MEAN)
SQUARED_LOG_ERROR = Formula(
    errors.squared_log_error, MEAN, targets=domains.LOG_1P, predictions=domains.LOG_1P
)
ABSOLUTE_ERROR = Formula(errors.absolute_error, MEAN)
PERCENTAGE_ERROR = Formula(errors.percentage_error, MEAN)
PSEUDO_HUBER_ERROR = Formula(errors.pseudo_huber_error, MEAN)
HUBER_ERROR = Formula(errors.huber_error, MEAN)
FAIR_ERROR = Formula(errors.fair_error, MEAN)
LOG_COSH_ERROR = Formula(errors.log_cosh_error, MEAN)
PINBALL_ERROR = Formula(errors.pinball_error, MEAN)
EXPECTILE_ERROR = Formula(errors.expectile_error, MEAN)

POISSON = Formula(
    likelihoods.poisson_likelihood,
    LOG,
    targets=domains.COUNTS,
    predictions=domains.POSITIVE_MEANS,
)
POISSON_DEVIANCE = POISSON._replace(row_loss=likelihoods.poisson_deviance)
TWEEDIE = POISSON._replace(row_loss=likelihoods.tweedie_likelihood)
TWEEDIE_DEVIANCE = POISSON._replace(row_loss=likelihoods.tweedie_deviance)
GAMMA = POISSON._replace(row_loss=likelihoods.gamma_likelihood, targets=domains.POSITIVE_TARGETS)
GAMMA_DEVIANCE = GAMMA._replace(row_loss=likelihoods.gamma_deviance)

LOG_LOSS = Formula(
    likelihoods.log_loss,
    LOG_ODDS,
    term=likelihoods.decay,
    targets=domains.SHARES,
    predictions=domains.SHARES,
)
DIVERGENCE = LOG_LOSS._replace(row_loss=likelihoods.divergence)
# The threshold 0 of log-odds tells more rows apart than 1/2 of probabilities that are rounded.
WRONG_SIDE = Formula(errors.wrong_side, LOG_ODDS)
WRONG_SIDE_OF_PROBABILITY = Formula(errors.wrong_side, PROBABILITY)
SQUARED_PROBABILITY_ERROR = Formula(errors.squared_error, PROBABILITY)

SOFTMAX = Formula(class_losses.softmax_losses, LOG, is_of_classes=True)
CLASS_ERROR = Formula(class_losses.class_errors, ANY, is_of_classes=True)
SQUARED_CLASS_ERROR = SOFTMAX._replace(row_loss=class_losses.squared_class_errors)
