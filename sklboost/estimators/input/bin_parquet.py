"""Binning of Parquet files that need not fit into memory."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import check_array

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
    from sklboost.data.parquet_files import BatchedTable, ParquetFiles


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
) -> tuple[Any, ...]:
    """Bin Parquet files for fits, a batch of rows at a time, so that only the bins are in memory.

    Parameters
    ----------
    path : str, path, or sequence of them
        Files, or folders whose files ``*.parquet`` are taken in the order of their names.
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

    Returns
    -------
    X : BinnedMatrix
        The bins of all features, one or two bytes each.
    y : ndarray, shape (n_samples,) or (n_samples, n_targets)
        The targets: numbers, or labels as Python objects.
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

    See Also
    --------
    bin_features : Does the same with what is in memory, or in a memory map.

    Notes
    -----
    A model fitted on the result is bit for bit the one fitted on the same rows in memory. Memory
    holds the bins, the targets, a sample of 200,000 rows while the cut points are chosen, and a
    batch of rows, besides what pyarrow needs for a row group. Columns that have to be known whole
    are read one at a time: categories, times, integers beyond 2^53, and numbers of which the sample
    has at most `max_bin` distinct ones.

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
    parts = _open_files(path, target, columns, sample_weight)
    files = parts.features
    check_array(shape_of(files), estimator=settings.caller, **SHAPE_CHECKS)
    check_number_of_rows(files)
    y = _read_targets(parts.targets, isinstance(target, str))
    weight = np.empty(0) if parts.weight is None else _read_weight(parts.weight)
    learnt_from = weight if len(weight) > 0 else np.broadcast_to(1.0, files.n_rows)
    encodings = fit_encodings(files, settings, [exact_weights(learnt_from)] * files.n_columns)
    X = _batched_table(files, encodings, missing)
    names = np.array(files.names, dtype=object)
    plain = unless_plain(encodings)
    binned = bin_checked(X, weight, settings, names, plain, Means(n_jobs, verbose))
    return (binned, y) if sample_weight is None else (binned, y, weight)


def _open_files(
    path: Any, target: str | Sequence[str], columns: Sequence[str] | None, sample_weight: str | None
) -> Parts:
    """Find the files, and decide which columns are read as what."""
    try:
        from sklboost.data import parquet_files as reader
    except ImportError as error:
        raise ImportError(
            "bin_parquet reads files with pyarrow, which is not installed: pip install pyarrow, or "
            "pip install sklboost[parquet]"
        ) from error
    if target is None:
        raise TypeError("target=None: it must be the name of a column, or a list of names")
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r}: it must be a list of names, or None for all columns")
    files = reader.list_files(path)
    targets = [target] if isinstance(target, str) else list(target)
    if not targets:
        raise ValueError("target=[] is empty: it must be the name of a column, or a list of names")
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


def _batched_table(
    files: "ParquetFiles", encodings: tuple[Encoding, ...], missing: float
) -> "BatchedTable":
    from sklboost.data.parquet_files import BatchedTable

    return BatchedTable(files, encodings, missing)


def _read_targets(files: "ParquetFiles", is_one: bool) -> np.ndarray:
    from sklboost.data.parquet_files import read_labels

    several = [read_labels(files, i) for i in range(files.n_columns)]
    return several[0] if is_one else np.column_stack(several)


def _read_weight(files: "ParquetFiles") -> np.ndarray:
    from sklboost.data.parquet_files import read_labels

    column = files.column(0)
    if column.kind != "number":
        raise ValueError(
            f"sample_weight: {files.label(0)} is of type {column.dtype_name}, and weights are "
            "numbers: name another column, or None"
        )
    weight = read_labels(files, 0)
    return row_weights(weight, weight, f"sample_weight={files.label(0)}")
