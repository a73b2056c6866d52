"""Lazy frames as Parquet files: each part is computed once, written, and forgotten.

What reads rows several times, in batches, then needs to know of files only. A lazy frame of polars
is computed in its streaming engine, a Dask DataFrame partition by partition.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sklboost.data.frames import dask_kind
from sklboost.data.parquet_files import wide_type

# Of a row group: what is read at once of a wide frame stays small.
_GROUP_ROWS = 100_000


@contextmanager
def as_files(given: Any, folder: Path | None, names: Sequence[str]) -> Iterator[Any]:
    """Give the paths of Parquet files: those given, or of a lazy frame those that it is written to.

    The latter lie in `folder`, or where the system keeps such files, and are removed in the end.
    ValueError if a lazy frame has not all columns of these names: before anything is computed.
    """
    is_dask = dask_kind(given) == "DataFrame"
    if not is_dask and not _is_polars(given):
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


def _is_polars(given: Any) -> bool:
    kind = type(given)
    return kind.__name__ == "LazyFrame" and kind.__module__.partition(".")[0] == "polars"


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
    fields = [
        field.with_type(_wide_dictionary(field.type))
        if pa.types.is_dictionary(field.type)
        else field
        for field in schema
    ]
    return pa.schema(fields, schema.metadata)


def _wide_dictionary(type_: pa.DictionaryType) -> pa.DataType:
    wide = wide_type(type_)
    return pa.dictionary(wide.index_type, wide.value_type, type_.ordered)


def _check_width(own: pa.Schema, schema: pa.Schema) -> None:
    """Raise ValueError for floats that pyarrow would round to narrower ones without a word."""
    for field in own:
        known = schema.field(field.name).type
        are_floats = pa.types.is_floating(known) and pa.types.is_floating(field.type)
        if are_floats and known.bit_width < field.type.bit_width:
            raise ValueError(f"column {field.name!r} was {known} and is {field.type}")
