"""What each feature adds to a raw score: SHAP values and interaction values, exactly."""
