"""What is found of a cohort before any model: how Euclidean it is, how wide, how noisy; advice in words. NumPy, SciPy.

A record and what follows from it; the transport is solved elsewhere.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from ._criterion import lost, root_mean_square, spectrum, squared_error
from ._nearest import nearest_edm
from ._validation import as_divergences

NEAR = 0.01  # what is that close to the best, an error by width or an agreement by epsilon, is good enough
NOISY = 0.03  # share of noise from which a nugget pays
ONLY_MEANS = 0.99  # correlation with the distance of means above which nothing else of the transport is left
ENOUGH_TRANSPORT = 0.95  # correlation with exact transport that an epsilon should keep


@dataclass(frozen=True, kw_only=True, eq=False)  # arrays have no single truth
class Embeddability:
    """How well a cohort can be embedded, measured on a sample of its clouds.

    Errors are root mean squares over all pairs, as a share of the root mean square of the divergences.

    Parameters
    ----------
    n_clouds
        Clouds of the sample.
    metric
        Name of the divergence.
    epsilon
        Regularisation that spectrum and errors are of, as it was asked for.
    eigenvalues
        Of the criterion matrix, falling; negative ones are what no Euclidean space can hold.
    mean_divergence
        Mean over all pairs of clouds.
    lower
        No embedding has a smaller error: the paper's lower bound.
    upper
        Some embedding has no larger one: the paper's upper bound.
    least
        Error of the nearest Euclidean distance matrix.
    widths
        Lengths of vectors.
    errors
        Error of that matrix cut to its first principal components, one for each width.
    noise
        Share of the mean divergence that is sampling noise, judged by halves of clouds, at most one; NaN where they
        cannot be split, and where all divergences are zero.
    epsilons
        The ladder, as asked for.
    exact
        For each epsilon, the correlation of divergences with unregularised transport, over the pairs of a random subset
        of the sample; NaN where it was not solved.
    means
        With the squared distance of the clouds' means; NaN for Gromov-Wasserstein, which does not see them.
    halves
        Of divergences between first halves of clouds with those between their second halves; NaN where clouds cannot
        be split.
    """

    n_clouds: int
    metric: str
    epsilon: float
    eigenvalues: NDArray[np.float64]
    mean_divergence: float
    lower: float
    upper: float
    least: float
    widths: NDArray[np.int64]
    errors: NDArray[np.float64]
    noise: float
    epsilons: NDArray[np.float64]
    exact: NDArray[np.float64]
    means: NDArray[np.float64]
    halves: NDArray[np.float64]

    @property
    def negative(self) -> float:
        """Share of negative eigenvalues in the sum of all, by absolute value; rounding is left out."""
        size = np.abs(self.eigenvalues)
        return float(size[lost(self.eigenvalues)].sum() / (size.sum() or 1.0))

    @property
    def width(self) -> int:
        """Shortest vectors that are wide enough."""
        return int(self.widths[np.argmax(self.errors <= self.least + NEAR)])

    @property
    def best_epsilon(self) -> float:
        """Step of the ladder at which halves of clouds agree best, among those that are still optimal transport.

        That is, that keep a correlation of 0.95 with exact transport, or come closest to it. The epsilon that was asked
        for where another is hardly better, and where exact transport was not solved or clouds cannot be split.
        """
        if np.isnan(self.exact).any() or np.isnan(self.halves).any():
            return self.epsilon
        kept = self.exact >= min(ENOUGH_TRANSPORT, self.exact.max())
        agreement = np.where(kept, self.halves, -np.inf)
        asked = self._step(self.epsilon)
        best = asked if agreement[asked] >= agreement.max() - NEAR else int(np.argmax(agreement))
        return float(self.epsilons[best])

    @property
    def advice(self) -> tuple[str, ...]:
        """What to make of it, one sentence or two each."""
        return (self._euclidean(), self._wide(), *self._transport(), *self._noisy())

    def _euclidean(self) -> str:
        if self.least < NEAR:
            return f"Euclidean for all purposes: the best embedding errs by {self.least:.1%}."
        return (
            f"Not quite Euclidean: the best embedding errs by {self.least:.1%} (bounds {self.lower:.1%} to "
            f"{self.upper:.1%}); no training gets below that."
        )

    def _wide(self) -> str:
        if self.noise > NOISY and self.width > self.n_clouds / 2:
            return (
                f"No width is told by {self.n_clouds} clouds: the noise of each is a direction of its own, so nothing "
                f"short of {self.width} would do. A nugget holds it instead; leave n_components as it is."
            )
        return f"n_components={self.width} is wide enough for {self.n_clouds} clouds; a larger cohort may want more."

    def _transport(self) -> list[str]:
        at, best = self._step(self.epsilon), self._step(self.best_epsilon)
        asked, other = (f"epsilon={self.epsilons[step]:g}" for step in (at, best))
        exact, halves = self.exact, self.halves
        if self.means[at] > ONLY_MEANS:
            return [
                f"At {asked} the divergence is little more than the distance of means (correlation "
                f"{self.means[at]:.3f}): means would do, or a smaller epsilon."
            ]
        if best != at and exact[at] >= ENOUGH_TRANSPORT:
            return [
                f"{other} would agree better between halves of the same clouds ({halves[best]:.3f} against "
                f"{halves[at]:.3f}) and has a correlation of {exact[best]:.3f} with exact transport."
            ]
        if best != at:
            return [
                f"{other} would be closer to exact transport (correlation {exact[best]:.3f} against {exact[at]:.3f}); "
                f"between halves of the same clouds it has {halves[best]:.3f} against {halves[at]:.3f}."
            ]
        if exact[at] < ENOUGH_TRANSPORT:
            return [f"At {asked} the correlation with exact transport is only {exact[at]:.3f}: try smaller ones."]
        if np.isnan(exact[at]) or np.isnan(halves[at]):
            return []
        return [
            f"{asked} is a good choice: correlation {exact[at]:.3f} with exact transport, {halves[at]:.3f} between "
            "halves of the same clouds."
        ]

    def _step(self, epsilon: float) -> int:
        return int(np.argmin(np.abs(self.epsilons - epsilon)))

    def _noisy(self) -> list[str]:
        if self.mean_divergence == 0:
            return ["All divergences are zero: there is nothing to embed, and no share of noise in it."]
        if np.isnan(self.noise):
            return ["Clouds are too small to be split, so nothing is known of their sampling noise."]
        if self.noise > NOISY:
            return [
                f"{self.noise:.0%} of a divergence is sampling noise, if points are a sample, as cells are: keep the "
                "nugget (nugget='auto' or True)."
            ]
        return [f"Sampling noise is {self.noise:.1%} of a divergence: a nugget has nothing to hold."]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as numbers, text and arrays, as files keep them."""
        return {**asdict(self), "advice": np.array(self.advice)}

    @classmethod
    def from_dict(cls, held: Mapping[str, Any]) -> "Embeddability":
        """Undo :meth:`to_dict`.

        Parameters
        ----------
        held
            The dictionary; what else it holds is ignored.
        """
        kinds: dict[Any, Any] = {int: int, float: float, str: str}
        parts: dict[str, Any] = {
            field.name: kinds.get(field.type, np.asarray)(held[field.name]) for field in fields(cls)
        }
        return cls(**parts)

    def __repr__(self) -> str:
        return f"Embeddability of {self.n_clouds} clouds by {self.metric}\n" + "\n".join(f"- {x}" for x in self.advice)


def euclidean_part(divergences: ArrayLike, *, progress: bool = False) -> dict[str, Any]:
    """Return the fields that follow from a table of divergences alone.

    Parameters
    ----------
    divergences
        Divergences, each cloud with each.
    progress
        Whether to show a bar once work takes over two seconds.
    """
    table = as_divergences(divergences)
    unit = root_mean_square(table)
    nearest = nearest_edm(table / unit, progress=progress)
    widths = np.unique(np.minimum(2 ** np.arange(int(np.log2(len(table))) + 2), len(table) - 1))
    whole = nearest.embedding(len(table) - 1)
    apart = (cdist(part, part, "sqeuclidean") for part in (whole[:, :width] for width in widths))
    stresses = np.array([*nearest.bounds, nearest.stress, *(squared_error(table / unit, found) for found in apart)])
    lower, upper, least, *errors = np.sqrt(stresses) / len(table)  # of one unit an entry
    return {
        "n_clouds": len(table),
        "eigenvalues": spectrum(table),
        "mean_divergence": float(table[np.triu_indices(len(table), 1)].mean()),
        "lower": float(lower),
        "upper": float(upper),
        "least": float(least),
        "widths": widths,
        "errors": np.array(errors),
    }
