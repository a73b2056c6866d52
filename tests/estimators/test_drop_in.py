"""What users of other libraries write every day: the same code with their classes and with ours.

A snippet takes the classes of a library and returns by name what its user would look at. Of arrays
the shape must agree and whether they hold numbers, of floats the first digit; anything else must be
equal. Ours may not warn.
"""

import copy
import pickle
import re
import warnings
from types import SimpleNamespace

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import xgboost
from sklearn import config_context
from sklearn import ensemble as sk
from sklearn import model_selection as ms
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, make_classification, make_multilabel_classification
from sklearn.feature_selection import RFECV, SelectFromModel
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import f1_score, get_scorer, mean_absolute_error
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import sklboost
from tests.conftest import ROOT

X, Y = make_classification(240, 6, n_informative=4, random_state=0)
TARGET = X[:, 0] - 2 * X[:, 1] + np.abs(X[:, 2])
BOTH = np.c_[TARGET, -TARGET]
TRAIN, TEST = slice(0, 160), slice(160, 240)
FRAME = pd.DataFrame(X, columns=list("abcdef"))
MIXED = FRAME.assign(
    colour=pd.Categorical(np.where(X[:, 3] > 0, "red", "green")),
    size=pd.Categorical(np.where(X[:, 4] > 1, None, "large")),
    flag=X[:, 5] > 0,
    count=pd.array([1, 2, None, 4] * 60, dtype="Int64"),
)
IRIS, SPECIES = load_iris(return_X_y=True)
MANY_X, MANY = make_multilabel_classification(120, 8, n_classes=3, random_state=0)
WEIGHTS, GROUPS = np.where(Y == 1, 3.0, 1.0), np.arange(240) % 9
WATCHED = dict(eval_set=[(X[TRAIN], Y[TRAIN]), (X[TEST], Y[TEST])], verbose=False)

OURS = SimpleNamespace(
    XGBClassifier=sklboost.XGBClassifierLite,
    XGBRegressor=sklboost.XGBRegressorLite,
    XGBRFClassifier=sklboost.XGBRFClassifierLite,
    XGBRFRegressor=sklboost.XGBRFRegressorLite,
    callback=sklboost,
    plot_importance=sklboost.plot_importance,
)


def c(x, **parameters):
    return x.XGBClassifier(**{"n_estimators": 10} | parameters)


def r(x, **parameters):
    return x.XGBRegressor(**{"n_estimators": 10} | parameters)


def classified(model, rows=X, labels=Y, **arguments):
    """Fit on the first rows; what the others become."""
    model.fit(rows[TRAIN], labels[TRAIN], **arguments)
    return dict(
        labels=model.predict(rows[TEST]),
        probabilities=model.predict_proba(rows[TEST]),
        score=float(model.score(rows[TEST], labels[TEST])),
    )


def regressed(model, rows=X, target=TARGET, **arguments):
    """Fit and predict the same rows."""
    prediction = model.fit(rows, target, **arguments).predict(rows)
    return dict(prediction=prediction, kept=share_kept(target, prediction))


def share_kept(target, prediction):
    target = np.asarray(target)
    prediction = np.reshape(prediction, (len(target), -1))[:, 0]
    target = target.reshape(len(target), -1)[:, 0]
    return float(mean_absolute_error(target, prediction) / mean_absolute_error(target, target * 0))


# --- parameters ----------------------------------------------------------------------------------


def log_loss_of(y, raw_score):
    p = 1 / (1 + np.exp(-raw_score))
    return p - y, p * (1 - p)


