"""How names of objectives and metrics are found, and what is said about unknown ones."""

import difflib
from collections.abc import Collection, Mapping
from typing import Protocol, TypeVar

TASK_WORDS = {
    "regression": "regression",
    "binary": "two classes",
    "multiclass": "more than two classes",
    "multilabel": "several labels",
}
_KINDS = {"objective": "an objective", "eval_metric": "a metric"}


class Named(Protocol):
    """What can be asked for by a name."""

    @property
    def title(self) -> str:
        """The name that lists show."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names."""

    def has_name(self, name: str) -> bool:
        """Whether it can be asked for by this name."""


NamedType = TypeVar("NamedType", bound=Named)


def find_named(
    argument: str,
    known: Mapping[str, tuple[NamedType, ...]],
    name: str,
    task: str,
    other_names: Collection[str] = (),
) -> NamedType:
    """Return what has this name among what is known for a task.

    `argument` is ``"objective"`` or ``"eval_metric"``; `other_names` could have been meant, too.

    Raises
    ------
    ValueError
        If the task has nothing of this name; the text lists what it has, and names the tasks that
        have it or the nearest name.
    """
    found = named(known[task], name)
    if found is not None:
        return found
    titles = [entry.title for entry in known[task]]
    tasks = [words for other, words in TASK_WORDS.items() if named(known[other], name)]
    if tasks:
        raise ValueError(
            f"{argument}={name!r} is {_KINDS[argument]} for {' and '.join(tasks)}, not for "
            f"{TASK_WORDS[task]}: choose one of {', '.join(titles)}"
        )
    aliases = [alias for entry in known[task] for alias in entry.aliases]
    candidates = [*titles, *aliases, *other_names]
    nearest = difflib.get_close_matches(str(name), candidates, n=1, cutoff=0.0)[0]
    raise ValueError(
        f"{argument}={name!r} is not known; did you mean {nearest!r}? The "
        f"{argument.removeprefix('eval_')}s for {TASK_WORDS[task]} are {', '.join(titles)}"
    )


def named(entries: tuple[NamedType, ...], name: str) -> NamedType | None:
    """Return the first entry that has a name, None if none has."""
    return next((entry for entry in entries if entry.has_name(name)), None)
