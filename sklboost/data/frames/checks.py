"""Checks of the columns of a table: an error names them, what was found in them, what to do."""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from sklboost.data.frames.adapter import FrameAdapter

_MOST_NAMED = 10


def check_names(names: Iterable[Any]) -> None:
    """Raise ValueError if columns have the same name, or NaN for one; it lists the names."""
    counts = Counter(names)
    if any(isinstance(name, float) and name != name for name in counts):
        raise ValueError("X has a column of the name nan, which is not equal to itself: rename it")
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise ValueError(
            f"X has more than one column of the name {_listed(map(repr, twice))}: give each column "
            "a name of its own"
        )


def check_kinds(adapter: FrameAdapter, categorical: Collection[int]) -> None:
    """Raise an error if there are columns that cannot be features.

    `categorical` are the numbers of columns that the user has declared to be categories.

    Raises
    ------
    ValueError
        For text that is not declared, mixed objects, complex numbers.
    TypeError
        For values of other types.
    """
    columns = [adapter.column(i) for i in range(adapter.n_columns)]
    for kind, message in (("unsupported", _unsupported), ("text", _text), ("mixed", _mixed)):
        refused = [i for i, column in enumerate(columns) if column.kind == kind]
        if kind != "unsupported":
            refused = [i for i in refused if i not in categorical and not columns[i].is_empty()]
        if refused:
            raise message(adapter, refused)


def _text(adapter: FrameAdapter, columns: list[int]) -> Exception:
    return ValueError(
        f"text is not a number: {_found(adapter, columns)}. Name such columns in "
        "categorical_features, give them a category dtype, turn them into numbers, or leave them "
        "out"
    )


def _mixed(adapter: FrameAdapter, columns: list[int]) -> Exception:
    return ValueError(
        f"neither all numbers nor all text: {_found(adapter, columns)}. Give each column values of "
        "one type (and dates a dtype of dates), or name it in categorical_features"
    )


def _unsupported(adapter: FrameAdapter, columns: list[int]) -> Exception:
    found = _found(adapter, columns)
    examples = adapter.column(columns[0]).examples()
    for example in examples:
        if isinstance(example, complex):
            return ValueError(
                f"Complex data not supported: {found}. Pass the real and the imaginary part as "
                "columns of their own"
            )
    words = "a feature is a number, a time or a category"
    for example in examples:
        try:
            float(example)
        except TypeError as error:  # Python's own words
            words = str(error)
        except ValueError:  # bytes
            continue
    return TypeError(
        f"{words}: {found}. Make columns of numbers of what is in them, or leave them out"
    )


def kind_changed(label: str, was: str, now: str, dtype_name: str) -> str:
    """Return the text of an error: a column is of another kind than at fit.

    `was` and `now` are kinds, of times "datetime64" or "timedelta64"; `was` may be "code", of a
    category whose values are not known.
    """
    remedies = {
        "category": "give it a category dtype, or values such as it had at fit",
        "number": "convert it to numbers",
        "code": "give it those numbers, as .cat.codes of pandas does in the order of the training",
        "datetime64": "give it a dtype of dates, as pandas.to_datetime does",
        "timedelta64": "give it a dtype of durations, as pandas.to_timedelta does",
    }
    return f"{label} held {_PLURALS[was]} at fit and holds {_PLURALS[now]} ({dtype_name}) now: " + (
        remedies.get(was, "pass values such as it had at fit")
    )


_PLURALS = {
    "number": "numbers",
    "code": "codes of categories",
    "datetime64": "dates",
    "timedelta64": "durations",
    "category": "categories",
    "text": "text",
    "mixed": "Python objects",
    "unsupported": "values that can be no feature",
}


def _found(adapter: FrameAdapter, columns: list[int]) -> str:
    """List columns with examples of what is in them."""
    return _listed(_with_examples(adapter, i) for i in columns)


def _with_examples(adapter: FrameAdapter, i: int) -> str:
    column, label = adapter.column(i), adapter.label(i)
    examples = column.examples()
    if len(examples) > 1:
        shown = " and ".join(f"{_short(value)} ({type(value).__name__})" for value in examples[:2])
    else:
        shown = "".join(map(_short, examples))
    return f"{label} ({column.dtype_name}, such as {shown})" if shown else label


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _listed(texts: Iterable[str]) -> str:
    shown = list(texts)
    more = len(shown) - _MOST_NAMED
    return ", ".join(shown[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
