"""Methods of fitted estimators: raw scores, SHAP values, importances, explanations."""
