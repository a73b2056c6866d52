"""Parameters chosen from the data: what ``preset="auto"`` does before the model is trained."""
