"""The evidence of a verdict, collected from data: of probabilities and of predicted distributions."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.forecasts import Forecast, Gaussian, Quantiles, Samples
from calibrant.data.predictions import Binary
from calibrant.data.validation import fail
from calibrant.estimators.proper_scores import brier, log_loss
from calibrant.estimators.recommended import calibration_error
from calibrant.estimators.regression_coverage import coverage
from calibrant.estimators.regression_spread import ence, scale_factor, std_dispersion
from calibrant.estimators.validation_study import calibration_intercept, calibration_slope, observed_expected
from calibrant.estimators.variational_engine import Settings, Variational
from calibrant.inference.calibration_tests import calibration_test
from calibrant.inference.forecasts import MeanSquaredZ
from calibrant.inference.intervals import interval
from calibrant.inference.sample import row_clusters
from calibrant.numerics.arrays import GRID_ROWS, Floats
from calibrant.numerics.confidence_limits import mid_p_interval
from calibrant.numerics.rows import mean_and_error
from calibrant.recalibrate.held_out_gains import FoldTables, fold_tables
from calibrant.reporting.contents import IMPOSSIBLE, Assembly, Bin, CannotBuild, Reliability, Shares
from calibrant.reporting.names import name_of_test
from calibrant.reporting.verdicts.evidence import ALPHA, Decisions, Forecasts, Probabilities, Unlabeled, VerdictTest
from calibrant.results.estimate import Estimate, Interval, Significance, Value
from calibrant.table.binning import Distinct, EqualMass, HybridGrid
from calibrant.table.bintable import BinTable
from calibrant.table.task import Gaps, largest_prior

#: The error the verdict speaks of: mean absolute gap between predicted and true probability.
headline_error = calibration_error


@dataclass(frozen=True, eq=False)
class Part:
    """Binary predictions or their fine table; every result is computed when first asked for, and only once."""

    data: Binary | BinTable
    seed: int = 0

    @cached_property
    def cells(self) -> BinTable:
        """The fine table that everything is computed from: one cell per distinct score, or a grid for many rows."""
        if isinstance(self.data, BinTable):
            return self.data.filled()
        return BinTable.of(self.data, Distinct() if len(self.data) <= GRID_ROWS else HybridGrid()).filled()

    @cached_property
    def headline(self) -> Estimate:
        """The calibration error in the L1 norm, with an interval for the true error.

        The estimate is moved inside, and to at least the mean gap where this is significant, which it cannot be below.
        """
        found = interval(headline_error, self.sample)
        ends, total = found.interval, self.cells.total
        if ends is None or math.isnan(found.value):
            return found
        least, ratio = 0.0, self.observed_expected
        if ratio.interval is not None and 1.0 not in ratio.interval:
            least = abs(float(self.cells.predicted.sum() - self.cells.observed.sum())) / total
        return found.moved(min(max(found.value, least, ends.low), ends.high))

    @cached_property
    def test(self) -> Significance:
        """The default test of calibration, or the one that allows for clusters."""
        return calibration_test(self.sample)

    def confidence(self, component: str) -> float:
        """The confidence of the interval of what a component of the test is about.

        It leaves out the share of the level that the component has, so that an interval excludes its ideal only where
        the test rejects: what stands side by side follows from one error budget.
        """
        try:
            test = self.test
        except IMPOSSIBLE:
            return 1 - ALPHA
        share = next((one.share for one in test.components if one.name == component), 1.0)
        if component == "slope" and test.p_value < ALPHA:
            share = 1.0
        return 1 - ALPHA * share

    @cached_property
    def observed_expected(self) -> Estimate:
        """Observed over expected events, with its interval."""
        return interval(observed_expected, self.sample, level=self.confidence("level"))

    @cached_property
    def slope(self) -> Estimate:
        """The calibration slope, with its interval."""
        return interval(calibration_slope, self.sample, level=self.confidence("slope"))

    @cached_property
    def intercept(self) -> Estimate:
        """Calibration in the large, with its interval."""
        return interval(calibration_intercept, self.sample, level=self.confidence("level"))

    @cached_property
    def variational(self) -> Variational:
        """The cross-fitted maps behind the variational error, over- and underconfidence."""
        weighted = isinstance(self.data, Binary) and self.data.weight is not None
        return Variational.of(self.folds.held_out if weighted else self.cells, None, Settings(seed=self.seed))

    @cached_property
    def folds(self) -> FoldTables:
        """The rows divided into folds, for maps that are evaluated on rows they were not fitted on."""
        return fold_tables(self.data, self.cells, self.seed)

    @cached_property
    def brier(self) -> Estimate:
        """The Brier score."""
        return brier(self.cells)

    @cached_property
    def log_loss(self) -> Estimate:
        """The log loss; infinite where an outcome had a predicted probability of zero."""
        return log_loss(self.cells)

    @property
    def clusters(self) -> int | None:
        """Groups of rows that depend on each other."""
        group = self.data.group if isinstance(self.data, Binary) else None
        return None if group is None else len(np.unique(group))

    @property
    def clustered(self) -> bool:
        """Whether rows depend on each other within groups."""
        return isinstance(self.data, Binary) and self.data.group is not None

    def with_interval(self, estimator: Callable[..., Estimate]) -> Estimate:
        """Another estimate of the true L1 error; its interval has the headline's target, so it is the headline's."""
        estimate, found = estimator(self.cells), self.headline.interval
        return estimate if found is None else estimate.with_interval(found)

    @property
    def sample(self) -> Binary | BinTable:
        """The table, or the rows where they are clustered, which a table cannot tell."""
        return self.data if self.clustered else self.cells


#: Distinct scores that are few: each is a bin of its own, and the one with the largest gap is named.
#: Test: tests/reporting/test_evidence.py::test_up_to_twenty_scores_are_few.
FEW_SCORES = 20
#: Standard errors of the mean gap that the default test finds in four of five samples, as measured for shifts of all
#: log odds.
#: Test: tests/reporting/test_evidence.py::test_four_of_five_samples_show_the_error_that_is_named.
DETECTED = 3.0


def collected(part: Part, made: Assembly, *, confidence: bool = False, **given: Any) -> Probabilities:
    """What the verdict is made from, as far as it does not need the sections; `given` are words and tolerance."""
    cells = part.cells
    if cells.n == 0 or not cells.total > 0:
        return Probabilities(n=0, confidence=confidence, **given)
    n, total = cells.n, cells.total
    alike = np.allclose(cells.weight, cells.count, rtol=1e-9)
    alike = alike or np.allclose(cells.weight_squares, total / n * cells.weight, rtol=1e-9)
    rate, predicted = (float(np.clip(sums.sum() / total, 0.0, 1.0)) for sums in (cells.observed, cells.predicted))
    tested = verdict_test(made, lambda: part.test, "Test of the confidence" if confidence else "Test")
    if np.all((cells.high == 0) | (cells.low == 1)):
        made.omit("Calibration slope", "All predictions are exactly 0 or 1, which have no log odds.")
    known = Probabilities(
        n=n,
        events=rate * n,
        predicted=predicted,
        confidence=confidence,
        error=of_error(made.attempt("Calibration error", lambda: part.headline)),
        ratio=of_estimate(made.attempt("", lambda: part.observed_expected)),
        slope=of_estimate(made.attempt("", lambda: part.slope)),
        intercept=of_estimate(made.attempt("", lambda: part.intercept)),
        undetected=_undetected(cells),
        cells=len(cells) if isinstance(part.data, BinTable) else None,
        effective_n=None if alike else cells.population.effective_n,
        clusters=part.clusters,
        levels=(part.confidence("level"), part.confidence("slope")),
        **given,
        **tested,
    )
    return replace(known, observed=_observed(known, cells), **_scores(cells))


def with_diagram(known: Any, diagram: Any) -> Any:
    """The same with what the reliability diagram found."""
    if diagram is None:
        return known
    names = ("ranges", "threshold", "distinct", "top")
    return replace(known, largest_gap=_largest_gap(diagram), **{name: getattr(diagram, name) for name in names})


def verdict_test(made: Assembly, make: Callable[[], Significance], name: str = "Test") -> dict[str, Any]:
    """What the evidence holds of a test: one that failed or has no p-value did not run, and says why.

    A verdict takes a test that did not run as neither a rejection nor a pass: see `truth_table`.
    """

    def with_p_value() -> Significance:
        found = make()
        if math.isnan(found.p_value):
            fail(str(found.details.get("reason") or "These rows give it no p-value."), CannotBuild)
        return found

    found = made.attempt(name, with_p_value)
    if found is not None:
        return {"test": of_test(found)}
    reason = made.omitted[-1].reason
    return {"untested": f"{reason[:1].lower()}{reason[1:].rstrip('.')}"}


def of_test(test: Significance) -> VerdictTest:
    """A test as the verdict knows it; its name as in the middle of a sentence."""
    name = name_of_test(replace(test, draws=None)).text
    name, p_value = name[:1].lower() + name[1:], float(test.p_value)
    return VerdictTest(name, p_value, test.draws, components=test.components, decided=test.decided)


def of_error(estimate: Estimate | None) -> Value | None:
    """An error with the interval of the true error, which is never negative; the estimate is moved inside."""
    return None if estimate is None or math.isnan(estimate.value) else Value.of(estimate, 0.0)


def of_estimate(estimate: Estimate | None) -> Value | None:
    """An estimate with its interval; None where the data do not determine it."""
    return None if estimate is None or math.isnan(estimate.value) else Value.of(estimate)


def rate_interval(events: float, n: float) -> Value:
    """A frequency with its mid-P interval."""
    low, high = mid_p_interval(events, n, 0.95)
    return Value(events / n, float(low), float(high))


def _observed(known: Probabilities, cells: BinTable) -> Value:
    """The observed frequency; its interval is that of observed : expected, which allows for weights and clusters."""
    ratio = known.ratio
    if ratio is not None and ratio.low is not None and ratio.high is not None:
        return Value(known.base_rate, ratio.low * known.predicted, min(ratio.high * known.predicted, 1.0))
    size = cells.population.effective_n
    return rate_interval(known.base_rate * size, size)


def _scores(cells: BinTable) -> dict[str, Any]:
    """What kind of scores these are: one, only 0 and 1, and how many are certain."""
    zero, one = cells.high == 0, cells.low == 1
    unit = cells.n / cells.total
    found: dict[str, Any] = {
        "certain": float(cells.weight[zero | one].sum()) / cells.total,
        "impossible_events": round(unit * float(cells.observed[zero].sum())),
        "impossible_others": round(unit * float((cells.weight - cells.observed)[one].sum())),
    }
    if len(cells) == 1 and cells.low[0] == cells.high[0]:
        found["only_score"] = float(cells.low[0])
    if np.all(zero | one):
        found["decisions"] = Decisions(*_decided(cells.take(one)), *_decided(cells.take(zero)))
    return found


def _decided(cells: BinTable) -> tuple[int, Value | None]:
    if not len(cells):
        return 0, None
    size = cells.population.effective_n
    return round(float(cells.count.sum())), rate_interval(size * float(cells.observed.sum()) / cells.total, size)


def _undetected(cells: BinTable) -> float:
    """The mean gap that the test finds in four of five samples: about three standard errors."""
    p = np.clip(cells.predicted_mean, 0.0, 1.0)
    error = math.sqrt(float(cells.weight_squares @ (p * (1 - p)))) / cells.total
    return DETECTED * error


def _largest_gap(diagram: Reliability) -> Bin | None:
    """The score whose frequency is farthest from it, of those beyond chance, where scores are few."""
    bins = diagram.bins.get("linear", ())
    if diagram.distinct is None or not 1 < diagram.distinct <= FEW_SCORES:
        return None
    wrong = [one for one in bins if one.off]
    return max(wrong, key=lambda one: abs(one.observed.value - one.predicted)) if wrong else None


#: Nominal coverage that is spoken of, where the forecasts allow it.
#: Test: tests/reporting/test_evidence.py::test_coverage_is_of_the_widest_interval_up_to_90_percent.
LEVEL = 0.9


#: Blocks of neighbours are this many times as long as their dependence, which is looked at up to this many rows apart.
#: Test: tests/reporting/test_evidence.py::test_dependent_neighbours_are_judged_by_blocks.
_TIMES, _FAR_APART = 3, 200


@dataclass(frozen=True, eq=False)
class ForecastPart:
    """Predicted distributions or their table; every result is computed when first asked for, and only once."""

    data: Forecast | BinTable

    @cached_property
    def spread_data(self) -> Forecast | BinTable:
        """The rows whose predicted spread is not 0."""
        if not isinstance(self.data, Samples):
            return self.data
        some = np.asarray(self.data.std > 0)
        if not some.any():
            fail("All draws of each row are equal, so there is no predicted spread.", CannotBuild)
        return self.data if some.all() else self.data.take(some)

    @cached_property
    def cells(self) -> Forecast | BinTable:
        """The fine table that estimators over bins of the spread share."""
        data = self.spread_data
        if isinstance(data, Gaussian) and data.y_true.ndim == 1:
            return BinTable.of(data, Distinct())
        return data

    @property
    def n(self) -> int:
        """Forecasts."""
        return self.data.n if isinstance(self.data, BinTable) else len(self.data)

    @cached_property
    def ratio(self) -> Estimate:
        """Root mean squared standardised error, with its interval."""
        return interval(scale_factor, self.spread_data)

    @cached_property
    def coverage(self) -> Estimate:
        """Share of outcomes in the central interval of 90 %, or the widest one that was predicted, with its own."""
        return known_coverage(self.data, widest_interval(self.data))

    @cached_property
    def ence(self) -> Estimate:
        """ENCE, with the range of a calibrated forecaster among its details."""
        return ence(self.cells)

    @cached_property
    def test(self) -> Significance:
        """The test of the verdict: of all that the distributions claim; of a table, of the ratio."""
        if isinstance(self.data, BinTable):
            return calibration_test(self.data, method=MeanSquaredZ())
        return calibration_test(self.data)

    @cached_property
    def of_blocks(self) -> float | None:
        """The p-value over blocks of neighbours, where these depend on each other and rows reject; NaN of few."""
        if isinstance(self.data, BinTable) or "warning" not in self.test.details or not self.test.p_value <= ALPHA:
            return None
        together = copy.copy(self.data)
        together.group = np.arange(self.n) // math.ceil(_TIMES * _dependence(self.data))
        return calibration_test(together).p_value

    @property
    def outputs(self) -> int:
        """Outputs of each row."""
        return len(self.data.outputs) if isinstance(self.data, Forecast) else 1

    @property
    def dependent(self) -> bool:
        """Whether forecasts depend on each other, within groups of rows or between the outputs of a row."""
        return self.outputs > 1 or (isinstance(self.data, Forecast) and self.data.group is not None)

    @cached_property
    def standardised(self) -> Floats:
        """(y - mean) / std of each row; of draws, mean and std are those of all values of the row, outcome included."""
        data: Any = self.spread_data
        if not hasattr(data, "std") or not hasattr(data, "mean"):
            fail(f"{type(data).__name__} have no standard deviation.", CannotBuild)
        if isinstance(data, Samples):
            pooled = np.concatenate([np.asarray(data.y_true)[..., None], data.draws], axis=-1).astype(np.float64)
            return np.asarray((pooled[..., 0] - pooled.mean(axis=-1)) / pooled.std(axis=-1))
        return np.asarray((data.y_true - data.mean) / data.std, dtype=np.float64)

    @cached_property
    def bias(self) -> Estimate:
        """Mean of the standardised errors, with Student's interval over rows or clusters."""
        from scipy.special import stdtrit

        data: Any = self.spread_data
        z = self.standardised.ravel()
        weight = np.ones(len(z)) if data.flat_weight is None else data.flat_weight
        clusters = row_clusters(data, len(z))
        mean, error = mean_and_error(z, weight, clusters)
        units = len(z) if clusters is None else int(clusters.max()) + 1
        found = Estimate(mean, name="Mean z", method="mean of (y - mean) / std", n=len(data))
        if units < 2 or not error > 0:
            return found
        reach = float(stdtrit(units - 1, 0.975)) * error * math.sqrt(units / (units - 1))
        return found.with_interval(Interval(mean - reach, mean + reach, 0.95, "Student's t"))


