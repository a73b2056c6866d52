"""Frames of Dask in a fit: names, kinds and encodings of the same rows in one place."""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from sklboost.data.encoding import Encoding
from sklboost.data.features import value_array
from sklboost.distributed.partitions import distinct_rows
from sklboost.estimators.input.features import UnknownCategoryWarning
from tests.distributed.fit_reading import assert_same, read

N_ROWS = 3000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    number = rng.integers(100, size=N_ROWS)
    text = np.array([f"t{k}" for k in number % 7])
    days = pd.Timestamp("2024-01-01", tz="Europe/Berlin") + pd.to_timedelta(number * 3, "h")
    return pd.DataFrame(
        {
            "short": number.astype(np.int8),
            "wide": 2**60 + number,
            "flag": number > 50,
            "double": rng.normal(size=N_ROWS),
            "nullable": pd.array(np.where(number > 20, number, None), dtype="Int64"),
            "known": pd.Categorical(text, categories=["t9", *(f"t{k}" for k in range(7))]),
            "numbered": pd.Categorical(number % 5 * 2**54),
            "day": days,
            "nanosecond": pd.to_datetime(number + 2**60),
            "duration": pd.to_timedelta(number, "s"),
        }
    )


def test_same_encodings_and_bins_of_many_dtypes(cluster, frame):
    rows, fitted = read(dd.from_pandas(frame, npartitions=4))
    local, fitted_here = read(frame)
    assert repr(fitted) == repr(fitted_here)
    assert fitted.attributes.keys() == fitted_here.attributes.keys()
    assert_same(cluster, rows, local)
    np.testing.assert_array_equal(value_array(rows.X.here()), local.X.values())


@pytest.mark.parametrize(
    "parameters",
    [
        {"missing": 7.0},
        {"categorical_features": ["short", "known"]},
        {"categorical_features": None},
    ],
    ids=str,
)
def test_same_encodings_with_parameters(cluster, frame, parameters):
    frame = (
        frame.drop(columns="known") if parameters.get("categorical_features", 1) is None else frame
    )
    weight = np.random.default_rng(1).integers(3, size=N_ROWS).astype(float)
    rows, fitted = read(dd.from_pandas(frame, npartitions=3), sample_weight=weight, **parameters)
    local, fitted_here = read(frame, sample_weight=weight, **parameters)
    assert repr(fitted) == repr(fitted_here)
    assert_same(cluster, rows, local)


def in_partitions(frame, function, n_partitions=4):
    """Return the frame in partitions, each of which a function has changed."""
    places = np.array_split(np.arange(len(frame)), n_partitions)
    parts = [function(k, frame.iloc[rows]) for k, rows in enumerate(places)]
    delayed = [dask.delayed(part) for part in parts]
    return dd.from_delayed(delayed, meta=parts[0].iloc[:0], verify_meta=False)


def same_as_computed(collection, **given):
    """Compare what a fit reads of a frame with what it reads of the same rows in one place."""
    rows, fitted = read(collection, np.arange(float(N_ROWS)), **given)
    local, fitted_here = read(collection.compute(), np.arange(float(N_ROWS)), **given)
    assert repr(fitted) == repr(fitted_here)
    return rows, local, fitted


def test_categories_that_differ_by_partition(cluster):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"letter": rng.choice(list("abcdef"), N_ROWS), "x": rng.normal(size=N_ROWS)}
    )
    frame.loc[::50, "letter"] = None

    def as_categories(k, part):
        categories = sorted(set(part["letter"].dropna()) | {f"only {k}"}, reverse=k % 2 == 0)
        return part.assign(letter=pd.Categorical(part["letter"], categories))

    collection = in_partitions(frame, as_categories)
    rows, local, fitted = same_as_computed(collection)
    assert fitted.attributes["categories_"]["letter"].tolist() == list("abcdef")
    assert_same(cluster, rows, local)
    ordered = pd.CategoricalDtype(["f", "e", "d", "c", "b", "a"], ordered=True)
    rows, local, _ = same_as_computed(dd.from_pandas(frame.astype({"letter": ordered}), 5))
    assert_same(cluster, rows, local)


def test_a_shared_list_of_categories_is_asked_nothing(monkeypatch):
    # workers in one process have one list for all partitions, and pandas answers one thread only
    asked = []
    frame = pd.DataFrame({"letter": pd.Categorical(["b", None, "c", "b"], list("abc"))})
    monkeypatch.setattr(pd.Index, "is_unique", property(lambda self: asked.append(id(self)) or 1))
    (found,) = distinct_rows(frame, None, [0])
    assert asked
    assert id(frame["letter"].cat.categories) not in asked
    assert found.rows["letter"].cat.categories.tolist() == ["b", "c"]
    assert found.rows["letter"].tolist() == ["b", "c"]
    assert found.masses.tolist() == [2, 1]


