"""What ends badly with other thread pools: forks, nested pools, many threads, interrupts.

Whatever could hang runs in a process of its own with a limit on its time.
"""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from numpy.testing import assert_array_equal
from sklearn.model_selection import GridSearchCV

from sklboost import XGBClassifierLite, XGBRegressorLite
from tests.conftest import finish, run_python, start_python

pytestmark = pytest.mark.timeout(240)

N_ROWS = 20_000  # with 12 features enough for a team of threads


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(N_ROWS, 12)).astype(np.float32)
    return X, X[:, 0] * (X[:, 1] > 0) + random.normal(size=N_ROWS)


# What every script begins with. Children that are spawned import it again.
COMMON = """
import multiprocessing, os, signal, sys, threading, time
import joblib
import numpy as np
from sklboost import XGBClassifierLite, XGBRegressorLite

def make_data():
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 12)).astype(np.float32)
    return X, X[:, 0] * (X[:, 1] > 0) + random.normal(size=20_000)

def fit_and_predict(n_jobs=2):
    X, y = make_data()
    return XGBRegressorLite(n_estimators=5, n_jobs=n_jobs).fit(X, y).predict(X)
"""

# --- processes -----------------------------------------------------------------------------------

START_METHOD = """
def in_child(queue, model):
    X, _ = make_data()
    queue.put((model.predict(X), fit_and_predict()))

if __name__ == "__main__":
    X, y = make_data()
    model = XGBRegressorLite(n_estimators=5, n_jobs=2).fit(X, y)
    expected = model.predict(X)
    assert threading.active_count() == 1, "threads of a fit outlive it"
    context = multiprocessing.get_context("{method}")
    queue = context.Queue()
    children = [context.Process(target=in_child, args=(queue, model)) for _ in range(2)]
    for child in children:
        child.start()
    for _ in children:
        for result in queue.get(timeout=120):
            assert np.array_equal(result, expected)
    for child in children:
        child.join(timeout=60)
        assert child.exitcode == 0
    assert np.array_equal(fit_and_predict(), expected)
    print("ended well")
"""


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_child_processes_fit_and_predict_after_a_fit_in_the_parent(method, tmp_path):
    assert run_python(COMMON + START_METHOD.format(method=method), tmp_path) == "ended well"


FORK_WHILE_FITTING = """
X, y = make_data()
expected = fit_and_predict()
stop = threading.Event()

def keep_fitting():
    while not stop.is_set():
        fit_and_predict()

fitting = threading.Thread(target=keep_fitting)
fitting.start()
for _ in range(40):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:  # only this thread lives on here, whatever the other was doing
        os._exit(0 if np.array_equal(fit_and_predict(), expected) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
stop.set()
fitting.join()
print("ended well")
"""

if hasattr(os, "fork"):

    def test_fork_while_another_thread_fits(tmp_path):
        assert run_python(COMMON + FORK_WHILE_FITTING, tmp_path) == "ended well"


NESTED_JOBLIB = """
from joblib import Parallel, delayed

def count_helpers(job):
    # the threads that a fit starts when it may choose: none where joblib uses all processors
    from threading import Thread
    started, start = [], Thread.start

    def counting_start(thread):
        started.append(thread)
        start(thread)

    Thread.start = counting_start
    try:
        return fit_and_predict(n_jobs=None), len(started)
    finally:
        Thread.start = start

if __name__ == "__main__":
    expected = fit_and_predict(n_jobs=1)
    n_processors = joblib.cpu_count()
    results = Parallel(n_jobs=n_processors, backend="loky")(
        delayed(count_helpers)(job) for job in range(n_processors)
    )
    for prediction, n_helpers in results:
        assert np.array_equal(prediction, expected)
        assert n_helpers == 0, f"{n_helpers} threads beside {n_processors} worker processes"
    inside = Parallel(n_jobs=2, backend="loky")(delayed(fit_and_predict)(2) for _ in range(4))
    assert all(np.array_equal(prediction, expected) for prediction in inside)
    print("ended well")
"""


def test_nested_in_joblib_processes(tmp_path):
    assert run_python(COMMON + NESTED_JOBLIB, tmp_path) == "ended well"


# --- threads -------------------------------------------------------------------------------------


