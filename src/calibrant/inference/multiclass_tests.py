"""Multiclass tests: is the whole vector of probabilities calibrated (the default), and which classes are not?

A label of row i adds to one cell of any table over (row, class), so a table costs one lookup per row and draw, whatever
the number of classes; expected counts and variances are the same for all draws.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data import validation
from calibrant.data.predictions import Multiclass
from calibrant.data.validation import fail
from calibrant.inference import multiplicity
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import categorical_draws, generator
from calibrant.numerics.rows import all_alike, row_blocks
from calibrant.results.estimate import Significance, printable, text_table

#: Names of the statistics, in words, with their weights in the combined test: less for those that resemble others, and
#: most for the totals of the classes, which others see only in part.
#: Test: tests/inference/test_multiclass_tests.py::test_the_p_value_is_the_rank_of_the_weighted_sum.
WEIGHTS = {
    "temperature of all classes": 0.5,
    "confidence per class, all classes": 1.0,
    "confidence per class, worst class": 1.0,
    "more surprises than predicted": 1.5,
    "probabilities of all classes pooled": 1.0,
    "class frequencies, all classes": 3.0,
    "class frequencies in 2 bins, all classes": 0.5,
    "class frequencies in 4 bins, all classes": 1.0,
    "class frequencies, worst class": 0.75,
    "class frequencies in 2 bins, worst class": 1.0,
    "class frequencies in 4 bins, worst class": 1.0,
    "rank of the true class in 8 bins of confidence": 1.0,
    "rank of the true class in 32 bins of confidence": 0.5,
    "confusion of classes, all pairs": 1.0,
    "confusion of classes, worst pair": 0.5,
}

#: Halvings of the distance to 0 and to 1 that pooled probabilities are divided into.
#: Test: tests/inference/test_multiclass_tests.py::test_small_probabilities_are_told_apart_down_to_25_halvings.
_HALVINGS = 25

#: Bins per class, bins of the confidence with the number of rows they need, and ranks of the true class: first, second,
#: third, later. Test: tests/inference/test_multiclass_tests.py::test_gaps_of_the_observed_labels_are_sums_over_rows.
#: Test: tests/inference/test_multiclass_tests.py::test_every_statistic_has_a_weight_and_small_samples_have_fewer.
_CLASS_BINS, _FEW_BINS, _MANY_BINS, _ROWS_FOR_MANY, _RANKS = 4, 8, 32, 256, 4

#: Beyond this many classes the table of confusions has the rank of the outcome, not its class.
#: Test: tests/inference/test_multiclass_tests.py::test_confusions_of_very_many_classes_are_counted_by_rank.
_PAIRED_CLASSES = 128

#: Smallest variances that squared gaps are divided by.
#: Test: tests/inference/test_multiclass_tests.py::test_one_label_of_a_class_that_hardly_exists_has_a_bounded_effect.
_CLASS_FLOOR, _POOLED_FLOOR, _RANK_FLOOR, _PAIR_FLOOR = 0.05, 1.0, 1e-6, 0.5

#: Labels and probabilities that are held at a time: 80 and 32 MB.
#: Test: tests/inference/test_multiclass_tests.py::test_rows_are_divided_so_that_their_labels_fit_into_memory.
_MOST_LABELS, _MOST_ENTRIES = 20_000_000, 4_000_000

Cells = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Table:
    """What a label of each class adds in each row: `value` (1 if None) to cell `cell` of `size`."""

    cell: Cells
    size: int
    value: Floats | None = None
    #: (probabilities, cells) of the events whose variance counts, where more than one class of a row shares a cell.
    events: tuple[Floats, Cells] | None = None

    def observed(self, at: NDArray[np.int32]) -> Floats:
        """Sums per cell, one line per line of labels; `at` holds row * classes + label."""
        cell = self.cell.ravel()
        value = None if self.value is None else self.value.ravel()
        sums = np.empty((len(at), self.size))
        for line, where in zip(sums, at, strict=True):
            line[:] = np.bincount(cell.take(where), None if value is None else value.take(where), self.size)
        return sums

    def moments(self, probability: Floats) -> tuple[Floats, Floats]:
        """Expected sums per cell, and their variances with classes of a row taken for independent."""
        cell, value = self.cell.ravel(), 1.0 if self.value is None else self.value
        mean: Floats = np.bincount(cell, (probability * value).ravel(), self.size).astype(np.float64)
        p, cell = (probability, cell) if self.events is None else self.events
        variance = p * (1 - p) if self.events is not None else p * (1 - p) * value**2
        return mean, np.bincount(cell.ravel(), variance.ravel(), self.size).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Layout:
    """How the rows are divided: 4 bins per class of equal variance, and bins of the top probability of equal size."""

    probability: Floats
    class_bin: NDArray[np.int8]
    confidence_bin: NDArray[np.int8]
    confidence_bins: int

    @classmethod
    def of(cls, probability: Floats) -> Layout:
        """The division of these rows; equal probabilities share a bin."""
        class_bin = np.empty(probability.shape, np.int8)
        for k, p in enumerate(probability.T):
            class_bin[:, k] = _equal_mass(p, p * (1 - p), _CLASS_BINS)
        bins = _MANY_BINS if len(probability) >= _ROWS_FOR_MANY else _FEW_BINS
        confidence = _equal_mass(probability.max(axis=1), np.ones(len(probability)), bins)
        return cls(probability, class_bin, confidence.astype(np.int8), bins)

    def class_table(self, rows: slice) -> _Table:
        """Outcomes per class and bin of its probability."""
        _, k = self.probability.shape
        return _Table(self.class_bin[rows] + np.arange(k, dtype=np.int32) * _CLASS_BINS, k * _CLASS_BINS)

    def tables(self, rows: slice) -> dict[str, _Table]:
        """All tables of these rows."""
        p = self.probability[rows]
        k = p.shape[1]
        column = np.broadcast_to(np.arange(k, dtype=np.int32), p.shape)
        order = np.argsort(-p, axis=1, kind="stable")
        rank = np.empty(p.shape, np.int32)
        np.put_along_axis(rank, order, column, axis=1)
        ranks = min(k, _RANKS)
        np.minimum(rank, ranks - 1, out=rank)
        surprise = np.minimum(1 / np.maximum(p, 1e-300), 4.0 * len(self.probability))
        paired, size = (column, k) if k <= _PAIRED_CLASSES else (rank, ranks)
        return {
            "slope": _Table(column, k, _centred_logs(p, len(self.probability))),
            "surprise": _Table(np.zeros(p.shape, np.int32), 1, surprise),
            "pooled": _Table(_halvings(p), 2 * _HALVINGS),
            "class": self.class_table(rows),
            "rank": self._rank_table(rows, order, rank, ranks),
            "confusion": _Table(order[:, :1].astype(np.int32) * size + paired, k * size),
        }

    def _rank_table(self, rows: slice, order: NDArray[np.intp], rank: Cells, ranks: int) -> _Table:
        """Rank of the outcome by bin of confidence; the later ranks count as one."""
        bins = self.confidence_bins
        confidence = self.confidence_bin[rows, None].astype(np.int32)
        ordered = np.take_along_axis(self.probability[rows], order, axis=1)
        events = np.column_stack([ordered[:, : ranks - 1], ordered[:, ranks - 1 :].sum(axis=1)])
        cells = np.arange(ranks, dtype=np.int32) * bins + confidence
        return _Table(rank * bins + confidence, ranks * bins, events=(events, cells))


@dataclass(frozen=True, eq=False)
class Gaps:
    """Observed less expected sums per cell, one line per line of labels, and the variances under the null."""

    gap: Floats
    variance: Floats

    def squares(self, floor: float) -> Floats:
        """Squared gaps over their variances."""
        return self.gap**2 / np.maximum(self.variance, floor)


def gaps_of_labels(
    layout: Layout, labels: NDArray[np.intp], draws: int, rng: np.random.Generator, *, only: str | None = None
) -> dict[str, Gaps]:
    """Gaps of the observed labels (first line) and of drawn ones, for all tables or `only` one."""
    sums: dict[str, Floats] = {}
    variances: dict[str, Floats] = {}
    for rows in _chunks(layout.probability.shape, draws + 1):
        p = layout.probability[rows]
        at = np.empty((draws + 1, len(p)), np.int32)
        at[0] = labels[rows]
        at[1:] = categorical_draws(p, draws, rng).T
        at += np.arange(len(p), dtype=np.int32) * p.shape[1]
        tables = layout.tables(rows) if only is None else {only: layout.class_table(rows)}
        for name, table in tables.items():
            mean, variance = table.moments(p)
            sums[name] = sums.get(name, 0.0) + table.observed(at) - mean
            variances[name] = variances.get(name, 0.0) + variance
    return {name: Gaps(gap, variances[name]) for name, gap in sums.items()}


def statistics(layout: Layout, gaps: dict[str, Gaps]) -> dict[str, Floats]:
    """One number per line of labels for each statistic, large where predictions and labels disagree."""
    k = layout.probability.shape[1]
    slope = gaps["slope"].squares(_CLASS_FLOOR)
    found = {
        "temperature of all classes": gaps["slope"].gap.sum(axis=1) ** 2,
        "confidence per class, all classes": slope.sum(axis=1),
        "confidence per class, worst class": slope.max(axis=1),
        "more surprises than predicted": gaps["surprise"].gap[:, 0],
        "probabilities of all classes pooled": gaps["pooled"].squares(_POOLED_FLOOR).sum(axis=1),
    }
    for bins, squares in class_squares(gaps["class"], k).items():
        words = f"class frequencies in {bins} bins" if bins > 1 else "class frequencies"
        found[f"{words}, all classes"] = squares.sum(axis=1)
        found[f"{words}, worst class"] = squares.max(axis=1)
    rank, bins = gaps["rank"], layout.confidence_bins
    rank = Gaps(rank.gap.reshape(len(rank.gap), -1, bins), rank.variance.reshape(-1, bins))
    while bins >= _FEW_BINS:
        if bins in (_FEW_BINS, _MANY_BINS):
            squares = rank.squares(_RANK_FLOOR).sum(axis=(1, 2))
            found[f"rank of the true class in {bins} bins of confidence"] = squares
        rank, bins = _halved(rank), bins // 2
    confusion = gaps["confusion"]
    found["confusion of classes, all pairs"] = (confusion.gap**2).sum(axis=1) - confusion.variance.sum()
    found["confusion of classes, worst pair"] = confusion.squares(_PAIR_FLOOR).max(axis=1)
    return found


def class_squares(gaps: Gaps, classes: int) -> dict[int, Floats]:
    """For 4, 2 and 1 bins per class the sum of squared gaps over their variances, of shape (lines, classes)."""
    one = Gaps(gaps.gap.reshape(len(gaps.gap), classes, -1), gaps.variance.reshape(classes, -1))
    found = {_CLASS_BINS: one.squares(_CLASS_FLOOR).sum(axis=2)}
    while (bins := one.variance.shape[1] // 2) >= 1:
        one = _halved(one)
        found[bins] = one.squares(_CLASS_FLOOR).sum(axis=2)
    return found


def _halved(gaps: Gaps) -> Gaps:
    """Neighbouring cells of the last axis together."""
    return Gaps(gaps.gap[..., ::2] + gaps.gap[..., 1::2], gaps.variance[..., ::2] + gaps.variance[..., 1::2])


def _chunks(shape: tuple[int, ...], lines: int) -> Iterator[slice]:
    """Rows few enough that their labels and their tables fit into memory."""
    n, k = shape
    step = max(256, min(_MOST_LABELS // lines, _MOST_ENTRIES // k))
    return (slice(start, start + step) for start in range(0, n, step))


def _equal_mass(key: Floats, mass: Floats, bins: int) -> NDArray[np.intp]:
    """Bins of equal mass in the order of the key; equal keys share the bin of their middle."""
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-np.inf))
    total = np.add.reduceat(mass[order], starts)
    middle = np.cumsum(total) - total / 2
    of_key = np.minimum((middle / max(float(mass.sum()), 1e-300) * bins).astype(np.intp), bins - 1)
    found = np.empty(len(key), np.intp)
    found[order] = np.repeat(of_key, np.diff(starts, append=len(key)))
    return found


def _centred_logs(p: Floats, n: int) -> Floats:
    """Log probabilities less their mean in the row; below 1/(4n), which n rows cannot tell apart, compressed."""
    limit = np.log(4.0 * n)
    z = np.log(np.maximum(p, 1e-300))
    z = np.where(z < -limit, -limit - np.log1p(np.maximum(-z - limit, 0)), z)
    return np.asarray(z - np.einsum("nk,nk->n", p, z)[:, None])


def _halvings(p: Floats) -> Cells:
    """Cells of probabilities: (1/4, 1/2], (1/8, 1/4], ... and the same of 1 - p above 1/2."""

    def halvings(x: Floats) -> Floats:
        return np.clip(np.floor(-np.log2(np.maximum(x, 1e-300))), 1, _HALVINGS)

    return np.where(p <= 0.5, _HALVINGS - 1 + halvings(p), _HALVINGS - halvings(1 - p)).astype(np.int32)


#: Draws by default, and fewer beyond a number of rows.
#: Test: tests/inference/test_multiclass_tests.py::test_draws_by_default.
DRAWS, FEWER_DRAWS, MANY_ROWS = 999, 499, 20_000


@dataclass(frozen=True)
class VectorTest:
    r"""Exact test that whole vectors of class probabilities are calibrated: many statistics combined.

    The hypothesis is :math:`Y_i \mid p_i \sim \mathrm{Cat}(p_i)` for independent rows. Labels are drawn from the
    predicted probabilities, and for the observed and for all drawn labels the same statistics are computed, with
    gaps d = observed - expected, variances v under the hypothesis and :math:`\tilde z` the log probabilities less
    their mean :math:`\sum_k p_k z_k`:

    - confidence: :math:`d_k = \sum_i \tilde z_{ik}(1\{y_i = k\} - p_{ik})` of each class, :math:`d_k^2/v_k` summed over
      classes and of the worst class; and the square of their sum (one temperature for all);
    - surprises: :math:`\sum_i 1/p_{i,y_i}`, the score test of labels that are noisier than predicted;
    - pooled: all n K pairs of a probability and its outcome, in halvings of p and of 1 - p;
    - class frequencies: each class in 1, 2 and 4 bins of its probability, all classes and the worst;
    - rank of the true class (first, second, third, later) in 8 and 32 bins of the top probability;
    - confusion: predicted class against outcome (beyond 128 classes against the rank of the outcome), all pairs and
      the worst.

    Each becomes a p-value by its rank among the draws; these are combined by a weighted
    :math:`\sum_j \omega_j\cot(\pi p_j)`, and the p-value is the rank of that sum. It is exact for every number of rows
    and classes, also where probabilities are 0, and at least 1 / (draws + 1). The single p-values are in ``details``,
    smallest first: they say in what respect predictions and labels disagree, and are not adjusted for their number.

    Parameters
    ----------
    draws : int, optional
        Number of simulated samples; by default 999, and 499 beyond 20,000 rows.
    seed : int

    Notes
    -----
    Errors that only few of many classes have, and interactions between classes, are hard to detect for any test at
    moderate sample sizes: a large p-value does not prove calibration. `by_class` names the classes; `LearnedTest` has
    more power against interactions. Level and power are in reproduce/results/multiclass.md.

    References
    ----------
    Vaicenavicius, Widmann, Andersson, Lindsten, Roll, Schön (2019), Evaluating model calibration in classification,
    for the hypothesis and consistency resampling. Liu, Xie (2020), Cauchy combination test.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 1000)
    >>> y = (rng.random((1000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    >>> cal.calibration_test(cal.Multiclass(y, p)).p_value > 0.05
    True
    >>> sharper = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> found = cal.calibration_test(cal.Multiclass(y, sharper))
    >>> found.p_value, found.details["temperature of all classes"]
    (0.001, 0.001)
    """

    draws: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        validation.seed(self.seed)
        if self.draws is not None:
            validation.whole("draws", self.draws)

    def test(self, data: Multiclass) -> Significance:
        """The p-value; the statistic is the smallest single p-value."""
        probability, labels = independent_rows(data, needed_by="VectorTest", named=False)
        draws = default_draws(len(labels)) if self.draws is None else self.draws
        layout = Layout.of(probability)
        rng = generator(self.seed, "labels of a vector test")
        found = statistics(layout, gaps_of_labels(layout, labels, draws, rng))
        names = [name for name in WEIGHTS if name in found]
        single = multiplicity.rank_p_values(np.stack([found[name] for name in names], axis=1))
        p_value = multiplicity.cauchy_rank(single, np.array([WEIGHTS[name] for name in names]))
        details = dict(sorted(zip(names, single[0].tolist(), strict=True), key=lambda look: look[1]))
        least = float(single[0].min())
        return Significance(least, p_value, method=repr(self), n=len(labels), details=details, draws=draws)


def default_draws(rows: int) -> int:
    """Number of simulated samples where none was asked for."""
    return DRAWS if rows <= MANY_ROWS else FEWER_DRAWS


def independent_rows(data: Multiclass, *, needed_by: str, named: bool = True) -> tuple[Floats, NDArray[np.intp]]:
    """Probabilities that sum to 1, and labels, in an order of their own; of classes too, unless they are `named`."""
    if not isinstance(data, Multiclass):
        fail(f"{needed_by} needs Multiclass predictions, not {data!r}.")
    if data.group is not None:
        fail(f"{needed_by} needs independent rows, but these have a group; take one row per group.")
    if not all_alike(data.weight):
        fail(f"{needed_by} needs rows of equal weight; leave the weights out to test the sampled rows themselves.")
    sums = data.y_prob.sum(axis=1, dtype=np.float64)
    classes = np.arange(data.y_prob.shape[1])
    if not named:  # those with the largest mean probability first; sums that differ by rounding are equal
        mean = data.y_prob.mean(axis=0, dtype=np.float64).round(12)
        classes = np.lexsort((-np.bincount(data.y_true, minlength=len(mean)), -mean))
    number = np.argsort(classes)[data.y_true]
    order = np.lexsort((number, *(data.y_prob[:, classes[:4]] / sums[:, None]).T[::-1]))
    p = np.empty(data.y_prob.shape)
    for rows in row_blocks(len(p), data.y_prob.shape[1]):
        p[rows] = (data.y_prob[order[rows]] / sums[order[rows], None])[:, classes]
    return p, number[order]


#: Classes that are printed. Test: tests/inference/test_multiclass_tests.py::test_it_prints_and_converts.
_PRINTED = 20

_HEADER = ("class", "rows", "predicted", "observed", "probabilities are", "p", "adjusted p")


@dataclass(frozen=True)
class ClassRow:
    """The test of one class; what `by_class` returns for each.

    Attributes
    ----------
    label : hashable
        The class.
    n : int
        Number of rows of this class.
    predicted, observed : float
        Mean predicted probability of the class, and its share of the rows.
    direction : str
        "too high" or "too low" overall, or "too extreme" or "not extreme enough" where the difference between large and
        small probabilities is the stronger evidence. Chance alone gives a direction too: look at `adjusted`.
    p_value, adjusted : float
        Of this class alone, and allowing for all classes.

    Examples
    --------
    >>> ClassRow("cat", n=40, predicted=0.5, observed=0.4, direction="too high", p_value=0.01, adjusted=0.03).label
    'cat'
    """

    label: Hashable
    n: int
    predicted: float
    observed: float
    direction: str
    p_value: float
    adjusted: float

    def cells(self) -> tuple[str, ...]:
        """The row in words."""
        numbers = (f"{self.n:_}", f"{self.predicted:.4g}", f"{self.observed:.4g}")
        return (printable(self.label), *numbers, self.direction, f"{self.p_value:.3g}", f"{self.adjusted:.3g}")


@dataclass(frozen=True)
class ByClass:
    """One `ClassRow` per class, strongest evidence first; prints as a table. What `by_class` returns.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.by_class(cal.Multiclass([0, 1, 0], [[0.8, 0.2], [0.4, 0.6], [0.7, 0.3]]), draws=99)
    >>> len(found), found[1].n
    (2, 1)
    """

    rows: tuple[ClassRow, ...]
    method: str

    def __iter__(self) -> Iterator[ClassRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, label: Hashable) -> ClassRow:
        """The row of a class, by its label."""
        return {row.label: row for row in self.rows}[label]

    def found(self, alpha: float = 0.05) -> list[Hashable]:
        """Classes whose adjusted p-value is at most `alpha`: any of them is wrong with probability of at most that."""
        return [row.label for row in self.rows if row.adjusted <= alpha]

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return {"method": self.method, "classes": [{**asdict(row), "label": str(row.label)} for row in self.rows]}

    def __repr__(self) -> str:
        lines = [_HEADER, *(row.cells() for row in self.rows[:_PRINTED])]
        left = len(self.rows) - _PRINTED
        return "\n".join([*text_table(lines, left=()), *([f"and {left} more classes"] if left > 0 else [])])

    def _repr_html_(self) -> str:
        from calibrant.reporting.notebook import classes_html

        return classes_html(self)


def by_class(data: Multiclass, *, draws: int = 999, seed: int = 0) -> ByClass:
    r"""Test every class against the rest, with p-values adjusted for all classes.

    The gaps between observed and predicted frequency of a class are squared and divided by their variances in 1, 2 and
    4 bins of its probability; gamma distributions turn the three sums into tail probabilities, which are combined into
    one number q. Labels are drawn from the predicted vectors, all classes from the same draws, so that their dependence
    is kept. Half of the draws are used to fit the gamma distributions, the other half to rank q: the p-value of a class
    is its rank, and the adjusted one the step-down rank of the smallest q (Westfall and Young). The probability that
    any calibrated class is reported is at most the level, exactly, for every number of rows and classes.

    Parameters
    ----------
    data : Multiclass
        Independent rows without weights.
    draws : int
        Number of simulated samples that are ranked; the smallest p-value is 1 / (draws + 1).
    seed : int

    References
    ----------
    Westfall, Young (1993), Resampling-Based Multiple Testing.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1, 1], 2000)
    >>> y = (rng.random((2000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    >>> stated = p * [1.5, 1, 1, 1]
    >>> found = cal.by_class(cal.Multiclass(y, stated / stated.sum(axis=1, keepdims=True)))
    >>> found.rows[0].label, found.rows[0].direction, found.rows[0].adjusted
    (0, 'too high', 0.001)
    """
    draws, seed = validation.whole("draws", draws), validation.seed(seed)
    probability, labels = independent_rows(data, needed_by="by_class")
    layout = Layout.of(probability)
    gaps = gaps_of_labels(layout, labels, 2 * draws, generator(seed, "labels of class tests"), only="class")["class"]
    looks = np.stack(list(class_squares(gaps, len(data.classes)).values()), axis=2)
    tails = multiplicity.gamma_tails(looks[draws + 1 :], looks[: draws + 1])
    combined = multiplicity.cauchy_combined(tails, np.ones(looks.shape[2]))
    single, adjusted = (rank(combined[0], combined[1:]) for rank in (multiplicity.rank_p, multiplicity.step_down_min))
    count = np.bincount(labels, minlength=len(data.classes))
    directions = _directions(gaps, len(data.classes))
    rows = [
        ClassRow(label, int(count[k]), *shares, directions[k], float(single[k]), float(adjusted[k]))
        for k, label in enumerate(data.classes)
        for shares in [(float(probability[:, k].mean()), float(count[k] / len(labels)))]
    ]
    order = np.lexsort((combined[0], single, adjusted))
    return ByClass(tuple(rows[k] for k in order), f"by_class(draws={draws}, seed={seed})")


def _directions(gaps: Gaps, classes: int) -> list[str]:
    """In words, from the z of all gaps together and of those of large probabilities less those of small ones."""
    gap, variance = gaps.gap[0].reshape(classes, 2, -1).sum(axis=2), gaps.variance.reshape(classes, -1).sum(axis=1)
    scale = np.sqrt(np.maximum(variance, 1e-300))
    whole, tilt = gap.sum(axis=1) / scale, (gap[:, 1] - gap[:, 0]) / scale
    level, slope = (np.where(z > 0, *words) for z, words in zip((whole, tilt), _WORDS, strict=True))
    return [str(word) for word in np.where(np.abs(whole) >= np.abs(tilt), level, slope)]


#: More, and fewer, outcomes than predicted: on the whole, and of large probabilities.
_WORDS = (("too low", "too high"), ("not extreme enough", "too extreme"))
