"""The formula of traffic is what fits send, and the model of time has the parts that it should."""

import json

import pytest

from benchmarks import scale
from benchmarks.scale import Constants
from tests.distributed.conftest import cluster  # noqa: F401, a fixture
from tests.distributed.test_fits import N_ROWS, chunked, make_rows

CONSTANTS = Constants(row=4e-8, search=1e-3, message=4e-5, cell=1e-9, call=1e-2)


@pytest.mark.usefixtures("cluster")
def test_traffic_is_that_of_a_fit():
    from sklboost import XGBRegressorLite

    X, y = make_rows()
    report = XGBRegressorLite(n_estimators=3, max_depth=3).fit(chunked(X), y).fit_report_
    assert report.n_leaves == 3 * 2**3  # full trees
    one = scale.traffic(N_ROWS, 2, report.n_bins, depth=3)
    for what, (messages, size) in one.items():
        assert report.traffic[what] == (3 * 2 * messages, 3 * 2 * size)


def test_seconds():
    few, many = (scale.seconds(10**9, n, 10, CONSTANTS) for n in (10, 1000))
    assert few["rows"] == pytest.approx(100 * many["rows"])
    assert many["messages"] > 100 * few["messages"]
    by_trees = scale.seconds(10**9, 1000, 10, CONSTANTS, by_trees=True)
    assert by_trees["messages"] < many["messages"] / 50
    assert few["client"] == pytest.approx(12.8)
    assert scale.seconds(10**9, 1, 10, CONSTANTS)["messages"] == 0.0
    n = scale.best_number(10**9, CONSTANTS)
    spent = [sum(scale.seconds(10**9, m, 1e9, CONSTANTS).values()) for m in (n // 2, n, 2 * n)]
    assert min(spent) == spent[1]


def test_table(tmp_path):
    check = {"kind": "traffic", "n_workers": 2, "n_rows": 5000}
    check |= {"measured": {"scales": [1, 32.0]}, "full_trees": {"scales": [1, 40.0]}}
    model = {"kind": "model", "n_rows": 10**8, "gbit": 10, "n_workers": 10, "client": 1.25}
    model |= dict.fromkeys(("rows", "adding", "messages", "call", "bytes"), 0.5)
    records = [
        check,
        {"kind": "constants", "commit": "abc", "latency": 1e-5, **CONSTANTS._asdict()},
    ]
    records += [model | {"by_trees": False, "fit": 9.0}, model | {"by_trees": True, "fit": 7.0}]
    records += [{"kind": "best", "n_rows": 10**8, "n_workers": 22}]
    lines, table = tmp_path / "lines", tmp_path / "table"
    lines.write_text("\n".join(map(json.dumps, records)))
    scale.write_table(lines, table)
    text = table.read_text()
    assert "| 2 | scales | 1 | 1 | 32 | 40 |" in text
    assert (
        "| 100,000,000 | 10 | 10 | 500.00 | 500.00 | 500.00 | 500.00 | 500.00 | 1.2 | 9.0 | 7.0 |"
        in text
    )
    assert "22 workers for 100,000,000 rows" in text
