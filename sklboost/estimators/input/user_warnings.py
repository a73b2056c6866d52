"""Warnings that name the line of the user's code, however deep in the package they arise.

A line is warned once of the same thing, also where a search fits and predicts a hundred times, in
threads or in processes of joblib. Processes are told the line with the estimators that they are
sent.
"""

import atexit
import hashlib
import os
import secrets
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

# What lies between the user and a warning: this package, tools that call it, and what threads,
# processes and pickles begin with.
_BETWEEN = {"sklboost", "sklearn", "joblib", "dask", "distributed", "numpy", "pickle"}
_BETWEEN |= {"cloudpickle", "threading", "queue", "multiprocessing", "concurrent", "runpy"}
# Whose calls wait for threads or processes, and what sends these their work.
_WAITING = {"joblib", "multiprocessing", "concurrent", "dask", "distributed"}
_SENDING = {"_feed", "_handle_tasks"}
# Actions of filters that show each warning, or none.
_PLAIN_ACTIONS = {"always", "all", "error", "ignore"}


class Place(NamedTuple):
    """A line of the user's."""

    file: str
    line: int
    module: str
    code: str  # digest of the code around it: in a console, each has a line 1


class Origin(NamedTuple):
    """Where work for another process comes from."""

    place: Place  # the line that waits for it
    # path that the names of folders begin with which stand for warnings given; who makes a folder
    # first, warns
    claims: str


# What this process has warned of.
_given: set[tuple[Any, ...]] = set()
# Where the work of this process comes from, if from another one; the claims, if it sends work.
_origin: Origin | None = None
_claims = ""


def warn_user(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn, naming the nearest line on the stack that is not in one of these packages.

    A line gets one of all warnings that are the same up to a colon, unless a filter says that all
    are shown.
    """
    category = type(message) if isinstance(message, Warning) else category
    text, frame, registry = str(message), _users_frame(sys._getframe(1)), None
    if frame is None and _origin is not None:
        place = _origin.place
    else:
        frame = frame or _waiting_frame() or sys._getframe(1)
        place, registry = _place(frame), frame.f_globals.setdefault("__warningregistry__", {})
    if _action(text, category, place) in _PLAIN_ACTIONS or _is_first(text, category, place):
        warnings.warn_explicit(message, category, *place[:3], registry)


def work_origin() -> Origin | None:
    """Return where work comes from, if this thread is about to send an estimator to a process."""
    global _claims
    if not any(frame.f_code.co_name in _SENDING for frame in _stack(sys._getframe(1))):
        return None
    frame = _waiting_frame()
    if frame is None:
        return _origin
    if not _claims:
        _claims = str(Path(tempfile.gettempdir(), f"sklboost-{secrets.token_hex(8)}-"))
        atexit.register(_remove, Path(_claims))
    return Origin(_place(frame), _claims)


def remember_origin(origin: Origin) -> None:
    """Keep the origin that came with an estimator from another process."""
    global _origin
    _origin = origin


# --- lines


def _stack(frame: FrameType | None, stop: FrameType | None = None) -> Iterator[FrameType]:
    while frame is not stop:
        assert frame is not None
        yield frame
        frame = frame.f_back


def _package(frame: FrameType) -> str:
    name = str(frame.f_globals.get("__name__"))
    if name == "__main__":  # the name after python -m
        name = getattr(frame.f_globals.get("__spec__"), "name", name)
    return name.partition(".")[0]


def _users_frame(frame: FrameType) -> FrameType | None:
    return next((own for own in _stack(frame) if _package(own) not in _BETWEEN), None)


def _waiting_frame() -> FrameType | None:
    """Return a line of the user's that waits for threads or processes, if there is one."""
    for top in sys._current_frames().values():
        frame = _users_frame(top)
        within = {_package(own) for own in _stack(top, frame)}
        if frame is not None and within & _WAITING:
            return frame
    return None


def _place(frame: FrameType) -> Place:
    code = frame.f_code
    digest = hashlib.sha256(repr((code.co_code, code.co_names, code.co_consts)).encode())
    module = str(frame.f_globals.get("__name__"))
    return Place(code.co_filename, frame.f_lineno, module, digest.hexdigest()[:16])


# --- once


def _action(text: str, category: type[Warning], place: Place) -> str:
    """Return what the filters say of a warning, as the module warnings looks it up."""
    for action, message, kind, module, line in warnings.filters:
        if (
            issubclass(category, kind)
            and line in (0, place.line)
            and (message is None or message.match(text))
            and (module is None or module.match(place.module))
        ):
            return action
    return "default"


def _is_first(text: str, category: type[Warning], place: Place) -> bool:
    """Whether neither this process nor one with the same origin has warned of this."""
    key = (*place, category.__name__, text.partition(":")[0])
    if key in _given:
        return False
    _given.add(key)
    claims = _claims if _origin is None else _origin.claims
    if not claims:
        return True
    try:
        os.mkdir(claims + hashlib.sha256(repr(key).encode()).hexdigest()[:16])
    except FileExistsError:
        return False
    except OSError:  # no such folder, or a full one
        pass
    return True


def _remove(claims: Path) -> None:
    for path in claims.parent.glob(f"{claims.name}*"):
        path.rmdir()
