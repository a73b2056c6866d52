"""What a fit was asked for, as it is read."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost import TrainingCallback, XGBClassifierLite


@pytest.mark.parametrize(
    ("settings", "groups"), [(dict(validation_split="time"), None), ({}, ["a"] * 4 + ["b"] * 4)]
)
def test_a_class_that_the_training_would_not_see(settings, groups):
    X, y = np.arange(8.0)[:, np.newaxis], ["no"] * 4 + ["yes"] * 4
    model = XGBClassifierLite(
        early_stopping_rounds=1, validation_fraction=0.5, random_state=0, **settings
    )
    with pytest.raises(ValueError, match=r"classes \['(no|yes)'\] are held out.*pass X_val"):
        model.fit(X, y, groups=groups)


def test_an_estimator_predicts_as_before_until_its_fit_is_done():
    X, y = np.arange(8.0)[:, np.newaxis], np.arange(8) % 2
    model = XGBClassifierLite(n_estimators=2, min_child_weight=0).fit(X, y)
    before, seen = model.predict_proba(X), []

    class Look(TrainingCallback):
        def after_iteration(self, training, epoch, evals_log):
            seen.append(model.predict_proba(X))
            return False

    model.set_params(callbacks=[Look()]).fit(X, 1 - y)
    assert len(seen) == 2
    for predicted in seen:
        assert_array_equal(predicted, before)
    assert (model.predict_proba(X) != before).any()


@pytest.mark.parametrize("groups", [[1, 2, 3], np.zeros((4, 1))])
def test_groups_of_another_shape(groups):
    model = XGBClassifierLite(n_estimators=1)
    with pytest.raises(ValueError, match=r"groups has shape .*: it must be 1-D, one label for e"):
        model.fit(np.zeros((4, 1)), [0, 1, 0, 1], groups=groups)
