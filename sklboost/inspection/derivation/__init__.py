"""How each number of a tree and of a prediction comes about, as steps that can be printed."""
