"""What signatures show of the estimators: to Python, type checkers and editors."""

import inspect
import re
from typing import get_type_hints

import jedi
import pytest
from mypy import api

from sklboost import (
    XGBClassifierLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBRFClassifierLite,
    XGBRFRegressorLite,
    XGBSurvivalLite,
)

ESTIMATORS = [
    XGBRegressorLite,
    XGBClassifierLite,
    XGBRFRegressorLite,
    XGBRFClassifierLite,
    XGBRankerLite,
    XGBSurvivalLite,
]
SCRIPT = """\
from sklboost import XGBClassifierLite, XGBRFRegressorLite
model = XGBClassifierLite(max_depth=3, subsample=None)
reveal_type(model)
reveal_type(model.max_depth)
reveal_type(model.fit([[1.0]], [1]))
XGBClassifierLite(max_dpth=3)
XGBRFRegressorLite(n_estimators="ten")
model.fit([[1.0]], [1], sample_wieght=None)
model.predict([[1.0]], iteration_rnge=None)
"""
FOUND = {
    3: 'Revealed type is "sklboost.estimators.classifier.XGBClassifierLite"',
    4: 'Revealed type is "int | None"',
    5: 'Revealed type is "sklboost.estimators.classifier.XGBClassifierLite"',
    6: 'Unexpected keyword argument "max_dpth" for "XGBClassifierLite"',
    7: 'Argument "n_estimators" to "XGBRFRegressorLite" has incompatible type "str"',
    8: 'Unexpected keyword argument "sample_wieght" for "fit"',
    9: 'Unexpected keyword argument "iteration_rnge" for "predict"',
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_constructor_s_signature(estimator):
    parameters = inspect.signature(estimator).parameters
    assert "max_depth=6" in map(str, parameters.values())
    assert set(parameters) == set(estimator().get_params())
    hints = get_type_hints(estimator.__init__)
    for name, parameter in parameters.items():
        assert parameter.kind is parameter.KEYWORD_ONLY
        assert name in hints
        assert repr(parameter.default) == repr(getattr(estimator(), name))
    learning_rate = 1.0 if "RF" in estimator.__name__ else 0.3
    assert parameters["learning_rate"].default == learning_rate
    assert list(inspect.signature(estimator.fit).parameters)[:4] == [
        "self",
        "X",
        "y",
        "sample_weight",
    ]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_dir_names_no_parameter_that_the_class_has_no_use_for(estimator):
    model = estimator()
    shown = set(dir(model))
    assert shown & set(estimator.__dataclass_fields__) == set(model.get_params())
    assert {"fit", "predict", "score", "set_params", "max_depth"} < shown


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_editors_show_the_same(estimator):
    """jedi, which completes in many editors, reads the source."""
    name = estimator.__name__
    begin = f"from sklboost import {name}\n"
    (signature,) = jedi.Script(f"{begin}{name}(").get_signatures()
    # of a parameter that is declared anew jedi shows both, the last is right; and unused ones
    shown = {parameter.name: parameter.to_string() for parameter in signature.params}
    expected = inspect.signature(estimator).parameters
    assert set(shown) >= set(expected)
    for name_, parameter in expected.items():
        quoted = repr(parameter.default).replace("'", '"')
        default = "np.nan" if name_ == "missing" else quoted
        assert re.match(
            rf"{name_}: .*=parameter\(\s*default={re.escape(default)},?\s*[\w)]", shown[name_], re.S
        )
    assert shown["max_depth"].startswith("max_depth: int | None=parameter(")
    live = jedi.Interpreter("estimator(", [{"estimator": estimator}])  # as in IPython
    (of_object,) = live.get_signatures()
    assert "max_depth=6" in of_object.to_string()
    completions = [one.name for one in jedi.Script(f"{begin}{name}(max_").complete()]
    assert "max_depth=" in completions
    for method in ("fit", "predict"):
        (signature,) = jedi.Script(f"{begin}{name}().{method}(").get_signatures()
        assert signature.params[0].to_string() == "X: Any"


@pytest.mark.slow
def test_type_checkers_know_the_parameters(tmp_path):
    script = tmp_path / "user.py"
    script.write_text(SCRIPT, "utf-8")
    options = ["--config-file=", "--follow-imports=silent", f"--cache-dir={tmp_path}"]
    report, _, _ = api.run([*options, str(script)])
    lines = [line.removeprefix(f"{script}:") for line in report.splitlines()]
    lines = [line for line in lines if "defined in" not in line and line[:1].isdigit()]
    found = {int(line.split(":")[0]): line for line in lines}
    assert set(found) == set(FOUND), report
    for number, words in FOUND.items():
        assert words in found[number]
