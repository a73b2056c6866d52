"""What a fit was asked for, as it is read."""

import numpy as np
import pytest

from sklboost import XGBClassifierLite


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
