"""What the docstrings of the estimators say."""

import inspect
import pydoc
import re

import numpy as np
import pandas as pd
import pytest

import sklboost
from sklboost import (
    XGBClassifierLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBRFClassifierLite,
    XGBRFRegressorLite,
    XGBSurvivalLite,
)
from sklboost.estimators.parameters.boosters import Parameters
from sklboost.estimators.parameters.docstrings import SHARED, documented

BOOSTERS = (XGBRegressorLite, XGBClassifierLite)
FORESTS = (XGBRFRegressorLite, XGBRFClassifierLite)


def section(estimator, name):
    """Return the entries of a section of the docstring: name -> what comes behind it."""
    text = inspect.getdoc(estimator).split(f"{name}\n{'-' * len(name)}\n")[1].split("\n\n")[0]
    entries = re.findall(r"^(\w+) : .+\n((?:    .+\n?)+)", text, flags=re.MULTILINE)
    # nothing else: a name alone is one of which nothing is known
    n_lines = sum(1 + description.rstrip().count("\n") + 1 for _, description in entries)
    assert len(text.splitlines()) == n_lines
    return dict(entries)


@pytest.mark.parametrize("name", [name for name in sklboost.__all__ if name.startswith("XGB")])
def test_help_opens_with_what_it_is_an_example_and_the_parameters(name):
    text = pydoc.plain(pydoc.render_doc(getattr(sklboost, name)))
    _, _, after = text.partition(f" |  {name}(*, preset=None, n_estimators=100, ")
    signature, _, after = after.partition("\n |  \n")
    assert "sklboost." not in signature
    about, _, _ = after.partition(" |  Parameters\n |  ----------\n |  preset : ")
    assert 5 < len(about.splitlines()) < 30
    assert f" |  >>> model = {name}(" in about or f" |  >>> forest = {name}(" in about


@pytest.mark.parametrize("estimator", [XGBClassifierLite, XGBRFRegressorLite])
def test_all_attributes_of_a_fit_are_described(estimator):
    X = pd.DataFrame({"size": np.arange(20.0), "kind": pd.Categorical(["a", "b"] * 10)})
    y = np.arange(20) % 3 % 2
    settings = {"early_stopping_rounds": 2} if estimator in BOOSTERS else {}
    settings |= {"preset": "auto", "n_estimators": 3}
    model = estimator(random_state=0, **settings).fit(X, y)
    fitted = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    assert set(section(estimator, "Attributes")) == set(fitted)


def test_an_attribute_of_its_own_says_more():
    shared, own = (section(e, "Attributes") for e in (XGBRegressorLite, XGBRFRegressorLite))
    assert "continued another model" in shared["n_estimators_"]
    assert own["n_estimators_"].strip() == "Number of trees, all of one round."
    assert shared["fit_report_"] == own["fit_report_"]
    assert "classes_" in section(XGBClassifierLite, "Attributes")


@pytest.mark.parametrize("indentation", ["", "    "])
def test_docstrings_of_old_and_new_compilers(indentation):
    """From Python 3.13 on they come without the indentation of the source."""
    lines = ["", "Attributes", "----------", "own_ : int", "    Mine.", ""]
    text = "\n".join(["One.", *(indentation + line for line in lines)])
    estimator = documented(init=False)(type("Own", (Parameters,), {"__doc__": text}))
    assert list(section(estimator, "Attributes"))[2:5] == ["categories_", "own_", "model_"]
    assert list(section(estimator, "Parameters")) == list(inspect.signature(estimator).parameters)
    assert estimator.__doc__.startswith("One.\n\nParameters\n---")


def test_methods_and_attributes_have_their_shared_texts():
    used = set()
    for estimator in (*BOOSTERS, *FORESTS):
        public = [name for name in dir(estimator) if not name.startswith("_")]
        methods = [getattr(estimator, name) for name in public]
        for thing in (estimator, *filter(inspect.isfunction, methods)):
            lines = inspect.getdoc(thing).splitlines()
            assert not set(lines) & set(SHARED), thing  # a name without its text
            used |= {name for name, (kind, _) in SHARED.items() if f"{name} : {kind}" in lines}
    assert used == set(SHARED)


@pytest.mark.parametrize("estimator", [XGBRankerLite, XGBSurvivalLite])
def test_an_overriding_method_shares_the_entries_of_names_alone(estimator):
    own, shared = (section(each.fit, "Parameters") for each in (estimator, XGBRegressorLite))
    same = {name for name in own.keys() & shared.keys() if own[name] == shared[name]}
    assert own.keys() & shared.keys() - same == {"y", "sample_weight"}
    assert {"qid", "strata"} & own.keys()
    assert "KeyboardInterrupt\n    At Ctrl-C" in estimator.fit.__doc__
