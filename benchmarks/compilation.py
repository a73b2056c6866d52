"""What compilation costs: the first fit of a user, of an option, after an edit; kernel by kernel.

`python -m benchmarks.run compile` compiles a plain fit with nothing on disk and prints a table of
its kernels. `--fits` measures others, each after the plain one: what an option adds to it.
`--against FOLDER` measures another checkout of the package in turn with this one.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from .environment import REPOSITORY, RESULTS, describe, now
from .tables import markdown_lines

CHILD = Path(__file__).with_name("compilation_child.py")
PLAIN = ("binary", "regression")
# What each adds to a plain fit; the names are those of compilation_child.FITS.
OPTIONS = (
    *("classes", "subsample", "gradient_based", "colsample", "vector_leaves", "absolute_error"),
    *("categories", "sparse", "constraints", "linear_leaves", "dart", "early_stopping"),
    *("many_bins", "float32", "shap_values", "warmup"),
)


def main(arguments=None):
    """Measure what the command line asks for; write JSON lines and print tables."""
    options = _parse(arguments)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    folders = [REPOSITORY] + ([options.against.resolve()] if options.against else [])
    constant = {"kind": "compile", "time": now(), **describe()}
    with options.out.open("a", encoding="utf-8") as file:
        for record in _measure(options, folders):
            kernels = record.pop("kernels", None)
            print(json.dumps({**constant, **record}), file=file, flush=True)
            print(_line(record), flush=True)
            if kernels and record["repeat"] == 0:
                _print_kernels(kernels, options.rows)
    return 0


def _measure(options, folders):
    """Yield a record for each fit, checkout and repeat; the checkouts take turns."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        for repeat in range(options.repeats):
            for folder in folders if repeat % 2 == 0 else folders[::-1]:
                cache = Path(temporary) / f"plain-{folders.index(folder)}"
                for fit in options.fits:
                    is_ours = folder == REPOSITORY
                    if fit in PLAIN:
                        shutil.rmtree(cache, ignore_errors=True)
                        own = cache
                    else:  # its own copy, so that no option finds the code of another one
                        if not cache.exists():
                            _run(folder, PLAIN[-1], cache, False)
                        own = Path(temporary) / "option"
                        shutil.rmtree(own, ignore_errors=True)
                        shutil.copytree(cache, own)
                    facts = {"fit": fit, "checkout": "this" if is_ours else "other"}
                    first = _run(folder, fit, own, is_ours)
                    later = _run(folder, fit, own, False)
                    later = {f"later_{key}": later[key] for key in later if "seconds" in key}
                    yield {**facts, "repeat": repeat, **first, **later}


def _run(folder, fit, cache, with_kernels):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(folder)}
    command = (sys.executable, str(CHILD), fit, *(["kernels"] if with_kernels else []))
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _line(record):
    figures = [f"{key} {value:.2f}" for key, value in record.items() if key.endswith("seconds")]
    return f"{record['fit']:15} {record['checkout']:6} " + "  ".join(figures)


def _print_kernels(kernels, n_rows):
    kernels = sorted(kernels, key=lambda kernel: -kernel["seconds"])
    columns = ("kernel", "kind", "seconds", "ir_lines", "arguments", "bytes")
    rows = [[_cell(kernel[column]) for column in columns] for kernel in kernels[:n_rows]]
    print("\n".join(markdown_lines([list(columns), *rows], is_text=(True, True))))
    for kind in sorted({kernel["kind"] for kernel in kernels}):
        own = [kernel for kernel in kernels if kernel["kind"] == kind]
        seconds, lines = sum(k["seconds"] for k in own), sum(k["ir_lines"] for k in own)
        print(f"{kind}: {len(own)} functions, {seconds:.1f} s, {lines} lines of IR")
    print(f"median of one: {median(kernel['seconds'] for kernel in kernels):.3f} s")


def _cell(value):
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run compile", description=__doc__)
    add = parser.add_argument
    add("--fits", nargs="+", default=["binary"], choices=(*PLAIN, *OPTIONS, "all"))
    add("--against", type=Path, help="folder of another checkout")
    add("--repeats", type=int, default=1)
    add("--rows", type=int, default=25, help="kernels in the table")
    add("--out", type=Path, default=RESULTS / f"compile-{now()[:10]}.jsonl")
    options = parser.parse_args(arguments)
    if "all" in options.fits:
        options.fits = [*PLAIN, *OPTIONS]
    return options
