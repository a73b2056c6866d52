"""Files of results: JSON lines, one record each, and the Markdown table made of them."""

import json
from pathlib import Path

from . import environment


def add_output_options(parser):
    """Add the options that say where results go, and whether anything is measured."""
    add = parser.add_argument
    add("--out", type=Path, default=environment.RESULTS, help="folder of the two files")
    add("--append", action="store_true", help="add to the lines there; the latest of a kind counts")
    add("--table-only", action="store_true", help="write the table again from the lines there")


def write_results(name, records, shown, write_table, options):
    """Write records as they come, then their table; print both.

    Parameters
    ----------
    name : str
        Of the files, without ending.
    records : iterator of dict
        Not begun if only the table is wanted.
    shown : tuple of str
        What is printed of each record.
    write_table : callable
        Given the paths of the lines and of the table.
    options : argparse.Namespace
        With those of :func:`add_output_options`.
    """
    lines, table = options.out / f"{name}.jsonl", options.out / f"{name}.md"
    if not options.table_only:
        options.out.mkdir(parents=True, exist_ok=True)
        with lines.open("a" if options.append else "w", encoding="utf-8") as file:
            for record in records:
                print(json.dumps(record), file=file, flush=True)
                print(*(record[key] for key in shown), flush=True)
    write_table(lines, table)
    print(table.read_text(encoding="utf-8"))
