"""The ranker."""

from typing import Any, ClassVar, NoReturn, Self

from sklboost.data.frames import dask_kind
from sklboost.estimators.base import BaseBooster
from sklboost.estimators.input.queries import (
    QueryNames,
    RankingTargets,
    features_of_documents,
    read_given,
    read_sets,
    split_queries,
)
from sklboost.estimators.input.rows import FitArguments, row_weights
from sklboost.estimators.parameters.docstrings import documented
from sklboost.estimators.parameters.kinds import RankerParameters
from sklboost.estimators.parameters.names import checks_arguments
from sklboost.estimators.parameters.rules import value_of
from sklboost.estimators.predict.fitted_model import from_raw_scores


@documented(init=False)
class XGBRankerLite(RankerParameters, BaseBooster):
    """Gradient boosted trees that put the documents of a query in order: LambdaMART.

    Rows are documents, targets are their relevances, and `qid` or `group` in `fit` says which rows
    belong to the same query. Predictions are scores: within a query, higher is better.

    >>> import numpy as np
    >>> from sklboost import XGBRankerLite
    >>> random = np.random.default_rng(0)
    >>> X, qid = random.normal(size=(600, 5)), np.repeat(np.arange(60), 10)
    >>> relevance = np.clip(np.round(X[:, 0] + X[:, 1]), 0, 3)
    >>> model = XGBRankerLite(n_estimators=20).fit(X[:500], relevance[:500], qid=qid[:500])
    >>> print(model.score(X[500:], relevance[500:], qid=qid[500:]) > 0.9)
    True
    """

    _estimator_type = "ranker"
    _kind = RankingTargets
    _read_rows = staticmethod(features_of_documents)
    _parameter_group = RankerParameters
    # scikit-learn's metadata routing: a ranker cannot do without its queries
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    @checks_arguments
    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
        group_val: Any = None,
        sample_weight_val: Any = None,
        base_margin_val: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        sample_weight_eval_set: Any = None,
        base_margin_eval_set: Any = None,
        base_margin: Any = None,
        init_model: Any = None,
        xgb_model: Any = None,
        verbose: bool | int | None = None,
    ) -> Self:
        """Train on documents `X` of relevances `y`, query by query.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Relevances: whole numbers from 0 to 31, or with ``ndcg_exp_gain=False`` any numbers from
            0 on; for ``objective="rank:map"`` 0 and 1.
        sample_weight : array-like of shape (n_queries,) or (n_samples,), optional
            Weights of queries, in the order of their first rows, or of rows, then the same for all
            of a query. Weight 2 is equivalent to the query twice, except for what is drawn at
            random. Weight 0 leaves the query out.
        qid : array-like of shape (n_samples,), optional
            The query of each row: numbers, text or other labels. The rows of a query need not
            follow one another. None: the column ``qid`` of a frame `X`, which is no feature then,
            and which other methods pass over.
        group : array-like of int, shape (n_queries,), optional
            Instead of `qid`, how many rows each query has, one query after the other.
        qid_val : array-like of shape (n_validation_samples,), optional
            Their queries; not the queries of `X`, even where labels are the same.
        group_val : array-like of int, optional
            Instead of `qid_val`, how many rows each query has.
        eval_qid : list of array-like, optional
            Their queries.
        eval_group : list of array-like of int, optional
            Instead of `eval_qid`, how many rows each query has.
        """
        arguments = FitArguments.of(locals())._asdict()
        own = dict(qid_val=qid_val, group_val=group_val, eval_qid=eval_qid, eval_group=eval_group)
        X, qid = split_queries(X, qid, group, QueryNames())
        stays, caller = bool(dask_kind(X)), type(self).__name__
        given = read_given(y, qid, group, sample_weight, caller=caller, stays=stays)
        arguments = read_sets({**arguments, **own}, stays=stays)
        # early stopping holds out whole queries
        arguments |= dict(sample_weight=given.weight, groups=given.labels)
        return super().fit(X, given.y, **arguments)

    @checks_arguments
    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, qid: Any = None, group: Any = None
    ) -> float:
        """Return the mean NDCG of the queries, of all their documents.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Relevances.
        sample_weight : array-like of shape (n_queries,) or (n_samples,), optional
            Weights of the queries, as in :meth:`fit`.
        qid : array-like of shape (n_samples,), optional
            The query of each row. None: the column ``qid`` of a frame `X`.
        group : array-like of int, shape (n_queries,), optional
            Instead of `qid`, how many rows each query has.

        Returns
        -------
        float
            From 0 to 1; a query without relevant documents has 1. Gains are as `ndcg_exp_gain`
            says, and documents of equal scores stay in the order of the rows.
        """
        X, qid = split_queries(X, qid, group, QueryNames())
        return self._ndcg(X, y, sample_weight, qid, group)

    @from_raw_scores
    def _ndcg(self, X: Any, y: Any, sample_weight: Any, qid: Any, group: Any) -> float:
        from sklboost.objectives.metrics import mean_over_queries

        given, prediction = read_given(y, qid, group, sample_weight), self.predict(X)
        if len(prediction) != len(given.y):
            raise ValueError(
                f"X has {len(prediction)} rows, but y has {len(given.y)}: pass one for each"
            )
        weight = row_weights(given.weight, given.y)
        is_exponential = bool(value_of(self, "ndcg_exp_gain"))
        return mean_over_queries("ndcg", given.y, prediction, weight, is_exponential)

    def validation_importances(self, *arguments: Any, **named: Any) -> NoReturn:
        """Refuse: there is no argument for queries.

        Parameters
        ----------
        *arguments, **named
            Whatever they are.

        Raises
        ------
        NotImplementedError
            Always; the text says what to use.
        """
        raise NotImplementedError(
            "validation_importances has no argument for queries: shuffle each feature of "
            "validation rows and compare score(X, y, qid=qid), or use shap_values"
        )

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: one target, without which nothing is learnt."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.target_tags.required = True
        return tags
