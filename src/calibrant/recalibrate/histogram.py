"""Maps that are constant per bin: histogram binning, scaling-binning, and Bayesian binning into quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln
from sklearn.base import clone

from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats
from calibrant.numerics.equal_mass import RunningWeight
from calibrant.recalibrate.base import BinaryMap, BinaryRecalibrator
from calibrant.recalibrate.expressions import Expression, ScoreExpressions
from calibrant.recalibrate.inputs import BinomialCells, Scores
from calibrant.recalibrate.logistic import Platt
from calibrant.table.binning import Cut, EqualMass, as_binning


class StepMap(BinaryMap):
    """Base of the maps that are constant between edges."""

    edges_: Floats
    values_: Floats

    def _map(self, scores: Scores) -> Floats:
        return self.values_[bin_of(scores.probability, self.edges_)]

    def _map_expression(self, scores: ScoreExpressions) -> Expression:
        return scores.steps("probability", self.edges_[1:-1], self.values_)


@dataclass(kw_only=True, eq=False, repr=False)
class Histogram(StepMap, BinaryRecalibrator):
    r"""Recalibration map, histogram binning: the share of positives in the bin of p.

    .. math:: q = s_k / w_k, \qquad p \in \text{bin } k

    Parameters
    ----------
    bins : EqualMass, EqualWidth or Edges
        An empty bin keeps its middle.
    allow_certainty : bool
        Give bins of only one outcome the probability 0 or 1; otherwise these get (s + 1) / (w + 2), Laplace's rule.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    edges_, values_ : array
        The edges of the bins and their recalibrated probabilities.

    References
    ----------
    Zadrozny, Elkan (2001), Obtaining calibrated probability estimates from decision trees and naive Bayesian
    classifiers.

    Examples
    --------
    >>> import calibrant as cal
    >>> histogram = Histogram(bins=cal.EqualWidth(2)).fit([0.1, 0.2, 0.3, 0.7, 0.8], [0, 1, 0, 1, 1])
    >>> histogram.values_
    array([0.33333333, 0.75      ])
    """

    _distinct = True

    bins: Cut | int = EqualMass(15)
    allow_certainty: bool = False

    def _fit_cells(self, cells: BinomialCells) -> None:
        self.edges_ = edges_of(cells, self.bins)
        self.values_ = rates(self.edges_, cells, cells.positive, allow_certainty=self.allow_certainty)


@dataclass(kw_only=True, eq=False, repr=False)
class ScalingBinning(BinaryRecalibrator):
    r"""Scaling-binning: a fitted map g, averaged within bins of equal mass of its own output.

    .. math:: q = \text{mean of } g(p_i) \text{ over the rows of the bin of } g(p)

    The output takes few values, so its calibration error can be measured without bias from binning; averaging g, not
    outcomes, keeps the variance that of the map. All steps use all rows.

    Parameters
    ----------
    scaling : binary Recalibrator, optional
        The map g; `Platt()` by default.
    bins : EqualMass, EqualWidth or Edges
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    References
    ----------
    Kumar, Liang, Ma (2019), Verified Uncertainty Calibration.

    Examples
    --------
    >>> import calibrant as cal
    >>> p, y = [0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 1, 0, 1, 0, 1]
    >>> ScalingBinning(bins=cal.EqualMass(2)).fit(p, y).values_.round(3)
    array([0.334, 0.666])
    """

    _distinct = True

    scaling: Any = None
    bins: Cut | int = EqualMass(15)

    def _fit_cells(self, cells: BinomialCells) -> None:
        self.scaling_ = clone(Platt() if self.scaling is None else self.scaling)
        if not isinstance(self.scaling_, BinaryRecalibrator):
            fail(f"A binary map is needed here, e.g. Platt(); got {self.scaling!r}.", TypeError)
        self.scaling_._set_one_event(cells.total)
        self.scaling_._fit_cells(cells)
        scaled = self.scaling_._map(cells.scores)
        order = np.argsort(scaled, kind="stable")
        seen = BinomialCells(Scores(scaled[order], logits=False), cells.weight[order], cells.positive[order])
        self.edges_ = edges_of(seen, self.bins)
        self.values_ = rates(self.edges_, seen, seen.weight * seen.probability, allow_certainty=True)

    def _map(self, scores: Scores) -> Floats:
        seen = Scores(
            scores.probability, logits=False
        )  # log odds from logits differ by a bit: at an edge that is a bin
        return self.values_[bin_of(self.scaling_._map(seen), self.edges_)]

    def _map_expression(self, scores: ScoreExpressions) -> Expression:
        seen = ScoreExpressions((scores.probability,), logits=False)
        scaled = ScoreExpressions((self.scaling_._map_expression(seen),), logits=False, exact=False)
        return scaled.steps("probability", self.edges_[1:-1], self.values_)


def edges_of(cells: BinomialCells, bins: Cut | int) -> Floats:
    """The edges of `bins` for distinct rising cells, opened to hold every later score."""
    bins = as_binning(bins)
    if isinstance(bins, EqualMass):
        at = RunningWeight.of(cells.weight).cuts(bins.n_bins, bins.rank)[1:-1].astype(np.intp)
        inner = cells.probability[at - 1].astype(np.float64)
    else:
        inner = bins.edges[1:-1]
    return np.concatenate([[0.0], inner, [1.0]])


def bin_of(p: NDArray[Any], edges: Floats) -> NDArray[np.intp]:
    """Bin number of each probability; bins are (low, high]."""
    return np.searchsorted(edges[1:-1], p, side="left")


def rates(edges: Floats, cells: BinomialCells, positive: NDArray[Any], *, allow_certainty: bool) -> Floats:
    """Share of positives per bin: its middle where there is no weight, Laplace's rule where it would be 0 or 1."""
    index = bin_of(cells.probability, edges)
    weight, positive = (np.bincount(index, values, len(edges) - 1) for values in (cells.weight, positive))
    filled = weight > 0
    rate = np.where(filled, positive / np.where(filled, weight, 1), (edges[1:] + edges[:-1]) / 2)
    if allow_certainty:
        return rate
    certain = filled & ((positive <= 0) | (positive >= weight))
    return np.where(certain, (np.clip(positive, 0, weight) + 1) / (weight + 2), rate)


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianBinning(StepMap, BinaryRecalibrator):
    r"""Bayesian binning into quantiles (BBQ): histogram maps of many sizes, averaged by their evidence.

    .. math:: q = \sum_M \frac{P(D \mid M)}{\sum P(D \mid M')}\, \frac{s_k + \alpha_k}{w_k + N/B},
              \qquad P(D \mid M) = \prod_k \frac{B(s_k + \alpha_k,\ w_k - s_k + \beta_k)}{B(\alpha_k, \beta_k)}

    over equal-mass binnings M of B bins, B from n^(1/3) / 10 to 10 n^(1/3) (at most n / 5), where each bin has a
    beta prior of total strength N / B around the middle of the bin. The average is again constant per bin and is
    kept as such.

    Parameters
    ----------
    strength : float
        The total strength N of the prior.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    edges_, values_ : array
        Where the averaged map jumps, and its values between.
    evidence_ : dict
        Number of bins and weight of the binnings that matter.

    References
    ----------
    Naeini, Cooper, Hauskrecht (2015), Obtaining Well Calibrated Probabilities Using Bayesian Binning.

    Examples
    --------
    >>> bbq = BayesianBinning().fit([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 1, 0, 1, 1])
    >>> bbq.predict_proba([0.1, 0.9])[:, 1].round(3)
    array([0.446, 0.542])
    """

    _distinct = True

    strength: float = 2.0

    def _fit_cells(self, cells: BinomialCells) -> None:
        models = self._models(cells)
        scores = np.array([score for *_, score in models.values()])
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        kept = [(size, share) for size, share in zip(models, shares, strict=True) if share > 1e-9]
        total = sum(share for _, share in kept)
        self.edges_ = np.unique(np.concatenate([models[size][0] for size, _ in kept]))
        middle = (self.edges_[1:] + self.edges_[:-1]) / 2
        self.values_ = np.zeros(len(middle))
        for size, share in kept:
            edges, values, _ = models[size]
            self.values_ += share / total * values[bin_of(middle, edges)]
        self.evidence_ = {str(size): share / total for size, share in kept}

    def _models(self, cells: BinomialCells) -> dict[int, tuple[Floats, Floats, float]]:
        """Edges, values and log evidence of each binning, by its number of bins."""
        running, equal_mass = np.cumsum(cells.weight), RunningWeight.of(cells.weight)
        positives = np.concatenate([[0.0], np.cumsum(cells.positive)])
        weights = np.concatenate([[0.0], running])
        root = max(running[-1], 1.0) ** (1 / 3)
        most = max(1, min(int(np.ceil(running[-1] / 5)), int(np.ceil(10 * root))))
        models = {}
        for number in range(max(1, min(int(root / 10), most)), most + 1):
            at = equal_mass.cuts(number).astype(np.intp)
            inner = cells.probability[at[1:-1] - 1].astype(np.float64)
            edges = np.concatenate([[0.0], inner, [1.0]])
            found = self._posterior(edges, np.diff(weights[at]), np.diff(positives[at]))
            models[len(edges) - 1] = (edges, *found)
        return models

    def _posterior(self, edges: Floats, weight: Floats, positive: Floats) -> tuple[Floats, float]:
        """Posterior means of the bins and the log evidence."""
        strength = self.strength / len(weight)
        middle = np.clip((edges[1:] + edges[:-1]) / 2, 1e-9, 1 - 1e-9)
        alpha, beta = strength * middle, strength * (1 - middle)
        positive = np.clip(positive, 0, weight)
        evidence = betaln(positive + alpha, weight - positive + beta) - betaln(alpha, beta)
        return (positive + alpha) / (weight + strength), float(evidence.sum())
