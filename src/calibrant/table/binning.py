"""Where to cut the scores. Bins are (low, high]; the first also holds its low edge.

A binning only says where to cut; it never counts. Three of them make a handful of bins (`EqualWidth`,
`EqualMass`, `Edges`), three make cells so fine that every other binning can be had from them afterwards
(`Distinct`, exact, one cell per distinct score; `HybridGrid` for probabilities and `LogGrid` for spreads, fixed
grids that any engine can group by).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, get_args, overload

import numpy as np
from numpy.typing import NDArray

from calibrant.data import validation
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats
from calibrant.numerics.binned_sums import equal_width_index, hybrid_index
from calibrant.numerics.equal_mass import Ranks, SortedSamples, require_inside
from calibrant.numerics.rows import variance_of_mean
from calibrant.numerics.sorting import Rank


@dataclass(frozen=True)
class EqualWidth:
    """`n_bins` bins of the same width over [low, high].

    >>> EqualWidth(4).edges
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """

    n_bins: int = 15
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        validation.whole("n_bins", self.n_bins)
        if not self.low < self.high:
            fail(f"EqualWidth needs low < high, got low={self.low!r}, high={self.high!r}.", ValueError)

    @property
    def edges(self) -> Floats:
        """The n_bins + 1 edges, in double precision."""
        return np.linspace(self.low, self.high, self.n_bins + 1)

    def index(self, key: NDArray[Any]) -> NDArray[np.intp]:
        """Bin number of each key."""
        return equal_width_index(key, self.edges)


@dataclass(frozen=True, repr=False)
class EqualMass:
    """`n_bins` bins that hold the same number of rows; equal scores are never split, so ties may leave fewer bins.

    Inner edge b is the order statistic of rank floor(rows * b / n_bins). For weighted rows it is the score at which the
    cumulative weight first reaches b / n_bins of the total.

    With `rank="ceil"` the rank is ceil(rows * b / n_bins) instead, as in the code published with the monotonic sweep
    (Roelofs et al., 2022), which puts the row of rank r = 0, 1, ... into bin floor(r * n_bins / rows). Without ties
    this reproduces the numbers of that code exactly; tied scores, which that code splits in the order of the rows, stay
    together here.

    >>> import calibrant as cal
    >>> cal.BinTable.of(cal.Binary([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4]), EqualMass(2)).edges
    array([0.1, 0.2, 0.4])
    """

    n_bins: int = 15
    rank: Rank = "floor"

    def __post_init__(self) -> None:
        validation.whole("n_bins", self.n_bins)
        check_rank(self.rank)

    def __repr__(self) -> str:
        rounding = "" if self.rank == "floor" else f", rank={self.rank!r}"
        return f"EqualMass(n_bins={self.n_bins}{rounding})"


def check_rank(rank: Rank) -> Rank:
    """`rank` itself, if it is one of the two roundings."""
    if rank not in get_args(Rank):
        fail(f"rank must be 'floor' or 'ceil', got {rank!r}.", ValueError)
    return rank


@dataclass(frozen=True, init=False)
class Edges:
    """Given edges, in increasing order; every score must lie between the first and the last.

    >>> Edges([0, 0.5, 1]).edges
    array([0. , 0.5, 1. ])
    """

    at: tuple[float, ...]
    rule: ClassVar[Any] = None
    """The binning that the edges of a table follow from, which is not part of them; None where it is not known."""

    def __init__(self, at: Sequence[float] | Floats) -> None:
        edges = np.asarray(at, dtype=np.float64)
        if edges.ndim != 1 or len(edges) < 2 or not np.all(np.diff(edges) >= 0) or not np.all(np.isfinite(edges)):
            fail(f"Edges must be at least two finite, rising numbers, got {edges.tolist()}.", ValueError)
        object.__setattr__(self, "at", tuple(edges.tolist()))

    @property
    def edges(self) -> Floats:
        """The edges as an array."""
        return np.array(self.at)

    def following(self, rule: Any) -> Edges:
        """The same edges, known to follow from a binning."""
        found = copy(self)
        object.__setattr__(found, "rule", None if isinstance(rule, Edges) else rule)
        return found

    def index(self, key: NDArray[Any]) -> NDArray[np.intp]:
        """Bin number of each key."""
        return np.searchsorted(self.edges[1:-1], key, side="left")


@dataclass(frozen=True)
class Distinct:
    """One cell per distinct score: nothing is lost, ties are pooled.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.BinTable.of(cal.Binary([0, 1, 1], [0.2, 0.2, 0.7]), Distinct()).observed_mean
    array([0.5, 1. ])
    """


@dataclass(frozen=True)
class HybridGrid:
    r"""A fixed grid on [0, 1], half linear and half logit, for tables that engines build and shards merge.

    .. math:: h(p) = \frac p2 + \frac14 + \frac1{4\Lambda} \ln\frac{p + \delta}{1 - p + \delta},
              \qquad \delta = e^{-L}, \quad \Lambda = \ln(1 + e^L), \qquad \mathrm{cell} = \lfloor M h(p) \rfloor

    The linear half keeps cells narrow in the middle, the logit half near 0 and 1, where the scores of
    confident models crowd and where linear cells lose the sweep and the logarithmic score. The logit levels off at
    :math:`\pm L` without a clip, which would cost engines more than the logarithm. With `equal_width=B` each
    cell is also divided at the edges of `EqualWidth(B)`, so that those bins can be had exactly.

    >>> HybridGrid(cells=8).index(np.array([0.0, 0.5, 1.0]))
    array([0, 4, 7])
    """

    cells: int = 2**16
    limit: float = 37.0
    equal_width: int | None = None

    def __post_init__(self) -> None:
        validation.whole("cells", self.cells)
        if not 0 < self.limit < 700:
            fail(f"HybridGrid needs a limit in (0, 700), got {self.limit!r}.", ValueError)
        if self.equal_width is not None:
            validation.whole("equal_width", self.equal_width)

    def index(self, key: NDArray[Any]) -> NDArray[np.intp]:
        """Cell number of each score in [0, 1]."""
        cell = hybrid_index(np.asarray(key), self.cells, self.limit)
        if self.equal_width is None:
            return cell
        return cell * self.equal_width + EqualWidth(self.equal_width).index(np.asarray(key, dtype=np.float64))


@dataclass(frozen=True)
class LogGrid:
    r"""A fixed grid on the logarithm of a positive key, for tables of predicted spreads that engines build.

    .. math:: \mathrm{cell} = \lfloor r \ln \sigma \rfloor

    with r cells per factor of e (1024: every cell is a tenth of a percent wide, whatever the unit). It has no ends,
    so tables of any two sources can be added.

    >>> LogGrid(per_fold=10).index(np.array([0.1, 1.0, 2.0]))
    array([-24,   0,   6])
    """

    per_fold: int = 1024

    def __post_init__(self) -> None:
        validation.whole("per_fold", self.per_fold)

    def index(self, key: NDArray[Any]) -> NDArray[np.intp]:
        """Cell number of each positive key."""
        return np.floor(np.log(np.asarray(key, dtype=np.float64)) * self.per_fold).astype(np.intp)


@dataclass(frozen=True)
class PaperBins:
    r"""As many bins as the sample sizes carry: :math:`B = \lceil v^{-1/3} \rceil`, v = prior² / n_P + 1 / n_U.

    n_P and n_U are the numbers of positives and of unlabeled rows; for labelled data v = 1 / n. It balances the
    orders of the two terms of `calibrant.pu.bias_bound`. Weighted rows count by Kish's effective number.

    References
    ----------
    Estimating Expected Calibration Error for Positive-Unlabeled Learning (2025), corollary 1 and section 5.1.

    Examples
    --------
    >>> PaperBins().resolve(noise=0.25 / 1000 + 1 / 10_000, n=10_000)
    EqualWidth(n_bins=15, low=0.0, high=1.0)
    """

    cut: type[EqualWidth] | type[EqualMass] = EqualWidth

    def resolve(self, noise: float, n: float) -> EqualWidth | EqualMass:
        """The bins for data whose noise is v, with n rows that are weighed."""
        bins = int(np.ceil(noise ** (-1 / 3) - 1e-9))
        return self.cut(int(min(bins, max(1, n / 2))) if self.cut is EqualMass else bins)


@dataclass(frozen=True)
class BoundBins:
    """The number of bins that minimises the bias bound of Theorem 1 (`calibrant.pu.bias_bound`).

    `lipschitz` is the steepness of the true calibration curve; 1 is that of a calibrated model.

    Examples
    --------
    >>> BoundBins(lipschitz=1).resolve(noise=0.25 / 1000 + 1 / 10_000, n=10_000)
    EqualWidth(n_bins=32, low=0.0, high=1.0)
    """

    lipschitz: float = 1.0
    cut: type[EqualWidth] | type[EqualMass] = EqualWidth

    def resolve(self, noise: float, n: float) -> EqualWidth | EqualMass:
        """The bins for data whose noise is v, with n rows that are weighed."""
        equal_mass = self.cut is EqualMass
        most = 10 * ((1 + self.lipschitz) ** 2 / noise) ** (1 / 3) + 2
        bins = np.arange(1, int(min(most, max(1, n / 2)) if equal_mass else most) + 1)
        bound = bias_bound_of_bins(bins, noise, n, lipschitz=self.lipschitz, equal_mass=equal_mass)
        return self.cut(int(bins[np.argmin(bound)]))


def bias_bound_of_bins(
    bins: Any, noise: float, n: float, *, lipschitz: float, equal_mass: bool, log_inverse_delta: float = 0.0
) -> Any:
    """Theorem 1 for one or many numbers of bins; `log_inverse_delta` is log(1 / delta), 0 for the expectation."""
    within = (1 + lipschitz) / bins
    size = 2 * (bins * np.log(2) + log_inverse_delta)
    if not equal_mass:
        return within + np.sqrt(size * noise)
    rest = n - bins
    spread = (1 + lipschitz) / np.sqrt(rest) + np.sqrt(noise - 1 / n + 1 / rest)
    return within + (3 + 2 * lipschitz) * bins / rest + np.sqrt(size) * spread


Cut = EqualWidth | EqualMass | Edges
"""Binnings that know their number of bins."""

Grid = HybridGrid | LogGrid
"""Fixed cells, the same for all tables, so that tables made apart can be added."""

Cells = Distinct | Grid
"""What fine tables are made of."""

Rule = Cut | PaperBins | BoundBins
"""Binnings that know their number of bins, or find it from the sample sizes."""

Binning = Rule | int
"""What estimators take as `bins=`; a whole number n means EqualMass(n)."""


@overload
def as_binning(bins: Cut | int) -> Cut: ...


@overload
def as_binning(bins: Binning) -> Rule: ...


@overload
def as_binning(bins: Binning | Cells) -> Rule | Cells: ...


def as_binning(bins: Binning | Cells) -> Rule | Cells:
    """`bins` itself; a whole number n means `EqualMass(n)`."""
    if isinstance(bins, Rule | Cells):
        return bins
    if not isinstance(bins, bool | int | np.integer):
        fail(
            f"bins must be a whole number or a binning such as EqualMass(15) or EqualWidth(15), got {bins!r}.",
            TypeError,
        )
    return EqualMass(validation.whole("bins", bins))


class CellSums(NamedTuple):
    """What a table is made of: how it was cut, and number, bounds and sums of its bins or cells."""

    cut: Edges | Distinct | Grid
    key: NDArray[Any]
    low: Floats
    high: Floats
    sums: Floats


def added(parts: list[CellSums]) -> CellSums:
    """The sums of all rows behind `parts`, which must be cut alike."""
    key = np.concatenate([part.key for part in parts])
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0])[: len(key)])

    def gathered(name: str) -> Floats:
        return np.concatenate([getattr(part, name) for part in parts], axis=-1)[..., order]

    return CellSums(
        parts[0].cut,
        key[order][starts],
        np.minimum.reduceat(gathered("low"), starts),
        np.maximum.reduceat(gathered("high"), starts),
        np.add.reduceat(gathered("sums"), starts, axis=1),
    )


@dataclass(frozen=True, eq=False)
class SampleBins:
    """Sums per bin of samples of `n` unweighted rows, of shape (samples, bins); equal counts may have shape (bins,)."""

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
    """The bins of all samples, or of those with the numbers `which`; samples that have bins are taken as they are."""
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
