"""One fit: from the arguments of the user to the fitted attributes."""
