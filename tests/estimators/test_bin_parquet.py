"""bin_parquet: the bins of the same rows in memory; in a folder, of lazy frames; errors."""

import sys
import tracemalloc

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from sklboost import bin_features, bin_parquet, open_bins
from sklboost.data import table
from sklboost.estimators import progress

N_ROWS = 500


def make_table(n_rows=N_ROWS):
    """Columns of all kinds, with missing values in all of them."""
    random = np.random.default_rng(0)
    absent = random.random(n_rows) < 0.1
    moments = np.datetime64("2020-01-01") + random.integers(0, 900, n_rows)
    colours = pa.array(random.choice(["red", "green", "blue"], n_rows), mask=absent[::-1])
    large = random.integers(0, 20, n_rows) + 2**60
    signal = random.normal(size=n_rows)
    return pa.table(
        {
            "single": pa.array(signal.astype(np.float32), mask=absent),
            "y": signal + (large - 2**60) / 5.0 + random.normal(size=n_rows),
            "double": random.normal(size=n_rows),
            "short": pa.array(random.integers(-9, 9, n_rows).astype(np.int8), mask=absent[::-1]),
            "long": random.integers(0, 2**40, n_rows),
            "beyond float64": pa.array(large, mask=absent),
            "yes": random.random(n_rows) < 0.5,
            "when": moments.astype("datetime64[us]"),
            "day": pa.array(moments.astype("datetime64[D]")),
            "colour": colours.dictionary_encode(),
            "text": colours,
            "w": random.choice([0.5, 1.0, 2.0], n_rows),
        }
    )


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr("sklboost.data.parquet_files.BLOCK_VALUES", 400)
    monkeypatch.setattr("sklboost.data.parquet_files.BLOCK_ROWS", 64)


@pytest.fixture
def files(tmp_path, small_batches):
    """A folder of three files with several row groups each, read in batches of some 40 rows."""
    data = make_table()
    for number, (start, stop) in enumerate([(0, 120), (120, 121), (121, N_ROWS)]):
        pq.write_table(data[start:stop], tmp_path / f"{number}.parquet", row_group_size=70)
    return tmp_path, data


def assert_same_bins(B, expected):
    assert_array_equal(B.bins, expected.bins)
    assert B.dtype == expected.dtype
    assert B.binning.digest == expected.binning.digest


SELECTIONS = {
    "numbers": ["single", "double", "short", "yes"],
    "float32": ["single"],
    "integers": ["long", "beyond float64"],
    "times": ["when", "day"],
    "categories": ["colour", "text"],
    "all": ["text", "colour", "day", "when", "yes", "beyond float64", "long", "short", "single"],
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_the_bins_of_the_same_rows_in_memory(name, files):
    (folder, data), columns = files, SELECTIONS[name]
    max_bin = 7 if name in ("integers", "times", "all") else 256
    declared = [name for name in columns if name in ("colour", "text")]
    settings = dict(max_bin=max_bin, categorical_features=declared or "from_dtype")
    B, y = bin_parquet(folder, "y", columns=columns, **settings)
    assert_same_bins(B, bin_features(data.select(columns), **settings))
    assert_array_equal(y, data["y"].to_numpy())
    assert_array_equal(B.feature_names_in_, columns)


@pytest.mark.parametrize("name", ["w", "none of weight 0"])
def test_weights(name, files, tmp_path):
    _, data = files
    weight = data["w"].to_numpy().copy()
    if name != "w":
        weight[::3] = 0.0  # no say in the cuts
    data = data.drop_columns(["w", "text"]).append_column(name, pa.array(weight))
    pq.write_table(data, tmp_path / "weights", row_group_size=100)
    B, _, found = bin_parquet(tmp_path / "weights", "y", max_bin=16, sample_weight=name)
    features = data.drop_columns(["y", name])
    assert_same_bins(B, bin_features(features, max_bin=16, sample_weight=weight))
    assert_array_equal(found, weight)


def test_a_sample_decides_on_cuts_and_rare_values_are_found(tmp_path):
    random = np.random.default_rng(0)
    n_rows = 210_000
    few = random.integers(0, 3, n_rows)
    few[100] = 7
    data = pa.table({"many": random.random(n_rows, np.float32), "few": few, "y": few * 1.0})
    pq.write_table(data, tmp_path / "many.parquet", row_group_size=50_000)
    B, _ = bin_parquet(tmp_path, "y")
    assert_same_bins(B, bin_features(data.drop_columns("y")))
    assert B.bins[100, 1] == 3


def test_a_further_missing_value(files):
    folder, data = files
    names = ["short", "double", "long"]
    B, _ = bin_parquet(folder, "y", columns=names, missing=-3)
    assert_same_bins(B, bin_features(data.select(names), missing=-3))


def test_features_are_all_other_columns_but_the_index_of_pandas(tmp_path):
    frame = pd.DataFrame({"b": [1.0, 2.0], "y": [0, 1], "a": [3, 4]}, index=["r", "s"])
    frame.to_parquet(tmp_path / "frame.parquet")
    B, _ = bin_parquet(tmp_path / "frame.parquet", "y")
    assert B.feature_names_in_.tolist() == ["b", "a"]


def test_several_paths(files):
    folder, data = files
    order = [folder / "1.parquet", str(folder / "0.parquet")]
    _, y = bin_parquet(order, "y", columns=["single"])
    assert_array_equal(y, np.r_[data["y"].to_numpy()[120:121], data["y"].to_numpy()[:120]])


@pytest.mark.parametrize(
    "types",
    [
        (pa.string(), pa.large_string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.large_string())),
    ],
    ids=["text", "dictionaries"],
)
def test_text_of_either_width_is_one_column(types, tmp_path):
    towns = pa.array(["Bath", "York", None, "Bonn"] * 10)
    for number, type_ in enumerate(types):
        part = pa.table({"town": towns[number:].cast(type_), "y": range(40 - number)})
        pq.write_table(part, tmp_path / f"{number}.parquet")
    whole = pa.table({"town": pa.chunked_array([towns, towns[1:]])})
    B, _ = bin_parquet(tmp_path, "y", categorical_features=["town"])
    assert_same_bins(B, bin_features(whole, categorical_features=["town"]))


