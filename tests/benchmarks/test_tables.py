"""The report's tables: medians, ratios, and which records belong to one row."""

import pandas as pd

from benchmarks import aims, peers, tables

SETTINGS = peers.Settings()._asdict()


def record(library, seconds, n_threads=2, **changed):
    return dict(
        workload="binary-1000x28",
        library=library,
        threads=n_threads,
        fit_seconds=seconds,
        test_loss=seconds / 10,
        settings=SETTINGS | changed,
    )


def cells(table):
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]


def test_medians_and_their_ratio():
    records = [record("xgboost", seconds) for seconds in (6.0, 7.0, 20.0)]
    records += [record("sklboost", seconds) for seconds in (1.0, 2.0, 9.0)]
    records += [record("lightgbm_quantized", 3.0)]
    table = tables.compare(pd.DataFrame(records), "fit_seconds", lambda name: aims.fit_ratios(3.0))
    head, _, row = cells(table)
    values = dict(zip(head, row, strict=True))
    assert head[:4] == ["workload", "threads", "sklboost", "xgboost"]
    assert values["xgboost"] == "7 (50 %)"  # quartiles 6.5 and 13.5
    assert values["lightgbm_quantized"] == "3"
    assert values["fastest / ours"] == "3.50 ≥ 3.0"
    assert values["quantised / ours"] == "**1.50 < 2.5**"


def test_a_row_is_a_workload_its_settings_and_threads():
    records = [record("sklboost", 1.0), record("sklboost", 2.0, n_threads=1)]
    records += [record("sklboost", 3.0, max_depth=10)]
    table = tables.compare(pd.DataFrame(records), "fit_seconds", lambda name: aims.MEMORY)
    assert cells(table)[2:] == [
        ["binary-1000x28", "2", "1"],
        ["binary-1000x28", "1", "2"],
        ["binary-1000x28 (max_depth 10)", "2", "3"],
    ]


def test_meetings_are_told_if_all_were_measured():
    told = tables.meetings(pd.DataFrame({"meeting_ns": [100.0, 200.0, 300.0]}))
    assert told.startswith("A meeting of two threads took 200 ns (median), 120 to")
    assert tables.meetings(pd.DataFrame({"meeting_ns": [100.0, None]})) == ""
    assert tables.meetings(pd.DataFrame({"seconds": [1.0]})) == ""
