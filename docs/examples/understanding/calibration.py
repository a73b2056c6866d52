"""
Class weights and calibrated probabilities
==========================================

The bank calls whoever will earn more than 50,000 dollars with a probability of at least 0.3. To
find more of them, somebody trains with balanced class weights. The list gets longer, and the
probabilities on it are wrong. This example compares three remedies.
"""

# %%
# Data
# ----
#
# The data are 5,000 people of the census of 1994; a quarter of them earn more. Half of the rows are
# for training, half for the test.

import pandas as pd
from sklearn.model_selection import train_test_split

adult = pd.read_csv("../data/adult.csv.gz")
X, y = adult.drop(columns="income"), (adult["income"] == ">50K").astype(int)
for name in X.select_dtypes(exclude="number"):
    X[name] = X[name].astype("category")
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

# %%
# Four models
# -----------
#
# The models are one without weights; one with balanced weights; one with balanced weights and
# ``calibrated_prior``, which shifts the log-odds after the training until the mean probability is
# the share of the class; and one with scikit-learn's ``CalibratedClassifierCV``, which fits a curve
# to the scores of five folds.

import warnings

from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from sklboost import UnknownCategoryWarning, XGBClassifierLite

# Words that no row of a fold has count as missing.
warnings.simplefilter("ignore", UnknownCategoryWarning)

settings = dict(n_estimators=80, learning_rate=0.1, max_depth=3)
weighted = XGBClassifierLite(**settings, class_weight="balanced")
models = {
    "as it is": XGBClassifierLite(**settings),
    "balanced": weighted,
    "balanced, prior": XGBClassifierLite(
        **settings, class_weight="balanced", calibrated_prior=True
    ),
    "balanced, isotonic": CalibratedClassifierCV(weighted, method="isotonic"),
}
probabilities = {
    name: model.fit(X_train, y_train).predict_proba(X_test)[:, 1] for name, model in models.items()
}
print(f"{'':<20}mean p   log loss   Brier   AUC      (share of the class: {y_test.mean():.3f})")
for name, p in probabilities.items():
    print(
        f"{name:<20}{p.mean():.3f}    {log_loss(y_test, p):.3f}      "
        f"{brier_score_loss(y_test, p):.3f}   {roc_auc_score(y_test, p):.3f}"
    )

# %%
# The curves
# ----------
#
# People are sorted by their probability into ten groups of equal size. On the diagonal, the share
# of the group that earns more is what the model said.

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay

figure, axis = plt.subplots(figsize=(6, 5), layout="constrained")
for name, p in probabilities.items():
    CalibrationDisplay.from_predictions(
        y_test, p, n_bins=10, strategy="quantile", name=name, ax=axis
    )
axis.set(xlabel="mean probability of the group", ylabel="share that earns more")
axis.legend(frameon=False)
plt.show()

# %%
# Or move the threshold
# ---------------------
#
# The weights should find more of the rare class. Another threshold does that, too, without new
# trees: with the same number of calls, as many of them are right.

called = (probabilities["balanced"] > 0.5).sum()
for name in ("balanced", "as it is"):
    chosen = probabilities[name].argsort()[-called:]
    threshold = probabilities[name][chosen].min()
    found = y_test.to_numpy()[chosen].sum()
    print(f"{name:<10}threshold {threshold:.2f}: {called} called, {found} of {y_test.sum()} found")

# %%
# .. rubric:: What is learnt
#
# Without weights the probabilities are right, since that is what log loss asks for. Weights make
# all of them larger. ``calibrated_prior`` corrects them with one number; a calibration curve does
# so at five times the cost. The order of the people, which the AUC measures, is nearly the same in
# all four models, so all can reach nearly the same with the right threshold.
#
# :doc:`Classes of unequal size </docs/how_to/imbalanced_classes>` has the same on larger data.
