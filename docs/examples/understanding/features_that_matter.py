"""
Which features could be noise?
==============================

Importances always look like something: even a feature of pure noise has some, and the more values
it has, the more. Which importance is more than chance? Add a shuffled copy of each feature and
compare.
"""

# %%
# Data
# ----
#
# The data are thirteen chemical measurements of 178 wines from three growers. Seven columns of
# noise are added, to see what happens.

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

X, y = load_wine(return_X_y=True, as_frame=True)
random = np.random.default_rng(0)
for number in range(7):
    X[f"noise {number}"] = random.normal(size=len(X))
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

# %%
# What the trees use
# ------------------
#
# This is the number of splits on each feature. Noise is used, too: on the training rows it can
# always explain something.

import matplotlib.pyplot as plt

from sklboost import XGBClassifierLite
from sklboost.displays import plot_importance

model = XGBClassifierLite(n_estimators=40, learning_rate=0.2, max_depth=3, subsample=0.7)
model.set_params(random_state=0).fit(X_train, y_train)
plot_importance(model, importance_type="weight")
plt.show()

# %%
# What helps on other rows
# ------------------------
#
# ``validation_importances`` gives each feature a *shadow*, a copy with its rows shuffled, trains on
# both, and measures on validation rows how much the score falls when a column is shuffled. Ten
# repetitions with new shadows show which importance chance can reach.

found = model.validation_importances(
    X_train,
    y_train,
    X_val=X_val,
    y_val=y_val,
    scoring="neg_log_loss",
    n_repeats=10,
    random_state=0,
)
plot_importance(found)
plt.show()

# %%
# The dashed line is the best shadow of all repetitions. Grey bars do not reach beyond it.

names = np.array(X.columns)
print("beyond chance:", ", ".join(names[found.exceeds_baseline]))
noise = [name for name in names[found.exceeds_baseline] if name.startswith("noise")]
print("noise among them:", noise or "none")

# %%
# Is less enough?
# ---------------
#
# Compare a model of only these features with a model of all, on ten folds. The folds contain the
# rows that the features were chosen by, which favours the choice a little.

from sklearn.model_selection import StratifiedKFold, cross_val_score

folds = StratifiedKFold(10, shuffle=True, random_state=1)
for name, columns in {"all": names, "chosen": names[found.exceeds_baseline]}.items():
    losses = -cross_val_score(model, X[columns], y, cv=folds, scoring="neg_log_loss")
    error = losses.std(ddof=1) / len(losses) ** 0.5
    print(f"{name:<8}{len(columns):3} features   log loss {losses.mean():.3f} +- {error:.3f}")

# %%
# Six features do as well as all twenty, as far as these folds can tell.
#
# .. rubric:: What is learnt
#
# An importance means something only in comparison with what chance reaches. Features below the line
# have not shown that they help this model on these rows. That does not prove that they never do: of
# two correlated features each may fall below the line, because the other one is there.
#
# :doc:`Judge which features matter </docs/how_to/judge_features>` has the test behind it.
