"""Files are read strictly: JSON and UBJSON, from anywhere, and damage is named."""

import io
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklboost import ModelFileError
from sklboost.files.documents import (
    join_document,
    parse_document,
    read_bytes,
    read_json,
    read_ubjson,
    write_bytes,
    write_json,
    write_ubjson,
)

NAME = "model"
DOCUMENT = {"a": [1, -2, 2**62], "b": {"c": "ü", "": None}, "d": [True, 0.1, "x", [], {}]}
_PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
_PLAIN |= st.floats(allow_nan=False, allow_infinity=False)
_DOCUMENTS = st.recursive(
    _PLAIN, lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts), max_leaves=20
)


@given(_DOCUMENTS)
def test_documents_are_read_as_they_were_written(document):
    assert repr(read_json(write_json(document), NAME)) == repr(document)
    if "\ud800" <= max(repr(document)) <= "\udfff":
        return
    assert repr(read_ubjson(write_ubjson(document), NAME)) == repr(document)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", "i8", "f4", "f8"])
def test_arrays_are_typed(dtype):
    values = np.array([0, 1, 100], dtype=dtype)
    data = write_ubjson({"a": values})
    read = read_ubjson(data, NAME)["a"]
    assert read.dtype.newbyteorder("=") == values.dtype
    assert read.tolist() == values.tolist()
    assert not read.flags.writeable
    assert read_json(write_json({"a": values}), NAME) == {"a": values.tolist()}


@pytest.mark.parametrize("write", [write_json, write_ubjson])
def test_a_file_that_ends_anywhere_or_goes_on_is_refused(write):
    data = write(DOCUMENT | {"e": np.arange(5.0)})
    for n_bytes in range(len(data)):
        with pytest.raises(ModelFileError, match=NAME):
            parse_document(data[:n_bytes], NAME)
    with pytest.raises(ModelFileError, match=r"Extra data|behind its end"):
        parse_document(data + b"Z", NAME)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b'{"a":1,"a":2}', "'a' occurs more than once"),
        (b'{"b":{"c":1,"d":2,"c":3}}', "'c' occurs more than once"),
        (b'{"a":' + b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"a":' + b"9" * 5000 + b"}", "digits"),
        (b'{"a":\xff}', "byte 5 is no UTF-8"),
        (b"{'a':1}", "no JSON|no type"),
        (b'{"a":1,}', "no JSON at line 1, column [78]"),  # 7 since Python 3.13
        (b'{"a":01}', "no JSON"),
        (b"", "neither JSON nor UBJSON"),
        (b"[1]", "neither JSON nor UBJSON"),
        (b"tree\nversion=v4\n", "sklboost.from_lightgbm reads it"),
        (b"\x80\x04\x95", "pickle.load or joblib.load reads it"),
    ],
)
def test_what_is_no_json(text, problem):
    with pytest.raises(ModelFileError, match=problem):
        parse_document(text, NAME)


def test_many_keys_of_which_the_last_is_there_twice_are_quickly_refused():
    keys = [*(f'"{i}":0' for i in range(200_000)), '"199999":0']
    with pytest.raises(ModelFileError, match="'199999' occurs more than once"):
        read_json(("{" + ",".join(keys) + "}").encode(), NAME)


def _sized(text):
    return b"L" + struct.pack(">q", len(text)) + text


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"{" + _sized(b"a") + b"Z" + _sized(b"a") + b"Z}", "'a' occurs more than once"),
        ((b"{" + _sized(b"a")) * 100, "nested more than 64 deep"),
        (b"{" + _sized(b"a") + b"[#L" * 100, "a length|nested|no type"),
        (b"{" + _sized(b"a") + b"[" * 1000, "nested more than 64 deep"),
        (b"{" + _sized(b"a") + b"SL" + struct.pack(">q", -1) + b"}", "a length of -1"),
        (b"{" + _sized(b"a") + b"SL" + struct.pack(">q", 2**62) + b"}", "a length of 461168"),
        (b"{" + _sized(b"a") + b"[$D#L" + struct.pack(">q", 2**60) + b"]}", "a length of 11529"),
        (b"{" + _sized(b"a") + b"[$D#U\x03" + bytes(8) + b"}", "24 bytes are to follow"),
        (b"{" + _sized(b"a") + b"[$S#U\x00}", "no typed array of numbers"),
        (b"{" + _sized(b"a") + b"Sd" + struct.pack(">f", 1.0) + b"a}", "no type of length"),
        (b"{" + _sized(b"a") + b"SU\x01\xff}", "no UTF-8"),
        (b"{" + _sized(b"a") + b"H}", "no type of value"),
        (b"{" + _sized(b"a") + b"N}", "no type of value"),
    ],
)
def test_what_is_no_ubjson(data, problem):
    with pytest.raises(ModelFileError, match=problem):
        parse_document(data, NAME)


def test_float32_numbers_are_short_in_json_and_the_same():
    random = np.random.default_rng(0)
    bits = random.integers(0, 2**32, 10_000, dtype=np.uint32)
    numbers = np.append(bits, [0, 1, 2**31]).astype(np.uint32).view(np.float32)
    numbers = numbers[np.isfinite(numbers)]
    read = np.array(read_json(write_json({"a": numbers}), NAME)["a"]).astype(np.float32)
    assert (read == numbers).all()
    assert write_json(np.array([0.1, 16.82], dtype=np.float32)) == b"[0.1,16.82]"


# --- our section, and the rest behind it


@pytest.mark.parametrize("raw_format", ["json", "ubj"])
def test_the_rest_is_read_if_it_was_changed(raw_format):
    data = join_document({"x": 1}, {"learner": [1, 2]}, raw_format)
    assert set(parse_document(data, NAME)) == {"sklboost"}
    assert set(parse_document(data.replace(b"learner", b"Learner"), NAME)) == {
        *("sklboost", "Learner")
    }


@pytest.mark.parametrize("rest", [None, 1, "a", [1], np.arange(3), {"n_bytes": np.arange(3)}])
def test_the_checksum_may_be_anything(rest):
    for write in (write_json, write_ubjson):
        document = parse_document(write({"sklboost": {"rest": rest}}), NAME)
        assert set(document["sklboost"]) == {"rest"}


@pytest.mark.parametrize("space", [b" ", b"\n  ", b""])
def test_other_programs_write_spaces(space):
    text = json.dumps({"sklboost": {"rest": 0}}).encode().replace(b" ", space)
    assert parse_document(b"\xef\xbb\xbf" + space + text, NAME) == {"sklboost": {"rest": 0}}


# --- where files are


def test_sources_of_bytes(tmp_path):
    path = tmp_path / "file"
    write_bytes(path, b"abc")
    assert read_bytes(str(path)) == (b"abc", "file")
    for source in (b"abc", bytearray(b"abc"), memoryview(b"abc"), io.BytesIO(b"abc")):
        assert read_bytes(source) == (b"abc", "the model file")
    assert read_bytes(io.StringIO("ü"))[0] == "ü".encode()
    with path.open("rb") as file:
        assert read_bytes(file) == (b"abc", "file")
    with pytest.raises(TypeError, match="object of type int is no path"):
        read_bytes(3)


def test_a_write_that_fails_leaves_nothing_behind(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_bytes(tmp_path / "folder", b"abc")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
