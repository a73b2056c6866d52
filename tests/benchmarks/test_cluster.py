"""The table of training on worker processes: the runs of the last settings, medians and ratios."""

import json

from benchmarks import cluster

FACTS = {
    **dict(n_train=100, n_features=28, n_workers=2, settings=dict(n_estimators=3, max_depth=6)),
    **dict(commit="abc", machine={"cpu": "fast"}, versions={"numpy": "2"}, test_loss=0.5),
    **dict(phase_seconds={"boosting": 1.5}, traffic={"scales": (2, 4000)}),
}


def test_table(tmp_path):
    taken = {cluster.ONE: (1.0, 3.0, 2.0), cluster.CLUSTER: (4.0, 2.0, 6.0), cluster.PEER: (8.0,)}
    records = [{"way": cluster.PEER, "seconds": 99.0, **FACTS, "n_train": 5}]  # of another size
    records += [
        {"way": way, "seconds": each, **FACTS} for way, found in taken.items() for each in found
    ]
    lines, table = tmp_path / "lines", tmp_path / "table"
    lines.write_text("\n".join(map(json.dumps, records)))
    cluster.write_table(lines, table)
    text = table.read_text()
    assert "| sklboost, one process | 3 | 2.00 | 1.00 | 3.00 | 0.50 | 0.500000 |" in text
    assert "| sklboost, workers | 3 | 4.00 | 2.00 | 6.00 | 1.00 | 0.500000 |" in text
    assert "| xgboost.dask, workers | 1 | 8.00 | 8.00 | 8.00 | 2.00 | 0.500000 |" in text
    assert "| scales | 2 | 4,000 |" in text
