"""Binning before the fit, once for many fits."""

from typing import Any, NamedTuple

import numpy as np

from sklboost.data.binned_matrix import BinnedMatrix, Binning
from sklboost.data.binning import (
    LEAST_SHARED_VALUES,
    VALUES_PER_THREAD,
    Allocate,
    apply_cuts,
    empty_layout,
    missing_features,
)
from sklboost.data.cuts import find_cuts
from sklboost.data.frames.adapter import FrameAdapter
from sklboost.data.raw_values import Values
from sklboost.data.sparse_table import SparseTable
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.thread_counts import n_threads_for
from sklboost.estimators.input.check_features import check_is_small, fit_source
from sklboost.estimators.input.feature_names import Encodings
from sklboost.estimators.input.feature_tables import FeatureSettings, fit_table, shape_of
from sklboost.estimators.input.weights import row_weights
from sklboost.estimators.parameters.features import FeatureParameters
from sklboost.estimators.parameters.rules import check_parameters
from sklboost.estimators.parameters.training import TrainingParameters
from sklboost.estimators.parameters.trees import TreeParameters
from sklboost.estimators.progress import ReadingProgress


class Means(NamedTuple):
    """With what bins are made."""

    # the parameters
    n_jobs: int | None
    verbose: int
    allocate: Allocate | None = None  # makes both layouts. None: there are only rows, in memory.


@np.errstate(all="ignore")
def bin_features(  # noqa: PLR0913, the arguments of users
    X: Any,
    max_bin: int = 256,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    *,
    categorical_features: Any = "from_dtype",
    missing: float = np.nan,
    verbose: int = 1,
    path: Any = None,
) -> BinnedMatrix:
    """Bin features once, for many fits on the same rows or on parts of them.

    The result takes the place of `X`: in ``fit``, ``predict`` and the other methods of the
    estimators, and in scikit-learn's tools that only choose rows of it, such as ``GridSearchCV``,
    ``cross_val_score`` and ``train_test_split``. These need not bin again for each candidate and
    fold.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Raw values, as for ``fit``.
    max_bin : int, default=256
        As the estimators' parameter, which must be the same at ``fit``.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows in choosing the cut points. ``fit`` has weights of its own; only if both
        are given the same is the model that of raw values.
    n_jobs : int, optional
        Maximum number of threads, as the estimators' parameter.
    categorical_features : {"from_dtype"} or array-like, default="from_dtype"
        Which features are categories, as the estimators' parameter. These take it from the result.
    missing : float, default=NaN
        An additional value that counts as missing, as the estimators' parameter, which must be the
        same at ``fit``.
    verbose : int, default=1
        1: show the progress if binning takes more than two seconds, as with a large memory map: a
        bar if tqdm is installed, else lines of text. 0: silent.
    path : str or path, optional
        A folder, empty or not there yet, in which the bins are kept instead of memory, by rows and
        by columns. So they may be larger than memory, and :func:`open_bins` opens them again.

    Returns
    -------
    BinnedMatrix
        The bins of all values, one or two bytes each.

    Raises
    ------
    ValueError
        If a parameter is out of range or the data is unusable; the text says which and why.
    FileExistsError
        If there is something in `path`.
    OSError
        If there is not enough room for it; what was written is removed.

    See Also
    --------
    XGBClassifierLite, XGBRegressorLite : Take the result as `X`.
    open_bins : Opens bins that were written to `path`.
    bin_parquet : Does the same with Parquet files, which need not fit into memory.

    Notes
    -----
    A memory map (``numpy.load(path, mmap_mode="r")``) is not copied: only the bins are in memory,
    or with `path` only what is just being read. Fits then keep what they have for each row in files
    in the folder, too, while they last. Models have the same bits.

    The cut points are chosen from all rows of `X`. In cross-validation they have therefore seen the
    features, never the targets, of the rows that a fold holds out. If that is too much, bin the
    training rows of each fold alone: pass the raw values.

    A model fitted on all of it is bit for bit the one fitted on `X`. It predicts raw values as
    usual, and rows of the matrix that the rows given to ``fit`` came from. Both give the same bits,
    for rows that were held out as well (but for those of `sample_weight` 0 here, whose values the
    cut points have not seen): no threshold divides the values of a bin.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklboost import XGBRegressorLite, bin_features
    >>> X, y = load_diabetes(return_X_y=True)
    >>> B = bin_features(X)
    >>> B
    <BinnedMatrix of 442 rows and 10 features, max_bin=256, uint8>
    >>> grid = {"max_depth": [1, 2], "learning_rate": [0.1, 0.3]}
    >>> search = GridSearchCV(XGBRegressorLite(n_estimators=30), grid).fit(B, y)
    >>> search.predict(X[:3]).shape
    (3,)
    """
    settings = checked_settings(
        FeatureSettings("bin_features", categorical_features, True, "missing", missing, max_bin),
        n_jobs,
        verbose,
    )
    source, names = fit_source(X, settings, None)
    X, encodings = source, None
    if isinstance(source, FrameAdapter):
        rows = shape_of(source)
        learnt_from = row_weights(1.0 if sample_weight is None else sample_weight, rows)
        X, encodings = fit_table(source, settings, learnt_from, None)
    check_is_small(X, max_bin)
    weight = np.empty(0) if sample_weight is None else row_weights(sample_weight, X)
    checked, means = (X, weight, settings, names, encodings), Means(n_jobs, verbose)
    if path is None:
        return bin_checked(*checked, means)
    from sklboost.data.bin_folder import NewFolder
    from sklboost.estimators.input.open_bins import finish_bins

    with NewFolder(path) as folder:
        made = bin_checked(*checked, means._replace(allocate=folder.array))
        return finish_bins(folder, made.binning)


