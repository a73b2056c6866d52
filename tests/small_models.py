"""Small models for tests that are not about how good they are."""

from sklearn.base import is_classifier

from sklboost import XGBClassifierLite, XGBRegressorLite

ESTIMATORS = [XGBRegressorLite, XGBClassifierLite]


def small(estimator, **parameters):
    return estimator(**(dict(n_estimators=8, max_depth=3) | parameters))


def outputs(model, X):
    return model.predict_proba(X) if is_classifier(model) else model.predict(X)


def features(model, X, *name):
    """Return the features that a fitted model reads from rows."""
    return model._fitted.read(X, *name)
