"""The error of all that reads model files."""


class ModelFileError(ValueError):
    """A model file is damaged, or is not what it says, or holds what cannot be read.

    The message names the file, the place in it and what is wrong there.
    """
