"""A model from a file has the bits of the model that was saved."""

import io
import json
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.datasets import load_diabetes, load_iris

from sklboost import (
    ModelFileError,
    XGBClassifierLite,
    XGBRegressorLite,
    XGBRFRegressorLite,
    from_lightgbm,
    from_xgboost,
    load_model,
)
from sklboost.estimators.files.model_files import plain_attributes, read_attributes
from tests.kinds_of_models import IN_FILES, KINDS, data
from tests.kinds_of_models import file_of as saved

# Kinds that differ in what a file has of them, and kinds that differ in the name of their loss.
OF_LOSSES = [name for name in IN_FILES if ":" in name]
STRUCTURES = [name for name in IN_FILES if ":" not in name and not name.startswith("many rows")]


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_loaded_model_has_the_same_bits(name):
    kind = IN_FILES[name]
    model = kind.fit()
    file = saved(model, "json")
    loaded = load_model(file)
    assert type(loaded) is type(model)
    assert set(vars(loaded)) == set(vars(model))
    assert kind.digest(loaded) == kind.digest(model)
    assert loaded.trees_to_dataframe().equals(model.trees_to_dataframe())
    attributes = ["evals_result_", "fit_report_", "n_estimators_", "stop_reason_"]
    for attribute in [*attributes, "best_iteration_", "best_score_"]:  # with early stopping only
        found, expected = (getattr(own, attribute, None) for own in (loaded, model))
        assert repr(found) == repr(expected)
    for other in (model, loaded, load_model(saved(model, "ubj"))):
        assert repr(other.get_params()) == repr(model.get_params())
        assert saved(other, "json") == file


@pytest.mark.parametrize("name", OF_LOSSES)
def test_a_file_names_every_loss(name):
    model, (X, _) = KINDS[name].fit(), data(KINDS[name].features)
    loaded = load_model(saved(model))
    assert (loaded.predict(X) == model.predict(X)).all()
    assert saved(loaded) == saved(model)


@pytest.mark.parametrize(
    "name", ["single", "categories", "linear leaves", "vector trees", "pruned"]
)
def test_training_goes_on_to_the_bits_of_one_go(name):
    kind = KINDS[name]._replace(is_validated=False)
    X, y = data(kind.features)
    whole = kind._replace(parameters=kind.parameters | dict(n_estimators=7)).fit()
    part = load_model(saved(kind.fit()))
    by_warm_start = load_model(saved(part)).set_params(n_estimators=7, warm_start=True)
    by_init_model = type(part)(**(part.get_params() | dict(n_estimators=3)))
    by_warm_start.fit(X, y[kind.targets])
    by_init_model.fit(X, y[kind.targets], init_model=part)
    for model in (by_warm_start, by_init_model):
        assert kind.digest(model) == kind.digest(whole)


# --- the methods


def test_paths_and_file_objects(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = XGBRegressorLite(n_estimators=2).fit(X, y)
    for name in ("model.json", "model.ubj"):
        path = tmp_path / name
        model.save_model(path, format="sklboost")
        assert (load_model(path).predict(X) == model.predict(X)).all()
    with (tmp_path / "other.json").open("w") as file:
        model.save_model(file, format="sklboost")
    with (tmp_path / "other.json").open() as file:
        assert (load_model(file).predict(X) == model.predict(X)).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("model.json", "model.ubj", "other.json")
    ]


def test_load_model_on_the_class_and_on_an_instance(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = XGBRegressorLite(n_estimators=3, max_depth=2).fit(X, y)
    model.save_model(tmp_path / "model.json", format="sklboost")
    new = XGBRegressorLite()
    assert new.load_model(tmp_path / "model.json") is new
    assert new.max_depth == 2
    by_class = XGBRegressorLite.load_model(tmp_path / "model.json")
    for loaded in (new, by_class):
        assert (loaded.predict(X) == model.predict(X)).all()

    class Mine(XGBRegressorLite):
        pass

    own = saved(Mine(n_estimators=2).fit(X, y))
    assert type(Mine.load_model(own)) is Mine
    assert type(load_model(own)) is XGBRegressorLite


def test_another_class_is_refused():
    X, y = load_diabetes(return_X_y=True)
    data_ = saved(XGBRegressorLite(n_estimators=2).fit(X, y))
    for other in (XGBClassifierLite, XGBRFRegressorLite):
        with pytest.raises(TypeError, match=r"XGBRegressorLite.*load_model"):
            other.load_model(data_)


def test_a_parameter_out_of_range_is_refused():
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match="gamma=-1"):
        saved(XGBRegressorLite(n_estimators=2).fit(X, y).set_params(gamma=-1))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (dict(fname="model.pkl"), r"model.pkl.*\.json or \.ubj"),
        (dict(fname="model.json", format="onnx"), "format='onnx'.*'auto', 'xgboost', 'sklboost'"),
        (dict(fname="model.json", raw_format="yaml"), "raw_format='yaml'.*'json' or 'ubj'"),
        (dict(fname=io.BytesIO()), "raw_format"),
        (dict(fname=io.StringIO(), raw_format="ubj"), "binary.*'wb'"),
    ],
)
def test_wrong_arguments(arguments, error):
    X, y = load_diabetes(return_X_y=True)
    model = XGBRegressorLite(n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match=error):
        model.save_model(**arguments)


