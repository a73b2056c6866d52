"""Documents as UBJSON (ubjson.org, draft 12), as XGBoost writes it: keys and lengths are int64.

Arrays of numbers are typed: the type and the length, then the numbers, big-endian.
"""

import struct
from typing import Any

import numpy as np

from sklboost.files.errors import ModelFileError
from sklboost.files.sections import DEEPEST

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

    Arrays of numbers are read-only views of `data`.

    Raises
    ------
    ModelFileError
        If it is no UBJSON of this kind, ends too early, or is nested too deeply, or if a key
        occurs twice in an object.
    """
    reader = _Reader(data, name)
    document = reader.value(reader.take(1), DEEPEST)
    if reader.position != len(data):
        reader.fail(f"has {len(data) - reader.position} bytes more behind its end")
    return document


def read_ubjson_start(data: bytes, start: int, name: str) -> tuple[Any, int]:
    """Return the value that begins at a byte, and the byte behind it; the rest is not read."""
    reader = _Reader(data, name)
    reader.position = start
    return reader.value(reader.take(1), DEEPEST), reader.position


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
