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
from numpy.testing import assert_array_equal

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


@pytest.mark.slow
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_child_processes_fit_and_predict_after_a_fit_in_the_parent(method, tmp_path):
    assert run_python(COMMON + START_METHOD.format(method=method), tmp_path) == "ended well"


FORK_WHILE_FITTING = """
X, y = make_data()
expected = fit_and_predict()
model = XGBRegressorLite(n_estimators=5, n_jobs=2).fit(X, y)
stages = model.staged_predict(np.tile(X, (20, 1)))  # enough rows for two threads
next(stages)
stop = threading.Event()

def keep_fitting():
    while not stop.is_set():
        fit_and_predict()

fitting = threading.Thread(target=keep_fitting)
fitting.start()
for _ in range({n_forks}):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:  # only this thread lives on here, whatever the other was doing
        last = list(stages)[-1]
        is_same = [np.array_equal(own, expected) for own in (fit_and_predict(), last[: len(X)])]
        os._exit(0 if all(is_same) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
stop.set()
fitting.join()
assert np.array_equal(list(stages)[-1][: len(X)], expected)
print("ended well")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("n_forks", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_fork_while_another_thread_fits_and_stages_are_predicted(n_forks, tmp_path):
    text = COMMON + FORK_WHILE_FITTING.format(n_forks=n_forks)
    assert run_python(text, tmp_path) == "ended well"


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


def test_eight_python_threads_fit_and_predict_at_once(data):
    X, y = data
    models = [XGBRegressorLite(n_estimators=4, n_jobs=2, random_state=i) for i in range(6)]
    models += [XGBClassifierLite(n_estimators=4, n_jobs=n_jobs) for n_jobs in (3, 64)]
    labels = np.digitize(y, [-1, 1])
    together = threading.Barrier(8)

    def work(model):
        together.wait(timeout=60)
        return [results(model) for _ in range(3)]

    def results(model):
        model.fit(X, labels if isinstance(model, XGBClassifierLite) else y)
        return np.column_stack([model.predict(X), model.apply(X)])

    with ThreadPoolExecutor(8) as pool:
        concurrent = list(pool.map(work, models))
    for found, model in zip(concurrent, models, strict=True):
        assert_array_equal(found, [results(model.set_params(n_jobs=1))] * 3)


def test_one_model_predicts_in_eight_threads(data):
    X, y = data
    model = XGBRegressorLite(n_estimators=20, n_jobs=2).fit(X, y)
    expected = model.predict(X)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: model.predict(X), range(40)):
            assert_array_equal(found, expected)


def test_no_thread_outlives_fit_and_predict(data):
    X, y = data
    before = threading.active_count()
    model = XGBRegressorLite(n_estimators=2, n_jobs=4).fit(X, y)
    model.predict(X)
    unfinished = model.staged_predict(X)
    next(unfinished)
    unfinished.close()
    assert threading.active_count() == before


# --- Ctrl-C --------------------------------------------------------------------------------------

LONG_FIT = """
expected = fit_and_predict()
X, y = make_data()
model = XGBRegressorLite(n_estimators=1_000_000, n_jobs=2)
"""

FIT_UNTIL_INTERRUPTED = """
print("about to fit")
model.fit(X, y)
assert model.stop_reason_ == "interrupted"
assert 0 < model.n_estimators_ < model.n_estimators
assert np.isfinite(model.predict(X)).all()
print("kept some rounds")
"""


# On Windows Ctrl-C reaches every process of the console, the tests among them.
@pytest.mark.skipif(os.name != "posix", reason="it would reach the tests, too")
@pytest.mark.parametrize("delay", [0.2, pytest.param(1.0, marks=pytest.mark.slow)])
def test_an_interrupt_of_another_process_ends_the_process_at_once(delay, tmp_path):
    with start_python(COMMON + LONG_FIT + FIT_UNTIL_INTERRUPTED, tmp_path) as process:
        assert process.stdout.readline() == "about to fit\n"
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
    yield from [*np.linspace(0.0, 0.02, {n_early}), *np.linspace(0.02, 0.4, {n_later})]
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


@pytest.mark.parametrize(
    ("n_early", "n_later"), [(8, 2), pytest.param(80, 12, marks=pytest.mark.slow)]
)
def test_a_process_fits_again_after_interruptions(n_early, n_later, tmp_path):
    text = COMMON + LONG_FIT + INTERRUPTED_FROM_INSIDE.format(n_early=n_early, n_later=n_later)
    assert run_python(text, tmp_path) == "ended well"
