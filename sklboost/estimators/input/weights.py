"""Weights of rows and of classes, and the shift of raw scores that undoes the latter.

Class weights multiply the weights of the rows, and so change the shares of the classes that a model
learns. Source of the correction: King & Zeng (2001), "Logistic Regression in Rare Events Data",
prior correction.
"""

from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_array

from sklboost.data.features import Features
from sklboost.data.frames.adapter import as_objects
from sklboost.estimators.input.arguments import row_values
from sklboost.estimators.input.targets import listed, places_among
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.objectives.loss import Loss
from sklboost.objectives.start_values import weighted_mean

# Sums of weights, and of weights times gradients, stay normal numbers within these.
_WEIGHT_RANGE = (1e-100, 1e100)

# Newton's steps on the shift. Three to five are the rule; a step of 2 is seven times the odds.
_MOST_STEPS = 100
_LONGEST_STEP = 2.0
# Of a mean probability.
_TOLERANCE = 1e-10
# Keeps the matrix regular where no row's probability moves any more.
_RIDGE = 1e-12


def row_weights(sample_weight: Any, X: Features, name: str = "sample_weight") -> np.ndarray:
    """Return the weights as float64, shape (n_samples,); a single number counts for every row."""
    if isinstance(sample_weight, Real):
        sample_weight = np.full(len(X), sample_weight)
    weight = row_values(sample_weight, name, "weights")
    weight = check_array(weight, dtype=np.float64, ensure_2d=False, input_name=name)
    if weight.ndim != 1:
        raise ValueError(
            f"{name} has shape {weight.shape}: it must be 1-D, one weight for each row"
        )
    if len(weight) != len(X):
        raise ValueError(
            f"{name} and X have inconsistent numbers of samples: [{len(weight)}, {len(X)}]"
        )
    if (weight < 0.0).any():
        row = int(np.argmax(weight < 0.0))
        raise ValueError(
            f"{name}[{row}]={weight[row]:g}: weights must be >= 0 (0 leaves a row out)"
        )
    if not weight.any():
        raise ValueError(f"{name} is zero for every row: at least one weight must be > 0")
    check_largest_weight(weight, name)
    return weight


def check_largest_weight(weight: np.ndarray, name: str) -> None:
    """Raise ValueError if sums of these weights, times gradients, could be no normal numbers."""
    largest = float(weight.max())
    if not _WEIGHT_RANGE[0] <= largest <= _WEIGHT_RANGE[1]:
        raise ValueError(
            f"the largest {name} is {largest:g}: it must be from {_WEIGHT_RANGE[0]:g} to "
            f"{_WEIGHT_RANGE[1]:g}; multiply the weights by a constant"
        )


def warn_of_small_weights(weight: np.ndarray, cover: float, min_child_weight: float) -> None:
    """Warn if trees have no split only because the weights of the rows are small.

    Parameters
    ----------
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Positive; empty: all 1.
    cover : float
        Of all rows: the sum of their hessians, weights included.
    min_child_weight : float
        Which both children of a split must have.
    """
    if len(weight) == 0 or cover >= 2 * min_child_weight:
        return
    mean = weight.mean()
    if cover < 2 * min_child_weight * mean:
        return  # too few rows for a split, whatever their weights are
    warn_user(
        f"no tree has a split: both children need a cover of min_child_weight={min_child_weight:g},"
        f" but that of all rows is {cover:g}, because the mean of sample_weight is {mean:g}; "
        "multiply the weights so that their mean is 1, or lower min_child_weight"
    )


def class_multipliers(
    class_weight: Mapping[Hashable, float] | Literal["balanced"] | None,
    scale_pos_weight: float,
    classes: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
) -> np.ndarray:
    """Return what the weights of each class's rows are multiplied by, shape (n_classes,).

    Parameters
    ----------
    class_weight : dict of label to weight, "balanced" or None
        "balanced": every class gets the same sum of weights, their mean stays 1:
        ``sum of weights / (n_classes * sum of the class's weights)``, scikit-learn's formula.
        A class that is not in the dict has weight 1. A label of the dict may be missing from
        `classes`, as in a fold without a rare class, if the dict has all that are in `classes`.
    scale_pos_weight : float
        Multiplies the weight of ``classes[1]`` of two, on top of `class_weight`.
    classes : ndarray, shape (n_classes,)
    codes : ndarray of int, shape (n_samples,) or (0,)
        The position of each row's label in `classes`; every class occurs. Only if "balanced".
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Positive; empty: all 1.
    """
    n_classes = len(classes)
    if n_classes > 2 and scale_pos_weight != 1:
        warn_user(
            f"scale_pos_weight={scale_pos_weight!r} is ignored, because y has {n_classes} classes: "
            "it is for two classes only; use class_weight"
        )
    if class_weight is None:
        multipliers = np.ones(n_classes)
    elif isinstance(class_weight, str):
        totals = np.bincount(codes, weight if len(weight) else None, minlength=n_classes)
        multipliers = totals.sum() / (n_classes * totals)
    else:
        multipliers = _from_dict(class_weight, classes)
    if n_classes == 2:
        multipliers[1] *= scale_pos_weight
    return multipliers


