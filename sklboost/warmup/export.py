"""``python -m sklboost.warmup.export FOLDER``: the machine code of a wheel, made when it is built.

What :func:`sklboost.warmup` compiles, for each level of processors: a shared library for each in
the folder, and ``index.json``. With ``PYTHONHASHSEED=0`` the files are the same bytes each time.
"""

import argparse
import sys
from pathlib import Path

from sklboost.engine.backend import BACKEND, Backend
from sklboost.warmup import warmup


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m sklboost.warmup.export",
        description="Compile all of sklboost for every level of processors, for a wheel. Takes "
        "two or three minutes.",
    )
    parser.add_argument("folder", type=Path, help="where the shared libraries are written")
    folder = parser.parse_args(arguments).folder
    if BACKEND is not Backend.COMPILER:
        print(f"kernels must be compiled here, and are {BACKEND.value}", file=sys.stderr)
        return 1
    from sklboost.engine.compiler.exporting import export

    folder.mkdir(parents=True, exist_ok=True)
    export(folder, lambda: warmup(verbose=True))
    for path in sorted(folder.iterdir()):
        print(f"{path}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
