"""Binning before the fit, once for many fits: tables, Parquet files, folders of bins."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_array

from sklboost.data.binned_matrix import (
    BinnedMatrix,
    Binning,
    NewFolder,
    of_folder,
    open_folder,
    read_array,
)
from sklboost.data.binning import LEAST_SHARED_VALUES, VALUES_PER_THREAD, apply_cuts
from sklboost.data.cuts import exact_weights, find_cuts, survey
from sklboost.data.frames.adapter import FrameAdapter, as_objects
from sklboost.data.raw_values import Allocate, Values
from sklboost.data.sparse_table import SparseTable
from sklboost.docstrings import described_like
from sklboost.engine.parallel import ThreadTeam, n_threads_for
from sklboost.engine.structs import BinCuts
from sklboost.estimators.input.feature_names import Encodings
from sklboost.estimators.input.features import (
    SHAPE_CHECKS,
    FeatureSettings,
    check_bins_are_small,
    fit_encodings,
    fit_source,
    fit_table,
    shape_of,
    unless_plain,
)
from sklboost.estimators.input.rows import row_weights
from sklboost.estimators.parameters.boosters import Parameters
from sklboost.estimators.parameters.rules import check_parameters
from sklboost.estimators.progress import ReadingProgress
from sklboost.files.documents import write_json
from sklboost.files.sections import DocumentSection
from sklboost.files.values import (
    NotStorableError,
    encoding_document,
    read_encoding,
    read_value,
    read_vector,
    value_document,
)

if TYPE_CHECKING:
    from sklboost.data.parquet_files import ParquetFiles


def open_bins(path: Any, scratch: Any = None) -> Any:
    """Open bins that were written to a folder.

    Nothing is read before it is used, and processes that open the same folder share its memory.

    Parameters
    ----------
    path : str or path
        As in ``bin_features(X, path=...)`` or ``bin_parquet(..., bins_path=...)``.
    scratch : str or path, optional
        A folder for what fits keep on disk while they last. None: that of the bins, which must then
        be one that can be written to.

    Returns
    -------
    BinnedMatrix or tuple
        What that function returned. The arrays of ``bin_parquet`` are read-only maps of files.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or its bins were not written to the end.
    ValueError
        If the folder is damaged, or a later version of the package has written it.

    See Also
    --------
    bin_features : Bins arrays and frames.
    bin_parquet : Bins Parquet files.

    Notes
    -----
    The numbers of bins are not checked one by one: open only folders that nobody has changed.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from sklboost import XGBRegressorLite, bin_features, open_bins
    >>> X, y = load_diabetes(return_X_y=True)
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = bin_features(X, path=f"{folder.name}/bins")
    >>> B = open_bins(f"{folder.name}/bins")
    >>> B
    <BinnedMatrix of 442 rows and 10 features, max_bin=256, uint8>
    >>> XGBRegressorLite(n_estimators=5).fit(B, y).predict(X[:3]).shape
    (3,)
    >>> folder.cleanup()
    """
    folder, document = open_folder(path)
    place = f"{Path(path) / 'bins.json'}"
    section = DocumentSection(document, place)
    binning = _read_binning(section["binning"], folder.rows.shape[1])
    B = of_folder(folder, binning, None if scratch is None else Path(scratch).absolute())
    others = tuple(read_array(folder.path, part.text()) for part in section["arrays"])
    for name, array in zip(document["arrays"], others, strict=True):
        if len(array) != len(B):
            section["arrays"].fail(f"{name} has {len(array)} rows, and the bins {len(B)}")
    return (B, *others) if others else B


def finish_bins(folder: NewFolder, binning: Binning, arrays: tuple[str, ...] = ()) -> BinnedMatrix:
    """Write the description of a folder whose bins, and further arrays, are written; open it."""
    document = {"binning": _binning_document(binning), "arrays": list(arrays)}
    return of_folder(folder.finish(document, write_json), binning)


def _binning_document(binning: Binning) -> dict[str, Any]:
    try:
        names, encodings = binning.feature_names, binning.encodings
        return {
            "cuts": {name: value_document(array) for name, array in binning.cuts._asdict().items()},
            "has_missing": value_document(binning.has_missing),
            "max_bin": binning.max_bin,
            "feature_names": None if names is None else value_document(names.tolist()),
            "encodings": encodings and [encoding_document(encoding) for encoding in encodings],
            "missing": value_document(float(binning.missing)),
            "digest": binning.digest,
        }
    except NotStorableError as error:
        raise NotStorableError(
            f"a name or category of a feature cannot be written to a folder of bins: {error}; turn "
            "these into text, or leave `path` out"
        ) from None


def _read_binning(section: DocumentSection, n_features: int) -> Binning:
    cuts = BinCuts(**{name: read_vector(section["cuts"][name]) for name in BinCuts._fields})
    names, encodings = section["feature_names"], section["encodings"]
    binning = Binning(
        cuts,
        has_missing=read_vector(section["has_missing"]),
        max_bin=section["max_bin"].integer(2, 65_535),
        feature_names=None if names.is_null else as_objects([read_value(name) for name in names]),
        encodings=None if encodings.is_null else tuple(map(read_encoding, encodings)),
        missing=read_value(section["missing"]),
    )
    if binning.digest != section["digest"].text() or len(cuts.n_categories) != n_features:
        section.fail("what is written of the bins does not agree: write them anew")
    return binning


@np.errstate(all="ignore")
def bin_features(
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
    categorical_features : {"from_dtype", "auto"} or array-like, default="from_dtype"
        Which features are categories, as the estimators' parameter. These take it from the result.
    missing : float, default=NaN
        An additional value that counts as missing, as the estimators' parameter, which must be the
        same at ``fit``.
    verbose : int, default=1
        1: show the progress if binning takes more than two seconds, as it does of large files: a
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

    A model fitted on all of it is bit for bit the one fitted on `X`, unless the fit holds out rows:
    they have a part in these cut points. It predicts raw values as usual, and rows of the matrix
    that the rows given to ``fit`` came from. Both give the same bits,
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
    asked = dict(categorical_features=categorical_features, missing=missing, max_bin=max_bin)
    settings = _checked_settings("bin_features", asked, n_jobs, verbose)
    source, names = fit_source(X, settings, None)
    X, encodings = source, None
    if isinstance(source, FrameAdapter):
        rows = shape_of(source)
        learnt_from = row_weights(1.0 if sample_weight is None else sample_weight, rows)
        X, encodings = fit_table(source, settings, learnt_from, None)
    if isinstance(X, SparseTable):
        remedy = "pass X itself to fit, which"
        check_bins_are_small(X.shape, max_bin, f"{X!r}: bin_features", remedy)
    weight = np.empty(0) if sample_weight is None else row_weights(sample_weight, X)
    checked = (X, weight, settings, names, encodings, n_jobs, verbose)
    if path is None:
        return bin_checked(*checked)
    with NewFolder(path) as folder:
        return finish_bins(folder, bin_checked(*checked, folder.array).binning)


def _checked_settings(
    caller: str, asked: dict[str, Any], n_jobs: int | None, verbose: int
) -> FeatureSettings:
    """Return how features are read; ValueError if a parameter of binning breaks its rule."""
    settings = FeatureSettings(caller, **asked, enable_categorical=True, unknown_category="missing")
    check_parameters(Parameters, {**settings._asdict(), "n_jobs": n_jobs, "verbose": verbose})
    return settings


def bin_checked(
    X: Values,
    weight: np.ndarray,
    settings: FeatureSettings,
    names: np.ndarray | None,
    encodings: Encodings,
    n_jobs: int | None,
    verbose: int,
    allocate: Allocate | None = None,  # makes both layouts; None: there are only rows, in memory
) -> BinnedMatrix:
    """Bin checked values; weights, of shape (n_samples,) or (0,), decide on the cuts."""
    counted = X
    if len(weight) > 0 and not (weight > 0.0).all():
        # fit leaves rows of weight 0 out; here they need bins, but have no say in the cuts
        counted, weight = X[weight > 0.0], weight[weight > 0.0]
    n_threads = n_threads_for(n_jobs, X.size, VALUES_PER_THREAD)
    n_threads = n_threads if X.size >= LEAST_SHARED_VALUES else 1
    # the cuts of sparse values come from the entries, which are not read row by row
    n_to_read = len(X) + (0 if isinstance(counted, SparseTable) else len(counted))
    with ThreadTeam(n_threads) as team, ReadingProgress(n_to_read, verbose) as progress:
        cuts, has_missing = find_cuts(team, counted, weight, settings.max_bin, progress.advance)
        if counted is not X:
            has_missing, _ = survey(team, X, np.empty(0, np.int64))
        matrix = apply_cuts(
            team,
            X,
            cuts,
            has_missing,
            by_columns=allocate is not None,
            allocate=allocate,
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


@described_like(bin_features)
@np.errstate(all="ignore")
def bin_parquet(
    path: Any,
    target: str | Sequence[str],
    max_bin: int = 256,
    *,
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    categorical_features: Any = "from_dtype",
    missing: float = np.nan,
    n_jobs: int | None = None,
    verbose: int = 1,
    bins_path: Any = None,
) -> tuple[Any, ...]:
    """Bin Parquet files for fits, a batch of rows at a time, so that only the bins are in memory.

    With `bins_path` not even these are. Lazy frames of polars and Dask DataFrames are taken, too.

    Parameters
    ----------
    path : str, path, sequence of them, or lazy frame
        Files, or folders whose files ``*.parquet`` are taken in the order of their names. A
        ``polars.LazyFrame`` or a Dask DataFrame is computed part by part to files that are removed
        in the end.
    target : str or sequence of str
        The column with the targets, or the columns, if there are several targets or labels a row.
    columns : sequence of str, optional
        The features. None: all columns except targets, weights and the index of a pandas frame.
    sample_weight : str, optional
        A column with the weights of the rows. They decide on the cut points, and are returned.
    bins_path : str or path, optional
        A folder, empty or not there yet, in which bins, targets and weights are kept instead of
        memory, as by ``bin_features(X, path=bins_path)``; :func:`open_bins` opens them again.

    Returns
    -------
    X : BinnedMatrix
        The bins of all features, one or two bytes each.
    y : ndarray, shape (n_samples,) or (n_samples, n_targets)
        The targets: numbers, or labels as Python objects. With `bins_path`, a read-only map of a
        file, in which labels are texts of fixed width.
    weight : ndarray of float64, shape (n_samples,)
        Only if `sample_weight` was given.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    FileNotFoundError
        If there are no such files.
    ValueError, TypeError
        If a parameter is out of range, a column is missing, or can be no feature, target or weight;
        the text says which and why.
    FileExistsError
        If there is something in `bins_path`.
    OSError
        If there is not enough room for it; what was written is removed.

    See Also
    --------
    bin_features : Does the same with what is in memory, or in a memory map.
    open_bins : Opens bins that were written to `bins_path`.

    Notes
    -----
    A model fitted on the result is bit for bit the one fitted on the same rows in memory, unless
    the fit holds out rows: they have a part in these cut points. Memory holds the bins, the
    targets, a sample of 200,000 rows while the cut points are chosen, and a batch of rows, besides
    what pyarrow needs for a row group. Columns that have to be known whole are read one at a time:
    categories, times, and integers beyond 2^53. Numbers of which the sample has at most `max_bin`
    distinct ones are read once more, in batches.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pyarrow as pa, pyarrow.parquet as pq
    >>> from sklboost import XGBRegressorLite, bin_parquet
    >>> table = pa.table({"size": [3.0, 5.0, 8.0, 9.0], "price": [1, 2, 4, 4]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/prices.parquet")
    ...     B, y = bin_parquet(folder, target="price")
    >>> B, y
    (<BinnedMatrix of 4 rows and 1 features, max_bin=256, uint8>, array([1, 2, 4, 4]))
    >>> XGBRegressorLite(n_estimators=5).fit(B, y).predict(table.select(["size"])).shape
    (4,)
    """
    asked = dict(categorical_features=categorical_features, missing=missing, max_bin=max_bin)
    settings = _checked_settings("bin_parquet", asked, n_jobs, verbose)
    if target is None:
        raise TypeError("target=None: it must be the name of a column, or a list of names")
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r}: it must be a list of names, or None for all columns")
    if not isinstance(target, str) and len(target) == 0:
        raise ValueError("target=[] is empty: it must be the name of a column, or a list of names")
    try:
        from sklboost.data import parquet_files as reader
    except ImportError as error:
        raise ImportError(
            "bin_parquet reads files with pyarrow, which is not installed: pip install pyarrow, or "
            "pip install sklboost[parquet]"
        ) from error

    targets = [target] if isinstance(target, str) else list(target)
    weights = [] if sample_weight is None else [sample_weight]
    named = [*targets, *(columns or ()), *weights]
    new_folder: Any = nullcontext() if bins_path is None else NewFolder(bins_path)
    with new_folder as folder, reader.as_files(path, folder and folder.path, named) as paths:
        allocate = None if folder is None else folder.array
        listed = reader.list_files(paths)
        features = reader.feature_names(listed[0], columns, targets + weights)
        files = reader.ParquetFiles(listed, features)
        check_array(shape_of(files), estimator=settings.caller, **SHAPE_CHECKS)
        is_one = isinstance(target, str)
        target_files = reader.ParquetFiles(listed, targets)
        y = reader.read_targets(target_files, is_one=is_one, allocate=allocate)
        weight, learnt_from = np.empty(0), np.broadcast_to(1.0, files.n_rows)
        if weights:
            weight = _read_weight(reader.ParquetFiles(listed, weights), allocate)
            learnt_from = exact_weights(weight)
        encodings = fit_encodings(files, settings, [learnt_from] * files.n_columns, learnt_from)
        X = reader.BatchedTable(files, encodings, settings.missing)
        names = np.array(files.names, dtype=object)
        B = bin_checked(
            X, weight, settings, names, unless_plain(encodings), n_jobs, verbose, allocate
        )
        if folder is None:
            return (B, y, weight) if weights else (B, y)
        finish_bins(folder, B.binning, ("targets", "weights") if weights else ("targets",))
    return open_bins(bins_path)


def _read_weight(files: "ParquetFiles", allocate: Allocate | None) -> np.ndarray:
    from sklboost.data.parquet_files import fill_numbers

    column = files.column(0)
    if column.kind != "number":
        raise ValueError(
            f"sample_weight: {files.label(0)} is of type {column.dtype_name}, and weights are "
            "numbers: name another column, or None"
        )
    shape = (files.n_rows,)
    weight = np.empty(shape) if allocate is None else allocate("weights", shape, np.float64)
    fill_numbers(files, 0, weight)
    return row_weights(weight, weight, f"sample_weight={files.label(0)}")
