"""Data sets with categories: frames and codes are the same rows; libraries get what they take."""

import numpy as np
import pytest

from benchmarks import category_data, category_peers


@pytest.fixture(scope="module")
def drawn():
    return category_data.load("zipf-300", 0)


def test_frames_and_codes_are_the_same_rows(drawn):
    frames, codes = drawn
    assert category_data.category_names(frames.X_train) == ["level"]
    for frame, numbers in ((frames.X_train, codes.X_train), (frames.X_test, codes.X_test)):
        # codes of the frame are ranks of the sorted levels as well
        np.testing.assert_array_equal(frame["level"].cat.codes, numbers[:, -1])
        np.testing.assert_array_equal(frame["number_0"].to_numpy(np.float64), numbers[:, 0])
    assert len(frames.y_train) == len(frames.X_train) == category_data.N_TRAIN
    assert len(frames.y_test) == len(frames.X_test) == category_data.N_TEST


def test_levels_have_effects_and_all_are_trained_on(drawn):
    frames, _ = drawn
    effects = [
        y.groupby(X["level"], observed=False).mean()
        for X, y in (
            (frames.X_train, frames.X_train["number_0"] * 0 + frames.y_train),
            (frames.X_test, frames.X_test["number_0"] * 0 + frames.y_test),
        )
    ]
    assert effects[0].notna().all()
    assert effects[0].corr(effects[1]) > 0.9


def test_the_seed_decides(drawn):
    again, other = (category_data.load("zipf-300", seed)[1] for seed in (0, 1))
    np.testing.assert_array_equal(again.X_train, drawn[1].X_train)
    assert (other.y_train != drawn[1].y_train).all()


def test_libraries_get_what_they_take(drawn):
    frames, _ = drawn
    assert category_peers.takes("sklboost", frames)
    assert not category_peers.takes("hist_gb", frames)  # 300 levels, and 255 is its limit
    X = frames.X_train.head(3)
    X = X.assign(level=X["level"].where([True, True, False]))
    text = category_peers.prepare("catboost", frames._replace(X_train=X)).X_train["level"]
    assert text.tolist()[2] == "missing"
    assert category_peers.parameters("catboost", frames) == {"cat_features": ["level"]}


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="'zipf': it must be 'access', like 'zipf-5000'"):
        category_data.load("zipf", 0)
