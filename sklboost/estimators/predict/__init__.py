"""What fitted estimators compute: raw scores, SHAP values, importances, explanations."""