def test_columns_within_columns_may_have_the_same_names(tmp_path):
    inner = pa.array([{"x": 2**60 + i} for i in range(40)])
    x = pa.array(range(40))
    pq.write_table(pa.table({"inner": inner, "x": x, "y": x}), tmp_path / "0.parquet")
    B, _ = bin_parquet(tmp_path, "y", columns=["x"])
    assert_same_bins(B, bin_features(pa.table({"x": x})))


# --- in a folder ----------------------------------------------------------------------------------


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
        ([1, 0, 1], [1, 0, 1]),
        ([True, False, True], [True, False, True]),
        ([1.5, None, 2.0], [1.5, np.nan, 2.0]),
        (pa.array([1, None, 2], pa.int8()), [1.0, np.nan, 2.0]),
        (["no", "yes", "no"], ["no", "yes", "no"]),
        (["no", None, "no"], None),
        (pa.array(["no", "yes", "no"]).dictionary_encode(), ["no", "yes", "no"]),
    ],
)
def test_targets(values, expected, tmp_path):
    pq.write_table(pa.table({"x": [1.0, 2.0, 3.0], "target": values}), tmp_path / "file")
    _, y = bin_parquet(str(tmp_path / "file"), "target")
    if expected is None:  # which only Python objects can be
        assert y.tolist() == values
        return
    expected = np.array(expected)
    assert_array_equal(y, expected)
    assert y.dtype == (object if expected.dtype.kind == "U" else expected.dtype)
    _, y = bin_parquet(tmp_path / "file", "target", bins_path=tmp_path / "bins")
    assert_array_equal(y, expected)
    assert y.dtype == expected.dtype


def test_several_targets(files, tmp_path):
    folder, data = files
    expected = np.column_stack([data["y"].to_numpy(), data["double"].to_numpy()])
    for more in ({}, dict(bins_path=tmp_path / "bins")):
        _, y = bin_parquet(folder, ["y", "double"], columns=["single"], **more)
        assert_array_equal(y, expected)


def test_labels_that_no_folder_keeps(files, tmp_path):
    with pytest.raises(ValueError, match="the target column 'text' has labels that are missing"):
        bin_parquet(files[0], "text", columns=["double"], bins_path=tmp_path / "bins")
    assert not (tmp_path / "bins").exists()


# --- lazy frames ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_batches")
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


@pytest.mark.usefixtures("small_batches")
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


