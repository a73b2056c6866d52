"""bin_parquet that keeps bins, targets and weights in a folder, and that reads lazy frames."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBClassifierLite, bin_features, bin_parquet, open_bins
from sklboost.data import parquet_files
from tests.estimators.test_bin_parquet import assert_same_bins, files, make_table

__all__ = ["files"]  # a fixture


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(parquet_files, "BLOCK_ROWS", 64)


def test_all_is_in_the_folder_and_opens_again(files, tmp_path):
    folder, _ = files
    path = tmp_path / "bins"
    settings = dict(sample_weight="w", categorical_features=["text", "colour"], max_bin=16)
    expected = bin_parquet(folder, "y", **settings)
    written = bin_parquet(folder, "y", bins_path=path, **settings)
    for B, y, weight in (written, open_bins(path)):
        assert_same_bins(B, expected[0])
        assert_array_equal(B.columns, B.bins.T)
        for array, other in ((y, expected[1]), (weight, expected[2])):
            assert_array_equal(array, other)
            assert array.dtype == other.dtype
            assert isinstance(array.base, np.memmap)
    assert sorted(file.name for file in path.iterdir()) == [
        *("bins.json", "columns.npy", "rows.npy", "targets.npy", "weights.npy")
    ]
    with pytest.raises(FileExistsError, match="it has bins, which open_bins"):
        bin_parquet(folder, "y", bins_path=path, **settings)
    (path / "targets.npy").unlink()
    np.save(path / "targets.npy", np.zeros(3))
    with pytest.raises(ValueError, match="targets has 3 rows, and the bins 500"):
        open_bins(path)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 0, 1], np.array([1, 0, 1])),
        ([True, False, True], np.array([True, False, True])),
        ([1.5, None, 2.0], np.array([1.5, np.nan, 2.0])),
        (pa.array([1, None, 2], pa.int8()), np.array([1.0, np.nan, 2.0])),
        (["no", "yes", "no"], np.array(["no", "yes", "no"])),
        (pa.array(["no", "yes", "no"]).dictionary_encode(), np.array(["no", "yes", "no"])),
    ],
)
def test_targets(values, expected, tmp_path):
    data = pa.table({"x": [1.0, 2.0, 3.0], "target": values})
    pq.write_table(data, tmp_path / "file")
    _, y = bin_parquet(tmp_path / "file", "target", bins_path=tmp_path / "bins")
    assert_array_equal(y, expected)
    assert y.dtype == expected.dtype


def test_several_targets(tmp_path):
    data = pa.table({"x": range(200), "a": pa.array(range(200), pa.int32()), "b": [0.5] * 200})
    pq.write_table(data, tmp_path / "file")
    _, y = bin_parquet(tmp_path / "file", ["a", "b"], bins_path=tmp_path / "bins")
    assert_array_equal(y, np.column_stack([np.arange(200), np.full(200, 0.5)]))


def test_labels_that_no_folder_keeps(files, tmp_path):
    with pytest.raises(ValueError, match="the target column 'text' has labels that are missing"):
        bin_parquet(files[0], "text", columns=["double"], bins_path=tmp_path / "bins")
    assert not (tmp_path / "bins").exists()


def test_a_fit_on_all_of_it(files, tmp_path):
    _, data = files
    pq.write_table(data.filter(pa.compute.is_valid(data["text"])), tmp_path / "known")
    settings = dict(target="text", columns=["single", "double", "colour"], sample_weight="w")
    models = []
    for more in ({}, dict(bins_path=tmp_path / "bins")):
        B, y, weight = bin_parquet(tmp_path / "known", **settings, **more)
        models.append(XGBClassifierLite(n_estimators=3).fit(B, y, sample_weight=weight))
    assert models[0].model_.nodes.tobytes() == models[1].model_.nodes.tobytes()
    assert models[1].predict(B).tolist() == models[0].predict(B).tolist()


# --- lazy frames


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_lazy_frame_of_polars(on_disk, tmp_path):
    frame = pl.from_arrow(make_table()).with_columns(
        pl.Series("level", ["low", "high"] * 250, dtype=pl.Enum(["low", "high"])),
        pl.Series("cost", ["1.5", "2.25"] * 250).cast(pl.Decimal(10, 2)),
    )
    frame.write_parquet(tmp_path / "frame.parquet")
    lazy = pl.scan_parquet(tmp_path / "frame.parquet").with_columns(pl.col("double") * 2)
    settings = dict(categorical_features=["text", "colour", "level"])
    more = dict(bins_path=tmp_path / "bins") if on_disk else {}
    B, y = bin_parquet(lazy, "y", **settings, **more)
    assert_same_bins(B, bin_features(lazy.collect().drop("y"), **settings))
    assert_array_equal(y, frame["y"].to_numpy())
    left = {"frame.parquet", "bins"} if on_disk else {"frame.parquet"}
    assert {file.name for file in tmp_path.iterdir()} == left
    assert not on_disk or len(list((tmp_path / "bins").iterdir())) == 4


@pytest.mark.parametrize("n_parts", [1, 3])
def test_a_dask_frame_partition_by_partition(n_parts, tmp_path):
    frame = make_table().drop_columns(["text", "day", "beyond float64"]).to_pandas()
    frame["colour"] = frame["colour"].astype("category")
    computed = []

    def look(part):
        computed.append(len(part))
        return part[part["double"] > -9]

    lazy = dd.from_pandas(frame, npartitions=n_parts, sort=False)
    lazy = lazy.map_partitions(look, meta=frame.iloc[:0])
    computed.clear()
    B, y = bin_parquet(lazy, "y", bins_path=tmp_path / "bins")
    assert_same_bins(B, bin_features(frame.drop(columns="y")))
    assert_array_equal(y, frame["y"])
    assert sum(computed) == len(frame)  # each row once


def test_partitions_that_are_empty_or_differ(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1]})
    frame["town"] = pd.Categorical(["York", "Bath", "York", "Rome"])
    lazy = dd.from_pandas(frame, npartitions=4)
    B, y = bin_parquet(lazy[lazy["x"] > 2], "y")
    assert_array_equal(y, [0, 1])
    assert len(B) == 2
    with pytest.raises(ValueError, match="Found array with 0 sample"):
        bin_parquet(lazy[lazy["x"] > 9], "y")

    def change(part):
        return part.assign(x="text") if part["x"].iloc[0] == 3.0 else part

    with pytest.raises(ValueError, match=r"partition 2 has other .* give each column one dtype"):
        bin_parquet(lazy.map_partitions(change, meta=frame.iloc[:0]), "y")

    def narrow(part):
        return part.astype({"x": np.float32}) if part["x"].iloc[0] == 1.0 else part

    with pytest.raises(ValueError, match=r"partition 1 has other .* 'x' was float and is double"):
        bin_parquet(lazy.map_partitions(narrow, meta=frame.iloc[:0]), "y")


def test_categories_with_an_order_of_a_dask_frame():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1]})
    frame["size"] = pd.Categorical(list("SLML"), ["S", "M", "L"], ordered=True)
    B, _ = bin_parquet(dd.from_pandas(frame, npartitions=2), "y")
    assert_same_bins(B, bin_features(frame.drop(columns="y")))


def test_columns_are_looked_for_before_a_lazy_frame_is_computed():
    def fail(part):
        raise AssertionError

    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [0, 1]})
    lazy = dd.from_pandas(frame, npartitions=1).map_partitions(fail, meta=frame.iloc[:0])
    with pytest.raises(
        ValueError, match=r"no column of the name 'z': its columns are \['x', 'y'\]"
    ):
        bin_parquet(lazy, "z")
    with pytest.raises(ValueError, match="no column of the name 'a', 'b'"):
        bin_parquet(pl.LazyFrame(frame), "y", columns=["a", "x"], sample_weight="b")


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda columns: columns["x"]])
def test_what_is_in_memory_is_for_bin_features(make):
    X = make({"x": np.arange(3.0), "y": np.arange(3.0)})
    with pytest.raises(
        TypeError, match=r"path is a .*: it must be files, .* bin_features\(X\) bins"
    ):
        bin_parquet(X, "y")
