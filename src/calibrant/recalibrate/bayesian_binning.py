"""Bayesian binning into quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.numerics.arrays import Floats
from calibrant.numerics.equal_mass import RunningWeight
from calibrant.recalibrate.base import BinaryRecalibrator
from calibrant.recalibrate.histogram import bin_of
from calibrant.recalibrate.inputs import BinomialCells, Scores
from calibrant.recalibrate.sql_scores import SqlScores


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianBinning(BinaryRecalibrator):
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
        models = {len(edges) - 1: (edges, values, score) for edges, values, score in self._models(cells)}
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

    def _models(self, cells: BinomialCells) -> list[tuple[Floats, Floats, float]]:
        """Edges, values and log evidence of each binning."""
        running, equal_mass = np.cumsum(cells.weight), RunningWeight.of(cells.weight)
        positives = np.concatenate([[0.0], np.cumsum(cells.positive)])
        weights = np.concatenate([[0.0], running])
        root = max(running[-1], 1.0) ** (1 / 3)
        most = max(1, min(int(np.ceil(running[-1] / 5)), int(np.ceil(10 * root))))
        models = []
        for number in range(max(1, min(int(root / 10), most)), most + 1):
            at = equal_mass.cuts(number).astype(np.intp)
            inner = cells.probability[at[1:-1] - 1].astype(np.float64)
            edges = np.concatenate([[0.0], inner, [1.0]])
            models.append((edges, *self._posterior(edges, np.diff(weights[at]), np.diff(positives[at]))))
        return models

    def _posterior(self, edges: Floats, weight: Floats, positive: Floats) -> tuple[Floats, float]:
        """Posterior means of the bins and the log evidence."""
        from scipy.special import betaln

        strength = self.strength / len(weight)
        middle = np.clip((edges[1:] + edges[:-1]) / 2, 1e-9, 1 - 1e-9)
        alpha, beta = strength * middle, strength * (1 - middle)
        positive = np.clip(positive, 0, weight)
        evidence = betaln(positive + alpha, weight - positive + beta) - betaln(alpha, beta)
        return (positive + alpha) / (weight + strength), float(evidence.sum())

    def _map(self, scores: Scores) -> Floats:
        values: Floats = self.values_[bin_of(scores.probability, self.edges_)]
        return values

    def _map_sql(self, scores: SqlScores) -> str:
        values = [scores.dialect.number(value) for value in self.values_]
        return scores.steps("probability", self.edges_[1:-1], values)
