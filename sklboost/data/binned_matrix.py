"""Features that were binned once, in memory or in a folder, as users pass them on."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from sklboost.data.encoding import Encoding
from sklboost.data.raw_values import IN_MEMORY, FeatureRows, RowArrays, read_only, reserve
from sklboost.engine.cached import cached_property
from sklboost.engine.structs import BinCuts

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
    """A folder that is being written, empty or not there before.

    A context manager: if an error ends it, what was written is removed. FileExistsError if there is
    something already, or another process is writing there.
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
    """Open a folder; return its description, too. ValueError for a format not known here."""
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
    rows, columns = (read_array(folder, name) for name in ("rows", "columns"))
    are_alike = columns.shape == rows.shape[::-1] and rows.dtype == columns.dtype
    if not are_alike or rows.ndim != 2 or rows.dtype not in (np.uint8, np.uint16):
        raise ValueError(
            f"path={str(path)!r}: rows.npy has shape {rows.shape} of {rows.dtype}, columns.npy "
            f"{columns.shape} of {columns.dtype}: they are not the same bins; write them anew"
        )
    return BinFolder(folder, document["token"], rows, columns), document


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


@dataclass(frozen=True, eq=False)
class Binning:
    """How values became bins: what all row slices of a BinnedMatrix have in common."""

    cuts: BinCuts
    # int64, shape (n_features,): 1 where a feature has a bin of missing values, behind the others
    has_missing: np.ndarray
    max_bin: int  # as it was asked for
    # object, shape (n_features,), as the user has them, strings or not; None: nobody named them
    feature_names: np.ndarray | None
    encodings: tuple[Encoding, ...] | None  # how values became numbers; None: they were numbers
    missing: float  # the value that counted as missing; NaN: no other than NaN

    @cached_property
    def digest(self) -> str:
        """The same for two binnings only if bins and names mean the same in both."""
        digest = hashlib.sha256()
        for array in (*self.cuts, self.has_missing):
            digest.update((array + 0).tobytes())  # -0.0 becomes 0.0, which equals it
        names = None if self.feature_names is None else list(self.feature_names)
        digest.update(repr(names).encode())
        digest.update(repr((self.encodings, self.missing)).encode())
        return digest.hexdigest()


class Span(NamedTuple):
    """Rows of a folder of bins, from `start` to `stop`, excluded."""

    folder: "BinFolder"
    start: int
    stop: int


