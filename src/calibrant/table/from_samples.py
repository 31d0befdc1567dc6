"""From many sorted samples to their sums per bin: the table of each, but for columns that no simulation needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.numerics.arrays import Floats
from calibrant.numerics.equal_mass import require_inside
from calibrant.numerics.sorted_samples import Ranks, SortedSamples
from calibrant.numerics.weights import variance_of_mean
from calibrant.table.binning import Binning, BoundBins, EqualMass, PaperBins, as_binning


@dataclass(frozen=True, eq=False)
class SampleBins:
    """Sums per bin of samples of `n` unweighted rows with 0/1 outcomes, in arrays of shape (samples, bins).

    The counts may have the shape (bins,), where they are the same in every sample.
    """

    count: Floats
    predicted: Floats
    observed: Floats
    n: int

    @property
    def share(self) -> Floats:
        """The part of the rows in each bin."""
        return self.count / self.n

    @property
    def mass(self) -> Floats:
        """Error mass: the share of each bin times its mean prediction less mean outcome."""
        return (self.predicted - self.observed) / self.n

    @property
    def mass_variance(self) -> Floats:
        """Estimated variance of the error mass; NaN where the bin has a single row or none."""
        rate = self.observed / np.maximum(self.count, 1.0)
        return variance_of_mean(rate, rate, self.count) * self.share**2


def bin_samples(samples: SortedSamples | SampleBins, binning: Binning, which: Ranks | None = None) -> SampleBins:
    """The bins of all samples, or of those with the numbers `which`; samples that have bins are taken as they are.

    >>> samples = SortedSamples.of(np.array([[0.7, 0.2, 0.4]]), np.array([[1, 0, 1]], dtype=np.int8))
    >>> bin_samples(samples, EqualMass(2)).observed
    array([[0., 2.]])
    """
    if isinstance(samples, SampleBins):
        return samples
    cut = as_binning(binning)
    if isinstance(cut, PaperBins | BoundBins):
        cut = cut.resolve(1 / samples.n, samples.n)
    if isinstance(cut, EqualMass):
        cuts = samples.equal_mass_cuts(cut.n_bins, which, cut.rank)
    else:
        edges = cut.edges
        require_inside(samples.key[:, [0, -1]], edges)
        cuts = samples.cuts_at(edges, which)
    count = (cuts[..., 1:] - cuts[..., :-1]).astype(np.float64)
    observed = samples.observed(cuts, which).astype(np.float64)
    return SampleBins(count, samples.predicted(cuts, which), observed, samples.n)