def test_declared_text_and_objects(cluster):
    rng = np.random.default_rng(4)
    letters = rng.choice(list("abc"), N_ROWS).astype(object)
    letters[::7] = None
    mixed = letters.copy()
    mixed[5::9] = 2
    mixed[4::9] = 2.0
    numbers = rng.integers(256, size=N_ROWS).astype(object)
    numbers[: N_ROWS // 2] += 2**60  # the second half are small integers, and floats
    numbers[-9::2] = 0.5
    frame = pd.DataFrame({"text": letters, "mixed": mixed, "numbers": numbers, "nothing": None})
    declared = ["text", "mixed"]
    with dask.config.set({"dataframe.convert-string": False}):
        collection = dd.from_pandas(frame, npartitions=4)
        rows, local, _ = same_as_computed(collection, categorical_features=declared)
        assert_same(cluster, rows, local)
    collection = dd.from_pandas(frame[["text"]], npartitions=4)
    assert collection.dtypes["text"] == "string"
    rows, local, _ = same_as_computed(collection, categorical_features=["text"])
    assert_same(cluster, rows, local)


def test_the_lightest_of_very_many_categories_are_the_same(cluster):
    rng = np.random.default_rng(5)
    order = rng.permutation(3 * 66_000)
    weight = np.tile([0.1, 0.2, 0.3], 66_000)[order]  # of each category, in any order
    frame = pd.DataFrame({"id": np.repeat(np.arange(66_000), 3)[order]})
    given = dict(categorical_features=["id"], sample_weight=weight)
    y = np.zeros(len(frame))
    _, fitted = read(dd.from_pandas(frame, npartitions=3), y, **given)
    _, fitted_here = read(frame, y, **given)
    assert repr(fitted) == repr(fitted_here)
    order = rng.permutation(len(frame))
    given["sample_weight"] = weight[order]
    assert repr(read(frame.iloc[order], y, **given)[1]) == repr(fitted_here)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("column", "parameters"),
    [
        (["a", "b"], {}),
        (["a", 1], {}),
        ([1j, 2j], {}),
        ([[1], [2]], {}),
        ([b"a", b"b"], {}),
        (pd.Categorical(["a", "b"]), {"enable_categorical": False}),
        (pd.Categorical(["a", "b"]), {"categorical_features": []}),
        ([1.0, 2.0], {"categorical_features": ["no such"]}),
        ([2**70, 1], {}),
    ],
    ids=str,
)
def test_errors_are_those_of_the_same_rows_in_one_place(column, parameters):
    frame = pd.DataFrame({"x": [0.0, 1.0], "column": column})
    with pytest.raises((TypeError, ValueError)) as here:
        read(frame, np.zeros(2), **parameters)
    with dask.config.set({"dataframe.convert-string": False}):
        collection = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(type(here.value)) as there:
        read(collection, np.zeros(2), **parameters)
    assert str(there.value) == str(here.value)


@pytest.mark.usefixtures("cluster")
def test_partitions_that_do_not_fit_together(frame):
    numbers = frame[["short", "double"]]
    y = np.zeros(N_ROWS)
    with pytest.raises(ValueError, match=r"partition 2 of X has the columns \['double', 'short'\]"):
        read(in_partitions(numbers, lambda k, part: part if k != 2 else part.iloc[:, ::-1]), y)
    text = in_partitions(numbers, lambda k, part: part if k != 1 else part.astype({"short": str}))
    with pytest.raises(ValueError, match=r"'short' is int8 in one .* in partition 1"):
        read(text, y, categorical_features=["short"])
    twice = frame[["short", "short"]]
    with pytest.raises(ValueError, match="more than one column of the name 'short'"):
        read(in_partitions(twice, lambda k, part: part), y)
    with pytest.raises(ValueError, match=r"to_frame\(\)"):
        read(dd.from_pandas(numbers, npartitions=2)["short"], y)


def test_names_that_are_no_strings(cluster, frame):
    numbers = pd.DataFrame(frame[["short", "double"]].to_numpy(), columns=[7, 9])
    rows, fitted = read(dd.from_pandas(numbers, npartitions=3))
    local, fitted_here = read(numbers)
    assert repr(fitted) == repr(fitted_here)
    assert_same(cluster, rows, local)


def test_encodings_of_a_model_that_is_continued(cluster, frame):
    _, fitted = read(frame.drop(columns="short"))
    new = frame.drop(columns="short").assign(
        known=pd.Categorical(np.where(np.arange(N_ROWS) % 100 == 50, "new", frame["known"]))
    )
    collection = dd.from_pandas(new, npartitions=4)
    with pytest.warns(UnknownCategoryWarning, match="'known': 30 row") as caught:
        rows, again = read(collection, encodings=fitted.encodings)
    with pytest.warns(UnknownCategoryWarning) as caught_here:
        local, again_here = read(new, encodings=fitted.encodings)
    assert str(caught[0].message) == str(caught_here[0].message)
    assert repr(again) == repr(again_here) == repr(fitted)
    assert_same(cluster, rows, local)
    with pytest.raises(ValueError, match="has categories that no row"):
        read(collection, encodings=fitted.encodings, unknown_category="error")
    with pytest.raises(ValueError, match="column 'known' held categories at fit and holds numbers"):
        read(collection.assign(known=1), encodings=fitted.encodings)
    plain = (Encoding(),) * 2
    numbers = dd.from_pandas(frame[["double", "flag"]], npartitions=2)
    assert read(numbers, encodings=plain)[1].encodings is None
    with pytest.raises(ValueError, match="column 'known' held numbers at fit and holds categories"):
        read(collection[["double", "known"]], encodings=plain)


def test_parquet_files_whose_partitions_are_joined_when_they_are_read(cluster, frame, tmp_path):
    filled = {f"other {k}": np.random.default_rng(k).normal(size=N_ROWS) for k in range(40)}
    whole = frame[["short", "double"]].assign(**filled)
    for k in range(12):
        whole.iloc[250 * k : 250 * k + 250].to_parquet(tmp_path / f"{k:02}.parquet")
    collection = dd.read_parquet(tmp_path)[["short", "double"]]
    rows, _ = read(collection, dd.read_parquet(tmp_path)["short"].astype(float))
    assert len(rows.X.partitions.futures) < collection.npartitions
    assert_same(cluster, rows, read(frame[["short", "double"]])[0])
    np.testing.assert_array_equal(rows.y, frame["short"])
