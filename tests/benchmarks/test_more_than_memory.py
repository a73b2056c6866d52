"""The table of training within a limit of memory, and what a step tells of itself."""

import json
import sys

import numpy as np
import pytest

from benchmarks import more_than_memory, more_than_memory_child

RECORD = {
    **dict(rows=50, features=28, trees=10, depth=6, commit="abc", step="fit", limit_mib=1024),
    **dict(seconds=90, peak_mib=900.4, peak_anonymous_mib=100, peak_group_mib=1000, read_mib=1),
    **dict(written_mib=2, threads=2, digest="x"),
}


@pytest.mark.parametrize(("digest", "words"), [("x", "the same bits"), ("y", "The models differ")])
def test_table(digest, words, tmp_path):
    in_memory = RECORD | dict(step="fit in memory", limit_mib=None, digest=digest)
    lines, table = tmp_path / "lines", tmp_path / "table"
    lines.write_text("\n".join(map(json.dumps, [RECORD, in_memory])))
    more_than_memory.write_table(lines, table)
    text = table.read_text()
    assert "| fit | 1,024 | 1.5 | 900 | 100 | 1,000 | 1 | 2 |" in text
    assert "| fit in memory | none |" in text
    assert words in text


def test_steps(tmp_path, monkeypatch):
    if not sys.platform.startswith("linux"):
        return
    monkeypatch.setattr(more_than_memory_child, "BLOCK_ROWS", 64)
    settings = dict(rows=200, features=5, trees=2, depth=2)
    more_than_memory_child.make(tmp_path, settings)
    assert np.load(tmp_path / "X.npy").shape == (200, 5)
    with more_than_memory_child.Watch() as watch:
        more_than_memory_child.bin_(tmp_path, settings)
        more_than_memory_child.forget(tmp_path)
        on_disk = more_than_memory_child.fit(tmp_path, settings)
        in_memory = more_than_memory_child.fit(tmp_path, settings, in_memory=True)
    assert on_disk["digest"] == in_memory["digest"]
    assert watch.record()["peak_mib"] > 10
