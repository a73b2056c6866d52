"""The estimators' method `fit`: it builds the request, and sets the result."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Self

from sklboost.boosting.callbacks import TrainingCallback
from sklboost.engine.model import Model
from sklboost.estimators.fit.fitting import fit_model
from sklboost.estimators.fit.reading import Continued, FitRequest
from sklboost.estimators.fit.sklearn_callbacks import detach, fit_tasks, with_callbacks
from sklboost.estimators.input.arguments import FitArguments
from sklboost.estimators.input.targets import RegressionTargets, Targets
from sklboost.estimators.parameters.groups import Parameters
from sklboost.estimators.parameters.names import checks_arguments
from sklboost.estimators.parameters.rules import check_parameters, is_default, value_of
from sklboost.estimators.predict.fitted_model import TrainedModel, fitted_state, trained_model


class FittingMixin(Parameters):
    """Training: `fit`, and what it sets."""

    model_: Model
    _trained: TrainedModel
    _first_round: int  # of evals_result_; not 0 if init_model was continued
    _parameter_group: ClassVar[type[Parameters]] = Parameters  # what a fit reads
    _is_forest: ClassVar[bool] = False  # one round, of n_estimators trees
    _kind: ClassVar[type[Targets]] = RegressionTargets
    _fitted_names: tuple[str, ...] = ()  # of the attributes that fit has set
    # scikit-learn's metadata routing: groups are for the splitter unless set_fit_request asks for
    # them here, too
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": False}

    def _n_estimators_of(self, model: Model) -> int:
        """Count what `n_estimators` counts."""
        return model.n_rounds

    @with_callbacks
    @checks_arguments
    def fit(  # noqa: PLR0913, the arguments of users
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        base_margin_val: Any = None,
        eval_set: Any = None,
        sample_weight_eval_set: Any = None,
        base_margin_eval_set: Any = None,
        groups: Any = None,
        base_margin: Any = None,
        init_model: Any = None,
        xgb_model: Any = None,
        verbose: bool | int | None = None,
    ) -> Self:
        """Train on rows `X` with targets `y`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            An array, a list of rows, a matrix of scipy.sparse (an absent entry is 0), or a frame of
            pandas, polars, Arrow or another library. Columns are numbers, times or categories
            (`categorical_features`). NaN is a missing value, as is what the frame calls missing;
            infinity is an ordinary one. Integers and times are exact however large. Or what
            :func:`sklboost.bin_features` made of them. Or a DataFrame or an Array of Dask: then the
            workers of the current ``distributed.Client`` do the training, with the same bits, and
            all other arguments, which may be of Dask, too, come to this process.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets: numbers for the regressor, labels of any kind for the classifier. Several
            columns are several targets; for the classifier several labels, 1 where a row has the
            label and 0 where not. NaN in one of several columns is an unknown value: the row counts
            for the other columns only.
        sample_weight : array-like of shape (n_samples,), optional
            Weight 2 is equivalent to the row twice, except where rows are held out at random for
            early stopping (whole, with their weight). Weight 0 leaves the row out.
        X_val : array-like of shape (n_validation_samples, n_features), optional
            Rows on which `eval_metric` is computed after every round.
        y_val : array-like of shape (n_validation_samples,) or like `y`, optional
            Their targets.
        sample_weight_val : array-like of shape (n_validation_samples,), optional
            Their weights.
        base_margin_val : array-like of shape (n_validation_samples,), optional
            Their `base_margin`.
        eval_set : list of (X, y), optional
            The same for several sets of rows, as in XGBoost; early stopping watches the last.
        sample_weight_eval_set : list of array-like or None, optional
            Their weights.
        base_margin_eval_set : list of array-like or None, optional
            Their `base_margin`.
        groups : array-like of shape (n_samples,), optional
            Rows of the same group are held out for early stopping together, or not at all.
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Raw scores that training starts from instead of `base_score`. Prediction needs its own.
        init_model : estimator, optional
            A fitted estimator of the same class. Its trees come first, `n_estimators` rounds are
            added to them.
        xgb_model : estimator, optional
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
        KeyboardInterrupt
            At Ctrl-C before the first round is finished. Later, the rounds finished so far are
            kept, and `stop_reason_` is ``"interrupted"``.
        """
        return self._fit(
            X,
            y,
            sample_weight=sample_weight,
            X_val=X_val,
            y_val=y_val,
            sample_weight_val=sample_weight_val,
            base_margin_val=base_margin_val,
            eval_set=eval_set,
            sample_weight_eval_set=sample_weight_eval_set,
            base_margin_eval_set=base_margin_eval_set,
            groups=groups,
            base_margin=base_margin,
            init_model=init_model,
            xgb_model=xgb_model,
            verbose=verbose,
        )

    def _fit(self, X: Any, y: Any, *, init_model: Any, xgb_model: Any, **arguments: Any) -> Self:
        """Train; the arguments are those of `fit`, all but `X` and `y` by name."""
        given = FitArguments(init_model=init_model if xgb_model is None else xgb_model, **arguments)
        if init_model is not None and xgb_model is not None:
            raise ValueError("init_model and xgb_model are two names of one argument: give one")
        tasks = fit_tasks(self, X, y, given.sample_weight)
        before = self.__dict__.copy()
        try:
            request = self._fit_request(X, y, given, tasks)
            self._forget_others()
            result = fit_model(request)
            self._set_fitted(result.attributes, result.trained.model)
            for task in tasks:
                task.finish()
        except BaseException:
            # whatever went wrong, an earlier fit is still whole
            self.__dict__ = before
            raise
        return self

    def _fit_request(
        self, X: Any, y: Any, given: FitArguments, listeners: Sequence[TrainingCallback] = ()
    ) -> FitRequest:
        """Return all that a fit reads, once the parameters keep their rules."""
        group = self._parameter_group
        values = {own.name: value_of(self, own.name) for own in fields(group) if own.init}
        if given.verbose is not None:
            values["verbose"] = given.verbose
        check_parameters(type(self), values)
        free = [name for name in values if self.preset is not None and is_default(self, name)]
        return FitRequest(
            X=X,
            y=y,
            arguments=given,
            parameters=group(**values),
            kind=self._kind,
            estimator_name=type(self).__name__,
            is_forest=self._is_forest,
            free=frozenset(free),
            continued=self._continued(given.init_model),
            listeners=listeners,
            make_estimator=self._fitted_copy,
        )

    def _continued(self, init_model: Any) -> Continued | None:
        """Return the model that a fit continues; `init_model` goes before `warm_start`."""
        if init_model is not None:
            other, name = init_model, "init_model"
        elif self.warm_start and hasattr(self, "model_"):
            other, name = self, "the model of warm_start=True"
        else:
            return None
        if type(other) is not type(self):
            raise TypeError(
                f"{name}={other!r}: it must be a fitted {type(self).__name__}, "
                "whose trees the new ones are added to"
            )
        state = fitted_state(other)
        trained = trained_model(state)
        return Continued(
            name=name,
            is_warm_start=init_model is None,
            model=trained.model,
            features=trained.features,
            targets=trained.targets,
            loss=trained.loss,
            has_margin=trained.has_margin,
            n_dart_rounds=trained.n_dart_rounds,
            n_jobs=other.n_jobs,
            split_seed=state.get("_split_seed"),
            before_refit=None if init_model is not None else state.get("_before_refit"),
        )

    def _fitted_copy(self, trained: TrainedModel) -> Self:
        copied = copy.copy(self)
        detach(copied)
        copied._set_fitted(trained.attributes, trained.model)
        return copied

    def _forget_others(self) -> None:
        """Delete what users and callbacks set on an earlier model; fit's own attributes stay.

        Until a fit is done, the estimator is what it was before.
        """
        self.__dict__ = {
            name: value
            for name, value in vars(self).items()
            if name in self._fitted_names or name.startswith("_") or not name.endswith("_")
        }

    def _set_fitted(self, attributes: Mapping[str, Any], model: Model) -> None:
        """Replace the attributes of an earlier fit by these, at once."""
        fitted = {**attributes, "n_estimators_": self._n_estimators_of(model)}
        kept = {name: vars(self)[name] for name in vars(self) if name not in self._fitted_names}
        self.__dict__ = {**kept, **fitted, "_fitted_names": tuple(fitted)}