CLASSIFIERS = {
    "aliases": dict(eta=0.1, nthread=2, seed=7, alpha=0.1, min_split_loss=0.1),
    "what changes nothing": dict(tree_method="hist", device="cpu", verbosity=0),
    "of old notebooks": dict(use_label_encoder=False, eval_metric="logloss"),
    "of xgboost.train": {
        **dict(objective="binary:logistic", eta=0.2, max_depth=4, subsample=0.8, gamma=0.1),
        **{"lambda": 1.5, "colsample_bytree": 0.8, "eval_metric": "auc", "tree_method": "auto"},
    },
    "what XGBoost has": xgboost.XGBClassifier(max_depth=3, n_estimators=10).get_params(),
    "NumPy's numbers": dict(max_depth=np.int32(3), learning_rate=np.float32(0.1)),
    "whole numbers": dict(gamma=0, reg_alpha=0, reg_lambda=1, subsample=1, scale_pos_weight=1),
    "DART": dict(booster="dart", rate_drop=0.1, one_drop=1, normalize_type="forest"),
    "leaf by leaf": dict(grow_policy="lossguide", max_leaves=7, max_depth=0),
    "a forest": dict(n_estimators=1, num_parallel_tree=9, subsample=0.8, colsample_bynode=0.5),
    "imbalance": dict(scale_pos_weight=(Y == 0).sum() / (Y == 1).sum()),
    "a base score": dict(base_score=0.5, max_delta_step=1, min_child_weight=2),
    "hinge": dict(objective="binary:hinge", max_bin=64),
    "an objective of one's own": dict(objective=log_loss_of),
}
REGRESSORS = {
    "what XGBoost has": xgboost.XGBRegressor(n_estimators=10).get_params(),
    "absolute error": dict(objective="reg:absoluteerror"),
    "quantiles": dict(objective="reg:quantileerror", quantile_alpha=np.array([0.1, 0.9])),
    "constraints as text": dict(
        monotone_constraints="(1,-1,0,0,0,0)", interaction_constraints="[[0, 1], [2, 3]]"
    ),
    "weights of features": dict(feature_weights=[1, 1, 1, 0, 0, 0], colsample_bynode=0.5),
    "a learning rate of 0": dict(learning_rate=0.0),
    "types of features": dict(feature_types=["q"] * 6, enable_categorical=True),
    "constraints in a tuple": dict(monotone_constraints=(1, -1, 0, 0, 0, 0)),
}
SEVERAL_CLASSES = {
    "softmax": dict(objective="multi:softmax"),
    "a base score a class": dict(base_score=[0.3, 0.3, 0.4]),
    "softprob": dict(objective="multi:softprob", num_class=3, eval_metric="mlogloss"),
}


# --- fit, predict and what is left afterwards ----------------------------------------------------


def rounds(x):
    model = c(x, n_estimators=200, early_stopping_rounds=5, eval_metric=["auc", "logloss"])
    model.fit(X[TRAIN], Y[TRAIN], **WATCHED)
    log = model.evals_result()
    best, used = model.best_iteration, (0, model.best_iteration + 1)
    return dict(
        names=[(name, list(metrics)) for name, metrics in log.items()],
        score=model.best_score,
        found=model.best_score == log["validation_1"]["logloss"][best],
        since=len(log["validation_1"]["logloss"]) - best,
        used=bool((model.predict(X) == model.predict(X, iteration_range=used)).all()),
        kinds=[type(best).__name__, type(log["validation_0"]["auc"][-1]).__name__],
    )


def without_early_stopping(x):
    model = c(x).fit(X, Y, eval_set=[(X, Y)], verbose=0)
    return dict(best=[hasattr(model, name) for name in ("best_iteration", "best_score")])


