"""Lazy frames as Parquet files: each part is computed once, written, and forgotten.

What reads rows several times, in batches, then needs to know of files only. A lazy frame of polars
is computed in its streaming engine, a Dask DataFrame partition by partition.
"""

import tempfile
from collections.abc import Iterator
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
def as_files(given: Any, folder: Path | None) -> Iterator[Any]:
    """Give the paths of Parquet files: those given, or of a lazy frame those that it is written to.

    The latter lie in `folder`, or where the system keeps such files, and are removed in the end.
    """
    is_dask = dask_kind(given) == "DataFrame"
    if not is_dask and not _is_polars(given):
        yield given
        return
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
        schema = _schema_of(part) if schema is None else schema
        try:
            table = pa.Table.from_pandas(part, schema=schema, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, KeyError) as error:
            raise ValueError(
                f"partition {number} has other columns or types than those before: {error}; give "
                "each column one dtype, frame.astype({...})"
            ) from error
        pq.write_table(table, folder / f"{number:09d}.parquet", row_group_size=_GROUP_ROWS)


def _schema_of(part: Any) -> pa.Schema:
    """Return the columns of a partition; codes of categories may need more bits in others."""
    schema = pa.Schema.from_pandas(part, preserve_index=False)
    fields = [
        pa.field(field.name, wide_type(field.type)) if pa.types.is_dictionary(field.type) else field
        for field in schema
    ]
    return pa.schema(fields, schema.metadata)
