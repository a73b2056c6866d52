"""Parquet files as one table that is never whole in memory, and lazy frames as such files.

:class:`ParquetFiles` reads single columns, or some rows after others. :class:`BatchedTable` is the
features in them as numbers, which binning reads as it reads a :class:`~sklboost.data.table.Table`.

Of a lazy frame each part is computed once, written, and forgotten: a frame of polars in its
streaming engine, a Dask DataFrame partition by partition.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sklboost.data.encoding import Encoding, encode
from sklboost.data.frames import dask_kind
from sklboost.data.frames.adapter import ColumnAdapter, FrameAdapter, check_names, is_wide
from sklboost.data.frames.arrow_table import ArrowColumn, ArrowTable
from sklboost.data.raw_values import BLOCK_ROWS, Allocate
from sklboost.data.table import BLOCK_VALUES, LARGEST_EXACT, Table

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class ParquetFiles(FrameAdapter):
    """The columns `names` of Parquet files, one file's rows after the other's."""

    def __init__(self, paths: list[Path], names: list[str]) -> None:
        self._paths = paths
        self._metadata = [_read_metadata(path) for path in paths]
        super().__init__(names, sum(file.num_rows for file in self._metadata), len(names))
        schemas = [file.schema.to_arrow_schema() for file in self._metadata]
        for path, schema in zip(paths, schemas, strict=True):
            absent = [name for name in names if schema.get_field_index(name) < 0]
            if absent:
                raise ValueError(
                    f"{path} has no column (or several) of the name "
                    f"{', '.join(map(repr, absent))}: its columns are {schema.names}"
                )
        self._schema = pa.schema([(name, _common_type(name, paths, schemas)) for name in names])

    def read_column(self, i: int) -> ColumnAdapter:
        """Return a column whose values are read when they are asked for."""
        return _FileColumn(self._paths, self._metadata, self._schema.field(i))

    def matrix(self) -> None:
        """Return no array of all values."""

    def only(self, i: int) -> "ParquetFiles":
        """Return one of the columns."""
        return ParquetFiles(self._paths, [self._schema.names[i]])

    def batches(self, n_rows: int) -> Iterator[ArrowTable]:
        """Yield tables of at most so many rows, in order."""
        return _batches(self._paths, self._schema.names, n_rows)

    def empty(self) -> ArrowTable:
        """Return a table of these columns without rows."""
        return ArrowTable(self._schema.empty_table())


class _FileColumn(ColumnAdapter):
    """A column of several files, read anew each time: only what is looked at is in memory."""

    def __init__(self, paths: list[Path], metadata: list[pq.FileMetaData], field: pa.Field) -> None:
        self._paths = paths
        self._metadata = metadata
        self._field = field
        self._empty = ArrowColumn(pa.array([], field.type))
        self.kind, self.dtype_name = self._empty.kind, self._empty.dtype_name
        self.timezone = self._empty.timezone

    def _read(self) -> ArrowColumn:
        name, type_ = self._field.name, self._field.type
        parts = [pq.ParquetFile(path).read(columns=[name]).column(name) for path in self._paths]
        chunks = [chunk for part in parts for chunk in part.cast(type_).chunks]
        return ArrowColumn(pa.chunked_array(chunks, type_))

    def numbers(self) -> tuple[np.ndarray, np.ndarray | None]:
        return self._read().numbers()

    def times(self) -> tuple[np.ndarray, np.ndarray | None, str]:
        return self._read().times()

    def _labels(self) -> tuple[np.ndarray, np.ndarray]:
        return self._read().categories()

    def examples(self) -> list[Any]:
        """Return the first value that there is, read no further than that."""
        for batch in _batches(self._paths, [self._field.name], 1024):
            if found := batch.column(0).examples():
                return found
        return []

    def is_exact(self) -> bool:
        """Whether float64 holds all values, by type or the extremes that the files give."""
        if self.kind != "number":
            return False
        return not is_wide(self._empty.numbers()[0].dtype) or self._are_small()

    def _are_small(self) -> bool:
        """Whether the files themselves say that no integer is too large for float64."""
        for metadata in self._metadata:
            paths = [metadata.schema.column(k).path for k in range(metadata.num_columns)]
            place = paths.index(self._field.name)  # columns within columns have names, too
            for group in range(metadata.num_row_groups):
                known = metadata.row_group(group).column(place).statistics
                if known is None or not known.has_min_max:
                    return False
                if known.min < -LARGEST_EXACT or known.max > LARGEST_EXACT:
                    return False
        return True


def _batches(paths: list[Path], names: list[str], n_rows: int) -> Iterator[ArrowTable]:
    for path in paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(n_rows, columns=names):
                yield ArrowTable(pa.Table.from_batches([batch]).select(names))


class BatchedTable:
    """Features of rows that are not in memory."""

    ndim = 2

    def __init__(
        self,
        files: ParquetFiles,
        encodings: Sequence[Encoding],  # one for each column
        missing: float,  # a further value that counts as missing; NaN: none
        chosen: np.ndarray | None = None,  # mask of the rows of the files; None: all
    ):
        self._files, self._encodings, self._missing = files, encodings, missing
        self._chosen = chosen
        n_rows = files.n_rows if chosen is None else int(np.count_nonzero(chosen))
        self.shape = (n_rows, len(encodings))
        self.size = n_rows * len(encodings)
        self.n_categories = np.array([known.n_categories for known in encodings], dtype=np.int64)
        self.dtype = self._encode(files.empty()).dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, chosen: np.ndarray) -> "BatchedTable":
        """Choose rows of all rows by a mask."""
        return BatchedTable(self._files, self._encodings, self._missing, chosen)

    def column_blocks(self, feature: int) -> Iterator[np.ndarray]:
        """Yield the values of one feature, shape (n_rows,), as floats, some rows after others."""
        n_read = 0
        for batch in self._files.only(feature).batches(BLOCK_ROWS):
            column, _ = encode(batch, 0, self._encodings[feature], self._missing)
            table = Table([column], self.n_categories[feature : feature + 1])
            values = table.column(0).astype(self.dtype)
            n_read += len(values)
            chosen = self._chosen
            yield values if chosen is None else values[chosen[n_read - len(values) : n_read]]

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield ranges of rows and their values, which the next block overwrites; as a Table."""
        n_read = start = 0
        for batch in self._files.batches(max(1, BLOCK_VALUES // self.shape[1])):
            table = self._encode(batch)
            n_read += batch.n_rows
            if self._chosen is not None:
                table = table[self._chosen[n_read - batch.n_rows : n_read]]
            for rows, values in table.blocks():
                yield slice(start + rows.start, start + rows.stop), values
            start += len(table)

    def _encode(self, batch: FrameAdapter) -> Table:
        columns = [
            encode(batch, i, encoding, self._missing)[0]
            for i, encoding in enumerate(self._encodings)
        ]
        return Table(columns, self.n_categories)


def list_files(path: Paths) -> list[Path]:
    """Return the Parquet files that are meant by a path, a folder, or several of them."""
    if hasattr(path, "columns") or hasattr(path, "shape"):
        library = type(path).__module__.partition(".")[0]
        raise TypeError(
            f"path is of type {library}.{type(path).__name__}: it must "
            "be files, folders, a polars.LazyFrame or a Dask DataFrame; bin_features(X) bins "
            "arrays and frames"
        )
    several = [path] if isinstance(path, str | os.PathLike) else list(path)
    files: list[Path] = []
    for given in map(Path, several):
        if not given.exists():
            raise FileNotFoundError(f"path={str(given)!r}: there is no such file or folder")
        files += sorted(given.glob("*.parquet")) if given.is_dir() else [given]
    if not files:
        raise FileNotFoundError(f"path={path!r}: there are no files *.parquet")
    return files


def feature_names(path: Path, columns: Sequence[str] | None, others: list[str]) -> list[str]:
    """Return the columns of a file that are features; ValueError for targets and weights.

    None are all `columns`, except the others and those that hold the index of a pandas frame.
    """
    if columns is None:
        schema = _read_metadata(path).schema.to_arrow_schema()
        index = (schema.pandas_metadata or {}).get("index_columns", ())
        columns = [name for name in schema.names if name not in [*index, *others]]
    elif known := [name for name in columns if name in others]:
        raise ValueError(
            f"columns has {known}, which {'is' if len(known) == 1 else 'are'} target or weight: "
            "leave them out of the features"
        )
    check_names(columns)
    return list(columns)


def _read_metadata(path: Path) -> pq.FileMetaData:
    try:
        return pq.read_metadata(path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _common_type(name: str, paths: list[Path], schemas: list[pa.Schema]) -> pa.DataType:
    """Return the type of a column in all files; of text, one that holds what all of them have."""
    found = [schema.field(name).type for schema in schemas]
    if all(type_ == found[0] for type_ in found):
        return found[0]
    wide = [wide_type(type_) for type_ in found]
    for path, type_, of_path in zip(paths, found, wide, strict=True):
        if of_path != wide[0]:
            raise ValueError(
                f"column {name!r} is {type_} in {path}, and {found[0]} in the first file: write it "
                "with one type in all files"
            )
    return wide[0]


def wide_type(type_: pa.DataType) -> pa.DataType:
    """Return the type for long text, and for dictionaries one with 64-bit codes."""
    if pa.types.is_dictionary(type_):
        return pa.dictionary(pa.int64(), wide_type(type_.value_type))
    return pa.large_string() if pa.types.is_string(type_) else type_


def read_targets(
    files: ParquetFiles, *, is_one: bool, allocate: Allocate | None = None
) -> np.ndarray:
    """Return the columns as targets, shape (n_rows,) if `is_one`, else (n_rows, n_columns).

    Numbers, NaN where missing; or labels, None where missing. If there is an `allocate`, numbers
    are written to the array that it makes, and labels are texts of fixed width.
    """
    are_numbers = all(files.column(i).kind == "number" for i in range(files.n_columns))
    shape = (files.n_rows,) if is_one else (files.n_rows, files.n_columns)
    if allocate is not None and are_numbers:
        dtypes = [_dtype_of_numbers(files, i) for i in range(files.n_columns)]
        y = allocate("targets", shape, np.result_type(*dtypes))
        for i, column in enumerate(y.reshape(files.n_rows, -1).T):
            fill_numbers(files, i, column)
        return y
    several = [read_labels(files, i) for i in range(files.n_columns)]
    y = several[0] if is_one else np.column_stack(several)
    if allocate is None:
        return y
    if y.dtype == object:
        if not all(isinstance(label, str) for label in y.flat):
            raise ValueError(
                f"the target {files.label(0)} has labels that are missing, or no text, and a "
                "folder keeps text and numbers: leave such rows out, or turn labels into numbers"
            )
        y = y.astype(str)
    stored = allocate("targets", shape, y.dtype)
    stored[:] = y
    return stored


def _dtype_of_numbers(files: ParquetFiles, i: int) -> np.dtype:
    """Return the dtype that :func:`read_labels` returns of a column of numbers."""
    for batch in files.only(i).batches(BLOCK_ROWS):
        if batch.column(0).numbers()[1] is not None:
            return np.dtype(np.float64)
    return files.empty().column(i).numbers()[0].dtype


def fill_numbers(files: ParquetFiles, i: int, target: np.ndarray) -> None:
    """Fill `target` with a column of numbers, a batch at a time; NaN where missing."""
    start = 0
    for batch in files.only(i).batches(BLOCK_ROWS):
        values, absent = batch.column(0).numbers()
        part = target[start : start + len(values)]
        part[:] = values
        if absent is not None:
            part[absent] = np.nan
        start += len(values)


def read_labels(files: ParquetFiles, i: int) -> np.ndarray:
    """Return a column as it is: numbers, NaN where missing; or labels, None where missing."""
    column = files.column(i)
    if column.kind in ("number", "text", "category"):
        values, missing = column.numbers() if column.kind == "number" else column.values()
        if missing is None or not missing.any():
            return np.array(values)
        are_numbers = column.kind == "number"
        values = values.astype(np.float64 if are_numbers else object)
        values[missing] = np.nan if are_numbers else None
        return values
    raise ValueError(
        f"{files.label(i)} is of type {column.dtype_name}: a target is numbers or labels"
    )


# Of a row group: what is read at once of a wide frame stays small.
_GROUP_ROWS = 100_000


@contextmanager
def as_files(given: Any, folder: Path | None, names: Sequence[str]) -> Iterator[Any]:
    """Give the paths of Parquet files: those given, or of a lazy frame those that it is written to.

    The latter lie in `folder`, or where the system keeps such files, and are removed in the end.
    """
    is_dask, kind = dask_kind(given) == "DataFrame", type(given)
    is_polars = kind.__name__ == "LazyFrame" and kind.__module__.partition(".")[0] == "polars"
    if not is_dask and not is_polars:
        yield given
        return
    known = list(map(str, given.columns)) if is_dask else given.collect_schema().names()
    if absent := [name for name in names if name not in known]:
        raise ValueError(
            f"the lazy frame has no column of the name {', '.join(map(repr, absent))}: its columns "
            f"are {known}"
        )
    with tempfile.TemporaryDirectory(dir=folder) as files:
        if is_dask:
            _write_partitions(given, Path(files))
        else:
            given.sink_parquet(f"{files}/0.parquet", row_group_size=_GROUP_ROWS)
        yield files


def _write_partitions(frame: Any, folder: Path) -> None:
    """Write each partition to a file; those without rows only if all are."""
    schema: pa.Schema | None = None
    for number in range(frame.npartitions):
        part = frame.partitions[number].compute()
        is_needed = len(part) > 0 or (schema is None and number == frame.npartitions - 1)
        if not is_needed:
            continue
        try:
            own = _schema_of(part)
            schema = own if schema is None else schema
            _check_width(own, schema)
            table = pa.Table.from_pandas(part, schema=schema, preserve_index=False)
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(
                f"partition {number} has other columns or types than those before: {error}; give "
                "each column one dtype, frame.astype({...})"
            ) from error
        pq.write_table(table, folder / f"{number:09d}.parquet", row_group_size=_GROUP_ROWS)


def _schema_of(part: Any) -> pa.Schema:
    """Return the columns of a partition; codes of categories may need more bits in others."""
    schema = pa.Schema.from_pandas(part, preserve_index=False)
    for number, field in enumerate(schema):
        if pa.types.is_dictionary(field.type):
            wide = wide_type(field.type)
            type_ = pa.dictionary(wide.index_type, wide.value_type, field.type.ordered)
            schema = schema.set(number, field.with_type(type_))
    return schema


def _check_width(own: pa.Schema, schema: pa.Schema) -> None:
    """Raise ValueError for floats that pyarrow would round to narrower ones without a word."""
    for field in own:
        known = schema.field(field.name).type
        are_floats = pa.types.is_floating(known) and pa.types.is_floating(field.type)
        if are_floats and known.bit_width < field.type.bit_width:
            raise ValueError(f"column {field.name!r} was {known} and is {field.type}")
