"""
Early stopping: which rows to watch
===================================

Early stopping ends the training when rows that are not trained on no longer get better. It finds
the right number of rounds for rows *like those it watches*. This example forecasts the hire of
bicycles for months to come, and shows what happens if the rows to watch are chosen at random.
"""

# %%
# Data
# ----
#
# The data are two years, hour by hour. The last four months are the future: nothing is chosen by
# them.

import pandas as pd

bike = pd.read_csv("../data/bike.csv.gz", parse_dates=["date"])
bike["weather"] = bike["weather"].astype("category")
X, y = bike.drop(columns="count"), bike["count"]
future = bike["date"] >= "2012-09-01"
X_train, y_train, X_future, y_future = X[~future], y[~future], X[future], y[future]
print(f"{len(X_train):,} hours to train on, {len(X_future):,} hours of the future")

# %%
# Three ways to hold rows out
# ---------------------------
#
# ``early_stopping_rounds`` alone holds out rows at random. Then the training rows include the
# neighbours of each held-out hour, of the same day and weather, so it is easier to predict than any
# hour of the future. ``groups`` holds out whole days; ``validation_split="time"`` the last rows.

from sklearn.metrics import root_mean_squared_error

from sklboost import XGBRegressorLite

settings = dict(n_estimators=3000, learning_rate=0.05, max_depth=6, early_stopping_rounds=50)
settings |= dict(validation_fraction=0.15, random_state=0)
models = {
    "random hours": XGBRegressorLite(**settings).fit(X_train, y_train),
    "whole days": XGBRegressorLite(**settings).fit(X_train, y_train, groups=X_train["date"]),
    "last months": XGBRegressorLite(**settings, validation_split="time").fit(X_train, y_train),
}
for name, model in models.items():
    error = root_mean_squared_error(y_future, model.predict(X_future))
    print(
        f"{name:<13}{model.n_estimators_:5} rounds   promised error {model.best_score_:5.1f}   "
        f"error in the future {error:5.1f}"
    )

# %%
# The curves
# ----------
#
# The lines show the error that each training saw. The dashed line is what none of them could see:
# the error in the future, after each round of the first model.

import matplotlib.pyplot as plt

figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
for number, (name, model) in enumerate(models.items()):
    seen = model.evals_result_["validation_0"]["rmse"]
    axis.plot(seen, color=f"C{number}", label=name)
    axis.plot(model.best_iteration_, model.best_score_, "o", color=f"C{number}")
steps = models["random hours"].staged_predict(X_future)
truth = [root_mean_squared_error(y_future, prediction) for prediction in steps]
axis.plot(truth, color="black", linestyle="--", label="the future")
axis.set(xlabel="round", ylabel="root mean squared error", ylim=(0, 160))
axis.legend(frameon=False)
plt.show()

# %%
# .. rubric:: What is learnt
#
# With random rows the error looks smaller than it will be in the future, and one would have
# reported that error. Whole days are more realistic, and the last months still more. Hold out rows
# in the way in which you will predict: whole days, patients or shops if you will predict for new
# ones, the last period if you will predict the future.
#
# The model can still use all rows: with ``refit=True`` it is trained once more, with the held-out
# rows, for the number of rounds that was found.

again = XGBRegressorLite(**settings, validation_split="time", refit=True).fit(X_train, y_train)
error = root_mean_squared_error(y_future, again.predict(X_future))
print(f"with refit: {again.n_estimators_} rounds, error in the future {error:.1f}")

# %%
# More rows are likely to make a better model, but that is not certain.
#
# :doc:`Stop early </docs/how_to/stop_early>` has metrics, validation data of your own, and
# pipelines.
