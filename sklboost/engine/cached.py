"""Properties that are computed once."""

import functools
from typing import Any, TypeVar

_T = TypeVar("_T")


class cached_property(functools.cached_property[_T]):  # noqa: N801, as in functools
    """Computes once and keeps the result, as ``functools.cached_property`` since Python 3.12 does.

    That of Python 3.11 holds a lock of the class while it computes. A child that is forked
    meanwhile finds it taken, by a thread that it has not, and waits for ever. Without a lock, two
    threads may both compute: the same.
    """

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> _T:  # type: ignore[override]
        """Return the kept result, computed if there is none."""
        if instance is None:
            return self  # type: ignore[return-value]
        assert self.attrname is not None
        kept = vars(instance)
        if self.attrname not in kept:
            kept[self.attrname] = self.func(instance)
        result: _T = kept[self.attrname]
        return result
