"""How names of objectives and metrics are found, and what is said about unknown ones."""

import difflib
import re
from collections.abc import Collection, Mapping
from typing import Protocol, TypeVar

TASK_WORDS = {
    "regression": "regression",
    "binary": "two classes",
    "multiclass": "more than two classes",
    "multilabel": "several labels",
    "ranking": "rankings",
    "survival": "survival times",
}
_KINDS = {"objective": "an objective", "eval_metric": "a metric"}
# What other libraries have losses and metrics for, by the first word of their names.
_ELSEWHERE = {
    "survival times with other distributions": "survivalaft",
}
_RANKING = (
    "rank lambdarank lambdamart ndcg dcg map pre mrr xendcg yetirank yetirankpairwise pairlogit "
    "pairlogitpairwise queryrmse querysoftmax querycrossentropy stochasticrank"
)
# Names of other libraries that are near to none of ours.
_OTHER_NAMES = {
    "auc_roc": "auc",
    "deviance": "log_loss",
    "entropy": "log_loss",
    "f1_score": "f1",
    "friedman_mse": "reg:squarederror",
    "gini": "log_loss",
    "hinge_loss": "hinge",
    "huber_loss": "huber",
    "lad": "reg:absoluteerror",
    "logistic": "binary:logistic",
    "ls": "reg:squarederror",
    "mean_absolute_error": "reg:absoluteerror",
    "mean_squared_error": "reg:squarederror",
    "rmse": "reg:squarederror",
    "softmax": "multi:softprob",
}
# Similarity, from 0 to 1, below which a name is not the misspelling of another.
_NEAR = 0.7


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
        have it, or the nearest name if one is near.
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
    raise ValueError(
        f"{argument}={name!r} {_remedy(str(name), known[task], other_names)} The "
        f"{argument.removeprefix('eval_')}s for {TASK_WORDS[task]} are {', '.join(titles)}"
    )


def _remedy(name: str, entries: Collection[Named], other_names: Collection[str]) -> str:
    """Say what an unknown name means elsewhere, or what it may be a misspelling of."""
    first_word = re.split("[:@_-]", name.lower())[0]
    if {name.lower(), first_word} & set(_RANKING.split()):
        return "is for rankings, and no name of XGBRankerLite's."
    for task, words in _ELSEWHERE.items():
        if {name.lower(), first_word} & set(words.split()):
            return f"is for {task}, which sklboost does not have."
    aliases = (alias for entry in entries for alias in entry.aliases)
    candidates = {each.lower(): each for each in (*other_names, *aliases)}
    candidates |= {entry.title.lower(): entry.title for entry in entries}
    meant = {other: own for other, own in _OTHER_NAMES.items() if own in candidates.values()}
    candidates = {**meant, **candidates}
    near = difflib.get_close_matches(name.lower(), candidates, n=1, cutoff=_NEAR)
    return f"is not known; did you mean {candidates[near[0]]!r}?" if near else "is not known."


def named(entries: tuple[NamedType, ...], name: str) -> NamedType | None:
    """Return the first entry that has a name, None if none has."""
    return next((entry for entry in entries if entry.has_name(name)), None)
