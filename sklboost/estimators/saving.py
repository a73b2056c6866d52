"""How estimators are kept: the methods for model files, and their state for pickle and skops."""

import functools
import inspect
from typing import Any

import numpy as np
import sklearn.exceptions

from sklboost.estimators.input.user_warnings import warn_user
from sklboost.estimators.predict.fitted_model import HasFittedModel
from sklboost.version import __version__

# The state of an estimator has its parameters, and these.
_FIT, _VERSION = "_fit", "_sklboost_version"


class InconsistentVersionWarning(sklearn.exceptions.InconsistentVersionWarning):
    """Warning about a pickle of another version of the package."""

    def __str__(self) -> str:
        return (
            f"{self.estimator_name} was pickled by sklboost {self.original_sklearn_version} and is "
            f"unpickled by {self.current_sklearn_version}: this may fail, or give other results. "
            "Use the same version, or fit again"
        )


class _OfClassOrInstance:
    """A method of a class that may be called on an instance, too: it is then given that."""

    def __init__(self, function: Any):
        self._function = function
        inspect.unwrap(function).__qualname__ = function.__name__  # which errors have
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: type) -> Any:
        bound = functools.partial(self._function, owner if instance is None else instance)
        return functools.update_wrapper(bound, self._function)


class SavedFit:
    """The attributes of a fit, by their names, in the state of an estimator.

    pickle, joblib and copy, which ask ``__reduce__`` first, take them as they are. skops asks
    ``__getstate__`` and is given the document of a model file, which is checked when it is read. So
    a file of skops has to be trusted with the estimator's class and this one, and no others.
    """

    def __init__(self, attributes: dict[str, Any]):
        self.attributes = attributes

    def __reduce__(self) -> tuple[Any, ...]:
        return _saved_fit, (self.attributes,)

    def __getstate__(self) -> dict[str, Any]:
        from sklboost.estimators.files.model_files import plain_attributes

        return plain_attributes(self.attributes)

    def __setstate__(self, state: dict[str, Any]) -> None:
        from sklboost.estimators.files.model_files import read_attributes

        self.attributes = read_attributes(**state)


def _saved_fit(attributes: dict[str, Any]) -> SavedFit:
    # not the class itself: of that skops would take the arguments
    return SavedFit(attributes)


