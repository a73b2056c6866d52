"""Documents in files: JSON or UBJSON, at a path, in a file object or in bytes."""

import os
import zlib
from pathlib import Path
from typing import Any
from uuid import uuid4

from sklboost.files.errors import ModelFileError
from sklboost.files.json_text import read_json, read_json_start, write_json
from sklboost.files.ubjson import read_ubjson, read_ubjson_start, write_ubjson

OUR_KEY = "sklboost"
WRITERS = {"json": write_json, "ubj": write_ubjson}
_START_READERS = {"json": read_json_start, "ubj": read_ubjson_start}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # which some editors write
_JSON_SPACE = b" \t\r\n"
# What else models are saved as, by how it begins.
_REMEDIES = {
    b"tree\n": "; it is a text model of LightGBM: sklboost.from_lightgbm reads it",
    b"tree\r\n": "; it is a text model of LightGBM: sklboost.from_lightgbm reads it",
    b"\x80": "; it looks like a pickle: pickle.load or joblib.load reads it",
}


def read_bytes(source: Any, library: str = "") -> tuple[bytes, str]:
    """Return what is in a path, file object or bytes, and its name for errors.

    The caller takes models of a `library`, too, which an error says.

    Raises
    ------
    TypeError
        If `source` is none of them.
    OSError
        If the file cannot be read.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "the model file"
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return path.read_bytes(), path.name
    if not hasattr(source, "read"):
        kind, or_model = type(source).__name__, f", a model of {library}" * (library != "")
        raise TypeError(
            f"a {kind} is no path: this takes a path, a file opened for reading, bytes{or_model}"
        )
    data = source.read()
    name = getattr(source, "name", None)
    name = os.path.basename(name) if isinstance(name, str) else "the model file"
    return data.encode("utf-8") if isinstance(data, str) else bytes(data), name


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
        remedy = next((of for how, of in _REMEDIES.items() if data.startswith(how)), "")
        raise ModelFileError(f"{name}: no model file: neither JSON nor UBJSON begins so{remedy}")
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
    """Return "json" or "ubj": what is asked for, or what the name of the file says.

    Raises
    ------
    ValueError
        If neither says it.
    """
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
            f"{str(target)!r}: a model file ends with .json or .ubj, or raw_format says what it is"
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
    beside = path.with_name(f".{path.name}.{uuid4().hex}")  # two threads may write it
    try:
        beside.write_bytes(data)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
