"""The table of sparse matrices: medians, and which way round the ratios are."""

import json

from benchmarks import peers
from benchmarks.sparse_table import write_table

FIGURES = {  # seconds, MiB and loss of two repeats
    "sklboost": [(1.0, 10.0, 0.5), (3.0, 30.0, 0.6)],
    "xgboost": [(4.0, 80.0, 0.4), (4.0, 80.0, 0.5)],
    "lightgbm": [(6.0, 40.0, 0.8), (6.0, 40.0, 0.9)],
}


def records():
    for library, repeats in FIGURES.items():
        for repeat, (seconds, mebibytes, loss) in enumerate(repeats):
            yield dict(
                dataset="wide",
                n_train=1000,
                n_features=2000,
                n_entries=20_000,
                repeat=repeat,
                library=library,
                threads=1,
                fit_cpu_seconds=seconds,
                peak_mib=mebibytes,
                test_loss=loss,
                settings=peers.Settings()._asdict(),
                commit="abc",
                versions={"numpy": "2"},
            )


def test_one_row_of_medians_and_ratios(tmp_path):
    lines, table = tmp_path / "lines", tmp_path / "table"
    lines.write_text("".join(json.dumps(record) + "\n" for record in records()))
    write_table(lines, table)
    row = [cell.strip() for cell in table.read_text().splitlines()[-1].split("|")[1:-1]]
    assert row[:3] == ["wide", "1,000 x 2,000", "20.0"]
    assert row[3:7] == ["2", "4", "6", "2.0"]  # XGBoost is the faster rival,
    assert row[7:11] == ["20", "80", "40", "2.0"]  # and LightGBM the smaller one
    assert row[11:] == ["0.55", "0.45", "0.85", "1.2222", "0.0250"]
