"""The parameters of the estimators: name, type, default, rule and text of each in one place."""
