"""A lower confidence bound of the error of whole vectors, exact and from four fifths of the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from calibrant.data import validation
from calibrant.data.predictions import Multiclass
from calibrant.estimators.cross_fitting import CrossFitted
from calibrant.estimators.lower_bound import MIXED
from calibrant.estimators.variational_norms import Norm, size_bound
from calibrant.inference.several_classes.sequential_maps import judged_parts
from calibrant.numerics.arrays import Floats
from calibrant.numerics.mean_bounds import betting_lower_bound
from calibrant.numerics.weights import mean_and_error
from calibrant.results.estimate import Interval
from calibrant.results.target import Target

_WHY = "a lower bound only: no upper bound of the error of whole vectors holds without assumptions on its form"


@dataclass(frozen=True)
class SequentialBound:
    r"""Lower confidence bound of the calibration error of whole vectors, in any norm.

    Rows are divided at random into parts. A map is fitted on the parts before part j and gives the rows of part j their
    contributions to the variational estimate (see `calibration_error`). Given the earlier parts, their mean is at most
    the true error, whatever the map, so that all parts but the first bound it together:

    - exact (the default for independent rows without weights): the betting bound of Waudby-Smith and Ramdas, whose
      wealth is a supermartingale; it holds for every number of rows;
    - otherwise: mean - z standard errors, asymptotically valid without any inflation; rows of one group count as one.

    Compared with `SplitLowerBound` it judges four fifths of the rows instead of half of them.

    Parameters
    ----------
    exact : bool, optional
        By default wherever rows are independent and have no weights.
    parts : int
    seed : int
        Decides the parts.

    References
    ----------
    Waudby-Smith, Ramdas (2024), Estimating means of bounded random variables by betting. Berta, Braun, Holzmüller,
    Bach, Jordan (2026), A Variational Estimator for Calibration Errors.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 2000)
    >>> y = (rng.random((2000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    >>> sharper = p**3 / (p**3).sum(axis=1, keepdims=True)  # the true error is 0.42
    >>> found = cal.interval(cal.calibration_error, cal.Multiclass(y, sharper))
    >>> found.interval.side, bool(0.3 < found.interval.low < 0.42)
    ('lower', True)
    """

    exact: bool | None = None
    parts: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        validation.seed(self.seed)
        validation.whole("parts", self.parts, minimum=2)

    def interval(self, data: Multiclass, *, norm: Norm = 1, level: float = 0.95) -> Interval:
        """The one-sided interval above the bound."""
        plain = data.group is None and data.weight is None
        exact = plain if self.exact is None else self.exact
        if exact and not plain:
            message = "The exact bound needs independent rows without weights; use SequentialBound(exact=False)."
            raise ValueError(message)
        if norm == "squared":  # E d^2 >= (E d)^2, and contributions to E d have far less spread
            root = self.interval(data, norm=2, level=level)
            return replace(root, low=root.low**2, target=Target("true error", "squared"))
        judged = list(judged_parts(data, parts=self.parts, seed=self.seed, needed_by="SequentialBound"))
        size = float(-np.log(MIXED)) if norm == "kl" else size_bound(norm, judged[0].columns)
        if size is None:
            message = "SequentialBound needs bounded contributions: give the Distance a `bound`."
            raise ValueError(message)
        values = [np.clip(_contributions(part, norm), -size, size) for part in judged]
        low = self._betting(values, size, level) if exact else _normal_bound(judged, values, level)
        how = "exact for any n" if exact else "approximate: many rows (or clusters)"
        unit = "rows" if data.group is None else "clusters"
        return Interval(
            max(low, 0.0),
            math.inf,
            level,
            repr(self),
            side="lower",
            assumption=f"independent {unit}; {how}; {_WHY}",
            target=Target("true error", norm),
        )

    def _betting(self, values: list[Floats], size: float, level: float) -> float:
        """Rows of one part in random order, since those of a file may be sorted."""
        rng = np.random.default_rng(self.seed)
        every = np.concatenate([rng.permutation(part) for part in values])
        return (2 * betting_lower_bound((every + size) / (2 * size), 1 - level) - 1) * size


def _contributions(rows: CrossFitted, norm: Norm) -> Floats:
    """Of each row; with "kl" the map is mixed with the predictions, so that no loss is unbounded."""
    if norm == "kl":
        rows = replace(rows, recalibrated=(1 - MIXED) * rows.fitted + MIXED * rows.predicted)
    return rows.contributions(norm)


def _normal_bound(judged: list[CrossFitted], values: list[Floats], level: float) -> float:
    """Weighted mean less z standard errors, with clusters (if there are any) as units."""
    from scipy.special import ndtri

    clusters = [part.cluster for part in judged if part.cluster is not None]
    weight = np.concatenate([part.weight for part in judged])
    mean, error = mean_and_error(np.concatenate(values), weight, np.concatenate(clusters) if clusters else None)
    return mean - float(ndtri(level)) * error
