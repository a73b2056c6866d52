"""Parquet files as one table that is never whole in memory: columns, or batches of rows.

In: paths. Out: :class:`ParquetFiles`, the columns; :meth:`ParquetFiles.batches`, some rows after
others.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sklboost.data.frames.adapter import Column, FrameAdapter, is_wide
from sklboost.data.frames.arrow_table import ArrowColumn, ArrowTable
from sklboost.data.table import LARGEST_EXACT

Paths = str | os.PathLike | Sequence[str | os.PathLike]


class ParquetFiles(FrameAdapter):
    """Columns of Parquet files, read whenever they are asked for and not kept.

    Parameters
    ----------
    paths : list of Path
        From :func:`list_files`; the rows of one file come after those of the file before.
    names : list of str
        The columns to be read, in this order.

    Raises
    ------
    ValueError
        If a file is none of Parquet, if it has not all of these columns, or of another type than
        the first one has.
    """

    def __init__(self, paths: list[Path], names: list[str]) -> None:
        self._paths = paths
        self._metadata = [_read_metadata(path) for path in paths]
        super().__init__(names, sum(own.num_rows for own in self._metadata), len(names))
        schemas = [own.schema.to_arrow_schema() for own in self._metadata]
        for path, schema in zip(paths, schemas, strict=True):
            _check_columns(path, schema, names)
        self._schema = pa.schema([(name, _common_type(name, paths, schemas)) for name in names])

    def read_column(self, i: int) -> Column:
        """Read one column of all files."""
        name = self._schema.names[i]
        type_ = self._schema.types[i]
        parts = [pq.ParquetFile(path).read(columns=[name]).column(name) for path in self._paths]
        chunks = [chunk for part in parts for chunk in part.cast(type_).chunks]
        return ArrowColumn(pa.chunked_array(chunks, type_))

    def column(self, i: int) -> Column:
        """Read one column anew each time: only what is looked at is in memory."""
        return self.read_column(i)

    def kind(self, i: int) -> str:
        """Give the kind of a column by its type."""
        return self._empty(i).kind

    def dtype_name(self, i: int) -> str:
        """Give the type of a column, as Arrow calls it."""
        return self._empty(i).dtype_name

    def is_exact(self, i: int) -> bool:
        """Tell by types, and by the least and largest value that files give, if all is float64."""
        if self.kind(i) != "number":
            return False
        return not is_wide(self._empty(i).numbers()[0].dtype) or self._are_small(i)

    def examples(self, i: int) -> list[Any]:
        """Give the first value that there is, read no further than that."""
        for batch in ParquetFiles(self._paths, [self._schema.names[i]]).batches(1024):
            if found := batch.examples(0):
                return found
        return []

    def matrix(self) -> None:
        """Give no array of all values."""

    def batches(self, n_rows: int) -> Iterator[ArrowTable]:
        """Yield tables of at most so many rows, in order."""
        names = self._schema.names
        for path in self._paths:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(n_rows, columns=names):
                    yield ArrowTable(pa.Table.from_batches([batch]).select(names))

    def empty(self) -> ArrowTable:
        """Give a table of these columns without rows."""
        return ArrowTable(self._schema.empty_table())

    def _empty(self, i: int) -> ArrowColumn:
        return ArrowColumn(pa.array([], self._schema.types[i]))

    def _are_small(self, i: int) -> bool:
        """Tell whether the files themselves say that no integer is too large for float64."""
        for metadata in self._metadata:
            paths = [metadata.schema.column(k).path for k in range(metadata.num_columns)]
            place = paths.index(self._schema.names[i])  # columns within columns have names, too
            for group in range(metadata.num_row_groups):
                known = metadata.row_group(group).column(place).statistics
                if known is None or not known.has_min_max:
                    return False
                if known.min < -LARGEST_EXACT or known.max > LARGEST_EXACT:
                    return False
        return True


def list_files(path: Paths) -> list[Path]:
    """Give the Parquet files that are meant by a path, a folder, or several of them.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or none in the folder.
    """
    several = [path] if isinstance(path, str | os.PathLike) else list(path)
    files: list[Path] = []
    for own in map(Path, several):
        if not own.exists():
            raise FileNotFoundError(f"path={str(own)!r}: there is no such file or folder")
        files += sorted(own.glob("*.parquet")) if own.is_dir() else [own]
    if not files:
        raise FileNotFoundError(f"path={path!r}: there are no files *.parquet")
    return files


def column_names(path: Path) -> list[str]:
    """Give the names of a file's columns, but for those in which pandas kept a frame's index."""
    schema = _read_metadata(path).schema.to_arrow_schema()
    of_pandas = schema.pandas_metadata or {}
    index = [own for own in of_pandas.get("index_columns", ()) if isinstance(own, str)]
    return [name for name in schema.names if name not in index]


def _read_metadata(path: Path) -> pq.FileMetaData:
    try:
        return pq.read_metadata(path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _check_columns(path: Path, schema: pa.Schema, names: list[str]) -> None:
    absent = [name for name in names if schema.get_field_index(name) < 0]
    if absent:
        raise ValueError(
            f"{path} has no column (or several) of the name {', '.join(map(repr, absent))}: its "
            f"columns are {schema.names}"
        )


def _common_type(name: str, paths: list[Path], schemas: list[pa.Schema]) -> pa.DataType:
    """Give the type of a column in all files; of text, one that holds what all of them have."""
    found = [schema.field(name).type for schema in schemas]
    if all(own == found[0] for own in found):
        return found[0]
    wide = [_wide(own) for own in found]
    for path, own, type_ in zip(paths, found, wide, strict=True):
        if type_ != wide[0]:
            raise ValueError(
                f"column {name!r} is {own} in {path}, and {found[0]} in the first file: write it "
                "with one type in all files"
            )
    return wide[0]


def _wide(type_: pa.DataType) -> pa.DataType:
    """Give the type that holds long text, and numbers a dictionary by 64 bits."""
    if pa.types.is_dictionary(type_):
        return pa.dictionary(pa.int64(), _wide(type_.value_type))
    return pa.large_string() if pa.types.is_string(type_) else type_


def read_labels(files: ParquetFiles, i: int) -> np.ndarray:
    """Give a column as it is: numbers, NaN where they are missing; or labels, None where missing.

    Raises
    ------
    ValueError
        For a column of another kind; it says which.
    """
    kind = files.kind(i)
    if kind == "number":
        values, absent = files.numbers(i)
        if absent is None:
            return np.array(values)
        numbers = values.astype(np.float64)
        numbers[absent] = np.nan
        return numbers
    if kind in ("text", "category"):
        codes, categories = files.categories(i)
        if (codes >= 0).all():
            return categories[codes]
        return np.array([*categories.tolist(), None], dtype=object)[codes]
    raise ValueError(
        f"{files.label(i)} is of type {files.dtype_name(i)}: a target is numbers or labels"
    )
