"""Intervals of the numbers of a validation study: observed over expected, intercept and slope."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtr

from calibrant.data import validation
from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.data.validation import fail
from calibrant.estimators.proper_scores import right_answers
from calibrant.estimators.validation_study import joint_fit, probability_cells, recalibration_line
from calibrant.inference import sample as samples
from calibrant.numerics.arrays import Floats, expit, log_odds
from calibrant.numerics.cells import too_few_clusters
from calibrant.numerics.logistic.binary import LogisticLine, affine
from calibrant.results.estimate import Estimate, Interval, Side, plain_fields, printable, text_table
from calibrant.results.target import Target
from calibrant.table.bintable import BinTable

if TYPE_CHECKING:
    from calibrant.numerics.logistic.multinomial import MultinomialLines


@dataclass(frozen=True, eq=False)
class ScoreCovariance:
    r"""Covariance of :math:`\sum_i w_i (y_i - m(p_i))\, x(p_i)`, with weights that add up to Kish's number of rows.

    The middle of the sandwich: sums of squares of observed residuals, over rows or over the sums of clusters (if any).
    """

    matrix: Floats
    cluster_sums: Floats | None

    @classmethod
    def of(cls, sample: samples.Sample, *, fitted: samples.Columns, columns: samples.Columns) -> ScoreCovariance:
        """`fitted` gives the expected outcome at each score, `columns` the regressors (scores by columns)."""
        if not sample.independent:
            p = sample.rows.predicted.astype(np.float64)
            size = 1 / float(sample.row_share @ sample.row_share)
            residual = size * sample.row_share * (sample.rows.observed - fitted(p))
            sums = sample.by_cluster(residual[:, None] * columns(p))
            return cls(sums.T @ sums * (sample.clusters / (sample.clusters - 1)), sums)
        table = sample.table
        p = table.predicted_mean
        mean, squares = fitted(p), table.weight_squares
        unit = table.total / float(squares.sum())
        square = table.observed_mean * (1 - mean) ** 2 + (1 - table.observed_mean) * mean**2
        design = columns(p)
        size = table.total * unit
        return cls((design * (squares * square)[:, None]).T @ design * (unit**2 * size / max(size - 1, 1.0)), None)

    def freedom(self, direction: Floats) -> float | None:
        r"""Degrees of freedom of one combination of the columns; None without clusters.

        The number of clusters that carry the variance, :math:`(\sum_c s_c^2)^2 / \sum_c s_c^4`.
        """
        return None if self.cluster_sums is None else samples.carrying((self.cluster_sums @ direction) ** 2)

    def inflation(self, level: float, direction: Floats) -> float:
        """Square of Student's quantile over the normal one, for one combination of the columns; 1 without clusters."""
        return samples.student_inflation(self.freedom(direction), level)


#: What must hold for the intervals of validation studies, decisions and forecasts.
WORDS = "independent rows (or clusters)"