class BinnedMatrix(FeatureRows):
    """Features binned once, to be used many times: what :func:`sklboost.bin_features` returns.

    Estimators of this package take it in place of raw values. Rows are chosen as in a NumPy
    array: ``B[10:20]``, ``B[[3, 1, 2]]``, ``B[mask]``. It cannot be written to.

    Its bins are in memory, or in a folder (:func:`sklboost.open_bins`). Then slices are read from
    there, and so are copies in other processes; other choices of rows are copied to a file in the
    folder, which is removed with the matrix.

    Parameters
    ----------
    bins : ndarray of uint8 or uint16, shape (n_samples, n_features)
        The number of each value's bin.
    binning : Binning
        How the values became bins.
    row_arrays : RowArrays
        Where what a fit has for each row lies.
    span : Span, optional
        The rows of a folder that `bins` are. None: they are none.

    See Also
    --------
    sklboost.bin_features : Makes it.
    sklboost.open_bins : Opens one that was written to a folder.
    """

    __slots__ = ("__weakref__", "_binning", "_bins", "_row_arrays", "_span")

    def __init__(
        self,
        bins: np.ndarray,
        binning: Binning,
        row_arrays: RowArrays = IN_MEMORY,
        span: Span | None = None,
    ):
        self._bins = read_only(np.ascontiguousarray(bins))
        self._binning = binning
        self._row_arrays = row_arrays
        self._span = span

    @property
    def bins(self) -> np.ndarray:
        """The number of each value's bin, read-only; missing values have a feature's last."""
        return self._bins

    @property
    def binning(self) -> Binning:
        """How the values became bins; one object for all slices of a matrix."""
        return self._binning

    @property
    def columns(self) -> np.ndarray | None:
        """The bins by columns, shape (n_features, n_samples), if they are in a file; else None."""
        is_whole = self._span is not None and len(self) == len(self._span.folder.rows)
        return self._span.folder.columns if self._span is not None and is_whole else None

    @property
    def row_arrays(self) -> RowArrays:
        """Where what a fit has for each row lies."""
        return self._row_arrays

    @property
    def max_bin(self) -> int:
        """The largest number of bins that was asked for."""
        return self._binning.max_bin

    @property
    def feature_names_in_(self) -> np.ndarray | None:
        """Names of the features, where the raw values had names that are all strings."""
        names = self._binning.feature_names
        return names if names is not None and all(isinstance(n, str) for n in names) else None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        n_samples, n_features = self._bins.shape
        return n_samples, n_features

    @property
    def dtype(self) -> np.dtype:
        """Type of the bins: uint8 where all fit, else uint16."""
        return self._bins.dtype

    @property
    def nbytes(self) -> int:
        """Size of the bins in bytes, in memory or on disk."""
        return self._bins.nbytes

    def __sizeof__(self) -> int:
        # Dask sends what is large, and has weak references, to a worker once and not with each task
        return super().__sizeof__() + (self.nbytes if self._span is None else 0)

    def __repr__(self) -> str:
        n_samples, n_features = self.shape
        return (
            f"<BinnedMatrix of {n_samples:,} rows and {n_features:,} features, "
            f"max_bin={self.max_bin}, {self.dtype}>"
        )

    def __getitem__(self, key: Any) -> "BinnedMatrix":
        """Choose rows: a slice of step 1 is a view, anything else a copy of their bins.

        Parameters
        ----------
        key : slice, array-like of int or of bool
            Also as scikit-learn writes it, ``key, ...`` or ``key, :``.

        Raises
        ------
        TypeError
            For one row or for columns.
        """
        if isinstance(key, tuple):
            key, *others = key
            columns = others[0] if len(others) == 1 else None
            is_slice = isinstance(columns, slice)  # arrays may be compared with nothing
            if not (columns is ... or (is_slice and columns == slice(None))):
                raise TypeError(
                    f"B[{key!r}, {', '.join(map(repr, others))}]: only the rows of a BinnedMatrix "
                    "can be chosen; choose the columns before bin_features"
                )
        if isinstance(key, slice) and key.step in (None, 1):
            start, stop, _ = key.indices(len(self))  # a view
            stop, span = max(start, stop), self._span
            if span is not None:
                span = Span(span.folder, span.start + start, span.start + stop)
            return BinnedMatrix(self._bins[start:stop], self._binning, self._row_arrays, span)
        if self._row_arrays.are_on_disk:
            numbers = np.arange(len(self), dtype=np.uint32)[key]
            bins = self._row_arrays.take(self._bins, numbers) if numbers.ndim == 1 else numbers
        else:
            bins = self._bins[key]
        if bins.ndim != 2:
            raise TypeError(
                f"B[{key!r}]: the rows of a BinnedMatrix are chosen by a slice, a list of row "
                "numbers or a mask with one bool for each row; write B[3:4] for one row"
            )
        return BinnedMatrix(bins, self._binning, self._row_arrays)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Raise TypeError: numbers of bins are not values and must not be taken for them."""
        raise TypeError(
            f"{self!r} cannot become an array of values, since it has only the numbers of their "
            "bins: pass the raw values where something else than an estimator of sklboost reads "
            "them"
        )

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # through the constructor, which also makes plain views of what joblib maps into memory
        if self._span is None:
            return BinnedMatrix, (self._bins, self._binning)
        (folder, start, stop), scratch = self._span, self._row_arrays.folder
        return _reopen, (folder.path, folder.token, start, stop, self._binning, scratch)


def of_folder(folder: "BinFolder", binning: Binning, scratch: Path | None = None) -> BinnedMatrix:
    """Return all bins of a folder; what fits keep for each row lies in `scratch`, or there, too."""
    span = Span(folder, 0, len(folder.rows))
    return BinnedMatrix(folder.rows, binning, RowArrays(scratch or folder.path), span)


def _reopen(
    path: Path, token: str, start: int, stop: int, binning: Binning, scratch: Path | None
) -> BinnedMatrix:
    """Return the rows that were pickled by the place of their folder."""
    folder, _ = open_folder(path)
    if folder.token != token:
        raise ValueError(
            f"the folder {str(path)!r} was written anew and has other bins than this "
            "copy; open it with open_bins"
        )
    return of_folder(folder, binning, scratch)[start:stop]
