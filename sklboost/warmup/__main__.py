"""``python -m sklboost.warmup``: compile everything ahead of time."""

import argparse
import sys

from sklboost.engine.backend import BACKEND, Backend
from sklboost.warmup import warmup


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status, 1 if what was compiled could not be kept."""
    parser = argparse.ArgumentParser(
        prog="python -m sklboost.warmup",
        description="Compile all of sklboost now, so that no later fit or prediction has to wait "
        "for it. Takes about 100 seconds the first time, and two where it was done before.",
        epilog="The compiled code is kept in the folder of the package; in ~/.cache/sklboost if "
        "that cannot be written; or in NUMBA_CACHE_DIR, if that environment variable is set.",
    )
    parser.parse_args(arguments)
    seconds = warmup(verbose=True)
    if BACKEND is not Backend.COMPILER:
        return 0
    from sklboost.engine.compiler.caching import filled_folders  # needs numba

    folders = filled_folders()
    if not folders:
        print(
            "nothing could be kept: set NUMBA_CACHE_DIR to a folder that can be written",
            file=sys.stderr,
        )
        return 1
    print(f"ready in {seconds:.1f} s, kept in {' and '.join(map(str, folders))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
