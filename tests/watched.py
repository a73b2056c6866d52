"""Numbered cases, checked in a process that is watched: there one may crash, or have no end."""

import faulthandler
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

SECONDS = 60.0  # of the processor that a case may take, to compile what it needs, too
_SILENCE = 300.0  # seconds between two lines: compiling takes long where others compute, too
MEMORY = 6 * 2**30  # bytes that a process may ask for


def work(outcome_of: Callable[[int], str], numbers: Iterable[int]) -> None:
    """Print the number of each case before it, and what comes of it after it, in one line.

    An outcome that begins with FAILED is an exception, or a case that took long.
    """
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    faulthandler.enable()
    for number in numbers:
        print(f"case {number}", flush=True)
        start = time.process_time()  # whatever else the machine does
        try:
            outcome = outcome_of(number)
        except BaseException as error:
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            outcome = f"FAILED {kind}{error}".replace("\n", " ")[:500]
        if time.process_time() - start > SECONDS and not outcome.startswith("FAILED"):
            outcome = f"FAILED takes {time.process_time() - start:.0f} s"
        print(outcome, flush=True)


def watch(
    module: str, arguments: Sequence[str], numbers: range, *, interpreted: bool = False
) -> Iterator[tuple[int, str]]:
    """Yield number and outcome of each case; a process that dies or hangs is replaced.

    Parameters
    ----------
    module : str
        ``python -m module *arguments --work START STOP`` calls :func:`work` on ``[START, STOP)``.
    arguments : sequence of str
    numbers : range
    interpreted : bool
        Whether kernels are not compiled.
    """
    environment = os.environ | ({"NUMBA_DISABLE_JIT": "1"} if interpreted else {})
    start = numbers.start
    while start < numbers.stop:
        command = [sys.executable, "-m", module, *arguments]
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(
                [*command, "--work", str(start), str(numbers.stop)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            ) as process,
        ):
            current = None
            try:
                for line in _lines(process):
                    if line.startswith("case "):
                        current = int(line[5:])
                    elif current is not None:
                        yield current, line
                        start, current = current + 1, None
            except GeneratorExit:  # whoever reads has seen enough
                process.kill()
                raise
            code = process.wait()
            if code != 0 or current is not None:
                errors.seek(0)
                told = errors.read()[-2000:]
                if current is None:
                    raise RuntimeError(f"the process ended with {code}: {told}")
                yield current, f"FAILED the process ended with {code}: {told}"
                start = current + 1


def _lines(process: Any) -> Iterator[str]:
    """Yield the lines that a process prints; it is killed if the next one takes too long."""
    timer = threading.Timer(_SILENCE, process.kill)
    timer.start()
    try:
        for line in process.stdout:
            timer.cancel()
            timer = threading.Timer(_SILENCE, process.kill)
            timer.start()
            yield line.rstrip("\n")
    finally:
        timer.cancel()
