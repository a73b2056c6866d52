"""The table of held-out loss with categories: who is compared with whom."""

import json

from benchmarks import peers
from benchmarks.category_table import write_table

LOSSES = {  # of two splits, with categories and with codes
    "sklboost": ([1.0, 1.1], [2.0, 2.2]),
    "xgboost": ([2.0, 2.2], [2.0, 2.2]),
    "lightgbm": ([1.25, 1.375], [2.5, 2.75]),
    "hist_gb": (None, [0.1, 0.1]),  # it takes codes only
    "catboost": ([0.2, 0.2], [0.4, 0.4]),
}


def records():
    for library, ways in LOSSES.items():
        for way, losses in zip(("native", "codes"), ways, strict=True):
            for seed, loss in enumerate(losses or []):
                yield dict(
                    dataset="adult",
                    n_train=1000,
                    n_features=14,
                    seed=seed,
                    library=library,
                    way=way,
                    threads=1,
                    fit_cpu_seconds=loss,
                    test_loss=loss,
                    settings=peers.Settings()._asdict(),
                    commit="abc",
                    versions={"numpy": "2"},
                )


def test_ours_is_compared_with_the_better_rival_and_with_codes(tmp_path):
    lines, table = tmp_path / "lines", tmp_path / "table"
    lines.write_text("".join(json.dumps(record) + "\n" for record in records()))
    write_table(lines, table)
    head, _, native, codes_head, _, codes = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.read_text().splitlines()
        if line.startswith("|")
    ]
    native, codes = (
        dict(zip(names, row, strict=True)) for names, row in ((head, native), (codes_head, codes))
    )
    assert native["splits"] == "2"
    assert native["hist_gb"] == ""
    # LightGBM's mean is the lower one; CatBoost is shown and not compared with
    assert (native["ours / best"], native["± s.e."]) == ("0.8000", "0.0000")
    assert native["fit, best / ours"] == "1.2"  # 1.3125 / 1.05
    assert codes["hist_gb"] == "0.1"
    assert codes["ours, categories / codes"] == codes["theirs"] == "0.5000"
