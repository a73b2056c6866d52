"""Bins in a folder: how values became bins, as its description says it, and back."""

from pathlib import Path
from typing import Any

from sklboost.data.bin_folder import NewFolder, open_folder, read_array
from sklboost.data.binned_matrix import BinnedMatrix, Binning, of_folder
from sklboost.data.frames.adapter import as_objects
from sklboost.engine.structs import BinCuts
from sklboost.files.encodings import encoding_document, read_encoding, read_vector
from sklboost.files.json_text import write_json
from sklboost.files.sections import Section
from sklboost.files.values import NotStorableError, read_value, value_document


def open_bins(path: Any, scratch: Any = None) -> Any:
    """Open bins that were written to a folder.

    Nothing is read before it is used, and processes that open the same folder share its memory.

    Parameters
    ----------
    path : str or path
        As in ``bin_features(X, path=...)`` or ``bin_parquet(..., bins_path=...)``.
    scratch : str or path, optional
        A folder for what fits keep on disk while they last. None: that of the bins, which must then
        be one that can be written to.

    Returns
    -------
    BinnedMatrix or tuple
        What that function returned. The arrays of ``bin_parquet`` are read-only maps of files.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or its bins were not written to the end.
    ValueError
        If the folder is damaged, or a later version of the package has written it.

    See Also
    --------
    bin_features : Bins arrays and frames.
    bin_parquet : Bins Parquet files.

    Notes
    -----
    The numbers of bins are not checked one by one: open only folders that nobody has changed.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from sklboost import XGBRegressorLite, bin_features, open_bins
    >>> X, y = load_diabetes(return_X_y=True)
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = bin_features(X, path=f"{folder.name}/bins")
    >>> B = open_bins(f"{folder.name}/bins")
    >>> B
    <BinnedMatrix of 442 rows and 10 features, max_bin=256, uint8>
    >>> XGBRegressorLite(n_estimators=5).fit(B, y).predict(X[:3]).shape
    (3,)
    >>> folder.cleanup()
    """
    folder, document = open_folder(path)
    place = f"{Path(path) / 'bins.json'}"
    section = Section(document, place)
    binning = _read_binning(section["binning"], folder.rows.shape[1])
    B = of_folder(folder, binning, None if scratch is None else Path(scratch).absolute())
    others = tuple(read_array(folder.path, part.text()) for part in section["arrays"])
    for name, array in zip(document["arrays"], others, strict=True):
        if len(array) != len(B):
            section["arrays"].fail(f"{name} has {len(array)} rows, and the bins {len(B)}")
    return (B, *others) if others else B


def finish_bins(folder: NewFolder, binning: Binning, arrays: tuple[str, ...] = ()) -> BinnedMatrix:
    """Write the description of a folder whose bins, and further arrays, are written; open it."""
    document = {"binning": _binning_document(binning), "arrays": list(arrays)}
    return of_folder(folder.finish(document, write_json), binning)


def _binning_document(binning: Binning) -> dict[str, Any]:
    try:
        names, encodings = binning.feature_names, binning.encodings
        return {
            "cuts": {name: value_document(array) for name, array in binning.cuts._asdict().items()},
            "has_missing": value_document(binning.has_missing),
            "max_bin": binning.max_bin,
            "feature_names": None if names is None else value_document(names.tolist()),
            "encodings": encodings and [encoding_document(encoding) for encoding in encodings],
            "missing": value_document(float(binning.missing)),
            "digest": binning.digest,
        }
    except NotStorableError as error:
        raise NotStorableError(
            f"a name or category of a feature cannot be written to a folder of bins: {error}; turn "
            "these into text, or leave `path` out"
        ) from None


def _read_binning(section: Section, n_features: int) -> Binning:
    cuts = BinCuts(**{name: read_vector(section["cuts"][name]) for name in BinCuts._fields})
    names, encodings = section["feature_names"], section["encodings"]
    binning = Binning(
        cuts,
        has_missing=read_vector(section["has_missing"]),
        max_bin=section["max_bin"].integer(2, 65_535),
        feature_names=None if names.is_null else as_objects([read_value(name) for name in names]),
        encodings=None if encodings.is_null else tuple(map(read_encoding, encodings)),
        missing=read_value(section["missing"]),
    )
    if binning.digest != section["digest"].text() or len(cuts.n_categories) != n_features:
        section.fail("what is written of the bins does not agree: write them anew")
    return binning
