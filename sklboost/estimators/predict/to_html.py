"""The estimators' method that writes a model as one HTML page."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from sklboost.engine.model import Model
from sklboost.estimators.predict.derivations import words_of
from sklboost.estimators.predict.page_rows import mean_contributions, row_contents
from sklboost.inspection.page.contents import (
    curve_contents,
    importance,
    importances_of_splits,
    model_contents,
)
from sklboost.inspection.page.document import html_document


class PageMixin:
    """A fitted estimator as a page for the browser."""

    model_: Model
    evals_result_: dict[str, dict[str, Any]]
    _first_round: int

    def to_html(
        self,
        path: str | os.PathLike,
        X: Any = None,
        y: Any = None,
        *,
        rows: Sequence[int] | None = None,
        derivations: bool = True,
        title: str | None = None,
    ) -> None:
        """Write the model as one HTML file, which a browser opens without a network.

        It shows the trees, the derivation of each node, what a larger `gamma` would prune,
        importances and learning curves; and of rows their way through each tree, and what each
        feature adds to their raw scores.

        Parameters
        ----------
        path : str or path-like
            Of the file, which is overwritten.
        X : array-like of shape (n_samples, n_features), optional
            Rows to explain.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
            Their targets, which are shown beside the predictions.
        rows : sequence of int, optional
            Which rows of `X`, counted from 0; the first 20 if not given.
        derivations : bool, default=True
            Whether nodes can be unfolded: a second and 360 kB for about 3,400 nodes.
        title : str, optional
            Of the page; the name of the estimator and its number of trees if not given.

        Raises
        ------
        ValueError
            If there are no such rows; if there are targets or numbers of rows, but no rows; and as
            `predict` does.
        OSError
            If the file cannot be written.

        See Also
        --------
        explain_split : The derivation of one node.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from sklearn.datasets import load_iris
        >>> from sklboost import XGBClassifierLite
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = XGBClassifierLite(n_estimators=5, max_depth=2).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = Path(folder) / "model.html"
        ...     model.to_html(page, X, y, rows=[0, 70, 120])
        ...     print(page.read_text(encoding="utf-8")[:15])
        <!DOCTYPE html>
        """
        check_is_fitted(self)
        for name, given in (("y", y), ("rows", rows)):
            if X is None and given is not None:
                raise ValueError(f"{name} is given without X: pass the rows that it is for")
        words = words_of(self)
        importances = importances_of_splits(self.model_)
        explained = None if X is None else row_contents(self, X, y, rows, words)
        mean = None if explained is None else mean_contributions(explained, len(words.features))
        if mean is not None:
            about = "Mean absolute SHAP value of the rows of this page"
            importances.append(importance("SHAP", about, mean))
        title = title or f"{type(self).__name__}: {self.model_.n_trees} tree(s)"
        contents = {
            "facts": _facts(self),
            "rows": explained,
            "importances": importances,
            "curves": curve_contents(
                self.evals_result_, self._first_round, getattr(self, "best_iteration_", None)
            ),
            **model_contents(self.model_, words, derivations),
        }
        Path(path).write_text(html_document(title, contents), encoding="utf-8", newline="\n")


def _facts(estimator: Any) -> list[tuple[str, str]]:
    """Give what stands at the top of the page: sizes, and the parameters that were changed."""
    model = estimator.model_
    facts = [
        ("rounds", str(model.n_rounds)),
        ("trees", str(model.n_trees)),
        ("leaves", str(int((model.nodes.left < 0).sum()))),
        ("features", str(model.n_features)),
        ("objective", estimator._loss.name),
    ]
    defaults = type(estimator)().get_params(deep=False)
    for name, value in estimator.get_params(deep=False).items():
        if name != "objective" and repr(value) != repr(defaults[name]):
            facts.append((name, repr(value)))
    return facts
