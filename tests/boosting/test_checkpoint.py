"""Models saved while they train."""

import re

import joblib
import pytest

from sklboost import Checkpoint, TrainingCallback
from tests.boosting.training import FakeTraining


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class StopAt(TrainingCallback):
    def __init__(self, n_rounds, error=None):
        self.n_rounds = n_rounds
        self.error = error

    def before_iteration(self, training, epoch, evals_log):
        if epoch == self.n_rounds and self.error:
            raise self.error
        return epoch == self.n_rounds


def test_a_file_every_so_many_rounds_and_at_the_end(tmp_path):
    FakeTraining([Checkpoint(tmp_path, interval=3)], 7).train()
    assert names(tmp_path) == ["model_3.joblib", "model_6.joblib", "model_7.joblib"]
    for n_rounds in (3, 6, 7):
        assert joblib.load(tmp_path / f"model_{n_rounds}.joblib").n_rounds == n_rounds


def test_callbacks_are_not_saved(tmp_path):
    class NotPickled(TrainingCallback):  # a local class has no name to be found by
        pass

    FakeTraining([NotPickled(), Checkpoint(tmp_path, interval=5)], 5).train()
    assert joblib.load(tmp_path / "model_5.joblib").callbacks is None


def test_rounds_of_a_continued_model_count(tmp_path):
    FakeTraining([Checkpoint(str(tmp_path), name="next", interval=10)], 24, n_rounds=15).train()
    assert names(tmp_path) == ["next_20.joblib", "next_24.joblib"]


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_what_is_finished_is_saved_however_it_ends(tmp_path, error):
    training = FakeTraining([StopAt(4, error), Checkpoint(tmp_path, interval=3)])
    if error:
        with pytest.raises(error):
            training.train()
    else:
        training.train()
    assert names(tmp_path) == ["model_3.joblib", "model_4.joblib"]


@pytest.mark.parametrize("n_rounds", [0, 15])
def test_nothing_is_saved_without_a_new_round(tmp_path, n_rounds):
    FakeTraining([StopAt(n_rounds), Checkpoint(tmp_path)], 20, n_rounds=n_rounds).train()
    assert names(tmp_path) == []


def test_a_failed_write_leaves_the_file_that_was_there(tmp_path, monkeypatch):
    FakeTraining([Checkpoint(tmp_path, interval=5)], 5).train()
    before = (tmp_path / "model_5.joblib").read_bytes()

    def write_half(model, file, **options):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(joblib, "dump", write_half)
    with pytest.raises(OSError, match="disk full"):
        FakeTraining([Checkpoint(tmp_path, interval=5)], 5).train()
    assert names(tmp_path) == ["model_5.joblib"]
    assert (tmp_path / "model_5.joblib").read_bytes() == before


def test_no_folder(tmp_path):
    training = FakeTraining([Checkpoint(tmp_path / "none")])
    with pytest.raises(
        FileNotFoundError, match=r"none'?: there is no such folder; create it first"
    ):
        training.train()
    assert training.n_rounds == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"interval": 0}, "interval=0: it must be an integer >= 1"),
        ({"interval": 1.0}, "interval=1.0: it must be an integer >= 1"),
        ({"name": "a/b"}, "name='a/b': it must be the beginning of a file's name, no path"),
        ({"name": ""}, "name='': it must be the beginning of a file's name, no path"),
    ],
)
def test_bad_settings_of_checkpoints(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Checkpoint(".", **arguments)
