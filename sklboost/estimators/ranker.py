"""The ranker."""

from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from sklboost.estimators.base import BaseBooster
from sklboost.estimators.input.arguments import FitArguments, row_weights
from sklboost.estimators.input.queries import RankingTargets, read_given, read_sets
from sklboost.estimators.parameters.docstrings import documented
from sklboost.estimators.parameters.kinds import RankerParameters
from sklboost.estimators.parameters.names import checks_arguments
from sklboost.estimators.parameters.rules import value_of
from sklboost.estimators.predict.by_partitions import from_raw_scores
from sklboost.estimators.predict.fitted_model import FittedModel
from sklboost.objectives.loss import by_rows


@documented(init=False)
class XGBRankerLite(RankerParameters, BaseBooster):
    """Gradient boosted trees that put the documents of a query in order: LambdaMART.

    Rows are documents, targets their relevances, and `fit` is told which rows belong to one query,
    in any order. Predictions are scores: within a query, the higher the better.

    Attributes
    ----------
    n_features_in_
    feature_names_in_
    categories_
    model_
    n_estimators_
    stop_reason_
    best_iteration_
    best_score_
    evals_result_
    fit_report_
    chosen_params_

    Examples
    --------
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
    _parameter_group = RankerParameters
    # scikit-learn's metadata routing: a ranker cannot do without its queries
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    @checks_arguments
    def fit(  # type: ignore[override]  # noqa: PLR0913, the arguments of users
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
        X
        y : array-like of shape (n_samples,)
            Relevances: whole numbers from 0 to 31, or with ``ndcg_exp_gain=False`` any numbers from
            0 on; for ``objective="rank:map"`` 0 and 1.
        sample_weight : array-like of shape (n_queries,) or (n_samples,), optional
            Weights of queries, in the order of their first rows, or of rows, then the same for all
            of a query. Weight 2 is equivalent to the query twice, but for what is drawn at random.
            Weight 0 leaves the query out.
        qid : array-like of shape (n_samples,), optional
            The query of each row: numbers, text or other labels. The rows of a query need not
            follow one another.
        group : array-like of int, shape (n_queries,), optional
            Instead of `qid`, how many rows each query has, one query after the other.
        X_val : array-like of shape (n_validation_samples, n_features), optional
            Documents on which `eval_metric` is computed after every round.
        y_val : array-like of shape (n_validation_samples,), optional
            Their relevances.
        qid_val : array-like of shape (n_validation_samples,), optional
            Their queries, other ones than those of `X` even where labels are the same.
        group_val : array-like of int, optional
            Instead of `qid_val`, how many rows each query has.
        sample_weight_val : array-like, optional
            Their weights.
        base_margin_val : array-like of shape (n_validation_samples,), optional
            Their `base_margin`.
        eval_set : list of (X, y), optional
            The same for several sets of rows, as in XGBoost; early stopping watches the last.
        eval_qid : list of array-like, optional
            Their queries.
        eval_group : list of array-like of int, optional
            Instead of `eval_qid`, how many rows each query has.
        sample_weight_eval_set : list of array-like or None, optional
            Their weights.
        base_margin_eval_set : list of array-like or None, optional
            Their `base_margin`.
        base_margin : array-like of shape (n_samples,), optional
            Raw scores that training starts from. Prediction needs its own.
        init_model : estimator, str, path-like, file object, bytes or Booster, optional
            A fitted ranker, the file of one, or a ranker of XGBoost's. Its trees come first,
            `n_estimators` rounds are added to them.
        xgb_model : the same, optional
            XGBoost's name for `init_model`.
        verbose : bool or int, optional
            As the parameter, for this fit only. None: the parameter's value.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        ValueError
            If a parameter is out of range or the data is unusable; the text says which and why.
        TypeError
            If there is no such argument, or if one is of a type that cannot be read.
        """
        arguments = FitArguments.of(locals())._asdict()
        own = dict(qid_val=qid_val, group_val=group_val, eval_qid=eval_qid, eval_group=eval_group)
        given = read_given(y, qid, group, sample_weight)
        arguments = read_sets({**arguments, **own})
        # early stopping holds out whole queries
        arguments |= dict(sample_weight=given.weight, groups=given.labels)
        return super().fit(X, given.y, **arguments)

    @from_raw_scores
    @checks_arguments
    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, qid: Any = None, group: Any = None
    ) -> float:
        """Return the mean NDCG of the queries, of all their documents.

        Parameters
        ----------
        X
        y : array-like of shape (n_samples,)
            Relevances.
        sample_weight : array-like of shape (n_queries,) or (n_samples,), optional
            Weights of the queries, as in :meth:`fit`.
        qid : array-like of shape (n_samples,), optional
            The query of each row.
        group : array-like of int, shape (n_queries,), optional
            Instead of `qid`, how many rows each query has.

        Returns
        -------
        float
            From 0 to 1; a query without relevant documents has 1. Gains are as `ndcg_exp_gain`
            says, and documents of equal scores stay in the order of the rows.
        """
        from sklboost.objectives.metrics import mean_over_queries

        given, prediction = read_given(y, qid, group, sample_weight), self.predict(X)
        if len(prediction) != len(given.y):
            raise ValueError(
                f"X has {len(prediction)} rows, but y has {len(given.y)}: pass one for each"
            )
        weight = np.empty(0) if given.weight is None else row_weights(given.weight, given.y)
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

    def _predictions(self, fitted: FittedModel, raw_score: np.ndarray) -> np.ndarray:
        return by_rows(raw_score)

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: one target, without which nothing is learnt."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.target_tags.required = True
        return tags
