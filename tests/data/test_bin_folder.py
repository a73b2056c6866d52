"""Folders of bins: what is written, what is refused, and what is left after an error."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.data.binned_matrix import NewFolder, _reopen, open_folder, read_array

pytestmark = pytest.mark.interpreted
BINS = np.arange(12, dtype=np.uint8).reshape(4, 3)


def as_bytes(document):
    return json.dumps(document).encode()


def write(path):
    with NewFolder(path) as folder:
        folder.array("rows", BINS.shape, BINS.dtype)[:] = BINS
        folder.array("columns", BINS.T.shape, BINS.dtype)[:] = BINS.T
        return folder.finish({"more": 1}, as_bytes)


def test_an_empty_folder_is_taken(tmp_path):
    write(tmp_path)
    with pytest.raises(FileExistsError, match=r"not empty: it has bins, which open_bins\(path\)"):
        NewFolder(tmp_path)
    (tmp_path / "bins.json").unlink()
    with pytest.raises(FileExistsError, match="were not written to the end, or are being written"):
        NewFolder(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"it has no bins\.json, which is written last"):
        open_folder(tmp_path)
    (tmp_path / "rows.npy").unlink()
    with pytest.raises(FileExistsError, match="choose a folder that is empty, or not there yet"):
        NewFolder(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        open_folder(tmp_path / "c")


def test_two_do_not_write_to_one_folder(tmp_path):
    path = tmp_path / "bins"
    with NewFolder(path) as folder:
        with pytest.raises(FileExistsError, match="or are being written now; choose another"):
            write(path)
        with pytest.raises(FileNotFoundError, match=r"it has no bins\.json"):
            open_folder(path)
        folder.array("rows", BINS.shape, BINS.dtype)[:] = BINS
        folder.array("columns", BINS.T.shape, BINS.dtype)[:] = BINS.T
        folder.finish({}, as_bytes)
    assert_array_equal(open_folder(path)[0].rows, BINS)


def write_a_part(path, error):
    with NewFolder(path) as folder:
        folder.array("rows", (5, 2), np.uint8)
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_removes_what_was_written(tmp_path, error):
    for path in (tmp_path, tmp_path / "new"):
        with pytest.raises(error):
            write_a_part(path, error)
        assert list(tmp_path.iterdir()) == []


def test_another_folder_at_the_same_place_is_refused(tmp_path):
    token = write(tmp_path).token
    for file in tmp_path.iterdir():
        file.unlink()
    write(tmp_path)
    with pytest.raises(ValueError, match="was written anew and has other bins than this copy"):
        _reopen(tmp_path, token, 0, 4, binning=None, scratch=None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "x"}, r"bins\.json describes no bins of sklboost"),
        ({"token": 1}, "describes no bins"),
        ({"format_version": 2}, "format_version=2, and this version of sklboost reads 1: upgrade"),
    ],
)
def test_other_descriptions_are_refused(tmp_path, change, message):
    write(tmp_path)
    path = tmp_path / "bins.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        open_folder(tmp_path)


def test_damaged_folders_are_refused(tmp_path):
    write(tmp_path)
    np.save(tmp_path / "columns.npy", BINS)
    with pytest.raises(ValueError, match=r"columns.npy \(4, 3\) of uint8: they are not the same"):
        open_folder(tmp_path)
    for name, values in (("rows", BINS), ("columns", BINS.T)):
        np.save(tmp_path / f"{name}.npy", values.astype(float))
    with pytest.raises(ValueError, match=r"float64, columns.npy .* not the same bins"):
        open_folder(tmp_path)
    data = (tmp_path / "rows.npy").read_bytes()
    (tmp_path / "rows.npy").write_bytes(data[:-1])
    with pytest.raises(ValueError, match=r"rows\.npy cannot be read .*: the folder is damaged"):
        open_folder(tmp_path)
    (tmp_path / "rows.npy").unlink()
    with pytest.raises(ValueError, match="damaged"):
        read_array(tmp_path, "rows")
    for text in (b"{", b"\xff\xfe", b""):
        (tmp_path / "bins.json").write_bytes(text)
        with pytest.raises(ValueError, match="describes no bins"):
            open_folder(tmp_path)
