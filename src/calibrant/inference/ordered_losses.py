"""Losses of rows in the order of falling confidence: running risks, the area under them, and how these vary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats

Numbers = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class OrderedLosses:
    """Entries (rows, or rows of a table with one score and outcome) in the order of falling confidence.

    Attributes
    ----------
    confidence, loss, weight, squares : arrays
        `squares` are sums of squared weights.
    cluster : array or None
        The cluster number of each entry, from 0.
    ends : array
        The last entry of each run of equal confidence.
    """

    confidence: Floats
    loss: Floats
    weight: Floats
    squares: Floats
    cluster: Numbers | None
    ends: Numbers

    @classmethod
    def of(
        cls, confidence: Floats, loss: Floats, weight: Floats, squares: Floats, cluster: Numbers | None = None
    ) -> OrderedLosses:
        """From entries in any order; those without weight are left out."""
        order = np.argsort(-confidence, kind="stable")
        order = order[weight[order] > 0]
        c = confidence[order]
        ends = np.append(np.flatnonzero(c[1:] != c[:-1]), len(c) - 1)
        chosen = None if cluster is None else cluster[order]
        return cls(c, loss[order], weight[order], squares[order], chosen, ends)

    @cached_property
    def unit(self) -> float:
        """The factor that makes weights add up to Kish's number of rows."""
        return float(self.weight.sum() / self.squares.sum())

    @cached_property
    def running(self) -> Floats:
        """Weight of the entries up to the end of each run."""
        return np.cumsum(self.weight)[self.ends]

    @cached_property
    def risk(self) -> Floats:
        """Mean loss up to the end of each run."""
        return np.asarray(np.cumsum(self.weight * self.loss)[self.ends] / self.running)

    @cached_property
    def run(self) -> Numbers:
        """The run of each entry."""
        return np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=-1))

    def ideal(self) -> OrderedLosses:
        """The same losses in the ideal order: the smallest first."""
        return OrderedLosses.of(-self.loss, self.loss, self.weight, self.squares, self.cluster)

    def area(self) -> float:
        """Mean over rows of the risk up to each, with the rows of a run sharing their loss equally."""
        from scipy.special import digamma

        total = np.diff(self.running, prepend=0.0) * self.unit
        sums = np.diff(self.running * self.risk, prepend=0.0) * self.unit
        before, losses = np.cumsum(total) - total, np.cumsum(sums) - sums
        rate = sums / total
        steps = digamma(before + total + 1) - digamma(before + 1)  # the sum of 1 / k over the rows of the run
        return float((rate * total + (losses - rate * before) * steps).sum() / total.sum())

    def area_influence(self) -> Floats:
        r"""By how much the area changes with the weight of each entry, per weight.

        With r the risk and G the coverage at a confidence c, and C the confidence of another row,

        .. math:: \psi_i = r(c_i) - \mathrm{AURC} + E_C\Bigl[\mathbf 1\{c_i \ge C\}\, \frac{\ell_i - r(C)}{G(C)}\Bigr],

        where r and G run through a run of equal confidence as in the area, with its mean loss. It is the derivative of
        the sums of the area, with a logarithm for the sum of 1 / k.
        """
        mass = np.diff(self.running, prepend=0.0) * self.unit
        sums = np.diff(self.running * self.risk, prepend=0.0) * self.unit
        end = np.cumsum(mass)
        before, losses, rate = end - mass, np.cumsum(sums) - sums, sums / mass
        steps = np.log((end + 0.5) / (before + 0.5))
        ahead = losses - rate * before  # what the losses before a run exceed its own rate by
        # An entry moves the runs after its own: their beginning, and the losses before them.
        linear = _after(steps)
        constant = _after(rate * steps + ahead * (1 / (before + 0.5) - 1 / (end + 0.5)))
        own = ahead / (end + 0.5) + rate * before * steps / mass
        slope = 1 - before * steps / mass + linear
        mean = float((sums + ahead * steps).sum() / end[-1])
        return np.asarray(self.loss * slope[self.run] + (own - constant - mean)[self.run])

    def largest_part(self) -> float:
        """The largest part of the area that one entry (or cluster) has: its loss by the mean of 1 / k from it on."""
        each = np.diff(self.running, prepend=0.0) / self.running
        parts = self.loss * np.cumsum(each[::-1])[::-1][self.run] / float(self.weight.sum())
        if self.cluster is None:
            return float((parts * np.minimum(self.weight, self.squares / self.weight)).max())
        return float(np.bincount(self.cluster, parts * self.weight).max())

    def variances(self, runs: Any) -> tuple[Floats, Floats]:
        """Variances of the risks at the ends of some runs, and the number of rows or clusters that carry each."""
        if self.cluster is not None:
            sums = self.cluster_sums(runs)
            squares = (sums**2).sum(axis=0)
            fourth = (sums**4).sum(axis=0)
            carrying = np.divide(squares**2, fourth, out=np.ones_like(squares), where=fourth > 0)
            return squares / self.running[runs] ** 2, carrying
        at, risk = self.ends[runs], self.risk[runs]
        quadratic, linear, plain = (np.cumsum(self.squares * self.loss**k)[at] for k in (2, 1, 0))
        spread = np.maximum(quadratic - 2 * risk * linear + risk**2 * plain, 0.0)
        size = self.running[runs] ** 2 / plain
        return spread / self.running[runs] ** 2 * size / np.maximum(size - 1, 1e-9), size

    def clusters_up_to(self, runs: Any) -> Numbers:
        """The number of clusters that have entries up to the end of some runs."""
        label = np.zeros(0, np.intp) if self.cluster is None else self.cluster
        first = np.sort(np.unique(label, return_index=True)[1])
        return np.searchsorted(first, self.ends[runs], side="right")

    def cluster_sums(self, runs: Any) -> Floats:
        """Sums over each cluster (line) of loss less risk, up to the end of some runs (columns)."""
        label = np.zeros(0, np.intp) if self.cluster is None else self.cluster
        number = int(label.max()) + 1
        losses, weights = np.zeros(number), np.zeros(number)
        found, start = np.empty((number, len(runs))), 0
        for k, run in enumerate(runs):
            some = slice(start, int(self.ends[run]) + 1)
            losses += np.bincount(label[some], (self.weight * self.loss)[some], number)
            weights += np.bincount(label[some], self.weight[some], number)
            found[:, k], start = losses - self.risk[run] * weights, some.stop
        return found

    def covariance(self, runs: Any) -> Floats:
        """How the risks at the ends of some runs vary together."""
        weight = self.running[runs]
        if self.cluster is not None:
            sums = self.cluster_sums(runs) / weight
            return np.asarray(sums.T @ sums)
        at, risk = self.ends[runs], self.risk[runs]
        first = np.minimum.outer(at, at)
        quadratic, linear, plain = (np.cumsum(self.squares * self.loss**k)[first] for k in (2, 1, 0))
        return np.asarray(
            (quadratic - np.add.outer(risk, risk) * linear + np.outer(risk, risk) * plain) / np.outer(weight, weight)
        )

    def smoothed_covariance(self, runs: Any) -> Floats:
        """The same with one more loss, of which no part of the order is more likely to hold it than another.

        Without it the risks before the first loss would not vary, and a band would not allow for losses there.
        """
        weight = self.running[runs]
        variance, carrying = self.variances([len(self.ends) - 1])
        parts = self.squares * (self.loss - self.risk[-1]) ** 2
        if self.cluster is None:
            carrying = parts.sum() ** 2 / max(float(parts @ parts), 1e-300)
        one = float(variance[0]) / max(float(np.squeeze(carrying)), 1.0) or 1.0
        alike = np.minimum.outer(weight, weight) / np.outer(weight, weight) * weight[-1]
        return self.covariance(runs) + one * alike

    def spread(self, influence: Floats) -> tuple[float, float]:
        """Standard error of a mean with this influence, and the number of rows or clusters that carry it."""
        total = float(self.weight.sum())
        if self.cluster is None:
            squares = self.squares * influence**2
            size = float(self.weight.sum()) * self.unit
            variance = float(squares.sum()) * size / max(size - 1, 1e-9)
            return float(np.sqrt(variance)) / total, size
        parts = np.bincount(self.cluster, self.weight * influence)
        square = float(parts @ parts)
        carrying = square**2 / float((parts**4).sum()) if square > 0 else 1.0
        number = len(parts)
        return float(np.sqrt(square * number / max(number - 1, 1))) / total, max(carrying, 1.0)


def _after(values: Floats) -> Floats:
    """Sums of all later values."""
    return np.asarray(np.cumsum(values[::-1])[::-1] - values)
