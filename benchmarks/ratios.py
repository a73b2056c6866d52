"""Our held-out loss beside a rival's, over the splits that both have seen."""

import numpy as np


def mean_of(losses):
    """Return the mean of ``{seed of the split: loss}``."""
    return float(np.mean(list(losses.values())))


def paired_ratio(ours, theirs):
    """Return the mean of our losses over the mean of theirs, and its standard error.

    The error is over the splits, of the paired ratios: what two libraries share, they share in
    each split. Both are NaN if no split is shared, the error if only one is.

    Parameters
    ----------
    ours, theirs : dict
        ``{seed of the split: loss}``.

    Returns
    -------
    ratio, error : float
    """
    shared = sorted(set(ours) & set(theirs))
    if not shared:
        return np.nan, np.nan
    mine, other = (np.array([losses[seed] for seed in shared]) for losses in (ours, theirs))
    error = np.std(mine / other, ddof=1) / np.sqrt(len(shared)) if len(shared) > 1 else np.nan
    return float(mine.mean() / other.mean()), float(error)


def as_text(*numbers):
    """Return numbers with four decimals, and nothing for those that are NaN."""
    return ["" if np.isnan(number) else f"{number:.4f}" for number in numbers]