def test_nested_in_joblib_threads(data):
    X, y = data

    def fit_and_predict(seed):
        model = XGBRegressorLite(n_estimators=3, n_jobs=2, random_state=seed)
        return model.fit(X, y).predict(X)

    expected = [fit_and_predict(seed) for seed in range(4)]
    found = Parallel(n_jobs=4, backend="threading")(delayed(fit_and_predict)(s) for s in range(4))
    assert_array_equal(found, expected)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_grid_search_with_threads_inside_and_outside(data, n_jobs):
    X, y = data
    grid = {"max_depth": [1, 3]}
    inner = XGBRegressorLite(n_estimators=2, n_jobs=n_jobs)
    alone = GridSearchCV(inner, grid, cv=2).fit(X, y)
    with parallel_config(backend="threading"):
        together = GridSearchCV(inner, grid, cv=2, n_jobs=4).fit(X, y)
    assert_array_equal(
        together.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )


def test_eight_python_threads_fit_and_predict_at_once(data):
    X, y = data
    models = [XGBRegressorLite(n_estimators=4, n_jobs=2, random_state=i) for i in range(6)]
    models += [XGBClassifierLite(n_estimators=4, n_jobs=3) for _ in range(2)]
    labels = np.digitize(y, [-1, 1])
    together = threading.Barrier(8)

    def work(model):
        together.wait(timeout=60)
        target = labels if isinstance(model, XGBClassifierLite) else y
        results = []
        for _ in range(3):
            model.fit(X, target)
            results += [model.predict(X), model.apply(X)]
        return results

    def serial(model):
        target = labels if isinstance(model, XGBClassifierLite) else y
        model.fit(X, target)
        return [model.predict(X), model.apply(X)] * 3

    with ThreadPoolExecutor(8) as pool:
        concurrent = list(pool.map(work, models))
    for found, model in zip(concurrent, models, strict=True):
        for one, other in zip(found, serial(model), strict=True):
            assert_array_equal(one, other)


def test_one_model_predicts_in_eight_threads(data):
    X, y = data
    model = XGBRegressorLite(n_estimators=20, n_jobs=2).fit(X, y)
    expected = model.predict(X)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: model.predict(X), range(40)):
            assert_array_equal(found, expected)


def test_more_threads_than_processors(data):
    X, y = np.tile(data[0], (15, 1)), np.tile(data[1], 15)  # enough for so many
    expected = XGBRegressorLite(n_estimators=3, n_jobs=1).fit(X, y).predict(X)
    many = XGBRegressorLite(n_estimators=3, n_jobs=64)
    assert_array_equal(many.fit(X, y).predict(X), expected)


def test_no_thread_outlives_fit_and_predict(data):
    X, y = data
    before = threading.active_count()
    model = XGBRegressorLite(n_estimators=2, n_jobs=4).fit(X, y)
    model.predict(X)
    unfinished = model.staged_predict(X)
    next(unfinished)
    unfinished.close()
    assert threading.active_count() == before


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_read_only_memory_map(data, dtype, order, tmp_path):
    X, y = data
    path = tmp_path / "X.bin"
    writable = np.memmap(path, dtype=dtype, mode="w+", shape=X.shape, order=order)
    writable[:] = X
    writable.flush()
    mapped = np.memmap(path, dtype=dtype, mode="r", shape=X.shape, order=order)
    model = XGBRegressorLite(n_estimators=3, n_jobs=2).fit(mapped, y)
    expected = XGBRegressorLite(n_estimators=3, n_jobs=2).fit(X, y)
    assert_array_equal(model.predict(mapped), expected.predict(X))
    assert_array_equal(model.apply(mapped), expected.apply(X))
    del writable, mapped, model  # Windows cannot remove a file that is still mapped


def test_read_only_targets_and_weights(data):
    X, y = (array.copy() for array in data)
    weight = np.linspace(0.0, 2.0, N_ROWS)
    expected = XGBRegressorLite(n_estimators=2).fit(X, y, sample_weight=weight).predict(X)
    for array in (X, y, weight):
        array.setflags(write=False)
    model = XGBRegressorLite(n_estimators=2).fit(X, y, sample_weight=weight)
    assert_array_equal(model.predict(X), expected)


