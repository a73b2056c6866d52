"""Arrays with something for each row, in memory and in files that disappear by themselves."""

import errno
import gc
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.data import raw_values as row_arrays
from sklboost.data.raw_values import IN_MEMORY, RowArrays, row_blocks

pytestmark = pytest.mark.interpreted


@pytest.fixture(params=["in memory", "on disk"])
def arrays(request, tmp_path):
    return IN_MEMORY if request.param == "in memory" else RowArrays(tmp_path)


def test_arrays_are_plain_and_writable(arrays):
    for array in (arrays.empty((3, 4), np.int64), arrays.zeros((3, 4), np.int64)):
        assert type(array) is np.ndarray
        assert array.dtype == np.int64
        assert array.flags.c_contiguous
        assert array.flags.writeable
        array[:] = 7
    assert arrays.empty((0, 3)).shape == (0, 3)
    assert arrays.are_on_disk == (arrays is not IN_MEMORY)


def test_what_is_in_them(arrays, monkeypatch):
    monkeypatch.setattr(row_arrays, "BLOCK_ROWS", 3)
    assert not arrays.zeros((5, 2)).any()
    assert_array_equal(arrays.full([1.5, -2], 3), [[1.5] * 3, [-2.0] * 3])
    numbers = np.arange(8.0).reshape(4, 2)
    copied = arrays.copy(numbers.T, np.float32)
    assert copied.dtype == np.float32
    assert copied.flags.c_contiguous
    assert_array_equal(copied, numbers.T)
    assert_array_equal(arrays.take(numbers, np.array([3, 0, 0, 1])), numbers[[3, 0, 0, 1]])


def test_blocks_of_rows(monkeypatch):
    monkeypatch.setattr(row_arrays, "BLOCK_ROWS", 3)
    assert list(row_blocks(7)) == [slice(0, 3), slice(3, 6), slice(6, 7)]
    assert list(row_blocks(0)) == []


def test_files_have_no_name_and_their_room_comes_back(tmp_path):
    def is_mapped():
        return str(tmp_path) in Path("/proc/self/maps").read_text()

    if not sys.platform.startswith("linux"):
        return
    array = RowArrays(tmp_path).zeros((1000,))
    assert list(tmp_path.iterdir()) == []
    assert is_mapped()
    del array
    gc.collect()
    assert not is_mapped()


@pytest.mark.parametrize("has_fallocate", [True, False])
def test_a_full_disk_is_an_error(tmp_path, monkeypatch, has_fallocate):
    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if has_fallocate:
        monkeypatch.setattr(os, "posix_fallocate", refuse)
    else:
        monkeypatch.delattr(os, "posix_fallocate")
        assert_array_equal(RowArrays(tmp_path).zeros((300_000,)), np.zeros(300_000))
        monkeypatch.setattr(row_arrays, "bytes", refuse, raising=False)
    with pytest.raises(OSError, match=r"No space left.*room for 2\.0 MiB of.*make some, or") as e:
        RowArrays(tmp_path).empty((2**18,))
    assert e.value.errno == errno.ENOSPC
    assert e.value.filename == str(tmp_path)


def test_a_folder_that_cannot_be_written_to(tmp_path):
    with pytest.raises(OSError, match=r"No such file.*: what a fit has.*, scratch=") as e:
        RowArrays(tmp_path / "absent").empty((2,))
    assert e.value.errno == errno.ENOENT