def refuse_class_weights(parameters: Mapping[str, Any], n_labels: int) -> None:
    """Raise ValueError if several labels a row are to be weighted: a row has one weight only."""
    defaults = {"class_weight": None, "scale_pos_weight": 1, "calibrated_prior": False}
    for name, default in defaults.items():
        if parameters[name] != default:
            raise ValueError(
                f"{name}={parameters[name]!r}, but y has {n_labels} labels, and a row of several "
                "labels has one weight: fit a model for each label, with "
                "sklearn.multioutput.MultiOutputClassifier, or weight the rows with sample_weight"
            )


def _from_dict(class_weight: Mapping[Hashable, float], classes: np.ndarray) -> np.ndarray:
    places = places_among(classes, as_objects(class_weight))
    unknown = [label for label, place in zip(class_weight, places, strict=True) if place < 0]
    left_out = listed(np.delete(classes, places[places >= 0]))
    # one of them alone is well meant: a fold without a rare class, a dict of the rare class only
    if unknown and left_out:
        raise ValueError(
            f"class_weight={dict(class_weight)!r} has labels that are no class of y, {unknown}, "
            f"and leaves out {left_out}: use the labels of y, {listed(classes)}"
        )
    multipliers = np.ones(len(classes))
    multipliers[places[places >= 0]] = np.array([*class_weight.values()], float)[places >= 0]
    return multipliers


def multiply_weights(weight: np.ndarray, multipliers: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the weights of the rows times those of their classes; `weight` itself if all are 1.

    `codes` are the classes of the rows. ValueError if sums of the products could overflow.
    """
    if (multipliers == 1.0).all():
        return weight
    factors = multipliers[codes.astype(np.intp)]
    product = factors * weight if len(weight) else factors
    check_largest_weight(product, "sample_weight times class weight")
    return product


def prior_shift(multipliers: np.ndarray) -> np.ndarray:
    """Return the shift from raw scores learnt under class weights to those of unweighted classes.

    Weights w multiply the odds of a class by its w: where p is the probability in the data, a model
    learns ``w_k p_k / sum_j w_j p_j``. So raw scores are too large by ``log w_k``, and the log-odds
    of two classes by ``log(w_1 / w_0)``. Shape (n_outputs,), to be added.
    """
    logarithms = np.log(multipliers)
    if len(multipliers) == 2:
        return logarithms[:1] - logarithms[1:]
    return -logarithms


def calibrate_prior(
    loss: Loss, raw_score: np.ndarray, codes: np.ndarray, weight: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Return the shift that makes each class's mean probability its share of the training rows.

    :func:`prior_shift` would be enough if the model had learnt the weighted probabilities. Trees
    that are shrunk and regularised learn less, and not by the same in every class. So the mean is
    corrected by Newton's method: its derivative in the shift is ``mean(diag(p) - p p^T)``.

    Parameters
    ----------
    loss : Loss
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
        Of the training rows, as learnt under class weights.
    codes : ndarray of int, shape (n_samples,)
        The class of each row; every class occurs.
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Of the rows, without those of their classes; empty: all 1.
    start : ndarray of float64, shape (n_outputs,)
        A first guess, from :func:`prior_shift`; returned if no shift moves the means.
    """
    n_free = max(loss.n_outputs - 1, 1)  # only differences count: that of the first class stays
    shares = [weighted_mean((codes == k).astype(float), weight) for k in range(1, n_free + 1)]
    shift = start.copy()
    for _ in range(_MOST_STEPS):
        probabilities = loss.probabilities(raw_score + shift[:, np.newaxis])[:, 1:]
        means = np.array([weighted_mean(column, weight) for column in probabilities.T])
        excess = means - shares
        if np.abs(excess).max() <= _TOLERANCE:
            return shift
        step = np.linalg.solve(_sensitivity(probabilities, means, weight), excess)
        shift[-n_free:] -= step * min(1.0, _LONGEST_STEP / np.abs(step).max())
    return start.copy()


def _sensitivity(probabilities: np.ndarray, means: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the derivatives of the mean probabilities in the shifts, with a little ridge."""
    weighted = probabilities * weight[:, np.newaxis] if len(weight) else probabilities
    total = weight.sum() if len(weight) else len(probabilities)
    # einsum and not a matrix product: the bits of that depend on the number of BLAS threads
    products = np.einsum("ij,ik->jk", weighted, probabilities) / total
    return np.diag(means + _RIDGE) - products