def forecast_evidence(part: ForecastPart, made: Assembly, **given: Any) -> Forecasts:
    """What the verdict is made from, as far as it does not need the sections."""
    if part.n == 0:
        return Forecasts(n=0, **given)
    tested = verdict_test(made, lambda: part.test)
    error = made.attempt("", lambda: part.ence)
    null = None if error is None or part.dependent else error.details.get("null")
    bias = made.attempt("", lambda: part.bias)
    held = made.attempt("Coverage", lambda: part.coverage)
    spreads = made.attempt("", lambda: std_dispersion(part.spread_data))
    data: Any = part.data
    table = isinstance(data, BinTable)
    weight, group = (None, None) if table else (data.weight, data.group)
    effective = None if weight is None or np.ptp(weight) == 0 else float(weight.sum() ** 2 / (weight @ weight))
    zero = 0
    if isinstance(data, Samples):
        zero = int(np.sum((np.asarray(data.std) <= 0) & (np.asarray(data.y_true) != np.asarray(data.mean))))
    return Forecasts(
        n=part.n,
        ratio=of_estimate(made.attempt("", lambda: part.ratio)),
        bias=of_estimate(bias),
        ence=None if error is None else float(error),
        ence_null=None if not null else (float(null["low"]), float(null["high"])),
        coverage=of_estimate(held),
        level=LEVEL if held is None else float(held.details["null"]["mean"]),  # which a few draws may not reach
        variation=None if spreads is None else float(spreads),
        zero_spread=zero,
        cells=len(data) if table else None,
        effective_n=effective,
        clusters=None if group is None else len(np.unique(group)),
        outputs=part.outputs,
        ties=str(part.test.details.get("ties", "")) if "test" in tested else "",
        warning=str(part.test.details.get("warning", "")) if "test" in tested else "",
        of_blocks=part.of_blocks if "test" in tested else None,
        **given,
        **tested,
        **_largest(part, made),
    )


