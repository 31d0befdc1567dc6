"""Performance of rows without labels, from a labelled reference and an assumption that says what has not changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.groups import group_names
from calibrant.data.predictions import Binary, Confidence
from calibrant.data.validation import fail
from calibrant.inference.multiplicity import between_groups
from calibrant.inference.sample import sums_by
from calibrant.numerics.arrays import Codes, Floats, expit, log_odds
from calibrant.numerics.logistic.binary import logistic_fit
from calibrant.numerics.random_draws import generator, normal_draws
from calibrant.numerics.rows import effective_n
from calibrant.results.estimate import Estimate, Interval, Significance, text_table

Shift = Literal["label"]

#: Simulated new samples behind the intervals, and those of the test of label shift.
#: Test: tests/inference/test_label_free.py::test_the_numbers_of_draws_and_cells.
DRAWS, TEST_DRAWS = 1000, 199

#: Cells of new scores of about as many rows, and those of the test of label shift.
#: Test: tests/inference/test_label_free.py::test_the_numbers_of_draws_and_cells.
CELLS, TEST_CELLS = 200, 20

#: Quantiles of the log odds of the reference at which the slope of its calibration curve may change.
#: Test: tests/inference/test_label_free.py::test_the_curve_of_the_reference_is_the_regression_written_out.
KNOTS = (0.2, 0.4, 0.6, 0.8)

#: The most that a reference row weighs relative to the mean where the new rows differ in x.
#: Test: tests/inference/test_label_free.py::test_weights_of_the_reference_are_cut.
MOST_WEIGHT = 20.0

#: The change of log odds of all rows for which each result says how far it would move.
#: Derived: results are divided by it in words, so that no other number depends on it.
STEP = 0.1

#: Names of the measures.
NAMES = {"accuracy": "Accuracy", "brier": "Brier score", "auc": "AUC", "observed_expected": "O:E ratio", "rate": "Rate"}


@dataclass(frozen=True, eq=False)
class WithoutLabels(Mapping[str, Estimate]):
    """Estimates by name ("accuracy", "brier", "auc", "observed_expected", "rate"); made by `without_labels`.

    Attributes
    ----------
    estimates : dict
        Each with its interval, whose `assumption` says what must not have changed, and ``details["per 0.1 log odds"]``:
        how far it would move if the log odds of all rows were 0.1 higher.
    assumption : str
    prior : Estimate or None
        With ``shift="label"``, the share of events among the population of the new rows, by maximum likelihood.
    test : Significance or None
        With ``shift="label"``, whether the new scores can be a mixture of those of the two outcomes of the reference.
    drift : float
        With `period`, the standard deviation between periods of the log odds.
    effective_rows : float
        Kish's number of reference rows; smaller than their number where `x` reweights them.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = without_labels(cal.Binary(rng.random(2000) < p, p), rng.random(1000) ** 2)
    >>> sorted(found), found.prior
    (['accuracy', 'auc', 'brier', 'observed_expected', 'rate'], None)
    """

    estimates: dict[str, Estimate]
    assumption: str
    n: int
    prior: Estimate | None = None
    test: Significance | None = None
    drift: float = 0.0
    effective_rows: float = 0.0

    def __getitem__(self, name: str) -> Estimate:
        return self.estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __repr__(self) -> str:
        return f"<WithoutLabels, n={self.n:_}, if {self.assumption}>"

    def __str__(self) -> str:
        lines = [["", "estimate", "interval", f"per {STEP:g} log odds"]]
        for e in self.estimates.values():
            between = "" if e.interval is None else f"{e.interval.low:.4f} to {e.interval.high:.4f}"
            lines.append([e.name, f"{e.value:.4f}", between, f"{e.details[_MOVES]:+.4f}"])
        said = [f"{self.n:,} row{'s' * (self.n > 1)} without labels, if {self.assumption}."]
        said.append(f"The reference counts as {self.effective_rows:,.0f} rows.")
        if self.test is not None:
            said.append(f"Test that the scores allow this: p = {self.test.p_value:.3g}.")
        return "\n".join([" ".join(said), "", *text_table(lines)])

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return {
            "n": self.n,
            "assumption": self.assumption,
            "estimates": {name: e.to_dict() for name, e in self.estimates.items()},
            "prior": None if self.prior is None else self.prior.to_dict(),
            "test": None if self.test is None else self.test.to_dict(),
            "drift": self.drift,
            "effective_rows": self.effective_rows,
        }


_MOVES = f"per {STEP:g} log odds"


def without_labels(
    reference: Binary,
    p: ArrayLike,
    *,
    shift: Shift | None = None,
    x: tuple[ArrayLike, ArrayLike] | None = None,
    period: ArrayLike | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> WithoutLabels:
    r"""Predicted performance on rows without labels, under a stated assumption about what has not changed.

    The chance of the event at each score is that of the reference: a logistic curve in the log odds with four hinges.
    Intervals are for what *would be observed* on these rows: accuracy at one half, Brier score, AUC, O:E ratio and rate
    of events. They include the noise of the reference (draws of the curve from its sandwich covariance, over clusters
    where it has a group), that of the new outcomes (binomial draws), and with `period` that of drift. The
    assumption cannot be checked without labels; each result states it, and how far it would move if it failed.

    Parameters
    ----------
    reference : Binary
        Labelled rows of the same model.
    p : array-like in [0, 1]
        The scores of the new rows.
    shift : "label", optional
        By default P(Y | score) is unchanged. With "label", P(score | Y) is unchanged and P(Y) may change: the new share
        of events is estimated by maximum likelihood, with an interval, and `test` says whether the new scores can be a
        mixture of the scores of both outcomes.
    x : pair of array-like, optional
        Further columns of the reference rows and of the new rows: P(Y | score, x) is unchanged, and reference rows are
        weighted by the ratio of densities, by a logistic regression of being new on the columns and their squares.
    period : array-like, optional
        The period of each reference row. The variance between periods of the log odds, beyond noise (DerSimonian and
        Laird), is added: the new rows are one more period of the same kind.
    level, seed
        Of the intervals, and of the random numbers.

    References
    ----------
    Saerens, Latinne, Decaestecker (2002), Adjusting the Outputs of a Classifier to New a Priori Probabilities;
    Alexandari, Kundaje, Shrikumar (2020), Maximum Likelihood With Bias-Corrected Calibration is Hard-To-Beat at Label
    Shift Adaptation.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, new = rng.random(3000), rng.random(2000) ** 2
    >>> found = without_labels(cal.Binary(rng.random(3000) < p, p), new)
    >>> observed = float((rng.random(2000) < new).mean())
    >>> observed in found["rate"].interval, found["rate"].interval.assumption
    (True, 'P(Y | score) is that of the reference; independent rows')
    """
    level = validation.fraction("level", level)
    if not isinstance(reference, Binary) or isinstance(reference, Confidence):
        fail(f"reference must be Binary predictions with their outcomes, not {reference!r}.", TypeError)
    if shift not in (None, "label"):
        fail(f"shift must be None or 'label', got {shift!r}.", ValueError)
    outcomes = reference.y_true
    if outcomes.min() == outcomes.max():
        fail(f"reference must have both outcomes, but all {len(reference)} rows have {outcomes[0]}.")
    scores = np.asarray(validation.probabilities("p", p), np.float64)
    curve = _Curve.of(reference, scores, x)
    rng = generator(validation.seed(seed), "rows without labels")
    between, periods = (0.0, 0) if period is None else _drift(reference, curve, period)
    cells = _Cells.of(scores)
    basis = _basis(cells.score, curve.knots)
    coefficients = curve.coefficients + normal_draws(curve.covariance, DRAWS, rng)
    drawn, middle = coefficients @ basis.T, basis @ curve.coefficients
    if between > 0:
        spread = np.sqrt(between * (1 + 1 / periods))
        drawn = drawn + spread * rng.standard_t(max(periods - 1, 1), (DRAWS, 1))
    prior = test = None
    if shift == "label":
        # as many evenly spaced quantiles as there are cells: their mean curve is that of all rows
        quantiles = np.quantile(curve.score, (np.arange(CELLS) + 0.5) / CELLS)
        old = np.vstack([coefficients, curve.coefficients]) @ _basis(quantiles, curve.knots).T
        drawn, middle, prior = _relabelled(expit(old).mean(axis=1), cells, drawn, middle, rng, level)
        test = _label_shift_test(reference, scores, float(prior), rng)
    words = _assumption(reference, shift, curve.beyond, periods)
    events = rng.binomial(cells.count.astype(np.int64), expit(drawn)).astype(np.float64)
    estimates = _estimates(cells, events, middle, level, words, len(scores))
    rows, drift = effective_n(curve.weight, len(curve.weight)), float(np.sqrt(between))
    return WithoutLabels(estimates, words.split("; ")[0], len(scores), prior, test, drift, rows)


def _assumption(reference: Binary, shift: str | None, beyond: float | None, periods: int) -> str:
    """What must not have changed, in words."""
    given = "score, x" if beyond is not None else "score"
    words = f"P({given} | Y) is that of the reference" if shift else f"P(Y | {given}) is that of the reference"
    if beyond is not None:
        words += ", and the reference has rows wherever the new rows have some"
    if beyond:
        words += f" ({100 * beyond:.3g} % of the new rows lie beyond all of the reference)"
    if periods:
        words += f", but for a drift of all log odds as between its {periods} periods"
    return f"{words}; {'independent rows' if reference.group is None else 'independent clusters of rows'}"


def _basis(score: Floats, knots: Floats) -> Floats:
    """One, the log odds, and the log odds above each knot."""
    z = log_odds(np.clip(score, 1e-4, 1 - 1e-4))
    return np.column_stack([np.ones(len(z)), z, np.maximum(z[:, None] - knots, 0.0)])


@dataclass(frozen=True, eq=False)
class _Curve:
    """The calibration curve of the reference, with its covariance."""

    knots: Floats
    coefficients: Floats
    covariance: Floats
    score: Floats
    weight: Floats
    #: The share of new rows that lie beyond all of the reference; None without columns x.
    beyond: float | None

    @classmethod
    def of(cls, reference: Binary, new: Floats, x: Any) -> _Curve:
        """A logistic regression, with a sandwich over rows or clusters."""
        p, y = reference.y_prob.astype(np.float64), reference.y_true.astype(np.float64)
        weight = np.ones(len(p)) if reference.weight is None else reference.weight
        ratio, beyond = (1.0, None) if x is None else _density_ratio(p, new, x)
        weight = weight * ratio
        weight = weight * (len(p) / weight.sum())
        knots = np.unique(np.quantile(log_odds(np.clip(p, 1e-4, 1 - 1e-4)), KNOTS))
        basis = _basis(p, knots)
        penalty = np.diag(np.r_[0.0, 0.0, np.full(len(knots), 1e-2)])
        start = np.zeros(basis.shape[1])
        fit = logistic_fit(basis, weight=weight, positive=weight * y, start=start, penalty=penalty)
        score = basis * (weight * (y - expit(basis @ fit.coefficients)))[:, None]
        if reference.group is not None:
            score = sums_by(np.unique(reference.group, return_inverse=True)[1], score)
        m = expit(basis @ fit.coefficients)
        information = (basis * (weight * m * (1 - m))[:, None]).T @ basis
        inverse = np.linalg.inv(information + penalty + 1e-9 * np.eye(len(start)))
        more = len(score) / max(len(score) - basis.shape[1], 1)
        return cls(knots, fit.coefficients, inverse @ (score.T @ score) @ inverse * more, p, weight, beyond)


def _density_ratio(p: Floats, new: Floats, x: Any) -> tuple[Floats, float]:
    """The density of new rows over that of the reference, at each of its rows; and how many new rows lie beyond."""
    if not isinstance(x, tuple) or len(x) != 2:
        fail("x must be a pair: the columns of the reference rows and those of the new rows.", TypeError)
    parts = []
    for name, values, score in (("x[0]", x[0], p), ("x[1]", x[1], new)):
        array = validation.as_array(name, values)
        columns = validation.matrix(name, array.reshape(len(array), -1), rows=len(score)).astype(np.float64)
        parts.append(np.column_stack([log_odds(np.clip(score, 1e-4, 1 - 1e-4)), columns]))
    if parts[0].shape[1] != parts[1].shape[1]:
        fail(f"x must have the same columns twice, got {parts[0].shape[1] - 1} and {parts[1].shape[1] - 1}.")
    z = np.vstack(parts)
    z = np.column_stack([z, z**2])
    z = (z - z.mean(axis=0)) / np.maximum(z.std(axis=0), 1e-12)
    design = np.column_stack([np.ones(len(z)), z])
    penalty = np.diag(np.r_[0.0, np.ones(z.shape[1])])
    is_new = np.r_[np.zeros(len(p)), np.ones(len(new))]
    start = np.zeros(design.shape[1])
    fit = logistic_fit(design, weight=np.ones(len(z)), positive=is_new, start=start, penalty=penalty)
    logs = design @ fit.coefficients
    ratio = np.exp(logs[: len(p)])
    return np.minimum(ratio / ratio.mean(), MOST_WEIGHT), float((logs[len(p) :] > logs[: len(p)].max()).mean())


def _drift(reference: Binary, curve: _Curve, period: ArrayLike) -> tuple[float, int]:
    """Variance between periods of the shift of all log odds (DerSimonian and Laird), and their number."""
    reference.require_same_rows(period=period)
    names, index = group_names(period, name="period", length=len(reference))
    if len(names) < 3:
        fail(f"period must name at least three periods of the reference to show how they differ, got {len(names)}.")
    eta = _basis(curve.score, curve.knots) @ curve.coefficients
    shifts, variances = np.empty(len(names)), np.empty(len(names))
    for k in range(len(names)):
        rows = index == k
        shifts[k], variances[k] = _shift(eta[rows], reference.y_true[rows], curve.weight[rows])
    return between_groups(shifts, variances)[1], len(names)


def _shift(eta: Floats, y: Any, weight: Floats) -> tuple[float, float]:
    """The shift of log odds at which as many events are expected as there are, half of each added; its variance."""
    shift, want = 0.0, float(weight @ y) + 0.5
    spare = weight.sum() / (weight.sum() + 1)
    for _ in range(30):
        m = expit(eta + shift)
        information = max(float(weight @ (m * (1 - m))), 1e-9)
        shift += float(np.clip((want * spare - float(weight @ m)) / information, -1, 1))
    return shift, 1 / information


@dataclass(frozen=True, eq=False)
class _Cells:
    """New rows in cells of neighbouring scores: numbers and mean scores, ascending, and means of squares."""

    count: Floats
    score: Floats
    square: Floats
    above: Floats

    @classmethod
    def of(cls, p: Floats) -> _Cells:
        """About 200 cells of equally many rows; none holds scores on both sides of one half."""
        edges = np.unique(np.r_[np.quantile(p, np.arange(1, CELLS) / CELLS), np.nextafter(0.5, 0)])
        cell = np.searchsorted(edges, p, side="left")
        count = np.bincount(cell).astype(np.float64)
        kept = count > 0
        mean, square, above = (np.bincount(cell, v)[kept] / count[kept] for v in (p, p * p, p >= 0.5))
        return cls(count[kept], mean, square, above)

    def measures(self, events: Floats) -> dict[str, Floats]:
        """The measures of each row of events per cell."""
        n, others = self.count.sum(), self.count - events
        hits = events.sum(axis=-1)
        below = np.cumsum(others, axis=-1) - others / 2
        with np.errstate(invalid="ignore", divide="ignore"):
            return {
                "accuracy": (events @ self.above + others @ (1 - self.above)) / n,
                "brier": (events @ (1 - 2 * self.score) + self.count @ self.square) / n,
                "auc": (events * below).sum(axis=-1) / (hits * (n - hits)),
                "observed_expected": hits / (self.count @ self.score),
                "rate": hits / n,
            }


def _relabelled(
    old: Floats, cells: _Cells, drawn: Floats, middle: Floats, rng: np.random.Generator, level: float
) -> tuple[Floats, Floats, Estimate]:
    """Log odds after the share of events has changed, and that share with its interval.

    `old` are shares of the reference by each drawn curve and the fitted one: what is uncertain in both cancels.
    """
    n = int(cells.count.sum())
    old = old.clip(1e-4, 1 - 1e-4)
    again = rng.multinomial(n, cells.count / n, DRAWS).astype(np.float64)
    share = _most_likely_share(np.vstack([drawn, middle]), np.vstack([again, cells.count]), old)
    moved = log_odds(share) - log_odds(old)
    ends = np.quantile(share[:-1], [(1 - level) / 2, (1 + level) / 2])
    words = "P(score | Y) is that of the reference"
    interval = Interval(float(ends[0]), float(ends[1]), level=level, method="simulated samples", assumption=words)
    prior = Estimate(float(share[-1]), name="Share of events", method="maximum likelihood", n=n, interval=interval)
    return drawn + moved[:-1, None], middle + moved[-1], prior


def _most_likely_share(eta: Floats, count: Floats, old: Floats) -> Floats:
    """The share of events of each sample by maximum likelihood: the zero of the derivative, which falls."""
    excess = np.exp(eta - log_odds(old)[:, None]) - 1  # the likelihood ratio of a score, less 1
    low, high, share = np.full(len(eta), 1e-4), np.full(len(eta), 1 - 1e-4), old
    for _ in range(60):  # Newton's method, halving the interval where it would leave it
        ratio = excess / (1 + share[:, None] * excess)
        slope, curvature = np.einsum("dc,dc->d", count, ratio), np.einsum("dc,dc,dc->d", count, ratio, ratio)
        low, high = np.where(slope > 0, share, low), np.where(slope > 0, high, share)
        step = share + slope / np.maximum(curvature, 1e-300)
        before, share = share, np.where((step >= low) & (step <= high), step, (low + high) / 2)
        if np.abs(share - before).max() < 1e-8:
            break
    return np.asarray(share)


def _label_shift_test(reference: Binary, new: Floats, share: float, rng: np.random.Generator) -> Significance:
    """Can the new scores be a mixture of those of both outcomes? A chi-square of cells, its law simulated."""
    p, y = reference.y_prob.astype(np.float64), reference.y_true == 1
    edges = np.unique(np.quantile(np.r_[p, new], np.arange(1, TEST_CELLS) / TEST_CELLS))

    def counted(values: Floats) -> Codes:
        return np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1)

    ones, zeros, seen = counted(p[y]), counted(p[~y]), counted(new)
    f1, f0 = ones / ones.sum(), zeros / zeros.sum()

    def distance(count: Floats, a: Floats, b: Floats) -> Floats:
        t, d = count / count.sum(axis=1, keepdims=True), a - b
        v = np.maximum(t, 1e-3)
        mixed = np.clip(((t - b) * d / v).sum(axis=1) / np.maximum((d * d / v).sum(axis=1), 1e-12), 0, 1)[:, None]
        noise = t / count.sum(axis=1, keepdims=True)
        noise = noise + mixed**2 * a / ones.sum() + (1 - mixed) ** 2 * b / zeros.sum()
        return np.asarray(((t - mixed * a - (1 - mixed) * b) ** 2 / np.maximum(noise, 1e-9)).sum(axis=1))

    mixture = share * f1 + (1 - share) * f0
    observed = float(distance(seen[None].astype(np.float64), f1[None], f0[None])[0])
    numbers = (rng.multinomial(int(k.sum()), f, TEST_DRAWS) for k, f in ((seen, mixture), (ones, f1), (zeros, f0)))
    again, one, zero = (np.asarray(some, np.float64) for some in numbers)
    simulated = distance(again, one / ones.sum(), zero / zeros.sum())
    p_value = (1 + int((simulated >= observed).sum())) / (TEST_DRAWS + 1)
    null = "the new scores are a mixture of those of both outcomes"
    return Significance(observed, p_value, method="label shift", n=len(new), null=null, draws=TEST_DRAWS)


def _estimates(cells: _Cells, events: Floats, middle: Floats, level: float, words: str, n: int) -> dict[str, Estimate]:
    """Each measure with its interval and how far it moves."""
    drawn = cells.measures(events)
    found, moved = (cells.measures(cells.count * expit(middle + step)) for step in (0.0, STEP))
    estimates = {}
    for name, values in drawn.items():
        known = values[~np.isnan(values)]  # one row has no AUC
        ends = [(1 - level) / 2, (1 + level) / 2]
        low, high = np.quantile(known, ends, method="weibull") if len(known) else (np.nan, np.nan)
        value = float(found[name])
        low, high = min(float(low), value), max(float(high), value)
        interval = Interval(low, high, level=level, method="simulated samples", assumption=words)
        about: dict[str, Any] = {"interval": interval, "details": {_MOVES: float(moved[name]) - value}}
        estimates[name] = Estimate(value, name=NAMES[name], method="without labels", n=n, **about)
    return estimates
