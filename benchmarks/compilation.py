"""What compilation costs: the first fit of a user, of an option, after an edit; kernel by kernel.

`python -m benchmarks.compilation` compiles a plain fit with nothing on disk and prints a table of
its kernels. `--fits` measures others, each after the plain one: what an option adds to it.
`--against FOLDER` measures another checkout of the package in turn with this one. It writes
`compilation.jsonl`.

Each fit is in a process of its own, which runs this file with the checkout to be measured first in
PYTHONPATH. So all that is measured is imported where it is used.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

# --- in the process that is measured --------------------------------------------------------------


def plain(n_classes, model, **settings):
    """Return a function that fits and predicts."""
    import numpy as np

    X, y = make_data(n_classes)
    return lambda: np.asarray(model(n_estimators=3, **settings).fit(X, y).predict(X))


def make_data(n_classes=0, dtype="float64"):
    """Return 1,000 rows with missing values, and a target of numbers or classes."""
    import numpy as np

    random = np.random.default_rng(0)
    X = random.normal(size=(1000, 8))
    signal = X.sum(axis=1) + random.normal(size=1000)
    X[::7, 2] = np.nan
    limits = np.quantile(signal, np.arange(1, n_classes or 1) / (n_classes or 1))
    return X.astype(dtype), np.digitize(signal, limits) if n_classes else signal


def with_data(change, **settings):
    """Return a function that fits a regression on features that `change` makes of plain ones."""
    from sklboost import XGBRegressorLite

    X, y = make_data()
    X = change(X)
    return lambda: XGBRegressorLite(n_estimators=3, **settings).fit(X, y).predict(X)


def categories():
    """A frame with a column of 40 categories."""
    import pandas as pd

    def change(X):
        frame = pd.DataFrame(X).rename(columns=str)
        return frame.assign(level=pd.Categorical((X[:, 0] * 10).astype(int) % 40))

    return with_data(change, enable_categorical=True)


def sparse():
    """A sparse matrix of 60 columns."""
    import numpy as np
    from scipy.sparse import csr_array

    random = np.random.default_rng(1)
    values = random.random((1000, 60))
    return with_data(lambda X: csr_array(np.where(values < 0.05, values, 0.0)))


def vector_leaves():
    """Three targets in trees with vector leaves."""
    import numpy as np

    from sklboost import XGBRegressorLite

    X, y = make_data()
    model = XGBRegressorLite(n_estimators=3, multi_strategy="multi_output_tree")
    return lambda: model.fit(X, np.column_stack([y, y**2, -y])).predict(X)


def shap_values():
    """SHAP values of ten rows."""
    from sklboost import XGBRegressorLite

    X, y = make_data()
    return lambda: XGBRegressorLite(n_estimators=3).fit(X, y).shap_values(X[:10])


def regression(**settings):
    """A regression with one more setting."""
    from sklboost import XGBRegressorLite

    return plain(0, XGBRegressorLite, **settings)


def classes(n_classes):
    """A classification."""
    from sklboost import XGBClassifierLite

    return plain(n_classes, XGBClassifierLite)


def warmup():
    """All that built-in features can ask for."""
    import sklboost

    return sklboost.warmup


FITS = {
    "binary": lambda: classes(2),
    "regression": regression,
    "classes": lambda: classes(3),
    "subsample": lambda: regression(subsample=0.5, random_state=0),
    "gradient_based": lambda: regression(
        subsample=0.3, sampling_method="gradient_based", random_state=0
    ),
    "colsample": lambda: regression(colsample_bynode=0.5, random_state=0),
    "vector_leaves": vector_leaves,
    "absolute_error": lambda: regression(objective="reg:absoluteerror"),
    "categories": categories,
    "sparse": sparse,
    "constraints": lambda: regression(
        monotone_constraints=[1, 0, 0, 0, 0, 0, 0, 0], interaction_constraints=[[0, 1], [2, 3]]
    ),
    "linear_leaves": lambda: regression(linear_tree=True),
    "dart": lambda: regression(booster="dart", rate_drop=0.5, random_state=0),
    "early_stopping": lambda: regression(early_stopping_rounds=2, random_state=0),
    "many_bins": lambda: regression(max_bin=1000),
    "float32": lambda: with_data(lambda X: X.astype("float32")),
    "shap_values": shap_values,
    "warmup": warmup,
}


def record_kernels():
    """Note each compiled function from now on; return a function that gives what was noted."""
    from numba.core import event
    from numba.core.codegen import JITCodeLibrary

    listener, lines = event.RecordingListener(), {}
    event.register("numba:compile", listener)
    add_module = JITCodeLibrary.add_ir_module

    def add_and_count(library, module):
        lines[id(library)] = lines.get(id(library), 0) + str(module).count("\n")
        add_module(library, module)

    JITCodeLibrary.add_ir_module = add_and_count

    def finish():
        found, running = [], []
        for at, recorded in listener.buffer:
            if recorded.is_start:
                running.append([at, 0.0])
                continue
            begin, of_callees = running.pop()
            if running:
                running[-1][1] += at - begin
            details = (recorded.data["dispatcher"], recorded.data["args"])
            found.append(_describe(*details, at - begin - of_callees, lines))
        return found

    return finish


def _describe(dispatcher, arguments, seconds, lines):
    version = dispatcher.overloads.get(tuple(arguments))
    library, function = getattr(version, "library", None), dispatcher.py_func
    facts = {"kernel": f"{function.__module__}.{function.__qualname__}", "seconds": seconds}
    facts["kind"] = type(dispatcher).__name__
    facts["ir_lines"] = lines.get(id(library), 0)
    facts["arguments"], facts["bytes"] = 0, 0
    if library is not None:
        compiled = library.get_function(version.fndesc.llvm_func_name)
        facts["arguments"] = len(list(compiled.arguments))
        machine_code = getattr(library, "_compiled_object", None)
        facts["bytes"] = len(machine_code or b"")
    return facts


def fit_here(fit, *more):
    """Print the seconds of the import, of the first fit and of a second one."""
    begin = time.process_time()
    import sklboost  # noqa: F401

    imported = time.process_time()
    finish = record_kernels() if more else None
    run = FITS[fit]()
    prepared = time.process_time()
    run()
    first = time.process_time()
    run()
    second = time.process_time()
    record = {
        "import_seconds": imported - begin,
        "first_seconds": first - prepared,
        "second_seconds": second - first,
    }
    print(json.dumps(record | ({"kernels": finish()} if finish else {})))


# --- in the process that starts it ----------------------------------------------------------------

PLAIN = ("binary", "regression")


def main(arguments=None):
    """Measure what the command line asks for; write JSON lines and print tables."""
    from benchmarks import runner

    parser = runner.parser("benchmarks.compilation", __doc__)
    add = parser.add_argument
    add("--fits", nargs="+", default=["binary"], choices=(*FITS, "all"))
    add("--against", type=Path, help="folder of another checkout")
    add("--repeats", type=int, default=1)
    add("--rows", type=int, default=25, help="kernels in the table")
    options = parser.parse_args(arguments)
    if "all" in options.fits:
        options.fits = [*PLAIN, *(name for name in FITS if name not in PLAIN)]
    shown = ("fit", "checkout", "first_seconds", "second_seconds", "later_first_seconds")
    records = _records(options, runner)
    runner.write_results("compilation", records, shown, write_table, options)


def _records(options, runner):
    """Yield a record for each fit, checkout and repeat; the checkouts take turns."""
    here = runner.REPOSITORY
    folders = [here] + ([options.against.resolve()] if options.against else [])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        for repeat in range(options.repeats):
            for folder in folders if repeat % 2 == 0 else folders[::-1]:
                cache = Path(temporary) / f"plain-{folders.index(folder)}"
                for fit in options.fits:
                    if fit in PLAIN:
                        shutil.rmtree(cache, ignore_errors=True)
                        own = cache
                    else:  # its own copy, so that no option finds the code of another one
                        if not cache.exists():
                            _run(folder, PLAIN[-1], cache)
                        own = Path(temporary) / "option"
                        shutil.rmtree(own, ignore_errors=True)
                        shutil.copytree(cache, own)
                    with_kernels = ["kernels"] if folder == here and repeat == 0 else []
                    first = _run(folder, fit, own, *with_kernels)
                    if with_kernels:
                        _print_kernels(first.pop("kernels"), options.rows, runner)
                    later = _run(folder, fit, own)
                    later = {f"later_{key}": later[key] for key in later if "seconds" in key}
                    facts = {"fit": fit, "checkout": "this" if folder == here else "other"}
                    yield {**facts, "repeat": repeat, **first, **later}


def _run(folder, fit, cache, *more):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(folder)}
    command = (sys.executable, "-P", __file__, "--fit", fit, *more)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _print_kernels(kernels, n_rows, runner):
    kernels = sorted(kernels, key=lambda kernel: -kernel["seconds"])
    columns = ("kernel", "kind", "seconds", "ir_lines", "arguments", "bytes")
    rows = [list(columns)]
    for kernel in kernels[:n_rows]:
        cells = (kernel[column] for column in columns)
        rows.append([f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in cells])
    print("\n".join(runner.markdown(rows, 2)))
    for kind in sorted({kernel["kind"] for kernel in kernels}):
        own = [kernel for kernel in kernels if kernel["kind"] == kind]
        seconds, lines = sum(k["seconds"] for k in own), sum(k["ir_lines"] for k in own)
        print(f"{kind}: {len(own)} functions, {seconds:.1f} s, {lines} lines of IR")
    print(f"median of one: {median(kernel['seconds'] for kernel in kernels):.3f} s")


def write_table(records):
    """Return the lines of the page `compilation.md`."""
    from benchmarks import runner

    rows = [["fit", "checkout", "first", "second", "in a later process: first", "second"]]
    keys = ("first_seconds", "second_seconds", "later_first_seconds", "later_second_seconds")
    for names, own in runner.grouped(records, "fit", "checkout").items():
        rows.append([*names, *(f"{median(each[key] for each in own):.2f}" for key in keys)])
    return [
        "# Compilation\n",
        "Processor seconds of the first fit in a process and of a second one, medians. `binary` "
        "and `regression` find nothing on disk, the others what `regression` compiles.\n",
        *runner.markdown(rows, 2),
        f"\n{runner.origin(records, 'compilation')}",
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fit"]:
        fit_here(*sys.argv[2:])
    else:
        main()
