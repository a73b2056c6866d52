"""A table that is read in batches of rows, again whenever it is asked for its values.

In: anything that is a :class:`~sklboost.data.frames.adapter.FrameAdapter` and gives batches of
rows, such as Parquet files, and by what their values become numbers. Out: :class:`BatchedTable`, of
which binning asks what it asks of a :class:`~sklboost.data.table.Table`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sklboost.data.encoding import Encoding, encode
from sklboost.data.frames.adapter import FrameAdapter
from sklboost.data.table import BLOCK_VALUES, Table


class BatchedTable:
    """Features of rows that are not in memory.

    Parameters
    ----------
    source : FrameAdapter
        With the methods ``batches(n_rows)`` and ``empty()``, see
        :class:`~sklboost.data.frames.parquet_files.ParquetFiles`.
    encodings : sequence of Encoding
        One for each column.
    missing : float
        A further value that counts as missing; NaN: none.
    chosen : ndarray of bool, shape (n_rows of the source,), optional
        Which rows the table has. None: all.
    """

    ndim = 2

    def __init__(
        self,
        source: Any,
        encodings: Sequence[Encoding],
        missing: float,
        chosen: np.ndarray | None = None,
    ):
        self._parts = (source, encodings, missing)
        self._source, self._encodings, self._missing = self._parts
        self._chosen = chosen
        n_rows = source.n_rows if chosen is None else int(np.count_nonzero(chosen))
        self.shape = (n_rows, len(encodings))
        self.size = n_rows * len(encodings)
        self.n_categories = np.array([own.n_categories for own in encodings], dtype=np.int64)
        self.dtype = self._encode(source.empty()).dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, chosen: np.ndarray) -> "BatchedTable":
        """Choose rows of all rows by a mask."""
        return BatchedTable(*self._parts, chosen)

    def column(self, feature: int) -> np.ndarray:
        """Read all values of one feature, shape (n_rows,), as floats."""
        column, _ = encode(self._source, feature, self._encodings[feature], self._missing)
        values = (
            Table([column], self.n_categories[feature : feature + 1]).column(0).astype(self.dtype)
        )
        return values if self._chosen is None else values[self._chosen]

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield ranges of rows and their values, which the next block overwrites; as a Table."""
        n_read = start = 0
        for batch in self._source.batches(max(1, BLOCK_VALUES // self.shape[1])):
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
