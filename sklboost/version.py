"""The version of the package. Every room may import it."""

__version__ = "0.1.0"
