"""Try the estimators in other packages that are installed, by hand; test_tools.py has small ones.

``python -m tests.tools.check_tools [tool ...]`` prints a line for each tool: its version, and what
came of it with the estimators of this package and, for comparison, with XGBoost's.
"""

import contextlib
import importlib
import importlib.metadata
import io
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.pipeline import make_pipeline

import sklboost

X, Y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X.iloc[:, :8].set_axis([f"f{feature}" for feature in range(8)], axis=1)
XR, YR = load_diabetes(return_X_y=True, as_frame=True)
DAYS = pd.date_range("2024-01-01", periods=200)
SERIES = pd.Series(np.sin(np.arange(200) / 7) + np.arange(200) / 50, index=DAYS, name="y")
CHECKS = {}


def check(package):
    """Register a check of what the package of this name does."""

    def register(function):
        CHECKS[function.__name__.removeprefix("check_")] = package, function
        return function

    return register


@check("mlflow")
def check_mlflow(classifier, regressor):
    import mlflow
    import skops.io

    model = classifier.fit(X, Y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        types = skops.io.get_untrusted_types(data=skops.io.dumps(model))
        mlflow.sklearn.save_model(model, path, skops_trusted_types=types)
        loaded = mlflow.sklearn.load_model(str(path))
        assert (loaded.predict_proba(X) == model.predict_proba(X)).all()
        served = mlflow.pyfunc.load_model(str(path))
        assert (served.predict(X) == model.predict(X)).all()


@check("mlflow")
def check_mlflow_plain(classifier, regressor):
    import mlflow

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        mlflow.sklearn.save_model(classifier.fit(X, Y), path)
        mlflow.sklearn.load_model(str(path)).predict(X)


@check("dtreeviz")
def check_dtreeviz(classifier, regressor):
    import dtreeviz

    model = classifier.fit(X, Y)
    booster = model.to_xgboost() if hasattr(model, "to_xgboost") else model.get_booster()
    view = dtreeviz.model(
        booster,
        tree_index=0,
        X_train=X,
        y_train=Y,
        feature_names=list(X),
        target_name="y",
        class_names=["no", "yes"],
    )
    with contextlib.suppress(FileNotFoundError):  # the program dot
        view.view()
    assert view.shadow_tree.nnodes() > 1


@check("skforecast")
def check_skforecast(classifier, regressor):
    from skforecast.recursive import ForecasterRecursive

    def forecaster_of(model):
        for name in ("estimator", "regressor"):
            with contextlib.suppress(TypeError):
                return ForecasterRecursive(**{name: model}, lags=14)

    days = SERIES.asfreq("D")
    weekday = pd.DataFrame({"weekday": pd.Categorical(days.index.dayofweek)}, days.index)
    own = {"categorical_features": [14]} if hasattr(regressor, "categorical_features") else {}
    forecaster = forecaster_of(clone(regressor).set_params(**own))  # they follow the lags
    forecaster.fit(days[:-5], exog=weekday[:-5])
    assert len(forecaster.predict(5, exog=weekday[-5:])) == 5
    forecaster = forecaster_of(regressor)
    forecaster.fit(days, store_in_sample_residuals=True)
    assert len(forecaster.predict(5)) == 5
    forecaster.predict_interval(5)
    assert len(forecaster.get_feature_importances()) == 14


@check("mlforecast")
def check_mlforecast(classifier, regressor):
    from mlforecast import MLForecast

    table = pd.DataFrame({"unique_id": "a", "ds": DAYS, "y": SERIES.to_numpy()})
    forecast = MLForecast(
        models={"m": regressor}, freq="D", lags=[1, 7], date_features=["dayofweek"]
    )
    assert len(forecast.fit(table).predict(5)) == 5
    forecast.cross_validation(table, n_windows=2, h=5)


@check("treelite")
def check_treelite(classifier, regressor):
    import treelite

    model = classifier.fit(X.astype("float32"), Y)
    booster = model.to_xgboost() if hasattr(model, "to_xgboost") else model.get_booster()
    forest = treelite.frontend.from_xgboost(booster)
    found = treelite.gtil.predict(forest, X.to_numpy("float32")).ravel()
    assert np.allclose(found, model.predict_proba(X.astype("float32"))[:, 1], rtol=1e-4)


@check("m2cgen")
def check_m2cgen(classifier, regressor):
    import m2cgen

    model = regressor.fit(XR, YR)
    if isinstance(model, sklboost.XGBRegressorLite):
        import xgboost

        with tempfile.TemporaryDirectory() as folder:
            model.save_model(f"{folder}/model.json")
            model = xgboost.XGBRegressor()
            model.load_model(f"{folder}/model.json")
    variables = {}
    exec(m2cgen.export_to_python(model), variables)
    found = [variables["score"](row) for row in XR.to_numpy()[:20]]
    assert np.allclose(found, model.predict(XR[:20]), rtol=0.01)


@check("scikit-optimize")
def check_skopt(classifier, regressor):
    from skopt import BayesSearchCV

    space = {"max_depth": (2, 5), "learning_rate": (0.01, 0.5, "log-uniform")}
    search = BayesSearchCV(classifier, space, n_iter=4, cv=3, random_state=0).fit(X, Y)
    assert search.best_score_ > 0.85


@check("optuna")
def check_optuna(classifier, regressor):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    from sklearn.model_selection import cross_val_score

    ours = isinstance(classifier, sklboost.XGBClassifierLite)
    data = sklboost.bin_features(X) if ours else X

    def goal(trial):
        model = clone(classifier).set_params(max_depth=trial.suggest_int("max_depth", 2, 6))
        return cross_val_score(model, data, Y, cv=3).mean()

    study = optuna.create_study(direction="maximize")
    study.optimize(goal, n_trials=4, n_jobs=2)
    assert study.best_value > 0.85

    from optuna_integration import XGBoostPruningCallback

    def pruned_goal(trial):
        callback = XGBoostPruningCallback(trial, "validation_0-logloss")
        model = clone(classifier).set_params(
            learning_rate=trial.suggest_float("learning_rate", 0.001, 0.5),
            callbacks=[callback],
            eval_metric="logloss",
        )
        model.fit(X[::2], Y[::2], eval_set=[(X[1::2], Y[1::2])], verbose=False)
        return model.evals_result()["validation_0"]["logloss"][-1]

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(pruned_goal, n_trials=12)
    assert {"PRUNED", "COMPLETE"} == {trial.state.name for trial in study.trials}


@check("imbalanced-learn")
def check_imblearn(classifier, regressor):
    from imblearn.ensemble import BalancedBaggingClassifier, EasyEnsembleClassifier
    from imblearn.over_sampling import SMOTE
    from imblearn.pipeline import make_pipeline as make_sampled

    assert make_sampled(SMOTE(random_state=0), clone(classifier)).fit(X, Y).score(X, Y) > 0.9
    assert BalancedBaggingClassifier(clone(classifier), n_estimators=3).fit(X, Y).score(X, Y) > 0.9
    EasyEnsembleClassifier(n_estimators=2, estimator=clone(classifier)).fit(X, Y)


@check("category_encoders")
def check_category_encoders(classifier, regressor):
    from category_encoders import CatBoostEncoder, TargetEncoder

    table = X.assign(kind=np.where(X["f0"] > 14, "large", "small"))
    for encoder in (TargetEncoder(), CatBoostEncoder()):
        assert make_pipeline(encoder, clone(classifier)).fit(table, Y).score(table, Y) > 0.9


@check("feature-engine")
def check_feature_engine(classifier, regressor):
    from feature_engine.selection import RecursiveFeatureElimination, SelectByShuffling

    assert SelectByShuffling(clone(classifier), cv=3).fit(X, Y).transform(X).shape[1] < 8
    RecursiveFeatureElimination(clone(classifier), cv=3).fit(X, Y).transform(X)


@check("Boruta")
def check_boruta(classifier, regressor):
    from boruta import BorutaPy

    selector = BorutaPy(classifier, n_estimators=10, max_iter=25, random_state=0)
    selector.fit(X.to_numpy(), Y.to_numpy())
    assert (selector.support_ | selector.support_weak_).any()


@check("BorutaShap")
def check_boruta_shap(classifier, regressor):
    from BorutaShap import BorutaShap

    if isinstance(classifier, sklboost.XGBClassifierLite):
        importlib.import_module("sklboost.shap")
    selector = BorutaShap(model=classifier, importance_measure="shap", classification=True)
    selector.fit(X=X, y=Y, n_trials=4, sample=False, verbose=False, random_state=0)


@check("shap")
def check_shap(classifier, regressor):
    import shap

    model = regressor.fit(XR, YR)
    if isinstance(model, sklboost.XGBRegressorLite):
        importlib.import_module("sklboost.shap")
    for explainer in (shap.TreeExplainer(model), shap.Explainer(model)):
        found = explainer(XR[:20])
        assert np.allclose(
            found.values.sum(1) + found.base_values, model.predict(XR[:20]), rtol=1e-3
        )


@check("lime")
def check_lime(classifier, regressor):
    from lime.lime_tabular import LimeTabularExplainer

    model = classifier.fit(X.to_numpy(), Y)
    explainer = LimeTabularExplainer(X.to_numpy(), feature_names=list(X), random_state=0)
    explained = explainer.explain_instance(X.to_numpy()[0], model.predict_proba, num_samples=500)
    assert len(explained.as_list()) == 8


@check("dalex")
def check_dalex(classifier, regressor):
    import dalex

    explainer = dalex.Explainer(classifier.fit(X, Y), X, Y, verbose=False)
    explainer.model_performance()
    explainer.model_parts(B=1)
    explainer.predict_parts(X[:1])
    explainer.model_profile(N=50, verbose=False)


@check("interpret-core")
def check_interpret(classifier, regressor):
    from interpret.blackbox import PartialDependence

    model = classifier.fit(X, Y)
    PartialDependence(model, X).explain_global()


@check("doubleml")
def check_doubleml(classifier, regressor):
    import doubleml

    table = XR.assign(y=YR, d=(XR["bmi"] > 0).astype(int))[["age", "s1", "s2", "bp", "y", "d"]]
    data = doubleml.DoubleMLData(table, "y", "d")
    for kind in (doubleml.DoubleMLPLR, doubleml.DoubleMLIRM):
        learner = regressor if kind is doubleml.DoubleMLPLR else classifier
        assert np.isfinite(kind(data, clone(regressor), clone(learner), n_folds=3).fit().coef).all()


@check("econml")
def check_econml(classifier, regressor):
    from econml.dml import LinearDML, NonParamDML
    from econml.metalearners import XLearner

    treated = (XR["bmi"] > 0).astype(int).to_numpy()
    controls, y = XR[["age", "s1", "s2", "bp"]].to_numpy(), YR.to_numpy()
    first = dict(
        model_y=clone(regressor), model_t=clone(classifier), discrete_treatment=True, random_state=0
    )
    LinearDML(**first).fit(y, treated, X=controls).effect_interval(controls)
    NonParamDML(model_final=clone(regressor), **first).fit(y, treated, X=controls).effect(controls)
    learner = XLearner(models=clone(regressor), propensity_model=clone(classifier))
    assert np.isfinite(learner.fit(y, treated, X=controls).effect(controls)).all()


@check("econml")
def check_econml_shap(classifier, regressor):
    from econml.dml import NonParamDML

    if isinstance(regressor, sklboost.XGBRegressorLite):
        importlib.import_module("sklboost.shap")
    treated = (XR["bmi"] > 0).astype(int).to_numpy()
    controls, y = XR[["age", "s1", "s2", "bp"]].to_numpy(), YR.to_numpy()
    first = dict(model_y=clone(regressor), model_t=clone(classifier), discrete_treatment=True)
    NonParamDML(model_final=regressor, **first).fit(y, treated, X=controls).shap_values(
        controls[:50]
    )


@check("yellowbrick")
def check_yellowbrick(classifier, regressor):
    import matplotlib as mpl

    mpl.use("Agg")
    from yellowbrick.classifier import ROCAUC, ClassificationReport
    from yellowbrick.model_selection import FeatureImportances, LearningCurve
    from yellowbrick.regressor import ResidualsPlot

    for kind in (ROCAUC, ClassificationReport):
        kind(clone(classifier), force_model=True).fit(X, Y).score(X, Y)
    FeatureImportances(clone(classifier)).fit(X, Y)
    LearningCurve(clone(classifier), cv=3).fit(X, Y)
    ResidualsPlot(clone(regressor), force_model=True).fit(XR, YR).score(XR, YR)


@check("fairlearn")
def check_fairlearn(classifier, regressor):
    from fairlearn.postprocessing import ThresholdOptimizer
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    group = (X["f1"] > 19).astype(int)
    mitigated = ExponentiatedGradient(clone(classifier), DemographicParity(), max_iter=3)
    mitigated.fit(X, Y, sensitive_features=group).predict(X)
    chosen = ThresholdOptimizer(estimator=clone(classifier), predict_method="predict_proba")
    chosen.fit(X, Y, sensitive_features=group).predict(X, sensitive_features=group)


@check("mapie")
def check_mapie(classifier, regressor):
    from mapie.regression import CrossConformalRegressor, SplitConformalRegressor

    split = SplitConformalRegressor(regressor.fit(XR[:300], YR[:300]), prefit=True)
    points, intervals = split.conformalize(XR[300:], YR[300:]).predict_interval(XR)
    assert (intervals[:, 0, 0] <= points).all()
    cross = CrossConformalRegressor(clone(regressor), cv=3).fit_conformalize(XR, YR)
    cross.predict_interval(XR)


@check("skops")
def check_skops(classifier, regressor):
    import skops.io

    model = classifier.fit(X, Y)
    file = skops.io.dumps(model)
    loaded = skops.io.loads(file, trusted=skops.io.get_untrusted_types(data=file))
    assert (loaded.predict(X) == model.predict(X)).all()


@check("hyperopt")
def check_hyperopt(classifier, regressor):
    from hyperopt import fmin, hp, tpe
    from sklearn.model_selection import cross_val_score

    def loss(point):
        model = clone(classifier).set_params(max_depth=int(point["max_depth"]))
        return -cross_val_score(model, X, Y, cv=3).mean()

    space = {"max_depth": hp.quniform("max_depth", 2, 6, 1)}
    fmin(loss, space, tpe.suggest, 4, show_progressbar=False, rstate=np.random.default_rng(0))


@check("flaml")
def check_flaml(classifier, regressor):
    from flaml import tune
    from sklearn.model_selection import cross_val_score

    def score(config):
        return {"score": cross_val_score(clone(classifier).set_params(**config), X, Y, cv=3).mean()}

    space = {"max_depth": tune.randint(2, 6)}
    found = tune.run(score, space, metric="score", mode="max", num_samples=4, verbose=0)
    assert found.best_result["score"] > 0.85


@check("cleanlab")
def check_cleanlab(classifier, regressor):
    from cleanlab.classification import CleanLearning

    assert CleanLearning(clone(classifier)).fit(X, Y).score(X, Y) > 0.9


@check("dice-ml")
def check_dice(classifier, regressor):
    import dice_ml

    model = clone(classifier).fit(X, Y)
    data = dice_ml.Data(dataframe=X.assign(y=Y), continuous_features=list(X), outcome_name="y")
    explained = dice_ml.Model(model=model, backend="sklearn", model_type="classifier")
    for method in ("random", "genetic", "kdtree"):
        explainer = dice_ml.Dice(data, explained, method=method)
        explainer.generate_counterfactuals(X[:1], total_CFs=2, desired_class="opposite")


@check("sktime")
def check_sktime(classifier, regressor):
    from sktime.forecasting.compose import make_reduction

    series = SERIES.asfreq("D")
    for strategy in ("recursive", "direct", "multioutput", "dirrec"):
        forecaster = make_reduction(clone(regressor), strategy=strategy, window_length=12)
        assert len(forecaster.fit(series, fh=[1, 2, 3]).predict()) == 3


@check("scikit-lego")
def check_sklego(classifier, regressor):
    from sklego.meta import GroupedClassifier, Thresholder, ZeroInflatedRegressor

    assert Thresholder(clone(classifier), threshold=0.3).fit(X, Y).score(X, Y) > 0.9
    GroupedClassifier(clone(classifier), groups=["sex"]).fit(XR, YR > 150).predict(XR)
    mixed = ZeroInflatedRegressor(clone(classifier), clone(regressor))
    mixed.fit(XR, YR.where(YR > 100, 0)).predict(XR)


@check("tsfresh")
def check_tsfresh(classifier, regressor):
    from tsfresh import extract_features
    from tsfresh.feature_extraction import MinimalFCParameters

    table = pd.DataFrame({"id": np.repeat(np.arange(20), 10), "x": SERIES.to_numpy()})
    few = {"default_fc_parameters": MinimalFCParameters(), "n_jobs": 0}
    features = extract_features(table, column_id="id", disable_progressbar=True, **few)
    assert clone(classifier).fit(features, np.arange(20) % 2).predict(features).shape == (20,)


@check("probatus")
def check_probatus(classifier, regressor):
    from probatus.feature_elimination import ShapRFECV

    if isinstance(classifier, sklboost.XGBClassifierLite):
        importlib.import_module("sklboost.shap")
    selector = ShapRFECV(clone(classifier), step=2, cv=3, scoring="roc_auc", n_jobs=1)
    assert len(selector.fit_compute(X, Y)) > 1


@check("eli5")
def check_eli5(classifier, regressor):
    import eli5

    model = classifier.fit(X, Y)
    booster = model.to_xgboost() if hasattr(model, "to_xgboost") else model
    for explanation in (eli5.explain_weights(booster), eli5.explain_prediction(booster, X.iloc[0])):
        assert explanation.error is None


@check("shapiq")
def check_shapiq(classifier, regressor):
    import shapiq

    rows = XR.to_numpy()
    model = regressor.fit(rows, YR)
    explainer = shapiq.TabularExplainer(model=model, data=rows, index="k-SII", max_order=2)
    explainer.explain(rows[0], budget=64)


def outcome(function, classifier, regressor):
    """Say "works" and for how long, or the error; and the warnings that name the model."""
    started = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("always")
            function(classifier, regressor)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return f"works, {time.perf_counter() - started:.1f} s"


def main(names):
    for name in names or CHECKS:
        package, function = CHECKS[name]
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            print(f"{name}: not installed")
            continue
        settings = {"n_estimators": 20, "max_depth": 3, "n_jobs": 1}
        ours = sklboost.XGBClassifierLite(**settings), sklboost.XGBRegressorLite(**settings)
        print(f"{name} {version}: {outcome(function, *ours)}", flush=True)
        try:
            import xgboost
        except ImportError:
            continue
        theirs = xgboost.XGBClassifier(**settings), xgboost.XGBRegressor(**settings)
        print(f"    XGBoost: {outcome(function, *theirs)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
