"""What a fitted estimator computes: raw scores, SHAP values, importances, explanations."""