@dataclass(frozen=True)
class MidP:
    r"""Mid-P interval of the O:E ratio, of the calibration intercept, or of the share of right answers.

    The rate of events has the mid-P interval of a binomial share, which is valid even without any events. The number of
    rows is chosen such that the share has the variance of its distance from the predictions (`sample.EventRate`). With
    clusters, Student's quantile is that of the clusters that carry the variance, and where one cluster dominates, all
    ratios are possible. Nothing else is assumed of the predictions. The ends are divided by the mean prediction, or
    become intercepts: the shifts at which this many events are expected. So O:E excludes 1 where the mean gap excludes
    0.

    References
    ----------
    Lancaster (1961), Significance Tests in Discrete Distributions; Korn, Graubard (1998), Confidence intervals for
    proportions with small expected number of positive counts. Coverage measured in worlds of known truth is in
    reproduce/results/decisions_coverage.csv.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.interval(cal.observed_expected, cal.Binary([0] * 99 + [1], [0.03] * 100))
    >>> found
    <O:E ratio 0.3333 [0.01627, 1.621] at 95%, n=100, exact>
    """

    serves: ClassVar[str] = "an estimate"

    def interval(self, data: Predictions | BinTable, estimate: Estimate, *, level: float = 0.95) -> Interval:
        """The interval of an O:E ratio, calibration intercept or accuracy of `data`."""
        level = validation.fraction("level", level)
        quantity = None if estimate.target is None else estimate.target.quantity
        if quantity == "accuracy" and not isinstance(data, BinTable):
            right = right_answers(data)
            data = Binary.borrowing(right, np.full(len(right), estimate.value), weight=data.weight, group=data.group)
        data = _counted(data, needed_by="MidP")
        if quantity == "accuracy":
            low, high = rate_limits(data, lambda p: p, level)
        elif quantity == "observed to expected ratio":
            found = samples.EventRate.of(_with_enough_clusters(data, needed_by="MidP"))
            low, high = (end / found.mean for end in found.limits(1 - level))
        elif quantity == "calibration intercept":
            sample = _with_enough_clusters(data, needed_by="MidP")
            line, _ = recalibration_line(sample.table)
            size, ends = float(line.weight.sum()), samples.EventRate.of(sample, certain=False).limits(1 - level)
            low, high = (line.intercept(1.0, events=end * size) for end in ends)
        else:
            fail(f"MidP is for observed_expected, calibration_intercept and accuracy, not {estimate.name}.", TypeError)
        return Interval(low, high, level=level, method=repr(self), assumption=WORDS, target=estimate.target)


def _counted(data: Predictions | BinTable, *, needed_by: str) -> Predictions | BinTable:
    """The table of independent rows, counted once for all that needs it; rows in clusters as they are."""
    if isinstance(data, BinTable) or getattr(data, "group", None) is not None:
        return data
    return probability_cells(samples.Sample.of(data, needed_by=needed_by).source, None, needed_by=needed_by)


def _with_enough_clusters(data: Predictions | BinTable, *, needed_by: str) -> samples.Sample:
    sample = samples.Sample.with_clusters(data, needed_by=needed_by)
    if sample.cluster is not None:
        samples.require_clusters(sample.clusters, needed_by=needed_by)
    return sample


def rate_limits(data: Predictions | BinTable, fitted: samples.Columns, level: float) -> tuple[float, float]:
    """Limits of the rate of events, with the variance around what is fitted."""
    return samples.EventRate.of(_with_enough_clusters(data, needed_by="MidP"), fitted=fitted).limits(1 - level)


@dataclass(frozen=True)
class ProfileLikelihood:
    r"""Profile-likelihood interval of the calibration slope, adjusted for clusters, weights and other curves.

    .. math:: \Bigl\{ b : 2\bigl[\ell(\hat a, \hat b) - \max_a \ell(a, b)\bigr] \le
              z^2 \max(1, \kappa) \Bigr\}, \qquad
              \kappa = \frac{(H^{-1} J H^{-1})_{bb}}{(H^{-1})_{bb}}

    with H the information, J the sum of squares of the observed scores over rows or clusters (the sandwich), and z
    Student's quantile with n - 2 degrees of freedom, or those of the clusters that carry the variance. Unlike an
    interval of plus and minus some standard errors, it stays accurate with few events. Where outcomes are separated it
    has one end; where only one outcome was observed, or one score, or where one cluster dominates, every slope is
    possible. `assumption` says so.

    References
    ----------
    Venzon, Moolgavkar (1988), A Method for Computing Profile-Likelihood-Based Confidence Intervals; Heinze, Schemper
    (2002), A solution to the problem of separation in logistic regression; Chandler, Bate (2007), Inference for
    clustered data using the independence loglikelihood. Coverage measured in worlds of known truth is in
    reproduce/results/decisions_coverage.csv.

    Examples
    --------
    >>> import calibrant as cal
    >>> separated = cal.interval(cal.calibration_slope, cal.Binary([0, 0, 0, 1, 1], [0.1, 0.3, 0.4, 0.6, 0.8]))
    >>> separated.interval.side, round(separated.interval.low, 2), separated.interval.high
    ('lower', -0.58, inf)
    """

    serves: ClassVar[str] = "an estimate"

    def interval(self, data: Predictions | BinTable, estimate: Estimate, *, level: float = 0.95) -> Interval:
        """The interval of a calibration slope of `data`."""
        level = validation.fraction("level", level)
        if estimate.target is None or estimate.target.quantity != "calibration slope":
            fail(f"ProfileLikelihood is for calibration_slope, not for {estimate.name}.", TypeError)
        low, high = self.statement(data).limits(level)
        side, words = _side(low, high)
        return Interval(low, high, level=level, method=repr(self), side=side, assumption=words, target=estimate.target)

    def statement(self, data: Predictions | BinTable) -> SlopeStatement:
        """What is said of the slope of `data`, at any level."""
        data = _counted(data, needed_by="ProfileLikelihood")
        return SlopeStatement.of(_with_enough_clusters(data, needed_by="ProfileLikelihood"))


