"""Estimates of the class prior from scores of labelled positives and of unlabeled rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Estimate, Interval


@dataclass(frozen=True)
class BestBin:
    r"""Best bin estimation, BBE: the share of positives in the purest bin at the top of the ranking.

    .. math:: \hat\pi = \frac{q_U(c)}{q_P(c)} \text{ at the } c \text{ that minimises }
              \frac{q_U(c)}{q_P(c)} + \frac{1+\gamma}{q_P(c)}\Bigl(\sqrt{\tfrac{\ln(4/\delta)}{2 n_U}} +
              \sqrt{\tfrac{\ln(4/\delta)}{2 n_P}}\Bigr)

    where q(c) is the share of scores of at least c. Any score that ranks positives above the others can be used, if the
    model was not trained on these rows. The estimate is biased upward by the negatives that remain in the best bin.

    References
    ----------
    Garg, Wu, Smola, Balakrishnan, Lipton (2021), Mixture Proportion Estimation and PU Learning: A Modern Approach.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> unlabeled = np.concatenate([rng.normal(2, 1, 3000), rng.normal(-2, 1, 7000)])
    >>> round(float(estimate_prior(rng.normal(2, 1, 1000), unlabeled, method=BestBin(delta=0.05))), 3)
    0.303
    """

    delta: float = 0.1
    gamma: float = 0.01

    def prior(self, positive: Floats, unlabeled: Floats) -> tuple[float, Interval]:
        """The estimate and its interval, which is valid simultaneously for all thresholds."""
        cuts = np.unique(unlabeled)
        above_u = 1 - np.searchsorted(np.sort(unlabeled), cuts, side="left") / len(unlabeled)
        above_p = 1 - np.searchsorted(np.sort(positive), cuts, side="left") / len(positive)
        some = above_p > 0
        above_u, above_p = above_u[some], above_p[some]
        size = math.log(4 / validation.fraction("delta", self.delta)) / 2
        noise = (math.sqrt(size / len(unlabeled)) + math.sqrt(size / len(positive))) / above_p
        best = int(np.argmin(above_u / above_p + (1 + self.gamma) * noise))
        value, reach = float(above_u[best] / above_p[best]), float(noise[best])
        low, high = max(0.0, value - reach), min(1.0, value + reach)
        return min(value, 1.0), Interval(low, high, level=1 - self.delta, method=repr(self), assumption=_PURE)


@dataclass(frozen=True)
class ElkanNoto:
    r"""Elkan and Noto's estimate: the mean score of positives, by a classifier of labelled against other rows.

    The scores must be probabilities of being *labelled*, g(x), on rows that the classifier has not seen. With
    c = mean of g over the positives,

    .. math:: \hat\pi = \frac{n_P}{n c} \text{ (single sample of n rows)}, \qquad
              \hat\pi = \frac{n_P (1 - c)}{c\, n_U} \text{ (case-control)}.

    It assumes that positives and negatives do not overlap; where they do, it is too high, often by a lot.

    References
    ----------
    Elkan, Noto (2008), Learning Classifiers from Only Positive and Unlabeled Data, eq. 3 (estimator e1).

    Examples
    --------
    >>> estimate_prior([0.2, 0.3, 0.25, 0.25], [0.25, 0.0] * 20, method=ElkanNoto()).value
    0.3
    """

    scenario: Literal["case-control", "single-sample"] = "case-control"
    level: float = 0.9

    def prior(self, positive: Floats, unlabeled: Floats) -> tuple[float, Interval]:
        """The estimate, and an interval from the standard error of the mean over positives."""
        from scipy.special import ndtri

        for name, values in (("positive", positive), ("unlabeled", unlabeled)):
            validation.in_unit_interval(name, values, clip=False)
        mean = float(positive.mean())
        spread = float(positive.std(ddof=1)) / math.sqrt(len(positive)) if len(positive) > 1 else 0.0
        reach = float(ndtri((1 + validation.fraction("level", self.level)) / 2)) * spread

        def share(c: float) -> float:
            c = min(max(c, 1e-12), 1.0)
            if self.scenario == "single-sample":
                return min(1.0, len(positive) / ((len(positive) + len(unlabeled)) * c))
            return min(1.0, len(positive) * (1 - c) / (c * len(unlabeled)))

        interval = Interval(
            share(mean + reach), share(mean - reach), level=self.level, method=repr(self), assumption=_PURE
        )
        return share(mean), interval


_PURE = "some scores occur among positives only"


def estimate_prior(positive: ArrayLike, unlabeled: ArrayLike, *, method: BestBin | ElkanNoto = BestBin()) -> Estimate:
    """The share of positives in the population, with an interval.

    Parameters
    ----------
    positive, unlabeled : array-like
        Scores of labelled positives and of unlabeled rows, by a model that was trained on neither. Any ranking score
        for `BestBin`; probabilities of being labelled for `ElkanNoto`.
    method : BestBin or ElkanNoto

    Notes
    -----
    The prior is identified only if some scores occur among positives only: otherwise every estimate is an upper bound.
    Pass the interval to `calibrant.pu.prior_band`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.normal(2, 1, 1000)
    >>> unlabeled = np.concatenate([rng.normal(2, 1, 3000), rng.normal(-2, 1, 7000)])
    >>> estimate_prior(positive, unlabeled)
    <Class prior 0.2997 [0.2401, 0.3592] at 90%, n=11_000, BestBin(delta=0.1, gamma=0.01)>
    """
    p = validation.column("positive", positive).astype(np.float64, copy=False)
    u = validation.column("unlabeled", unlabeled).astype(np.float64, copy=False)
    value, interval = method.prior(p, u)
    return Estimate(value, name="Class prior", method=repr(method), n=len(p) + len(u), interval=interval)
