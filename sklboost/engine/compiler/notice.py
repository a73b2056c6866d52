"""A line that says why nothing seems to happen: kernels are being compiled.

It goes to logging once, and to the terminal or notebook, where it disappears when compilation ends.
How long it will take is told from the kernels that are on disk: those of a first fit are about
equally long to compile, whether this process does it or another one that it waits for.
"""

import contextlib
import logging
import shutil
import sys
from collections.abc import Iterator
from time import monotonic
from typing import Any

from sklboost.engine.compiler.caching import n_kept

_LOGGER = logging.getLogger("sklboost")
# Kernels that a first fit and prediction need, and seconds that one takes on most machines; as many
# as these count for that, before it is known how long they take here.
_KERNELS_OF_A_FIT = 84
_SECONDS_OF_A_KERNEL = 0.15
_FEW_KERNELS = 5
# Seconds of compilation that need no explanation, and seconds after which it begins anew.
_SHORT = 1.0
_PAUSE = 10.0


class Notice:
    """What is said about the compilation of this process; used under the compiler's lock."""

    def __init__(self) -> None:
        self._depth = self._n_silencers = 0
        self._begin = self._end = -_PAUSE
        self._spent = 0.0
        self._n_made = self._n_before = 0
        self._is_logged = False
        self._line = ""

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """Count what is done within as the compilation of one kernel."""
        if self._depth == 0:
            self._begin = monotonic()
            if self._begin - self._end > _PAUSE:
                self._spent, self._is_logged = 0.0, False
                self._n_made, self._n_before = 0, n_kept()
            self.update()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self._n_made += 1
            self.update()
            if self._depth == 0:
                self._end = monotonic()
                self._spent += self._end - self._begin
                self._draw("")

    def update(self) -> None:
        """Show the line, if compilation takes long, with what is left now."""
        spent = self._spent + monotonic() - self._begin
        if spent < _SHORT or self._n_silencers > 0:
            return
        text = self._text(spent)
        if not self._is_logged:
            self._is_logged = True
            _LOGGER.info(text)
        if _LOGGER.isEnabledFor(logging.WARNING):
            self._draw(f"sklboost: {text}")

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Say nothing meanwhile."""
        self._n_silencers += 1
        try:
            yield
        finally:
            self._n_silencers -= 1

    def _text(self, spent: float) -> str:
        n_files = n_kept()
        is_kept = n_files > self._n_before
        n_done = n_files - self._n_before if is_kept else self._n_made
        n_left = _KERNELS_OF_A_FIT - self._n_before - n_done
        # what options need beyond a first fit is not known
        seconds = "some seconds"
        if n_left >= _FEW_KERNELS:
            of_few = _FEW_KERNELS * _SECONDS_OF_A_KERNEL
            seconds = f"about {(spent + of_few) / (n_done + _FEW_KERNELS) * n_left:.0f} s"
        if is_kept or n_done == 0:
            return f"compiling kernels once for this machine, {seconds}; then cached"
        return f"compiling kernels, {seconds}; set NUMBA_CACHE_DIR to keep them"

    def _draw(self, line: str) -> None:
        """Replace the line on the screen, if somebody looks at one."""
        stream, line = sys.stderr, line[: shutil.get_terminal_size().columns - 1]
        if line == self._line or not _is_watched(stream):
            return
        with contextlib.suppress(OSError, ValueError):  # a stream that was closed
            stream.write(f"\r{' ' * len(self._line)}\r{line}")
            stream.flush()
        self._line = line


def _is_watched(stream: Any) -> bool:
    """Whether a stream is a terminal's or a notebook's."""
    try:
        return stream.isatty() or type(stream).__module__.startswith("ipykernel.")
    except (AttributeError, ValueError):  # no stream at all, or a closed one
        return False


NOTICE = Notice()
