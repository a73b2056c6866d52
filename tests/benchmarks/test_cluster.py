"""The formula of traffic is what fits send, and the model of time has the parts that it should."""

import pytest

from benchmarks import cluster as benchmark
from benchmarks import runner
from benchmarks.cluster import Constants
from tests.distributed.conftest import cluster  # noqa: F401, a fixture
from tests.distributed.test_fits import N_ROWS, chunked, make_rows

CONSTANTS = Constants(row=4e-8, search=1e-3, message=4e-5, cell=1e-9, call=1e-2)


@pytest.mark.usefixtures("cluster")
def test_traffic_is_that_of_a_fit():
    from sklboost import XGBRegressorLite

    X, y = make_rows()
    report = XGBRegressorLite(n_estimators=3, max_depth=3).fit(chunked(X), y).fit_report_
    assert report.n_leaves == 3 * 2**3  # full trees
    one = benchmark.traffic(N_ROWS, 2, report.n_bins, depth=3)
    for what, (messages, size) in one.items():
        assert report.traffic[what] == (3 * 2 * messages, 3 * 2 * size)


@pytest.mark.slow  # workers in processes of their own
def test_each_loss_is_measured_in_each_way(tmp_path):
    size = ["--rows", "9000", "--features", "4", "--trees", "2", "--repeats", "1"]
    benchmark.main([*size, "--out", str(tmp_path)])
    of_fit = {(r["task"], r["way"]): r for r in runner.read(tmp_path / "cluster.jsonl")}
    assert len(of_fit) == 4 * 3
    page = (tmp_path / "cluster.md").read_text("utf-8")
    for loss, title in benchmark.LOSSES.items():
        ways = (benchmark.ONE, benchmark.CLUSTER, benchmark.PEER)
        one, workers, peer = (of_fit[loss, way]["test_loss"] for way in ways)
        assert workers == one
        assert peer == pytest.approx(one, rel=0.01)
        assert f"| {title} | {benchmark.PEER} | 1 |" in page
        assert of_fit[loss, benchmark.CLUSTER]["traffic"]["histograms"][1] > 0


def test_seconds():
    few, many = (benchmark.seconds(10**9, n, 10, CONSTANTS) for n in (10, 1000))
    assert few["rows"] == pytest.approx(100 * many["rows"])
    assert many["messages"] == pytest.approx(10 / 4 * few["messages"])
    assert benchmark.seconds(10**9, 1, 10, CONSTANTS)["messages"] == 0.0
    n = benchmark.best_number(10**9, CONSTANTS)
    spent = [sum(benchmark.seconds(10**9, m, 1e9, CONSTANTS).values()) for m in (n // 2, n, 2 * n)]
    assert min(spent) == spent[1]
