"""Where the page of an estimator is on the web: scikit-learn's diagrams link to it."""

from sklboost.version import __version__

# The site has a folder for each version. pyproject.toml has the same address, for package indexes.
SITE = "https://sklboost.readthedocs.io/en"
FOLDER = "latest" if "dev" in __version__ else f"v{__version__}"


class DocumentationLinkMixin:
    """What scikit-learn asks of a class to link to its page, and to its parameters on it."""

    _doc_link_module = "sklboost"  # a user's subclass has no page
    _doc_link_template = f"{SITE}/{FOLDER}/docs/reference/api/sklboost.{{estimator_name}}.html"