def callbacks(x):
    class Three(x.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            self.names = list(evals_log)
            return epoch == 2

    three, slower = Three(), x.callback.LearningRateScheduler(lambda epoch: 0.3 * 0.9**epoch)
    stop = x.callback.EarlyStopping(rounds=3, save_best=True, metric_name="auc", maximize=True)
    model = c(x, callbacks=[stop, slower], eval_metric="auc", n_estimators=50)
    model.fit(X[TRAIN], Y[TRAIN], **WATCHED)
    c(x, callbacks=[three]).fit(X, Y, eval_set=[(X, Y)], verbose=False)
    return dict(score=model.best_score, stopped=model.best_iteration < 49, names=three.names)


def share_of_errors(y, p):
    return 1 - f1_score(y, p > 0.5)


def metrics(x):
    found = {}
    names = ["auc", "aucpr", "error", "error@0.3", "logloss", "rmse", "mae"]
    for metric in [*names, share_of_errors]:
        model = c(x, eval_metric=metric).fit(X[TRAIN], Y[TRAIN], **WATCHED)
        name = metric if isinstance(metric, str) else metric.__name__
        found[name] = model.evals_result()["validation_1"][name][-1]
    return found


def keywords_of_fit(x):
    given = dict(base_margin=None, verbose=50, xgb_model=None, base_margin_eval_set=None)
    pair = dict(eval_set=[(X[TEST], Y[TEST])], sample_weight_eval_set=[WEIGHTS[TEST]])
    return classified(c(x), sample_weight=WEIGHTS[TRAIN], **given, **pair)


def continued(x):
    first = c(x).fit(X, Y)
    margin = first.predict(X, output_margin=True)
    after = c(x).fit(X, Y, base_margin=margin)
    further = c(x).fit(X, Y, xgb_model=first).score(X, Y) >= first.score(X, Y)
    return dict(margin=margin, after=after.predict(X, base_margin=margin), further=further)


def predictions(x):
    model, several = c(x).fit(FRAME, Y), c(x).fit(IRIS, SPECIES)
    margin, p = model.predict(FRAME, output_margin=True), model.predict_proba(FRAME)[:, 1]
    return dict(
        margin=margin,
        link=bool(np.allclose(1 / (1 + np.exp(-margin)), p, atol=1e-5)),
        margins=several.predict(IRIS, output_margin=True),
        names=model.predict(FRAME.rename(columns=str.upper), validate_features=False),
        some=model.predict_proba(FRAME, iteration_range=(0, 3)),
        all=model.predict_proba(FRAME, iteration_range=(0, 0)),
        leaves=model.apply(FRAME),
        one=model.predict(FRAME.iloc[[0]]),
    )


def margin_of_a_regressor(x):
    model = r(x, objective="count:poisson").fit(X, np.exp(TARGET / 4))
    margin = model.predict(X, output_margin=True)
    return dict(margin=margin, link=bool(np.allclose(np.exp(margin), model.predict(X), rtol=1e-4)))


def attributes(x):
    model, several = c(x).fit(FRAME, Y), c(x).fit(IRIS, SPECIES)
    return dict(
        classes=[list(model.classes_), int(model.n_classes_), int(several.n_classes_)],
        features=[model.n_features_in_, list(model.feature_names_in_)],
        intercepts=[np.shape(m.intercept_) for m in (model, several)],
        intercept=float(r(x).fit(X, TARGET + 3).intercept_[0]),
    )


def importances(x):
    kinds = ["gain", "weight", "cover", "total_gain", "total_cover"]
    models = [c(x, importance_type=kind, max_depth=3).fit(X, Y) for kind in kinds]
    found = {k: m.feature_importances_ for k, m in zip(kinds, models, strict=True)}
    return found | {f"sum of {kind}": float(found[kind].sum()) for kind in kinds}


def copies(x):
    model = c(x, monotone_constraints={"a": 1}).fit(FRAME, Y)
    others = [copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    alike = [(o.predict_proba(FRAME) == model.predict_proba(FRAME)).all() for o in others]
    again = x.XGBClassifier(**model.get_params())
    same_parameters = str(again.get_params()) == str(clone(model).get_params())
    return dict(alike=bool(np.all(alike)), parameters=same_parameters)


def later_settings(x):
    kept = clone(r(x).set_params(eta=0.05, n_estimators=30, **{"lambda": 2.0}))
    return regressed(kept.set_params(eta=0.2))


def one_keyword_more(x):
    class Named(x.XGBClassifier):
        def __init__(self, title="", **kwargs):
            super().__init__(**kwargs)
            self.title = title

    model = clone(Named(title="mine", n_estimators=5, max_depth=2))
    return dict(title=model.get_params()["title"], depth=model.max_depth) | classified(model)


def forests(x):
    found = x.XGBRFRegressor(n_estimators=20, max_depth=8, random_state=0).fit(X, TARGET).apply(X)
    return dict(leaves=found) | classified(x.XGBRFClassifier(n_estimators=20, subsample=0.9))


def picture(x):
    bars = x.plot_importance(c(x).fit(FRAME, Y), max_num_features=3, height=0.5, title="Which")
    return dict(bars=len(bars.patches), title=bars.get_title())


def routed(x):
    with config_context(enable_metadata_routing=True):
        asking = c(x).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scores = ms.cross_validate(asking, X, Y, params=dict(sample_weight=WEIGHTS))["test_score"]
        search = ms.GridSearchCV(c(x), GRID, cv=ms.GroupKFold(3)).fit(X, Y, groups=GROUPS)
    return dict(best=float(search.best_score_), scores=float(scores.mean()))


# --- data ----------------------------------------------------------------------------------------

DATA = {
    "a frame": lambda x: classified(c(x), FRAME, pd.Series(Y)),
    "categories": lambda x: regressed(r(x, enable_categorical=True, tree_method="hist"), MIXED),
    "polars": lambda x: classified(c(x), pl.DataFrame(FRAME.to_dict("list"))),
    "sparse": lambda x: regressed(r(x), scipy.sparse.csr_array(np.maximum(X, 0))),
    "lists": lambda x: regressed(r(x), X.tolist(), TARGET.tolist()),
    "float32": lambda x: classified(c(x), X.astype(np.float32)),
    "missing": lambda x: classified(c(x, missing=-9), np.where(X > 1, -9, X)),
    "truths": lambda x: dict(score=classified(c(x), X, Y > 0)["score"]),
    "weights": lambda x: classified(c(x), sample_weight=WEIGHTS[TRAIN]),
    "one class": lambda x: dict(always=float(c(x).fit(X, 0 * Y).predict(X).mean())),
    "labels": lambda x: dict(chances=c(x).fit(MANY_X, MANY).predict_proba(MANY_X)),
    "targets": lambda x: regressed(r(x), X, BOTH),
    "one tree": lambda x: regressed(r(x, multi_strategy="multi_output_tree"), X, BOTH),
}

# --- scikit-learn's tools ------------------------------------------------------------------------

GRID = {"max_depth": [2, 3], "learning_rate": [0.1, 0.3]}
DRAWN = {"subsample": [0.5, 0.8, 1.0], "gamma": [0.0, 0.1], "colsample_bytree": np.array([0.6, 1])}
FLAG = make_column_transformer((OneHotEncoder(), ["flag"]))
SCALED = [("scale", StandardScaler())]
TOOLS = {
    "grid": lambda m: ms.GridSearchCV(m, GRID, scoring="roc_auc").fit(X, Y).best_score_,
    "alias": lambda m: ms.GridSearchCV(m, {"eta": [0.1, 0.3]}).fit(X, Y).best_score_,
    "arguments": lambda m: ms.GridSearchCV(m, GRID).fit(X, Y, **WATCHED).best_score_,
    "random": lambda m: ms.RandomizedSearchCV(m, DRAWN, n_iter=3).fit(X, Y).best_score_,
    "pipeline": lambda m: (
        Pipeline([*SCALED, ("model", m)])
        .set_output(transform="pandas")
        .fit(FRAME, Y, model__sample_weight=WEIGHTS, model__verbose=False)
        .score(FRAME, Y)
    ),
    "columns": lambda m: make_pipeline(FLAG, m).fit(MIXED, Y).score(MIXED, Y),
    "folds": lambda m: ms.cross_validate(m, X, Y, scoring=["roc_auc"])["test_roc_auc"].mean(),
    "out of folds": lambda m: ms.cross_val_predict(m, X, Y, method="predict_proba"),
    "learning curve": lambda m: ms.learning_curve(m, X, Y, train_sizes=[0.5, 1.0])[2],
    "calibration": lambda m: CalibratedClassifierCV(m, cv=3).fit(X, Y).predict_proba(X),
    "stacking": lambda m: sk.StackingClassifier([("a", m)], clone(m)).fit(X, Y).score(X, Y),
    "voting": lambda m: sk.VotingClassifier([("a", m)], voting="soft").fit(X, Y).score(X, Y),
    "bagging": lambda m: sk.BaggingClassifier(m, 3, random_state=0).fit(X, Y).score(X, Y),
    # its weights sum to 1
    "AdaBoost": lambda m: (
        sk.AdaBoostClassifier(m.set_params(min_child_weight=0), n_estimators=2)
        .fit(X, Y)
        .score(X, Y)
    ),
    "outputs": lambda m: MultiOutputClassifier(m).fit(MANY_X, MANY * [1, 0, 1]).predict(MANY_X),
    "chain": lambda m: ClassifierChain(m, order=[2, 0, 1]).fit(MANY_X, MANY).predict(MANY_X),
    "elimination": lambda m: RFECV(m, step=2, cv=3).fit(X, Y).support_,
    "selection": lambda m: SelectFromModel(m, threshold="median").fit(X, Y).transform(X),
    "permutations": lambda m: permutation_importance(m.fit(X, Y), X, Y).importances,
    "dependence": lambda m: partial_dependence(m.fit(X, Y), X, [0])["average"],
    "scorers": lambda m: get_scorer("average_precision")(m.fit(X, Y), X, Y),
    "groups": lambda m: ms.cross_val_score(m, X, Y, groups=GROUPS, cv=ms.GroupKFold(3)).mean(),
}


def result(tool, x, **parameters):
    found = tool(c(x, random_state=0, **parameters))
    return dict(found=float(found) if np.ndim(found) == 0 else found)


FUNCTIONS = [
    *(rounds, without_early_stopping, callbacks, metrics, keywords_of_fit, continued, predictions),
    *(margin_of_a_regressor, attributes, importances, copies, later_settings, one_keyword_more),
    *(forests, picture, routed),
]
SNIPPETS = {
    **{f"classifier: {k}": lambda x, p=p: classified(c(x, **p)) for k, p in CLASSIFIERS.items()},
    **{f"regressor: {k}": lambda x, p=p: regressed(r(x, **p)) for k, p in REGRESSORS.items()},
    **{
        f"classes: {k}": lambda x, p=p: classified(
            c(x, **p), np.r_[IRIS, IRIS], np.r_[SPECIES, SPECIES]
        )
        for k, p in SEVERAL_CLASSES.items()
    },
    **{f"data: {name}": snippet for name, snippet in DATA.items()},
    **{f"tool: {name}": lambda x, t=tool: result(t, x) for name, tool in TOOLS.items()},
    **{function.__name__: function for function in FUNCTIONS},
}


# --- what is not here, and the way that an error names -------------------------------------------

REFUSED = {
    "exact": (lambda x: c(x, tree_method="exact"), "always grown from histograms"),
    "CUDA": (lambda x: c(x, device="cuda"), "there is only the CPU"),
    "linear": (lambda x: c(x, booster="gblinear").fit(X, Y), "'gbtree'"),
    "ranks": (lambda x: r(x, objective="rank:pairwise").fit(X, Y), "reg:squarederror"),
    "survival": (lambda x: r(x, objective="survival:cox").fit(X, Y), "reg:squarederror"),
    "margins": (lambda x: c(x, objective="binary:logitraw").fit(X, Y), "'binary:logistic'"),
    "booster": (lambda x: c(x).fit(X, Y).get_booster(), r"trees_to_dataframe\(\)"),
    "native": (lambda x: c(x).get_xgb_params(), r"get_params\(\)"),
    "old fit": (
        lambda x: c(x).fit(X, Y, eval_metric="auc"),
        r"XGBClassifierLite\(eval_metric=...\)",
    ),
    "the old class": (lambda x: sklboost.XGBClassifier(), "take XGBClassifierLite"),
    "the native interface": (lambda x: sklboost.train({}, sklboost.DMatrix(X)), r"fit\(X, y\)"),
    "misspelt": (lambda x: c(x, max_dept=3), "'max_depth'"),
}


# --- LightGBM and HistGradientBoosting -----------------------------------------------------------

TEXT = np.where(Y == 1, "yes", "no")
SLOW = dict(n_estimators=60, learning_rate=0.2, n_jobs=1)
LIGHTGBM = {
    "parameters": lambda x: classified(c(x, **SLOW, reg_alpha=0.1, colsample_bytree=0.8)),
    "text": lambda x: dict(classes=list(c(x, n_jobs=1).fit(X, TEXT).classes_)),
    "number of classes": lambda x: dict(n=int(c(x, n_jobs=1).fit(IRIS, SPECIES).n_classes_)),
    "balanced": lambda x: classified(c(x, **SLOW, class_weight="balanced")),
    "weights": lambda x: classified(c(x, **SLOW), sample_weight=WEIGHTS[TRAIN]),
    "L1": lambda x: regressed(r(x, **SLOW, objective="regression_l1")),
    "an objective of one's own": lambda x: regressed(
        r(x, **SLOW, objective=lambda y, p: (p - y, np.ones_like(y)))
    ),
    "constraints": lambda x: regressed(r(x, **SLOW, monotone_constraints=[1, -1, 0, 0, 0, 0])),
    "categories": lambda x: regressed(r(x, **SLOW), MIXED),
    "early stopping": lambda x: classified(
        c(x, **SLOW, early_stopping_rounds=5), eval_set=[(X[TEST], Y[TEST])]
    ),
    "continued": lambda x: regressed(
        r(x, **SLOW), init_model=r(x, n_jobs=1, learning_rate=0.2).fit(X, TARGET)
    ),
    "extra trees": lambda x: classified(c(x, **SLOW, extra_trees=True)),
}
HISTOGRAMS = {
    "defaults": lambda x: classified(x.XGBClassifier()),
    "parameters": lambda x: regressed(x.XGBRegressor(learning_rate=0.1, max_depth=3)),
    "dtypes": lambda x: regressed(x.XGBRegressor(categorical_features="from_dtype"), MIXED),
    "mask": lambda x: regressed(
        x.XGBRegressor(categorical_features=[False] * 5 + [True]), np.c_[X[:, :5], Y]
    ),
    "names": lambda x: regressed(x.XGBRegressor(categorical_features=["y"]), FRAME.assign(y=Y)),
    "balanced": lambda x: classified(x.XGBClassifier(class_weight="balanced")),
    "scores": lambda x: dict(found=x.XGBClassifier().fit(X, Y).decision_function(X)),
    "stages": lambda x: dict(n=len(list(x.XGBRegressor().fit(X, TARGET).staged_predict(X)))),
    "chances": lambda x: dict(p=next(x.XGBClassifier().fit(X, Y).staged_predict_proba(X))),
    "missing": lambda x: classified(x.XGBClassifier(), np.where(X > 1, np.nan, X)),
}
PEERS = {
    "LightGBM": (
        LIGHTGBM,
        SimpleNamespace(XGBClassifier=lightgbm.LGBMClassifier, XGBRegressor=lightgbm.LGBMRegressor),
    ),
    "HistGradientBoosting": (
        HISTOGRAMS,
        SimpleNamespace(
            XGBClassifier=sk.HistGradientBoostingClassifier,
            XGBRegressor=sk.HistGradientBoostingRegressor,
        ),
    ),
}


def same(ours, theirs):
    """Assert that a user would see no difference."""
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        own = ours[name]
        if isinstance(value, np.ndarray):
            assert (name, own.shape, own.dtype.kind in "biuf") == (name, value.shape, True)
        elif isinstance(value, float):
            assert own == pytest.approx(value, abs=0.1), name
        else:
            assert own == value, name


def of_theirs(snippet, library):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is going to change there
        return snippet(library)


# Of the tools of scikit-learn these are quick; others are in tests/test_scikit_learn_tools.py.
QUICK_TOOLS = {"tool: alias", "tool: arguments", "tool: pipeline", "tool: selection"}


@pytest.mark.parametrize(
    "snippet",
    [
        pytest.param(
            snippet,
            id=name,
            marks=pytest.mark.slow if name.startswith("tool:") and name not in QUICK_TOOLS else (),
        )
        for name, snippet in SNIPPETS.items()
    ],
)
def test_code_for_xgboost_runs(snippet):
    with xgboost.config_context(verbosity=0, nthread=1):
        theirs = of_theirs(snippet, xgboost)
    same(snippet(OURS), theirs)


@pytest.mark.parametrize(
    ("snippet", "peer"),
    [(snippet, peer) for snippets, peer in PEERS.values() for snippet in snippets.values()],
    ids=[f"{peer}: {name}" for peer, (snippets, _) in PEERS.items() for name in snippets],
)
def test_code_for_others_runs(snippet, peer):
    same(snippet(OURS), of_theirs(snippet, peer))


@pytest.mark.parametrize(("snippet", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_here_is_an_error_that_names_the_way(snippet, words):
    with pytest.raises((AttributeError, TypeError, ValueError), match=words):
        snippet(OURS)


def test_the_numbers_of_the_page():
    page = (ROOT / "docs" / "moving" / "from_xgboost.md").read_text()
    total, running = map(int, re.search(r"Of (\d+) snippets.*?, (\d+) run", page, re.S).groups())
    assert (total, running) == (len(SNIPPETS) + len(REFUSED), len(SNIPPETS))
