"""Versions and settings of the installation, for bug reports."""

import platform
import sys
from importlib import metadata

import joblib

from sklboost.engine import backend
from sklboost.version import __version__

_REQUIRED = ("numpy", "scipy", "scikit-learn", "joblib")
_OPTIONAL = (
    *("numba", "llvmlite", "dask", "distributed", "matplotlib", "narwhals", "pandas", "polars"),
    *("pyarrow", "shap"),
)


def show_versions() -> None:
    """Print versions of Python and of libraries, the platform, and which code runs the kernels.

    For bug reports.

    See Also
    --------
    warmup : Compile everything ahead of time, where the code is compiled on this machine.

    Notes
    -----
    The line ``code`` says whether the kernels are machine code that came with the package, and for
    which level of processors; are compiled on this machine by numba; or are interpreted, which is
    hundreds of times slower.

    Examples
    --------
    >>> import sklboost
    >>> sklboost.show_versions()  # doctest: +ELLIPSIS
    sklboost      ...
    code          ...
    """
    lines = {
        "sklboost": __version__,
        "code": backend.description(),
        "python": sys.version.replace("\n", " "),
        "platform": platform.platform(),
        "processors": f"{platform.machine()}, {joblib.cpu_count()} for this process",
    }
    lines |= {name: _installed(name) or "not installed" for name in _REQUIRED}
    lines |= {name: version for name in _OPTIONAL if (version := _installed(name))}
    for name, text in lines.items():
        print(f"{name:<13} {text}")


def _installed(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
