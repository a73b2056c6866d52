"""What is collected here depends on scikit-learn: older versions have no callbacks."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("sklearn.callback") else ["test_sklearn_callbacks.py"]