def _largest(part: ForecastPart, made: Assembly) -> dict[str, Any]:
    """The row that makes up most of the mean squared standardised error."""
    if isinstance(part.data, BinTable):
        found = made.attempt("", lambda: part.ratio)
        return {} if found is None else {"largest_share": found.details.get("largest_share")}
    z = made.attempt("", lambda: part.standardised)
    if z is None or z.ndim > 1 or not len(z) or not np.any(z):
        return {}
    data: Any = part.data
    squares: NDArray[np.float64] = z**2 if data.weight is None else data.weight * z**2
    k = int(np.argmax(squares))
    row = k if part.spread_data is part.data else int(np.flatnonzero(data.std > 0)[k])
    return {
        "largest_share": float(squares[k] / squares.sum()),
        "largest_row": row,
        "largest_error": float(data.y_true[row] - data.mean[row]),
        "largest_spread": float(np.asarray(data.std)[row]),
    }


def _dependence(data: Forecast) -> float:
    """How many neighbours count as one: 1 + 2 Σ of the correlations of F(y), or of its distance from 1/2, above 0."""
    u = np.mean(data.pit(), axis=0).reshape(len(data), -1).mean(axis=1) - 0.5
    found = 1.0
    for column in (u - u.mean(), np.abs(u) - np.abs(u).mean()):
        square = max(float(column @ column), 1e-300)
        lags = range(1, min(_FAR_APART, len(u) // 2) + 1)
        apart = np.array([float(column[k:] @ column[:-k]) / square for k in lags])
        found = max(found, 1 + 2 * float(apart[np.cumprod(apart > 0) > 0].sum()))
    return found


def known_coverage(data: Forecast | BinTable, nominal: float) -> Estimate:
    """The coverage with its interval; refused where outcomes equal quantiles and the nominal one may be true."""
    found = interval(partial(coverage, nominal=nominal), data)
    tied = float(found.details["tied"])
    if isinstance(data, Quantiles) and tied > 0 and float(found) - tied <= nominal <= float(found):
        share = f"{100 * tied:.3g} % of rows"
        fail(f"In {share} outcomes equal an end of the interval, so that its coverage is not known.", CannotBuild)
    return found


def widest_interval(data: Forecast | BinTable) -> float:
    """The largest nominal coverage up to 90 % between two of the predicted quantiles; 90 % for whole distributions."""
    if not isinstance(data, Quantiles):
        return LEVEL
    levels = np.asarray(data.levels, dtype=np.float64)
    central = [1 - 2 * q for q in levels if q < 0.5 and np.any(np.isclose(levels, 1 - q))]
    allowed = [float(np.round(c, 9)) for c in central if c <= LEVEL + 1e-9]
    return max(allowed, default=max(central, default=LEVEL))


def unlabeled_evidence(cells: BinTable, made: Assembly, shares: Shares | None, **given: Any) -> Unlabeled:
    """What is known at the assumed share of positives, without error and test."""
    gaps = Gaps.of(cells)
    predicted, squares = float(gaps.predicted.sum()), float(gaps.predicted_squares.sum())
    variance = max(squares - predicted**2, 0.0) if math.isfinite(squares) else 0.25
    reach = 1.96 * math.sqrt(variance / max(gaps.n_unlabeled, 1.0))
    ratio = None
    if predicted - reach > 0:
        ratio = Value(gaps.prior / predicted, gaps.prior / (predicted + reach), gaps.prior / (predicted - reach))
    coarse = cells.coarsen(EqualMass(15)) if cells.fine else cells
    implied = () if shares is None else shares.implied
    return Unlabeled(
        n=round(gaps.n_positive + gaps.n_unlabeled),
        positives=round(gaps.n_positive),
        unlabeled=round(gaps.n_unlabeled),
        prior=gaps.prior,
        largest_prior=made.attempt("", lambda: float(largest_prior(coarse))),
        predicted=predicted,
        ratio=ratio,
        priors=() if shares is None else shares.priors,
        errors=() if shares is None else shares.errors,
        impossible=sum((one.observed.low or 0.0) > 1 for one in implied),
        ranges=len(implied),
        frequency=gaps.frequency if gaps.known_frequency else None,
        **given,
    )