def _side(low: float, high: float) -> tuple[Side, str]:
    if np.isinf(low) and np.isinf(high):
        return "two-sided", f"{WORDS}; one outcome, one score or one large cluster, so that every slope is possible"
    if np.isinf(low) or np.isinf(high):
        words = f"{WORDS}; separated outcomes, which bound the slope on one side"
        return "upper" if np.isinf(low) else "lower", words
    return "two-sided", WORDS


@dataclass(frozen=True, eq=False)
class SlopeStatement:
    """What is said of the slope: its profile-likelihood interval, and the p-value of a slope of 1 that goes with it.

    `ratio` is by how much the variance exceeds that of the likelihood (at least 1), `freedom` that of Student's
    quantile: of n - 2 rows, or of the clusters that carry the variance. `line` is None where nothing can be said.
    """

    line: LogisticLine | None
    freedom: float = 1.0
    ratio: float = 1.0

    @classmethod
    def of(cls, sample: samples.Sample) -> SlopeStatement:
        """Of a sample with at least one score between 0 and 1; too few clusters, or one that dominates, say nothing."""
        line, _ = recalibration_line(sample.table)
        if not sample.independent and too_few_clusters(sample.by_cluster(sample.row_share[:, None])[:, 0]):
            return cls(None)
        intercept, slope = joint_fit(line)
        if not np.isfinite(intercept + slope):  # at an infinite slope nothing varies: take that of a calibrated model
            intercept, slope = line.intercept(1.0), 1.0
        rows = max(float(line.weight.sum()) - 2, 1.0)
        if not np.isfinite(intercept) or line.z[0] == line.z[-1]:
            return cls(line, rows)

        def fitted(p: Floats) -> Floats:
            return expit(intercept + slope * _finite(p))

        def columns(p: Floats) -> Floats:
            return affine(_finite(p)) * samples.uncertain(p)[:, None]

        spread = ScoreCovariance.of(sample, fitted=fitted, columns=columns)
        inverse = np.linalg.inv(line.curvature(intercept, slope))
        ratio = float((inverse @ spread.matrix @ inverse)[1, 1] / inverse[1, 1])
        return cls(line, spread.freedom(inverse[1]) or rows, max(1.0, ratio))

    def limits(self, level: float) -> tuple[float, float]:
        """Both ends of the interval."""
        if self.line is None:
            return -np.inf, np.inf
        rise = float(ndtri((1 + level) / 2)) ** 2 / 2 * self.ratio * samples.student_inflation(self.freedom, level)
        return self.line.slope_limits(rise)

    @property
    def p_value(self) -> float:
        """The smallest alpha at which the interval excludes a slope of 1."""
        if self.line is None or self.line.z[0] == self.line.z[-1] or self.line.only_outcome is not None:
            return 1.0
        rise = max(self.line.profile_loss(1.0) - self.line.smallest_loss(), 0.0)
        z = -np.sqrt(2 * rise / self.ratio)
        return float(2 * stdtr(self.freedom, z))

    @property
    def direction(self) -> Literal[-1, 0, 1]:
        """1 if predictions are too extreme (a slope below 1), -1 if too moderate."""
        slope = 1.0 if self.line is None else joint_fit(self.line)[1]
        return 1 if slope < 1 else -1 if slope > 1 else 0


