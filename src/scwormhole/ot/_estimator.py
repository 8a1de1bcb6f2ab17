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