class SavingMixin(HasFittedModel):
    """Model files, and the state of an estimator.

    The state has the version of the package, with which the version that reads it is compared.
    """

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {**super().__getstate__()}  # type: ignore[dict-item]
        if "_copied" in state:  # others, which a user has replaced, may hold what no pickle can
            state["_copied"] = self._copied_callbacks()
        names = state.pop("_fitted_names", ())
        if fit := {name: state.pop(name) for name in names if name in state}:
            state[_FIT] = SavedFit(fit)
        state[_VERSION] = __version__
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        others = dict(state)
        fit = others.pop(_FIT, None)
        original = others.pop(_VERSION, "before 0.1.0")
        if original != __version__:
            warn_user(
                InconsistentVersionWarning(
                    estimator_name=type(self).__name__,
                    current_sklearn_version=__version__,
                    original_sklearn_version=original,
                )
            )
        super().__setstate__(others)  # type: ignore[misc]
        if fit is not None:
            self._set_fitted(fit.attributes)  # type: ignore[attr-defined]

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return all that the estimator is: Dask names results after it.

        Of a dataclass, which the parameters are, Dask by itself looks at fields only: results of
        two fits with the same parameters would have one name, and be taken for one another.
        """
        of_clones = ("_is_clone", "_copied")
        kept = {name: value for name, value in vars(self).items() if name not in of_clones}
        return type(self), kept

    @np.errstate(all="ignore")
    def save_model(
        self, fname: Any, *, format: str = "auto", raw_format: str | None = None
    ) -> None:
        """Write the fitted estimator to a model file, which holds no code.

        Unlike a pickle it is safe to open, whoever has written it, and later versions of the
        package read it. The estimator that :func:`sklboost.load_model` makes of it has the same
        bits: trees, parameters, classes, names, categories and the metrics of the training.
        Parameters that hold code or other objects (callbacks, a metric or a loss of your own, a
        RandomState) are left out, with a warning that names them.

        Parameters
        ----------
        fname : str, path-like or file object
            Ends with ``.json`` (JSON) or ``.ubj`` (UBJSON: binary, smaller, faster). A path has the
            old file or the whole new one at any time.
        format : {"auto", "xgboost", "sklboost"}, default="auto"
            "auto": XGBoost can open the file, too, if it can express the model
            (`xgboost_readable_`), and predicts the same for float32 values (for models with
            categories: version 3.1 and later).
            "xgboost": likewise, and an error where XGBoost cannot express the model.
            "sklboost": for this package only. Such a file is half as large.
        raw_format : {"json", "ubj"}, optional
            What to write where `fname` does not say it.

        Raises
        ------
        ValueError
            With ``format="xgboost"``, if XGBoost cannot express the model; if a parameter is out of
            range; or if a label or category is an object that no file holds.
        OSError
            If the file cannot be written.

        See Also
        --------
        sklboost.load_model : Read the file.
        """
        from sklboost.estimators.files.model_files import save

        parameters = self.get_params(deep=False)  # type: ignore[attr-defined]
        save(type(self), parameters, self._fitted, fname, (format, raw_format))

    @property
    def xgboost_readable_(self) -> bool:
        """Whether XGBoost can open the file that `save_model` writes.

        If not, :meth:`to_xgboost` says why, and the file does under the key ``not_for_xgboost``.
        """
        from sklboost.estimators.files.foreign_models import xgboost_document
        from sklboost.files.sections import NotExpressibleError

        try:
            xgboost_document(self._fitted)
        except NotExpressibleError:
            return False
        return True

    @np.errstate(all="ignore")
    def to_xgboost(self) -> Any:
        """Return a Booster of XGBoost with the trees of this model.

        It predicts the same for float32 values, to the rounding of XGBoost's sums. Thresholds are
        rounded up to float32; ``booster="dart"`` becomes "gbtree", its weights in the leaves.

        Returns
        -------
        xgboost.Booster
            To be given ``xgboost.DMatrix(X)``, of a frame with categories
            ``xgboost.DMatrix(X, enable_categorical=True)``. Categories are matched by value in
            columns of a categorical dtype; in all others, integers from 0 on are themselves, and
            all other categories their places in `categories_`. A file of :meth:`save_model` is for
            XGBoost's estimators.

        Raises
        ------
        ValueError
            If XGBoost has no way to say what the model is, such as linear leaves.
        ImportError
            If XGBoost is not installed.

        See Also
        --------
        sklboost.from_xgboost : The other way.
        """
        from sklboost.estimators.files.foreign_models import booster_of

        return booster_of(self._fitted)

    @_OfClassOrInstance
    @np.errstate(all="ignore")
    def load_model(target: Any, fname: Any) -> Any:  # noqa: N805, a class or an instance
        """Read a model file; called on the class or, as with XGBoost, on an estimator.

        Parameters
        ----------
        fname : str, path-like, file object or bytes
            A file of `save_model`, or of XGBoost.

        Returns
        -------
        estimator
            A new one if called on the class; else the estimator itself, whose parameters and fit
            are replaced by the file's.

        Raises
        ------
        ModelFileError
            If it is no model file, or is damaged.
        TypeError
            If the file has an estimator of another class.

        See Also
        --------
        sklboost.load_model : Read a file of any class of estimator.
        """
        from sklboost.estimators.files.model_files import load

        kind = target if isinstance(target, type) else type(target)
        loaded = load(fname, lambda name: kind)
        if target is kind:
            return loaded
        target.__dict__ = vars(loaded)
        return target

    @classmethod
    @np.errstate(all="ignore")
    def _model_to_continue(cls, source: Any) -> Any:
        """Return what `fit` is given as `init_model` as a fitted estimator of this class."""
        if isinstance(source, SavingMixin):
            return source
        from sklboost.estimators.files.model_files import model_to_continue

        return model_to_continue(source, cls)
