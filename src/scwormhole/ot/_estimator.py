"""Manners of scikit-learn that estimators of the package share: parameters in, parameters out."""

from typing import Any, Self

from sklearn.base import BaseEstimator


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Keeps parameters in a dictionary of its own, as their names may belong to methods too.

    Parameters
    ----------
    params
        Parameters by name, as the constructor got them.
    """

    def __init__(self, params: dict[str, Any]) -> None:
        self._params = params

    def __getattr__(self, name: str) -> Any:
        """Return a parameter by its name, as scikit-learn's estimators do; a method of that name comes first."""
        if name in self.__dict__.get("_params", ()):
            return self._params[name]
        return super().__getattribute__(name)  # fails again, with the words of a property that is not yet there

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a parameter, of effect at the next fit, or an attribute."""
        if name in self.__dict__.get("_params", ()):
            if hasattr(type(self), name):
                raise AttributeError(f"{name} is a method too; set the parameter by set_params({name}=...).")
            self.set_params(**{name: value})
        else:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        """Return what can be typed after the dot, parameters among it."""
        return sorted({*super().__dir__(), *self.__dict__.get("_params", ())})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, as scikit-learn asks for them.

        Parameters
        ----------
        deep
            Of no effect.
        """
        return dict(self._params)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, of effect at the next fit.

        Parameters
        ----------
        **params
            Parameters by name.
        """
        unknown = sorted(params.keys() - self._params.keys())
        if unknown:
            raise ValueError(f"no parameter {', '.join(unknown)}; there are {', '.join(self._params)}.")
        self._params |= params
        return self
