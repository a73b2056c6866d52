"""Random fits of all parameters and nasty data, and what is promised of each of them."""
