"""Binning of Parquet files that need not fit into memory."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import check_array

from sklboost.data.binning import empty_layout
from sklboost.data.encoding import Encoding
from sklboost.data.feature_cuts import exact_weights
from sklboost.data.frames.checks import check_names
from sklboost.estimators.input.bin_features import Means, bin_checked, checked_settings
from sklboost.estimators.input.check_features import SHAPE_CHECKS, check_number_of_rows
from sklboost.estimators.input.feature_tables import (
    FeatureSettings,
    fit_encodings,
    shape_of,
    unless_plain,
)
from sklboost.estimators.input.weights import row_weights

if TYPE_CHECKING:
    from sklboost.data.parquet_files import ParquetFiles


class Parts(NamedTuple):
    """The columns of the files, by what they are."""

    features: "ParquetFiles"
    targets: "ParquetFiles"
    weight: "ParquetFiles | None"


@np.errstate(all="ignore")
def bin_parquet(  # noqa: PLR0913, the arguments of users
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
    max_bin : int, default=256
        As the estimators' parameter, which must be the same at ``fit``.
    columns : sequence of str, optional
        The features. None: all columns except targets, weights and the index of a pandas frame.
    sample_weight : str, optional
        A column with the weights of the rows. They decide on the cut points, and are returned.
    categorical_features : {"from_dtype"} or array-like, default="from_dtype"
        Which features are categories, as the estimators' parameter. These take it from the result.
    missing : float, default=NaN
        An additional value that counts as missing, as the estimators' parameter, which must be the
        same at ``fit``.
    n_jobs : int, optional
        Maximum number of threads, as the estimators' parameter.
    verbose : int, default=1
        1: show the progress if binning takes more than two seconds: a bar if tqdm is installed,
        else lines of text. 0: silent.
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
    A model fitted on the result is bit for bit the one fitted on the same rows in memory. Memory
    holds the bins, the targets, a sample of 200,000 rows while the cut points are chosen, and a
    batch of rows, besides what pyarrow needs for a row group. Columns that have to be known whole
    are read one at a time: categories, times, and integers beyond 2^53. Numbers of which the sample
    has at most `max_bin` distinct ones are read once more, in batches.

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
    settings = checked_settings(
        FeatureSettings("bin_parquet", categorical_features, True, "missing", missing, max_bin),
        n_jobs,
        verbose,
    )
    _check_columns(target, columns)
    named = [*([target] if isinstance(target, str) else target), *(columns or ())]
    named += [] if sample_weight is None else [sample_weight]
    new_folder = nullcontext() if bins_path is None else _new_folder(bins_path)
    with new_folder as folder, _as_files(path, folder, named) as paths:
        parts = _open_files(paths, target, columns, sample_weight)
        allocate = None if folder is None else folder.array
        means = Means(n_jobs, verbose, allocate)
        made = _bin_parts(parts, settings, means, is_one=isinstance(target, str))
        if folder is None:
            return made
        from sklboost.estimators.input.open_bins import finish_bins, open_bins

        finish_bins(folder, made[0].binning, ("targets", "weights")[: len(made) - 1])
    return open_bins(bins_path)


def _bin_parts(
    parts: Parts, settings: FeatureSettings, means: Means, *, is_one: bool
) -> tuple[Any, ...]:
    """Return the bins, the targets, and the weights if there are any."""
    from sklboost.data.parquet_files import BatchedTable, read_targets

    files = parts.features
    check_array(shape_of(files), estimator=settings.caller, **SHAPE_CHECKS)
    check_number_of_rows(files)
    y = read_targets(parts.targets, is_one=is_one, allocate=means.allocate)
    weight = np.empty(0) if parts.weight is None else _read_weight(parts.weight, means)
    encodings = _learn_encodings(files, settings, weight)
    X = BatchedTable(files, encodings, settings.missing)
    names = np.array(files.names, dtype=object)
    binned = bin_checked(X, weight, settings, names, unless_plain(encodings), means)
    return (binned, y) if parts.weight is None else (binned, y, weight)


def _learn_encodings(
    files: "ParquetFiles", settings: FeatureSettings, weight: np.ndarray
) -> tuple[Encoding, ...]:
    learnt_from = exact_weights(weight) if len(weight) > 0 else np.broadcast_to(1.0, files.n_rows)
    return fit_encodings(files, settings, [learnt_from] * files.n_columns)


def _check_columns(target: Any, columns: Any) -> None:
    if target is None:
        raise TypeError("target=None: it must be the name of a column, or a list of names")
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r}: it must be a list of names, or None for all columns")
    if not isinstance(target, str) and len(target) == 0:
        raise ValueError("target=[] is empty: it must be the name of a column, or a list of names")


def _new_folder(path: Any) -> AbstractContextManager[Any]:
    from sklboost.data.bin_folder import NewFolder

    return NewFolder(path)


def _as_files(given: Any, folder: Any, names: list[str]) -> AbstractContextManager[Any]:
    """Give the paths of files; ImportError without pyarrow, which reads and writes them."""
    try:
        from sklboost.data.lazy_frames import as_files
    except ImportError as error:
        raise ImportError(
            "bin_parquet reads files with pyarrow, which is not installed: pip install pyarrow, or "
            "pip install sklboost[parquet]"
        ) from error
    return as_files(given, None if folder is None else folder.path, names)


def _open_files(
    path: Any, target: str | Sequence[str], columns: Sequence[str] | None, sample_weight: str | None
) -> Parts:
    """Find the files, and decide which columns are read as what."""
    from sklboost.data import parquet_files as reader

    files = reader.list_files(path)
    targets = [target] if isinstance(target, str) else list(target)
    weights = [] if sample_weight is None else [sample_weight]
    others = {*targets, *weights}
    if columns is None:
        columns = [name for name in reader.column_names(files[0]) if name not in others]
    elif known := [name for name in columns if name in others]:
        raise ValueError(
            f"columns has {known}, which {'is' if len(known) == 1 else 'are'} target or weight: "
            "leave them out of the features"
        )
    check_names(columns)
    return Parts(
        reader.ParquetFiles(files, list(columns)),
        reader.ParquetFiles(files, targets),
        reader.ParquetFiles(files, weights) if weights else None,
    )


def _read_weight(files: "ParquetFiles", means: Means) -> np.ndarray:
    from sklboost.data.parquet_files import fill_numbers

    column = files.column(0)
    if column.kind != "number":
        raise ValueError(
            f"sample_weight: {files.label(0)} is of type {column.dtype_name}, and weights are "
            "numbers: name another column, or None"
        )
    weight = (means.allocate or empty_layout)("weights", (files.n_rows,), np.float64)
    fill_numbers(files, 0, weight)
    return row_weights(weight, weight, f"sample_weight={files.label(0)}")