def _finite(p: Floats) -> Floats:
    """Log odds, with 0 where they are infinite: these rows are not counted."""
    return np.where(samples.uncertain(p), log_odds(p), 0.0)


Kind = Literal["calibration intercept", "calibration slope"]

#: Of more rows, intervals are those of the normal approximation, which by then are the same.
#: Test: tests/inference/test_validation_intervals.py::test_the_numbers_are_those_of_the_world.
_PROFILED_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class MultinomialRecalibration:
    """Intercept and slope of each class but the reference; made by `multinomial_recalibration`.

    Attributes
    ----------
    classes : tuple
        The other classes, in their order.
    reference : hashable
        The class with which each is compared.
    intercepts, slopes : tuple of Estimate
        One per class, with intervals: 0 and 1 if calibrated.
    joint_intercepts : array
        Those of the fit in which the slopes are free.
    note : str
        What the data do not determine, and why; empty if nothing.
    n, left_out : int
        Rows, and those of them left out because some class was predicted to have probability 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([2, 2, 2], 600)
    >>> y = (rng.random((600, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    >>> print(multinomial_recalibration(y, p))
    class  intercept     95% interval  slope    95% interval
    0         -0.044  -0.256 to 0.167  0.875  0.684 to 1.075
    2         -0.063  -0.278 to 0.150  0.922  0.725 to 1.128
    <BLANKLINE>
    600 rows; each class is compared with 1.
    """

    classes: tuple[Hashable, ...]
    reference: Hashable
    intercepts: tuple[Estimate, ...]
    slopes: tuple[Estimate, ...]
    joint_intercepts: Floats
    note: str
    n: int
    left_out: int

    def __repr__(self) -> str:
        return f"<MultinomialRecalibration of {len(self.classes) + 1} classes, n={self.n:_}>"

    def __str__(self) -> str:
        lines = [["class", *("intercept", "", "slope", "")]]
        for label, *estimates in zip(self.classes, self.intercepts, self.slopes, strict=True):
            cells = [printable(str(label))]
            for e in estimates:
                between = e.interval
                cells += [f"{e.value:.3f}", "" if between is None else f"{between.low:.3f} to {between.high:.3f}"]
                lines[0][len(cells) - 1] = "" if between is None else f"{between.level:.0%} interval"
            lines.append(cells)
        note = f" {self.note[:1].upper()}{self.note[1:]}." if self.note else ""
        left = f" ({self.left_out} left out: a class was predicted to have probability 0)" if self.left_out else ""
        end = f"{self.n:,} rows{left}; each class is compared with {printable(str(self.reference))}.{note}"
        return "\n".join([*text_table(lines), "", end])

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON; numbers that are not finite are None, and `note` says why."""
        each = zip(self.classes, self.intercepts, self.slopes, strict=True)
        classes = [{"class": str(label), "intercept": a.to_dict(), "slope": b.to_dict()} for label, a, b in each]
        rest = {name: plain_fields(self)[name] for name in ("joint_intercepts", "note", "n", "left_out")}
        return {"reference": str(self.reference), "classes": classes, **rest}


def multinomial_recalibration(
    data: Multiclass | ArrayLike,
    y_prob: ArrayLike | None = None,
    /,
    *,
    reference: Hashable | None = None,
    level: float = 0.95,
) -> MultinomialRecalibration:
    r"""Multinomial calibration intercepts and slopes, each class compared with a reference class r.

    .. math:: \log\frac{P(Y = k)}{P(Y = r)} = a_k + b_k \log\frac{p_k}{p_r}, \qquad k \ne r

    fitted by maximum likelihood to all classes at once: the *intercepts* with all slopes fixed at 1 ("calibration in
    the large": 0 if calibrated, positive where class k is predicted too rarely), and the *slopes* with free intercepts
    (1 if calibrated, below 1 where predictions are too extreme). For two classes they are `calibration_intercept` and
    `calibration_slope`. Both depend on the reference.

    Intervals are profile-likelihood intervals, adjusted for clusters, weights and other curves as those of
    `calibrant.inference.ProfileLikelihood`; beyond 20,000 rows their normal approximation. A class that never occurred
    has an intercept of minus infinity and no slope. Where outcomes are separated, or scores do not vary, slopes are
    NaN; `note` says so.

    Parameters
    ----------
    data : Multiclass, or y_true with the matrix `y_prob` next
    reference : class label, optional
        By default the most frequent class.
    level : float in (0, 1)

    References
    ----------
    Van Hoorde, Vergouwe, Timmerman, Van Huffel, Steyerberg, Van Calster (2014), Assessing calibration of multinomial
    risk prediction models; Van Calster et al. (2016), A calibration hierarchy for risk models was defined.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([2, 2, 2], 4000)
    >>> sharp = p**2 / (p**2).sum(axis=1, keepdims=True)  # too extreme: the slope is 1/2
    >>> y = (rng.random((4000, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    >>> found = multinomial_recalibration(y, sharp, reference=0)
    >>> [bool(0.5 in slope.interval) for slope in found.slopes], found.slopes[0].interval.high < 0.6
    ([True, True], True)
    """
    level = validation.fraction("level", level)
    task = data if isinstance(data, Multiclass) else Multiclass(data, y_prob)
    fit = _Framework.of(task, reference)
    large, note_large = fit.in_the_large(level)
    slopes, joint, note_slopes = fit.slopes(level)
    note = "; ".join(dict.fromkeys(filter(None, (note_large, note_slopes))))
    found = tuple(fit.classes), fit.reference, tuple(large), tuple(slopes)
    return MultinomialRecalibration(*found, joint, note, len(task), fit.left_out)


@dataclass(frozen=True, eq=False)
class _Framework:
    """The regression on log ratios to the reference class; classes that never occurred are left out of it."""

    classes: Sequence[Hashable]
    reference: Hashable
    present: Floats
    lines: MultinomialLines
    cluster: Any
    left_out: int
    n: int

    @classmethod
    def of(cls, task: Multiclass, reference: Hashable | None) -> _Framework:
        labels = list(task.classes)
        weight = np.ones(len(task)) if task.weight is None else task.weight
        seen = np.bincount(task.y_true, weight, len(labels))
        if reference is not None and reference not in labels:
            fail(f"reference={reference!r} is not one of the classes {labels!r}.")
        first = int(seen.argmax()) if reference is None else labels.index(reference)
        if not seen[first] > 0:
            fail(f"The reference class {labels[first]!r} was never observed; choose another one.")
        others = [k for k in range(len(labels)) if k != first]
        p = task.y_prob.astype(np.float64)
        usable = (p > 0).all(axis=1) & (weight > 0)
        if not usable.any():
            fail("y_prob must be positive for all classes in some rows to fit intercepts and slopes; it never is.")
        seen = np.bincount(task.y_true[usable], weight[usable], len(labels))
        if not seen[first] > 0:
            fail(f"The reference class {labels[first]!r} was observed only where some class has probability 0.")
        present = np.array([seen[k] > 0 for k in others])
        kept = [k for k in others if seen[k] > 0]
        x = np.log(p[usable][:, kept]) - np.log(p[usable, first])[:, None]
        number = np.zeros(len(labels), dtype=np.intp)
        number[kept] = np.arange(1, len(kept) + 1)
        w = weight[usable]
        from calibrant.numerics.logistic.multinomial import MultinomialLines

        lines = MultinomialLines(x, number[task.y_true[usable]], w * (w.sum() / (w @ w)))
        cluster = None
        if task.group is not None:
            cluster = np.unique(task.group[usable], return_inverse=True)[1]
            samples.require_clusters(int(cluster.max()) + 1, needed_by="multinomial_recalibration")
        left_out = int((weight > 0).sum() - usable.sum())
        return cls([labels[k] for k in others], labels[first], present, lines, cluster, left_out, len(task))

    def in_the_large(self, level: float) -> tuple[list[Estimate], str]:
        """Intercepts with slopes of 1."""
        k = self.lines.lines
        start, free = np.concatenate([np.zeros(k), np.ones(k)]), np.arange(2 * k) < k
        rows = self._limits(self.lines.fit(start, free)[0], free, np.arange(k), level) if k else []
        made = self._estimates("calibration intercept", rows, -np.inf, level)
        missing = [str(label) for label, seen in zip(self.classes, self.present, strict=True) if not seen]
        return made, f"never observed: {', '.join(map(printable, missing))}" if missing else ""

    def slopes(self, level: float) -> tuple[list[Estimate], Floats, str]:
        """Slopes with free intercepts, and these."""
        k = self.lines.lines
        joint = np.full(len(self.present), np.nan)
        spread = self.lines.x.std(axis=0) if k else np.zeros(0)
        rows = [(np.nan, -np.inf, np.inf)] * k
        note = ""
        if np.any(spread <= 1e-12):
            note = "all scores of a class are the same, so that slopes are undetermined"
        elif k:
            best, _, converged = self.lines.fit(np.concatenate([np.zeros(k), np.ones(k)]), np.ones(2 * k, dtype=bool))
            if converged:
                joint[self.present] = best[:k]
                rows = self._limits(best, np.ones(2 * k, dtype=bool), np.arange(k, 2 * k), level)
            else:
                note = "separated outcomes, so that slopes are undetermined"
        return self._estimates("calibration slope", rows, np.nan, level), joint, note

    def _limits(self, best: Floats, free: Any, which: Any, level: float) -> list[tuple[float, float, float]]:
        """Each parameter with both ends of its interval."""
        z = float(ndtri((1 + level) / 2))
        rows = self.lines.residuals(best)[:, free] * self.lines.weight[:, None]
        sums = rows if self.cluster is None else samples.sums_by(self.cluster, rows)
        number = len(sums)
        spread = ScoreCovariance(sums.T @ sums * (number / max(number - 1, 1)), None if self.cluster is None else sums)
        inverse = np.linalg.pinv(self.lines.information(best)[np.ix_(free, free)])
        sandwich = inverse @ spread.matrix @ inverse
        place, found = np.cumsum(free) - 1, []
        for k in which:
            j = int(place[k])
            ratio = max(1.0, float(sandwich[j, j] / inverse[j, j])) * spread.inflation(level, inverse[j])
            error = float(np.sqrt(inverse[j, j]))
            if len(rows) > _PROFILED_ROWS:
                reach = z * error * np.sqrt(ratio)
                low, high = best[k] - reach, best[k] + reach
            else:
                low, high = self.lines.limits(best, free, int(k), z**2 / 2 * ratio, error * np.sqrt(ratio))
            found.append((float(best[k]), float(low), float(high)))
        return found

    def _estimates(
        self, kind: Kind, rows: list[tuple[float, float, float]], missing: float, level: float
    ) -> list[Estimate]:
        """One per class; `missing` is the value of those that never occurred."""
        target, found, made = Target(kind), iter(rows), []
        how = "profile likelihood" if len(self.lines.x) <= _PROFILED_ROWS else "normal approximation"
        for seen in self.present:
            value, low, high = next(found) if seen else (missing, -np.inf, np.inf)
            interval = Interval(low, high, level=level, method=how, assumption=WORDS, target=target)
            name, method = kind.capitalize(), "maximum likelihood"
            made.append(Estimate(value, name=name, method=method, n=self.n, target=target, interval=interval))
        return made
