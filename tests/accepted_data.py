"""Write the tables of docs/reference/accepted_data.md from those that the tests make.

``python -m tests.accepted_data`` writes the page; a test fails where it is out of date.
"""

from collections.abc import Callable
from itertools import groupby
from typing import Any

from sklboost.data.frames import adapter_for
from sklboost.data.frames.adapter import check_kinds, check_names
from tests.conftest import ROOT
from tests.kinds_of_tables import CASES, REFUSALS, Case

PAGE = ROOT / "docs" / "reference" / "accepted_data.md"

READ_AS = {
    "number": "numbers",
    "time": "numbers, counted in the coarsest unit that holds those of the fit",
    "category": "categories",
    "text": 'categories or times with `categorical_features="auto"`; categories, if named in it',
}


def rows_of_cases() -> list[str]:
    """Return a row of the table for each kind of column that a library has."""

    def group(case: Case) -> tuple[str, str, str]:
        return case.library, case.kind, case.missing

    order = {library: i for i, library in enumerate(dict.fromkeys(c.library for c in CASES))}
    kinds = list(READ_AS)
    ordered = sorted(
        CASES, key=lambda c: (order[c.library], kinds.index(c.kind), c.missing not in ("", "NaN"))
    )
    rows = []
    for (library, kind, missing), cases in groupby(ordered, group):
        dtypes = ", ".join(dict.fromkeys(f"`{case.dtype}`" for case in cases))
        rows.append(f"| {library} | {dtypes} | {READ_AS[kind]} | {missing or 'none'} |")
    return rows


def read_all(X: Any) -> None:
    """Read a table of numbers, or raise the error that it is refused with."""
    table = adapter_for(X)
    check_names(table.names or [])
    check_kinds(table, ())
    for i in range(table.n_columns):
        table.column(i).numbers()


def message(make: Callable[[], Any]) -> str:
    """Return the error that a table is refused with."""
    try:
        read_all(make())
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("it was not refused")


def page() -> str:
    """Return the text of the page with both tables as they are now."""
    tables = {
        "tables": [
            "| table | dtype | read as | missing values |",
            "| --- | --- | --- | --- |",
            *rows_of_cases(),
        ],
        "refusals": [
            "| what | the error |",
            "| --- | --- |",
            *(f"| {refusal.what} | `{message(refusal.make)}` |" for refusal in REFUSALS),
        ],
    }
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in tables.items():
        before, rest = text.split(f"<!-- {name} -->\n")
        _, after = rest.split("<!-- end -->", maxsplit=1)
        text = "\n".join([f"{before}<!-- {name} -->", *lines, f"<!-- end -->{after}"])
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
