"""Processes wait for one another's kernels, but not for ever, and not where there are no locks."""

import contextlib
import errno
import os
import signal
import threading
import time

import pytest

from sklboost.engine.compiler import caching, locking
from sklboost.engine.compiler.locking import one_at_a_time
from sklboost.engine.compiling import kernel
from tests.conftest import ROOT, finish, start_python

pytestmark = [pytest.mark.timeout(200), pytest.mark.usefixtures("empty_cache")]


def add(a, b):
    return a + b


def n_compiled(*arguments):
    """Call a new kernel; return the result and how often it was compiled for Python."""
    new = kernel(add)
    result = new(*arguments)
    return result, sum(new.entry.stats.cache_misses.values())


@contextlib.contextmanager
def locked(folder):
    """Lock all that is kept in a folder, as another process would; yield the contents."""
    n_compiled(1, 2)
    contents = {path: path.read_bytes() for path in folder.iterdir()}
    descriptors = []
    for path in contents:
        path.unlink()
        _, descriptor = caching.open_lock(path.stem)
        assert locking._take(descriptor)
        descriptors.append(descriptor)

    def release():
        while descriptors:
            os.close(descriptors.pop())

    try:
        yield contents, release
    finally:
        release()


def test_what_another_process_has_made_meanwhile_is_loaded(empty_cache):
    with locked(empty_cache) as (contents, release):

        def finish_the_other():
            for path, content in contents.items():
                path.write_bytes(content)
            release()

        timer = threading.Timer(0.3, finish_the_other)
        timer.start()
        assert n_compiled(1, 2) == (3, 0)
        timer.join()
    assert n_compiled(1, 2.5) == (3.5, 1)


def test_what_another_process_gave_up_is_compiled_here(empty_cache):
    with locked(empty_cache) as (_, release):
        timer = threading.Timer(0.3, release)  # Ctrl-C, an error
        timer.start()
        assert n_compiled(1, 2) == (3, 1)
        timer.join()
    assert all(path.suffix == ".code" for path in empty_cache.iterdir())


def test_a_process_that_does_not_go_on_is_not_waited_for_twice(empty_cache, monkeypatch):
    monkeypatch.setattr(locking, "_patience", 0.3)
    with locked(empty_cache):
        begin = time.monotonic()
        assert n_compiled(1, 2) == (3, 1)  # two files: the kernel and what Python calls
        assert time.monotonic() - begin > 0.3
        assert locking._patience == 0.0
    assert n_compiled(1, 2) == (3, 0)


def test_as_long_as_there_are_new_files_it_goes_on(empty_cache, monkeypatch):
    monkeypatch.setattr(locking, "_patience", 2.0)
    clock, files = [0.0], iter(range(5))

    def sleep(seconds):  # for longer than its patience, but there is a new file each time
        clock[0] += 1.5
        if (number := next(files, None)) is None:
            release()
        else:
            caching.write_code(f"other-{number}", b"")

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", sleep)
    with locked(empty_cache) as (_, release):
        n_compiled(1, 2)
    assert clock[0] > 6.0
    assert locking._patience == 2.0


def test_an_interrupt_ends_the_wait(empty_cache, monkeypatch):
    def interrupt(seconds):
        raise KeyboardInterrupt

    with locked(empty_cache):
        with monkeypatch.context() as patch:
            patch.setattr(time, "sleep", interrupt)
            with pytest.raises(KeyboardInterrupt):
                n_compiled(1, 2)
        assert {path.suffix for path in empty_cache.iterdir()} == {".lock"}  # still the other's
    assert n_compiled(1, 2) == (3, 1)
    assert {path.suffix for path in empty_cache.iterdir()} == {".code"}


def test_a_lock_goes_with_its_process(empty_cache):
    script = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from sklboost.engine.compiler import caching, locking
caching._folders = lambda: [Path({str(empty_cache)!r})]
with locking.one_at_a_time("some"):
    print("locked", flush=True)
    time.sleep(100)
"""
    with start_python(script, empty_cache.parent) as process:
        assert process.stdout.readline() == "locked\n"
        _, descriptor = caching.open_lock("some")
        assert not locking._take(descriptor)
        os.close(descriptor)
        process.kill()
        finish(process, timeout=30)
    begin = time.monotonic()
    with one_at_a_time("some"):
        pass
    assert time.monotonic() - begin < 30
    assert list(empty_cache.iterdir()) == []


def test_where_there_are_no_locks(empty_cache, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert n_compiled(1, 2) == (3, 1)
    assert {path.suffix for path in empty_cache.iterdir()} == {".code"}


def test_where_nothing_can_be_written(empty_cache, monkeypatch):
    def refuse(*arguments):
        raise PermissionError("read-only file system")

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(caching, "_write_at_once", refuse)
    assert n_compiled(1, 2) == (3, 1)
    assert list(empty_cache.iterdir()) == []


def test_what_has_no_name_is_not_waited_for(empty_cache):
    with one_at_a_time(""):
        assert list(empty_cache.iterdir()) == []


# --- forks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_that_is_forked_while_a_thread_waits_holds_no_lock(empty_cache):
    with locked(empty_cache) as (_, release):
        thread = threading.Thread(target=n_compiled, args=(1, 2))
        thread.start()
        time.sleep(0.1)
        threading.Timer(0.3, release).start()
        child = os.fork()  # waits until the thread has compiled
        if child == 0:
            signal.alarm(100)
            os._exit(0 if n_compiled(1, 2) == (3, 0) else 1)
        assert os.waitpid(child, 0)[1] == 0
        thread.join()
