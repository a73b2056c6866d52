"""Documents in files: JSON (RFC 8259) or UBJSON (draft 12)."""

import json
import os
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from sklboost.files.sections import DEEPEST, ModelFileError, plain_number

OUR_KEY = "sklboost"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # which some editors write
_JSON_SPACE = b" \t\r\n"
# Other formats in which models are saved, by their first bytes.
_REMEDIES = {
    b"tree\n": "; it is a text model of LightGBM: sklboost.from_lightgbm reads it",
    b"tree\r\n": "; it is a text model of LightGBM: sklboost.from_lightgbm reads it",
    b"\x80": "; it looks like a pickle: pickle.load or joblib.load reads it",
}


def read_bytes(
    source: Any,
    library: str = "",  # of which the caller takes models, too
) -> tuple[bytes, str]:
    """Return what is in a path, file object or bytes, and its name for errors."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "the model file"
    if isinstance(source, str) and ("\n" in source or source.startswith('{"')):
        raise ValueError(
            f"{source[:20]!r}... is the text of a model, not a path: pass it as bytes, "
            f"text.encode(){_remedy(source.encode())}"
        )
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return path.read_bytes(), path.name
    if not hasattr(source, "read"):
        kind, or_model = type(source).__name__, f", a model of {library}" * (library != "")
        raise TypeError(
            f"an object of type {kind} is no path: this takes a path, a file opened for reading, "
            f"bytes{or_model}"
        )
    data = source.read()
    name = getattr(source, "name", None)
    name = os.path.basename(name) if isinstance(name, str) else "the model file"
    return data.encode("utf-8") if isinstance(data, str) else bytes(data), name


def _remedy(data: bytes) -> str:
    return next((of for how, of in _REMEDIES.items() if data.startswith(how)), "")


def parse_document(data: bytes, name: str, *, is_whole: bool = False) -> Any:
    """Return the document in JSON or UBJSON, whichever it is.

    Of a file as :func:`join_document` makes it only our section is read, unless `is_whole`: that
    takes less than half of the time, and the rest is as it was written if its length and checksum
    are.
    """
    data = data.removeprefix(_BYTE_ORDER_MARK)
    for raw_format, read_start in () if is_whole else _START_READERS.items():
        head = _head(raw_format)
        # with the brace, as written by us: spaces may stand between in another program's JSON
        if data.startswith(head + b"{") and (raw_format == "ubj" or data.isascii()):
            section, end = read_start(data, len(head), name)
            rest = memoryview(data)[end:]
            known = section.get("rest") if isinstance(section, dict) else None
            # of a damaged file it may be anything, arrays included, which have no equality
            if repr(known) == repr(_checksum(rest)):
                return {OUR_KEY: section}
    start = data.lstrip(_JSON_SPACE)
    if not start.startswith(b"{"):
        raise ModelFileError(
            f"{name}: no model file: neither JSON nor UBJSON begins so{_remedy(data)}"
        )
    # JSON goes on with a key or with the end of the object
    is_json = start[1:].lstrip(_JSON_SPACE)[:1] in (b'"', b"}", b"")
    return read_json(data, name) if is_json else read_ubjson(data, name)


def join_document(section: dict[str, Any], others: dict[str, Any], raw_format: str) -> bytes:
    """Return a file with a section under our key, and other keys behind it."""
    write = WRITERS[raw_format]
    rest = write(others)[1:]
    if raw_format == "json" and others:
        rest = b"," + rest
    return _head(raw_format) + write({**section, "rest": _checksum(rest)}) + rest


def _head(raw_format: str) -> bytes:
    """Return how a file of ours begins: with our key."""
    whole = WRITERS[raw_format]({OUR_KEY: None})
    return whole[: -len(WRITERS[raw_format](None)) - 1]


def _checksum(data: Any) -> dict[str, int]:
    return {"n_bytes": len(data), "crc32": zlib.crc32(data)}


def file_type(target: Any, raw_format: str | None) -> str:
    """Return "json" or "ubj", as asked for or as the file is called; else ValueError."""
    if raw_format is not None:
        if raw_format not in WRITERS:
            raise ValueError(f"raw_format={raw_format!r}: it must be 'json' or 'ubj'")
        if raw_format == "ubj" and hasattr(target, "encoding"):
            raise ValueError("raw_format='ubj' is binary: open the file in mode 'wb', not 'w'")
        return raw_format
    name = target if isinstance(target, str | os.PathLike) else getattr(target, "name", "")
    suffix = Path(os.fspath(name)).suffix.lower()[1:] if not isinstance(name, int) else ""
    if suffix not in WRITERS:
        raise ValueError(
            f"{str(target)!r:.80}: the name of a model file ends with .json or .ubj; for others, "
            "raw_format='json' or 'ubj' says what to write"
        )
    return suffix


def write_bytes(target: Any, data: bytes) -> None:
    """Write to a path or a file object.

    A path has the old file or the whole new one at any time.
    """
    if not isinstance(target, str | os.PathLike):
        is_text = hasattr(target, "encoding")
        target.write(data.decode("utf-8") if is_text else data)
        return
    path = Path(target)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{str(path)!r}: there is no such folder; create it first")
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")  # two threads may write it
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


# --- JSON


def read_json(data: bytes, name: str) -> Any:
    """Return the document in JSON text; `name` is the file, for errors.

    The words ``NaN`` and ``Infinity``, which XGBoost writes, are numbers. No key may occur twice.
    """
    return _read(data, name, lambda text: (_DECODER.decode(text), len(data)))[0]


def _read(data: bytes, name: str, read: Callable[[str], tuple[Any, int]]) -> tuple[Any, int]:
    try:
        return read(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{name}: byte {error.start} is no UTF-8 text") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ModelFileError(f"{name}: no JSON at {where}: {error.msg}") from None
    except RecursionError:
        raise ModelFileError(f"{name}: objects and lists are nested too deeply") from None
    except ValueError as error:  # a key twice; an integer of thousands of digits
        raise ModelFileError(f"{name}: {error}") from None


def write_json(document: Any) -> bytes:
    """Return the JSON text of a document; ndarrays become lists."""
    text = json.dumps(document, default=_as_list, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        (repeated, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {repeated!r} occurs more than once in an object")
    return found


def _as_list(array: Any) -> list[Any]:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{array!r} is nothing that a document holds")
    listed = (_shortened(array) if array.dtype == np.float32 else array).tolist()
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return [plain_number(value) for value in listed]
    return listed


@np.errstate(all="ignore")
def _shortened(array: np.ndarray) -> np.ndarray:
    """Return float32 numbers with as few digits as tell them apart, nine at most; float64."""
    exact = array.astype(np.float64)
    shortest, first_digit = exact, np.floor(np.log10(np.abs(exact)))
    for n_digits in (9, 8, 7, 6):
        digits = n_digits - 1 - first_digit
        # in two factors, neither of which overflows
        first = 10.0 ** np.clip(digits, -20.0, 20.0)
        second = 10.0 ** (digits - np.clip(digits, -20.0, 20.0))
        rounded = np.rint(exact * first * second) / first / second
        shortest = np.where(rounded.astype(np.float32) == array, rounded, shortest)
    return shortest


_DECODER = json.JSONDecoder(object_pairs_hook=_without_repeats)


# --- UBJSON

_NUMBERS = {
    marker: np.dtype(code)
    for marker, code in (
        *((b"i", ">i1"), (b"U", ">u1"), (b"I", ">i2"), (b"l", ">i4"), (b"L", ">i8")),
        *((b"d", ">f4"), (b"D", ">f8")),
    )
}
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}
_MARKERS = {(dtype.kind, dtype.itemsize): marker for marker, dtype in _NUMBERS.items()}
# which UBJSON has signed only; no document has more than int64 holds
_MARKERS |= {("u", 2): b"l", ("u", 4): b"L", ("u", 8): b"L"}
_LENGTH = struct.Struct(">q")


def read_ubjson(data: bytes, name: str) -> Any:
    """Return the document in UBJSON; `name` is the file, for errors.

    Arrays of numbers are read-only views of `data`. No key may occur twice.
    """
    document, end = _Reader(data, name).value_at(0)
    if end != len(data):
        raise ModelFileError(f"{name}: byte {end}: has {len(data) - end} bytes more behind its end")
    return document


class _Reader:
    """UBJSON, read from front to end; nothing is allocated that the file has no bytes for."""

    def __init__(self, data: bytes, name: str):
        self.data, self.name, self.position = data, name, 0

    def fail(self, problem: str) -> None:
        raise ModelFileError(f"{self.name}: byte {self.position}: {problem}")

    def take(self, n_bytes: int) -> bytes:
        stop = self.position + n_bytes
        if stop > len(self.data):
            self.fail(f"the file ends, but {n_bytes} bytes are to follow")
        taken = self.data[self.position : stop]
        self.position = stop
        return taken

    def next_is(self, marker: bytes) -> bool:
        """Whether a marker follows, which is skipped then."""
        if not self.data.startswith(marker, self.position):
            return False
        self.position += 1
        return True

    def value_at(self, start: int) -> tuple[Any, int]:
        """Return the value that begins at a byte, and the byte behind it."""
        self.position = start
        return self.value(self.take(1), DEEPEST), self.position

    def value(self, marker: bytes, depth: int) -> Any:
        if marker == b"S":
            return self.text()
        if marker in _NUMBERS:
            return self.array(marker, 1)[0].item()
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker not in (b"{", b"["):
            self.position -= 1
            self.fail(f"{marker!r} is no type of value")
        if depth == 0:
            self.fail(f"objects and lists are nested more than {DEEPEST} deep")
        return self.object(depth - 1) if marker == b"{" else self.list(depth - 1)

    def length(self) -> int:
        marker = self.take(1)
        if marker not in _NUMBERS or _NUMBERS[marker].kind == "f":
            self.fail(f"{marker!r} is no type of length")
        n = int(self.array(marker, 1)[0])
        if not 0 <= n <= len(self.data) - self.position:
            self.fail(f"a length of {n}, but {len(self.data) - self.position} bytes follow")
        return n

    def text(self) -> str:
        start, n = self.position, self.length()
        try:
            return self.take(n).decode("utf-8")
        except UnicodeDecodeError:
            self.position = start
            self.fail("the text is no UTF-8")
            raise

    def array(self, marker: bytes, n: int) -> np.ndarray:
        dtype = _NUMBERS[marker]
        return np.frombuffer(self.take(n * dtype.itemsize), dtype)

    def object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self.next_is(b"}"):
            key = self.text()
            if key in found:
                self.fail(f"the key {key!r} occurs more than once in an object")
            found[key] = self.value(self.take(1), depth)
        return found

    def list(self, depth: int) -> Any:
        if self.next_is(b"$"):
            marker = self.take(1)
            if marker not in _NUMBERS or not self.next_is(b"#"):
                self.fail(f"no typed array of numbers: {marker!r}")
            return self.array(marker, self.length())
        # a length says nothing of how many bytes there are: elements are read one by one
        if self.next_is(b"#"):
            return [self.value(self.take(1), depth) for _ in range(self.length())]
        found = []
        while not self.next_is(b"]"):
            found.append(self.value(self.take(1), depth))
        return found


def write_ubjson(document: Any) -> bytes:
    """Return the UBJSON of a document; ndarrays become typed arrays."""
    parts: list[bytes] = []
    _write(document, parts)
    return b"".join(parts)


def _write(value: Any, parts: list[bytes]) -> None:
    if isinstance(value, dict):
        parts.append(b"{")
        for key, of_key in value.items():
            parts.append(_sized(key))
            _write(of_key, parts)
        parts.append(b"}")
    elif isinstance(value, list | tuple):
        parts += [b"[#L", _LENGTH.pack(len(value))]
        for element in value:
            _write(element, parts)
    elif isinstance(value, np.ndarray):
        marker = _MARKERS[value.dtype.kind, value.dtype.itemsize]
        parts += [b"[$", marker, b"#L", _LENGTH.pack(len(value))]
        parts.append(value.astype(_NUMBERS[marker]).tobytes())
    elif isinstance(value, str):
        parts += [b"S", _sized(value)]
    elif isinstance(value, bool) or value is None:
        parts.append({None: b"Z", True: b"T", False: b"F"}[value])
    elif isinstance(value, int):
        parts += [b"L", _LENGTH.pack(value)]
    else:
        parts += [b"D", struct.pack(">d", value)]


def _sized(text: str) -> bytes:
    data = text.encode("utf-8")
    return b"L" + _LENGTH.pack(len(data)) + data


WRITERS = {"json": write_json, "ubj": write_ubjson}
# Of data, a place in it and the name of the file: the value there, and the place behind it.
_START_READERS: dict[str, Callable[[bytes, int, str], tuple[Any, int]]] = {
    "json": lambda data, start, name: _read(data, name, lambda s: _DECODER.raw_decode(s, start)),
    "ubj": lambda data, start, name: _Reader(data, name).value_at(start),
}
