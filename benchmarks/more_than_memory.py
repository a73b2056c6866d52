"""Binning and training on rows that are larger than the memory they are given (Linux).

Each step is a process of its own, in a control group whose memory, pages of files included, is
limited: values are written to a file in blocks, binned to a folder, and trained on. Then, without a
limit, the same bins are trained on in memory: the model must have the same bits. What a step reads
is not in the system's cache when it begins. The limit of 896 MiB leaves room for the pages of
libraries that other processes were charged with: resident memory stays below 1 GiB.

Run `python -m benchmarks.more_than_memory` as a user who may make control groups; it writes
`benchmarks/results/more_than_memory.jsonl` and `.md`. With the default of 50 million rows it takes
about 15 GB of disk in `--folder`, and half an hour.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from . import environment
from .records import add_output_options, write_results
from .tables import markdown_lines

MIB = 2**20
STEPS = ("make", "bin", "fit", "fit in memory")
CONTROL_GROUPS = Path("/sys/fs/cgroup")


def main(arguments=None):
    """Do all steps, then write the table."""
    options = _parse(arguments)
    shown = ("step", "seconds", "peak_mib", "peak_anonymous_mib", "peak_group_mib")
    write_results("more_than_memory", _records(options), shown, write_table, options)


def _parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--rows", type=int, default=50_000_000)
    add("--features", type=int, default=28)
    add("--trees", type=int, default=10)
    add("--depth", type=int, default=6)
    add("--memory", type=int, default=896, help="MiB that a step may use")
    add("--folder", help="where the data lies meanwhile")
    add_output_options(parser)
    return parser.parse_args(arguments)


def _records(options):
    settings = {name: getattr(options, name) for name in ("rows", "features", "trees", "depth")}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for step in STEPS:
            limit = None if step == "fit in memory" else options.memory
            yield {
                "kind": "more_than_memory",
                "time": environment.now(),
                **environment.describe(),
                **settings,
                "step": step,
                "limit_mib": limit,
                **_in_group(step, folder, settings, limit),
            }


def _in_group(step, folder, settings, limit):
    """Do a step in a process in a control group of its own."""
    group = _make_group(limit)
    job = json.dumps([step, folder, settings, str(group / "cgroup.procs")])
    try:
        done = subprocess.run(
            (sys.executable, "-m", "benchmarks.more_than_memory_child", job),
            cwd=environment.REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        names = ("memory.max_usage_in_bytes", "memory.peak")
        peak = next(int((group / name).read_text()) for name in names if (group / name).exists())
    finally:
        group.rmdir()
    return json.loads(done.stdout.splitlines()[-1]) | {"peak_group_mib": round(peak / MIB, 1)}


def _make_group(limit):
    """Make a control group for memory of so many MiB; None: as much as there is."""
    parent = CONTROL_GROUPS / "memory"  # the first version of control groups, else the second
    name = "memory.limit_in_bytes"
    if not parent.is_dir():
        parent, name = CONTROL_GROUPS, "memory.max"
    group = parent / f"sklboost-{os.getpid()}"
    group.mkdir()
    if limit is not None:
        (group / name).write_text(str(limit * MIB))
    return group


def write_table(lines, table):
    """Write the figures of the JSON lines in the file `lines` to the file `table`."""
    records = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    rows = [["step", "limit", "minutes", "resident", "of it private", "group", "read", "written"]]
    for record in records:
        limit = record["limit_mib"]
        sizes = ("peak_mib", "peak_anonymous_mib", "peak_group_mib", "read_mib", "written_mib")
        rows.append(
            [
                record["step"],
                "none" if limit is None else f"{limit:,}",
                f"{record['seconds'] / 60:.1f}",
                *(f"{record[size]:,.0f}" for size in sizes),
            ]
        )
    last = records[-1]
    digests = {record["digest"] for record in records if "digest" in record}
    same = "Both models have the same bits." if len(digests) == 1 else "The models differ."
    text = [
        "# More than memory\n",
        f"{last['rows']:,} rows, {last['features']} features of float32 in a file, {last['trees']} "
        f"trees of depth {last['depth']}, {last['threads']} threads. Each step is a process in a "
        "control group of so many MiB, in which the cache of its files counts, too. Highest "
        "figures, in MiB: resident memory, its private (anonymous) part, and all that the group "
        "was charged with; what was read from and written to the disk. Pages of libraries that "
        f"other processes use, too, are resident, but may not be charged to the group. {same} "
        "Other work used the machine meanwhile.\n",
        *markdown_lines(rows),
        f"\nCommit {last['commit']}. Written by `python -m benchmarks.more_than_memory` from "
        "`more_than_memory.jsonl`.",
    ]
    table.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