def checked_settings(
    settings: FeatureSettings, n_jobs: int | None, verbose: int
) -> FeatureSettings:
    """Return the settings; ValueError if a parameter of binning breaks its rule."""
    check_parameters(TreeParameters, settings._asdict())
    check_parameters(TrainingParameters, {"n_jobs": n_jobs, "verbose": verbose})
    check_parameters(FeatureParameters, settings._asdict())
    return settings


def bin_checked(
    X: Values,
    weight: np.ndarray,
    settings: FeatureSettings,
    names: np.ndarray | None,
    encodings: Encodings,
    means: Means,
) -> BinnedMatrix:
    """Bin checked values; weights, of shape (n_samples,) or (0,), decide on the cuts."""
    counted = X
    if len(weight) > 0 and not (weight > 0.0).all():
        # fit leaves rows of weight 0 out; here they need bins, but have no say in the cuts
        counted, weight = X[weight > 0.0], weight[weight > 0.0]
    n_threads = n_threads_for(means.n_jobs, X.size, VALUES_PER_THREAD)
    n_threads = n_threads if X.size >= LEAST_SHARED_VALUES else 1
    # the cuts of sparse values come from the entries, which are not read row by row
    n_to_read = len(X) + (0 if isinstance(counted, SparseTable) else len(counted))
    with ThreadTeam(n_threads) as team, ReadingProgress(n_to_read, means.verbose) as progress:
        cuts, has_missing = find_cuts(team, counted, weight, settings.max_bin, progress.advance)
        if counted is not X:
            has_missing = missing_features(team, X)
        matrix = apply_cuts(
            team,
            X,
            cuts,
            has_missing,
            by_columns=means.allocate is not None,
            allocate=means.allocate or empty_layout,
            tell=progress.advance,
        )
    binning = Binning(
        cuts,
        has_missing,
        max_bin=int(settings.max_bin),
        feature_names=names,
        encodings=encodings,
        missing=float(settings.missing),
    )
    return BinnedMatrix(matrix.rows, binning)
