"""What sklboost aims at, and whether a figure gets there: ratios, losses, limits.

A ratio is the median of the fastest of some libraries over that of sklboost, so more is better; a
limit is a figure of sklboost alone that should not be exceeded.
"""

from typing import NamedTuple

OURS = "sklboost"
BINNED = "sklboost bin_features"  # sklboost on a matrix that was binned beforehand
THREADING = " threading"  # behind a library's name: its grid search runs in threads
PEERS = ("xgboost", "lightgbm", "hist_gb", "catboost")
QUANTIZED = "lightgbm_quantized"  # less precise gradients: apart from the peers
SYMMETRIC = "catboost_symmetric"  # another model, but the fastest to predict with
ACCURATE = ("xgboost", "lightgbm", "hist_gb")  # whose best held-out loss is the measure of ours

FIT = 3.0  # the fastest peer / ours, in every fit of the table
MAX_LOSS_RATIO = 1.003  # ours / the best of these
MAX_FLOOR_RATIO = 1.6  # a whole fit / its histogram updates
MAX_GROWTH = 1.5  # slowest / fastest of the seconds per row
MAX_ADDED = 0.05  # of a fit's time, by scoring a fifth of the rows after every round
MAX_ROW_SECONDS = 30e-6
MAX_FIRST_FIT_SECONDS = {"cold": 10.0, "cached": 0.3}


class Ratio(NamedTuple):
    """A column of a table: the fastest of `against` over `ours`, and its least value."""

    title: str
    against: tuple[str, ...]
    at_least: float | None  # None: no aim
    ours: str = OURS


PREDICT = (
    Ratio("fastest / ours", (*PEERS, SYMMETRIC), 1.0),
    Ratio("XGBoost / ours", ("xgboost",), 2.0),
)
PREDICT_ROW = (Ratio("fastest but CatBoost / ours", ACCURATE, 1.0),)
SEARCHERS = (*PEERS, *(name + THREADING for name in PEERS))  # each in processes and in threads
GRID = (
    Ratio("fastest / ours", SEARCHERS, 3.0),
    Ratio("fastest / ours, threading", SEARCHERS, 5.0, OURS + THREADING),
    Ratio("fastest / ours, bin_features", SEARCHERS, 5.0, BINNED),
)
MEMORY = (Ratio("XGBoost / ours", ("xgboost",), 1.0),)


def fit_ratios(at_least):
    """Return the two ratios of a fit; `at_least` is the aim against the fastest peer."""
    return (
        Ratio("fastest / ours", PEERS, at_least),
        Ratio("quantised / ours", (QUANTIZED,), 2.5),
    )


def ratio_of(medians, ratio):
    """Return the ratio of `medians` ({library: seconds or MiB}); None where one side is missing."""
    theirs = [medians[name] for name in ratio.against if name in medians]
    if ratio.ours not in medians or not theirs:
        return None
    return min(theirs) / medians[ratio.ours]


def loss_ratio(losses):
    """Return our loss over the best of the accurate peers; None where one side is missing."""
    theirs = [losses[name] for name in ACCURATE if name in losses]
    if OURS not in losses or not theirs:
        return None
    return losses[OURS] / min(theirs)


def judge_ratio(value, at_least):
    """Return a table's cell: the value beside its aim, bold where it falls short of it."""
    if value is None:
        return ""
    if at_least is None:
        return f"{value:.2f}"
    return f"{value:.2f} ≥ {at_least}" if value >= at_least else f"**{value:.2f} < {at_least}**"


def judge_limit(value, at_most, form=".3g"):
    """Return a table's cell: the value beside its limit, bold where it exceeds it."""
    if value is None:
        return ""
    met = value <= at_most
    return f"{value:{form}} ≤ {at_most:g}" if met else f"**{value:{form}} > {at_most:g}**"


def floor_seconds(n_rows, n_features, depth, n_trees, update_seconds, n_threads):
    """Return the time of the histogram updates alone of a fit of depth-wise trees.

    Every row is added to the root's histogram and, of each pair of siblings below, only the
    smaller is built: at most half the rows a level. rows x features x (1 + depth / 2) x trees.
    """
    n_updates = n_rows * n_features * (1 + depth / 2) * n_trees
    return n_updates * update_seconds / n_threads