# --- Ctrl-C --------------------------------------------------------------------------------------

LONG_FIT = """
expected = fit_and_predict()
X, y = make_data()
model = XGBRegressorLite(n_estimators=1_000_000, n_jobs=2)
"""

FIT_UNTIL_INTERRUPTED = """
print("about to fit")
if "{sender}" == "the process itself":
    threading.Timer({delay}, signal.raise_signal, [signal.SIGINT]).start()
model.fit(X, y)
assert model.stop_reason_ == "interrupted"
assert 0 < model.n_estimators_ < model.n_estimators
assert np.isfinite(model.predict(X)).all()
print("kept some rounds")
"""

# On Windows Ctrl-C reaches every process of the console, the tests among them.
SENDERS = ["the process itself", "another process"][: 2 if os.name == "posix" else 1]


@pytest.mark.parametrize("delay", [0.2, 1.0])
@pytest.mark.parametrize("sender", SENDERS)
def test_an_interrupt_ends_the_process_at_once(sender, delay, tmp_path):
    text = COMMON + LONG_FIT + FIT_UNTIL_INTERRUPTED.format(sender=sender, delay=delay)
    with start_python(text, tmp_path) as process:
        assert process.stdout.readline() == "about to fit\n"
        if sender == "another process":
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
        started = time.monotonic()
        output = finish(process, timeout=60)
    # before the first round it is raised; afterwards the rounds so far are kept
    ending = output.splitlines()[-1]
    assert ending == ("KeyboardInterrupt" if process.returncode else "kept some rounds")
    assert time.monotonic() - started < 15


INTERRUPTED_FROM_INSIDE = """
def threads_end():
    # one that was interrupted at its start needs a moment to see that it is not wanted
    limit = time.monotonic() + 5
    while threading.active_count() > 1 and time.monotonic() < limit:
        time.sleep(0.001)
    return threading.active_count() == 1

rounds_kept = []

def delays():
    # many in the first milliseconds, in which threads are started
    yield from [*np.linspace(0.0, 0.02, 80), *np.linspace(0.02, 0.4, 12)]
    delay = 0.4
    while not rounds_kept and delay < 10:  # others keep the processors busy
        delay *= 2
        yield delay

for delay in delays():
    timer = threading.Timer(delay, signal.raise_signal, [signal.SIGINT])
    model = XGBRegressorLite(n_estimators=1_000_000, n_jobs=2)
    try:
        timer.start()
        model.fit(X, y)
        n_rounds = model.n_estimators_
        rounds_kept.append(n_rounds)
        assert model.stop_reason_ == "interrupted"
        whole = XGBRegressorLite(n_estimators=min(n_rounds, 50)).fit(X, y)
        first_rounds = model.predict(X, iteration_range=(0, min(n_rounds, 50)))
        assert np.array_equal(first_rounds, whole.predict(X)), "not the rounds of a whole fit"
    except KeyboardInterrupt:
        assert not hasattr(model, "model_"), "half a model"
    timer.join()
    assert threads_end(), "threads of a fit outlive its interruption"
assert np.array_equal(fit_and_predict(), expected)
assert rounds_kept, "no interruption fell into the rounds"
print("ended well")
"""


def test_a_process_fits_again_after_interruptions(tmp_path):
    text = COMMON + LONG_FIT + INTERRUPTED_FROM_INSIDE
    assert run_python(text, tmp_path) == "ended well"


STAGES_IN_A_CHILD = """
X, y = make_data()
model = XGBRegressorLite(n_estimators=5, n_jobs=2).fit(X, y)
stages = model.staged_predict(np.tile(X, (20, 1)))  # enough rows for two threads
next(stages)
if hasattr(os, "fork"):
    child = os.fork()
    if child == 0:
        last = list(stages)[-1]
        os._exit(0 if np.array_equal(last[: len(X)], model.predict(X)) else 1)
    assert os.waitpid(child, 0)[1] == 0
assert np.array_equal(list(stages)[-1][: len(X)], model.predict(X))
print("ended well")
"""


def test_stages_begun_before_a_fork_go_on_in_the_child(tmp_path):
    assert run_python(COMMON + STAGES_IN_A_CHILD, tmp_path) == "ended well"
