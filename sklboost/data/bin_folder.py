"""Folders that keep bins: by rows and by columns, as files that are mapped into memory.

::

    rows.npy     (n_samples, n_features)
    columns.npy  the same transposed
    bins.json    how values became bins; written last, so a folder without it is not complete

There may be further arrays, such as the targets. All are files of NumPy's format.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.row_arrays import reserve

FORMAT = "sklboost bins"
# Raised by one when an older version of the package could not read a folder, or would misread it.
FORMAT_VERSION = 1
_DESCRIPTION = "bins.json"
# There from the beginning to the end of the writing, so that nobody else begins meanwhile.
_BEGUN = f"{_DESCRIPTION}.new"


class BinFolder(NamedTuple):
    """A complete folder, open."""

    path: Path  # absolute
    token: str  # drawn when it was written, to tell it from another at the same place
    # uint8 or uint16, read-only: maps of the files
    rows: np.ndarray
    columns: np.ndarray


class NewFolder:
    """A folder that is being written.

    A context manager: if an error ends it, what was written is removed.

    Parameters
    ----------
    path : str or path
        A folder that is empty, or not there yet.

    Raises
    ------
    FileExistsError
        If there is something already, or another process is writing there.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(os.fspath(path)).absolute()
        self._is_new = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            if any(self.path.iterdir()):
                raise FileExistsError
            (self.path / _BEGUN).touch(exist_ok=False)
        except FileExistsError:
            remedy = _remedy(self.path)
            raise FileExistsError(f"path={str(path)!r} is not empty: {remedy}") from None
        self._names: list[str] = []

    def __enter__(self) -> "NewFolder":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            return
        for name in [*self._names, _BEGUN, _DESCRIPTION]:
            (self.path / name).unlink(missing_ok=True)
        if self._is_new:
            shutil.rmtree(self.path, ignore_errors=True)

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return an array to be filled, whose file has the room that it needs; else OSError."""
        path = self.path / f"{name}.npy"
        self._names.append(path.name)
        array = np.lib.format.open_memmap(path, "w+", np.dtype(dtype), shape)
        with open(path, "r+b") as file:
            reserve(file, path.stat().st_size, self.path)
        return np.asarray(array)

    def finish(self, document: dict[str, Any], write: Callable[[Any], bytes]) -> BinFolder:
        """Write the description, as `write` makes bytes of it, and open the folder."""
        document = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "token": os.urandom(16).hex(),
            **document,
        }
        for name in self._names:
            with open(self.path / name, "r+b") as file:
                os.fsync(file.fileno())  # first: the description says that they are complete
        begun = self.path / _BEGUN
        begun.write_bytes(write(document))
        begun.replace(self.path / _DESCRIPTION)
        return open_folder(self.path)[0]


def _remedy(path: Path) -> str:
    if (path / _DESCRIPTION).exists():
        return "it has bins, which open_bins(path) opens; choose another folder, or remove it"
    if (path / _BEGUN).exists() or (path / "rows.npy").exists():
        return (
            "its bins were not written to the end, or are being written now; choose another "
            "folder, or remove this one"
        )
    return "choose a folder that is empty, or not there yet"


def open_folder(path: str | os.PathLike[str]) -> tuple[BinFolder, dict[str, Any]]:
    """Open a folder; return its description, too.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or it is not complete.
    ValueError
        If a later version has written it, or it has other files than it says.
    """
    folder = Path(os.fspath(path)).absolute()
    try:
        text = (folder / _DESCRIPTION).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        text = ""
    except FileNotFoundError:
        why = "there is no such folder"
        if folder.is_dir():
            why = f"it has no {_DESCRIPTION}, which is written last: it has no bins, or only a part"
        raise FileNotFoundError(
            f"path={str(path)!r}: {why}; write bins with bin_features(X, path=...)"
        ) from None
    document = read_description(text, folder)
    rows, columns = (read_array(folder, name) for name in ("rows", "columns"))
    are_alike = columns.shape == rows.shape[::-1] and rows.dtype == columns.dtype
    if not are_alike or rows.ndim != 2 or rows.dtype not in (np.uint8, np.uint16):
        raise ValueError(
            f"path={str(path)!r}: rows.npy has shape {rows.shape} of {rows.dtype}, columns.npy "
            f"{columns.shape} of {columns.dtype}: they are not the same bins; write them anew"
        )
    return BinFolder(folder, document["token"], rows, columns), document


def read_description(text: str, folder: Path) -> dict[str, Any]:
    """Return a description; ValueError for another format or a later version."""
    try:
        document = json.loads(text)
        is_ours = document["format"] == FORMAT and isinstance(document["token"], str)
        version = document["format_version"]
    except (ValueError, KeyError, TypeError):
        is_ours, version = False, 0
    if not is_ours:
        raise ValueError(f"{folder / _DESCRIPTION} describes no bins of sklboost")
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{folder / _DESCRIPTION} has format_version={version!r}, and this version of sklboost "
            f"reads {FORMAT_VERSION}: upgrade sklboost, or write the bins anew"
        )
    return dict(document)


def read_array(folder: Path, name: str) -> np.ndarray:
    """Map an array of a folder into memory, read-only."""
    path = folder / f"{name}.npy"
    try:
        # a plain array, one type for kernels; NumPy has compared the size of the file
        return np.asarray(np.load(path, mmap_mode="r"))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}): the folder is damaged; write the bins anew"
        ) from error


def reopen_folder(path: Path, token: str) -> BinFolder:
    """Open a folder that was open before; ValueError if it has been written anew since."""
    folder, _ = open_folder(path)
    if folder.token != token:
        raise ValueError(
            f"the bins in {str(path)!r} are not those of this copy any more: the folder was "
            "written anew; open it with open_bins"
        )
    return folder