def test_a_failing_write_leaves_the_old_file(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = XGBRegressorLite(n_estimators=2).fit(X, y)
    path = tmp_path / "model.json"
    model.save_model(path, format="sklboost")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="gamma=-1"):
        model.set_params(gamma=-1).save_model(path)
    model.set_params(gamma=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="left out of the model file: random_state"):
            model.set_params(random_state=np.random.RandomState(0)).save_model(path)
    assert path.read_bytes() == before
    with pytest.raises(FileNotFoundError, match=r"no_such_folder.model\.json.*create it first"):
        model.set_params(random_state=0).save_model(
            tmp_path / "no_such_folder" / "model.json", format="sklboost"
        )


@pytest.mark.parametrize("raw_format", ["json", "ubj"])
def test_xgboost_opens_the_same_file(raw_format, tmp_path):
    path = tmp_path / f"model.{raw_format}"
    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32)
    model = XGBClassifierLite(n_estimators=5).fit(X, y)
    model.save_model(path)
    theirs = xgboost.XGBClassifier()
    theirs.load_model(path)
    np.testing.assert_allclose(theirs.predict_proba(X), model.predict_proba(X), atol=1e-6)
    assert (theirs.predict(X) == model.predict(X)).all()
    reformatted = saved(model, "json").replace(b",", b" ,\n ")
    for source in (path, reformatted):
        assert (load_model(source).predict_proba(X) == model.predict_proba(X)).all()


def test_what_xgboost_cannot_express_is_for_us_alone(tmp_path, caplog):
    X, y = load_diabetes(return_X_y=True)
    model = XGBRegressorLite(n_estimators=2, linear_tree=True).fit(X, y)
    path = tmp_path / "model.json"
    with pytest.raises(ValueError, match=r"cannot hold linear leaves; save_model\(path\) keeps"):
        model.save_model(path, format="xgboost")
    assert not path.exists()
    assert not model.xgboost_readable_
    with caplog.at_level("INFO", logger="sklboost"):
        model.save_model(path)
    assert "for sklboost alone: XGBoost cannot hold linear leaves" in caplog.text
    document = json.loads(path.read_bytes())
    assert list(document) == ["sklboost"]
    assert document["sklboost"]["not_for_xgboost"] == "XGBoost cannot hold linear leaves"
    assert (load_model(path).predict(X) == model.predict(X)).all()


def test_a_category_that_no_file_holds_is_refused_with_the_feature():
    places = pd.Series(pd.Categorical([1 + 2j, 2 + 1j] * 10))
    model = XGBRegressorLite(n_estimators=2).fit(pd.DataFrame({"at": places}), np.arange(20.0))
    with pytest.raises(ValueError, match=r"the feature 'at'.*turn them into text"):
        saved(model)


def test_threads_that_write_one_file(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = XGBRegressorLite(n_estimators=2).fit(X, y)
    path = tmp_path / "model.json"
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(model.save_model, path) for _ in range(20)]:
            done.result()
    assert (load_model(path).predict(X) == model.predict(X)).all()
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_is_no_loss_of_the_users():
    X, y = load_iris(return_X_y=True)
    state = plain_attributes(vars(XGBClassifierLite(n_estimators=1).fit(X, y)))
    with pytest.raises(ModelFileError, match="'multi:onevsrest'"):
        read_attributes(**{**state, "own_loss": "multi:onevsrest"})


def test_models_of_the_wrong_library_are_named_by_their_type():
    class LGBMRegressor:
        def __repr__(self):
            raise AssertionError("it may be very long")

    for read, takes in (
        (from_xgboost, "bytes, a model of XGBoost"),
        (from_lightgbm, "bytes, a model of LightGBM"),
        (load_model, "bytes"),
    ):
        with pytest.raises(TypeError, match=f"LGBMRegressor is no path.*{takes}$"):
            read(LGBMRegressor())
