"""The error of all that reads model files."""


class ModelFileError(ValueError):
    """A model file is damaged, or is not what it says, or holds what cannot be read.

    The message names the file, the place in it and what is wrong there.
    """


class NotExpressibleError(ValueError):
    """Another library has no way to say what a model is.

    Parameters
    ----------
    library : str
    what : str
        What it cannot have, with the reason where that is not plain.
    """

    def __init__(self, library: str, what: str):
        super().__init__(f"{library} has no {what}")