def test_partitions_that_are_empty_or_differ():
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


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (dict(target="z"), ValueError, r"no column \(or several\) of the name 'z': its columns"),
        (dict(target="y", columns=["single", "q"]), ValueError, "no column.*'q'"),
        (dict(target="y", columns=["single", "single"]), ValueError, "more than one column"),
        (dict(target="y", columns=["y"]), ValueError, "columns has .'y'., which is target"),
        (dict(target="y", sample_weight="text"), ValueError, "sample_weight"),
        (dict(target="day", columns=["single"]), ValueError, "'day' is of type date32"),
        (dict(target="y"), ValueError, "text is not a number: column 'text' .string, such as '"),
        (dict(target="y", columns=[]), ValueError, "0 feature"),
        (dict(target="y", max_bin=1), ValueError, "max_bin=1"),
        (dict(target=None), TypeError, "target=None: it must be the name of a column, or a list"),
        (dict(target=[]), ValueError, "target=.. is empty: it must be the name of a column"),
        (dict(target="y", columns="single"), TypeError, "columns='single': it must be a list of n"),
        (dict(target="y", verbose=-1), ValueError, "verbose=-1"),
        (dict(target="y", missing="no"), ValueError, "missing='no'"),
    ],
)
def test_refused_arguments(arguments, error, words, files):
    with pytest.raises(error, match=words):
        bin_parquet(files[0], **arguments)


def test_refused_paths(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such file or folder"):
        bin_parquet(tmp_path / "absent", "y")
    with pytest.raises(FileNotFoundError, match=r"there are no files \*\.parquet"):
        bin_parquet(tmp_path, "y")
    table = tmp_path / "table.csv"
    table.write_text("x,y\n1,2\n" * 9)
    with pytest.raises(
        ValueError, match=r"table\.csv cannot be read: Parquet magic bytes not found"
    ):
        bin_parquet(table, "y")


def test_files_that_differ(tmp_path):
    pq.write_table(pa.table({"x": [1], "y": [1]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"x": [1.0], "y": [1]}), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"column 'x' is double in .*1\.parquet, and int64 in the"):
        bin_parquet(tmp_path, "y")


def test_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklboost.data.parquet_files", None)
    monkeypatch.delattr("sklboost.data.parquet_files", raising=False)
    with pytest.raises(ImportError, match=r"pip install sklboost\[parquet\]"):
        bin_parquet("file", "y")


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda columns: columns["x"]])
def test_what_is_in_memory_is_for_bin_features(make):
    X = make({"x": np.arange(3.0), "y": np.arange(3.0)})
    with pytest.raises(
        TypeError, match=r"path is of type .*: it must be files, .* bin_features\(X\) bins"
    ):
        bin_parquet(X, "y")


# --- progress and memory -------------------------------------------------------------------------


def test_progress_of_long_readings(files, monkeypatch, caplog, capsys):
    bin_parquet(files[0], "y", columns=["single"])
    assert capsys.readouterr().err == ""  # it did not take long
    monkeypatch.setattr(progress, "_READING_IS_LONG", 0.0)
    monkeypatch.setattr(progress, "_LINE_INTERVAL", 0.0)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    bin_parquet(files[0], "y", columns=["single"])
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "120 of 1,000 rows read"  # the first file is a batch
    assert lines[-1] == "1,000 of 1,000 rows read"
    caplog.clear()
    bin_parquet(files[0], "y", columns=["single"], verbose=0)
    assert caplog.records == []


@pytest.mark.slow
def test_only_bins_and_a_batch_are_in_memory(tmp_path):
    n_rows, n_features = 400_000, 40
    random = np.random.default_rng(0)
    names = [f"x{i}" for i in range(n_features)]
    schema = pa.schema([*((name, pa.float64()) for name in names), ("y", pa.int8())])
    path = tmp_path / "large.parquet"
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        for _ in range(20):
            values = [random.random(20_000) for _ in names]
            writer.write_table(pa.table([*values, np.zeros(20_000, np.int8)], schema))
    bin_parquet(path, "y", columns=["x0"])  # what is compiled and imported is not counted
    usual = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(usual)  # which counts for itself
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        B, _ = bin_parquet(path, "y", verbose=0)
        used = tracemalloc.get_traced_memory()[1] + pool.max_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)
    sample = 8 * n_features * 205_000
    batches = 6 * 8 * table.BLOCK_VALUES  # as columns, as a block, the next one, in pyarrow
    assert B.nbytes == n_rows * n_features
    assert used < sample + batches < path.stat().st_size
