"""
Predictions that only rise
==========================

A physician will not believe that a higher blood pressure lowers the risk, whatever the data of 442
patients seem to say. A monotone constraint rules it out. Does that make the model worse? And how do
we know that the constraint holds everywhere, not only where somebody looked?
"""

# %%
# Data
# ----
#
# The data are ten measurements of 442 patients, and how far their diabetes had progressed a year
# later. We claim that the progression does not fall with the body mass index, the blood pressure
# and the logarithm of triglycerides (``s5``), and does not rise with the "good" cholesterol HDL
# (``s3``), other things being equal.

from sklearn.datasets import load_diabetes

from sklboost import XGBRegressorLite

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
known = {"bmi": 1, "bp": 1, "s5": 1, "s3": -1}
settings = dict(n_estimators=60, learning_rate=0.1, max_depth=3)
free = XGBRegressorLite(**settings).fit(X, y)
constrained = XGBRegressorLite(**settings, monotone_constraints=known).fit(X, y)

# %%
# What the two have learnt
# ------------------------
#
# The plot shows the predictions for thirty patients as their blood pressure is varied. The free
# model predicts less progression at some higher pressures; the constrained one never does.

import matplotlib.pyplot as plt
import numpy as np

pressures = np.linspace(X["bp"].min(), X["bp"].max(), 120)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
for axis, (name, model) in zip(
    axes, {"free": free, "constrained": constrained}.items(), strict=True
):
    for patient in range(0, 300, 10):
        rows = X.iloc[[patient] * len(pressures)].assign(bp=pressures)
        axis.plot(pressures, model.predict(rows), color="C0", alpha=0.4, linewidth=1)
    axis.set(title=name, xlabel="blood pressure")
axes[0].set_ylabel("predicted progression")
plt.show()

# %%
# A proof
# -------
#
# Curves show some patients. ``verify_monotone`` looks at the trees themselves: every pair of leaves
# that two rows could reach which differ in this feature only. If all pairs of all trees are in
# order, so is every prediction.

print(constrained.verify_monotone())
report = free.verify_monotone(known)
print(f"the free model: {'holds' if report.holds else 'does not hold'}; the worst step against bp:")
worst = max(report.features["bp"].violations, key=lambda violation: abs(violation.step))
print(
    f"tree {worst.tree}, from leaf {worst.lower_leaf} to leaf {worst.upper_leaf}: {worst.step:.1f}"
)

# %%
# Better or worse?
# ----------------
#
# Cross-validation is repeated ten times with five folds. Both models see the same folds, so they
# are compared fold by fold.

from sklearn.model_selection import RepeatedKFold, cross_val_score

folds = RepeatedKFold(n_splits=5, n_repeats=10, random_state=0)
scores = {
    name: cross_val_score(model, X, y, cv=folds)
    for name, model in {"free": free, "constrained": constrained}.items()
}
for name, values in scores.items():
    print(f"{name:<12}R² {values.mean():.3f}")
better = scores["constrained"] > scores["free"]
print(f"constrained is better in {better.sum()} of {len(better)} folds")

# %%
# .. rubric:: What is learnt
#
# A true constraint costs nothing and helps if there are few data, since the model need not learn
# it. A false one costs accuracy, which the same comparison would show.
#
# :doc:`Constrain a model </docs/how_to/constrain>` also has interaction constraints, the rules for
# missing values, and gentler ways to guide a model.
