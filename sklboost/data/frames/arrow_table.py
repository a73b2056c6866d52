"""Tables and record batches of Arrow, and columns of Arrow in other frames."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as types

from sklboost.data.frames.adapter import (
    ColumnAdapter,
    FrameAdapter,
    Kind,
    as_objects,
    relabel,
    used_categories,
)
from sklboost.data.frames.numpy_arrays import ObjectColumn
from sklboost.engine.cached import cached_property


class ArrowTable(FrameAdapter):
    """The columns of an Arrow table or record batch."""

    def __init__(self, table: pa.Table | pa.RecordBatch) -> None:
        super().__init__(table.column_names, *table.shape)
        self._table = table

    def read_column(self, i: int) -> ColumnAdapter:
        return ArrowColumn(self._table.column(i))


class ArrowColumn(ColumnAdapter):
    """An array of Arrow, in one piece or in several; `dtype_name` if the user's library has one."""

    def __init__(self, values: pa.Array | pa.ChunkedArray, dtype_name: str = "") -> None:
        self._values = values
        self._dtype_name = dtype_name

    @cached_property  # pyarrow takes 10 microseconds for a text
    def dtype_name(self) -> str:
        return self._dtype_name or str(self._values.type)

    @cached_property
    def timezone(self) -> str:
        type_ = self._values.type
        return getattr(type_.value_type if types.is_dictionary(type_) else type_, "tz", "") or ""

    @cached_property
    def kind(self) -> Kind:
        type_ = self._values.type
        if types.is_floating(type_) or types.is_integer(type_) or types.is_boolean(type_):
            return "number"
        if types.is_decimal(type_) or types.is_null(type_):
            return "number"
        if types.is_temporal(type_) and not types.is_interval(type_):
            return "time"
        if types.is_dictionary(type_):
            return "category"
        return "text" if _is_text(type_) else "unsupported"

    def numbers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the values: a view if they are in one piece, even if some are missing."""
        array = _in_one_piece(self._values)
        type_ = array.type
        if types.is_null(type_):
            return np.full(len(array), np.nan), None
        if types.is_decimal(type_):
            return array.cast(pa.float64()).to_numpy(zero_copy_only=False), None
        is_packed = types.is_boolean(type_)  # eight in a byte
        if array.null_count == 0:
            return array.to_numpy(zero_copy_only=not is_packed), None
        if is_packed:
            return array.fill_null(False).to_numpy(zero_copy_only=False), _missing(array)
        return _view(array, type_.to_pandas_dtype()), _missing(array)

    def times(self) -> tuple[np.ndarray, np.ndarray | None, str]:
        array = _in_one_piece(self._values)
        type_ = array.type
        is_instant = types.is_date(type_) or types.is_timestamp(type_)
        unit = getattr(type_, "unit", "D" if types.is_date32(type_) else "ms")
        values = _view(array, np.int32 if type_.bit_width == 32 else np.int64)
        return (
            values.astype(np.int64, copy=False),
            _missing(array),
            f"{'datetime64' if is_instant else 'timedelta64'}[{unit}]",
        )

    def values(self) -> tuple[np.ndarray, np.ndarray | None]:
        if self.kind == "unsupported" or types.is_decimal(self._values.type):
            return ObjectColumn(as_objects(self._values.to_pylist())).values()
        return super().values()

    def _labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the codes and values of a dictionary, which text is turned into."""
        encoded = self._values if self.kind == "category" else self._values.dictionary_encode()
        array = _in_one_piece(encoded)  # with one dictionary for all pieces
        categories = array.dictionary
        codes, used = used_categories(_codes(array.indices), len(categories))
        if used is not None:
            categories = pa.array([categories[i].as_py() for i in used.tolist()], categories.type)
        if not _is_text(categories.type):
            new_codes, values = ArrowColumn(categories).categories()
            return relabel(codes, new_codes), values
        values = np.array(categories.to_pylist(), dtype=object)
        if categories.null_count == 0:
            return codes, values
        is_category = np.array([value is not None for value in values], dtype=bool)
        new_codes = np.where(is_category, np.cumsum(is_category) - 1, -1)
        return relabel(codes, new_codes), values[is_category]

    def examples(self) -> list[Any]:
        return self._values.drop_null().slice(0, 1).to_pylist()


def _is_text(type_: pa.DataType) -> bool:
    # string views came with version 16
    return types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_)


def _in_one_piece(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(values, pa.ChunkedArray):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def _codes(indices: pa.Array) -> np.ndarray:
    """Return the indices, as a view if none is missing; -1 for those that are."""
    if indices.null_count == 0:
        return indices.to_numpy()
    if types.is_unsigned_integer(indices.type):
        indices = indices.cast(pa.int64())
    return indices.fill_null(-1).to_numpy()


def _missing(array: pa.Array) -> np.ndarray | None:
    return array.is_null().to_numpy(zero_copy_only=False) if array.null_count > 0 else None


def _view(array: pa.Array, dtype: Any) -> np.ndarray:
    """Return the memory of an array of numbers; what is missing has arbitrary values there."""
    memory = array.buffers()[1]
    if memory is None or len(array) == 0:
        return np.zeros(len(array), dtype=dtype)
    size = np.dtype(dtype).itemsize
    return np.frombuffer(memory, dtype=dtype, count=len(array), offset=array.offset * size)
