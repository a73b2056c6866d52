"""Views of a trained model: importances, tables, SHAP values, derivations, the page."""
