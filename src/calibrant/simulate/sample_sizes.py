"""Planning: how many rows a validation needs, and what error an estimate used as a test detects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from calibrant.data import validation
from calibrant.data.predictions import Binary
from calibrant.data.validation import fail
from calibrant.inference.calibration_tests import calibration_test
from calibrant.inference.decision_curves import net_benefit
from calibrant.inference.intervals import interval
from calibrant.inference.inversion.binary import Inversion
from calibrant.inference.multiscale import MultiScale
from calibrant.inference.reliability import of_one_score
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats, expit, log_odds
from calibrant.numerics.random_draws import generator
from calibrant.results.target import Estimator, declared_by, name_of, norm_of
from calibrant.simulate.estimation_bias import estimates
from calibrant.simulate.score_distributions import EmpiricalScores, Scores
from calibrant.simulate.worlds import World
from calibrant.table.bintable import BinTable

#: The fewest rows that a simulation tries, and by how much its answer may be too large.
#: Test: tests/simulate/test_sample_sizes.py::test_the_sizes_that_are_simulated.
FEWEST, STEP = 50, 1.1

#: The most rows that a simulation tries. Speed: 200 tests of a million rows take minutes; larger answers are refused.
MOST = 1_000_000

#: Steps that are jumped over until a size is enough. Speed: about a factor of two, so that few sizes are tried; any
#: other number finds the same size, but for the noise of the simulation.
_JUMP = 8

#: The share of the runs used for widths of intervals, which vary less than rejections.
#: Test: tests/simulate/test_sample_sizes.py::test_the_sizes_that_are_simulated.
_WIDTH_SHARE = 0.2

#: The power of the interval's upper end that is inverse to the number of rows: a little above 2, since larger samples
#: are looked at more closely.
#: Test: tests/simulate/test_sample_sizes.py::test_rows_that_rule_out_an_error_are_many_if_small.
_POWER = 2.2

#: The most rows of a simulated sample of `rows_to_rule_out`, the draws for its upper end, which vary less than samples,
#: and the upper end times the root of n over the mean variance, with which it starts. Speed: it takes 10 to 60 ms.
_TRIED, _DRAWS, _FIRST = 20_000, 120, 6.0


@dataclass(frozen=True)
class SampleSize:
    """The rows that a validation needs; made by `sample_size`.

    Attributes
    ----------
    n, events : int
        Rows, and the events expected among them.
    quantity, wanted, method : str
        What is to be measured, how well, and how the number was found.
    true_value, null_value : float
        The quantity in the world, and what it is compared with where power was asked for.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = sample_size(cal.observed_expected, [0.018], width=1.0)
    >>> found.n, found.events
    (906, 16)
    """

    n: int
    events: int
    quantity: str
    wanted: str
    method: str
    true_value: float
    null_value: float | None

    def __repr__(self) -> str:
        return (
            f"<SampleSize {self.n:_} rows ({self.events:_} events) for {self.quantity}, {self.wanted}, {self.method}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return asdict(self)


def sample_size(
    estimator: Estimator | Callable[..., Any],
    world: World | Scores | ArrayLike,
    /,
    *,
    width: float | None = None,
    power: float | None = None,
    by: Literal["test", "interval"] = "test",
    below: float | None = None,
    threshold: float | None = None,
    standardized: bool = False,
    level: float = 0.95,
    runs: int = 200,
    seed: int = 0,
) -> SampleSize:
    r"""The number of rows needed for an interval of given width, or to detect or rule out an error with given power.

    With V the variance of one row's contribution, z the normal quantile of the level and u that of the power,

    .. math:: n = \frac{V}{s^2}, \qquad s = \frac{\text{width}}{2 z} \quad\text{or}\quad
              s = \frac{|\theta - \theta_0|}{z + u}.

    - `observed_expected`, on the logarithmic scale: :math:`V = (1 - \phi) / \phi`, with φ the rate of events; the
      interval :math:`\mathrm{OE}\, e^{\pm z s}` is as wide as asked; θ₀ = 1.
    - `calibration_slope`, `calibration_intercept`: V from the information of the logistic recalibration
      :math:`I = E[m (1 - m)\, x x^\top]`, or its sandwich if the true curve is not a logistic line; θ₀ = 1 or 0.
    - `net_benefit` at a `threshold`: the variance of a row's contribution; θ₀ is the better of treating all and none,
      so the power is that of showing that the model is useful. `standardized` divides by the prevalence.
    - calibration errors (`ece`, ...): simulated. Power is that of `calibration_test` or, with ``by="interval"``, the
      probability that the default interval excludes zero, which needs more rows. With `below` it is the probability
      that this interval ends below a given error, which rules out larger ones. Width is the mean width. n is too large
      by at most 10%, apart from simulation error.

    Parameters
    ----------
    estimator : callable
    world : World, Scores, or the predicted probabilities expected
        A `World` has an error; scores or probabilities are those of a calibrated model. Predicted log odds with a
        normal distribution are ``LogitMixtureScores((mean,), (sd,), (1.0,))``. In simulations, probabilities that occur
        once are spread up to half way to their neighbours, as larger samples would fill the space between them.
    width, power : float
        Exactly one of them.
    by : {"test", "interval"}
        What is to detect a calibration error: the test, or the interval.
    below : float
        With `power`: the calibration error that the interval is to rule out. The world is usually a calibrated one.
    threshold : float
        Of net benefit.
    level : float
        Of the interval; 1 - level is the significance of the test.
    runs, seed : int
        Of simulations: samples per size that is tried.

    References
    ----------
    Archer, Snell, Ensor, Hudda, Collins, Riley (2021), Minimum sample size for external validation of a clinical
    prediction model with a continuous outcome; Riley, Debray, Collins et al. (2021), Minimum sample size for external
    validation of a clinical prediction model with a binary outcome.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.simulate import LogitMixtureScores, TemperatureCurve, World
    >>> scores = LogitMixtureScores((-1.75,), (1.22,), (1.0,))  # 20% events, AUC 0.78
    >>> sample_size(cal.calibration_slope, scores, width=0.2)
    <SampleSize 2_9... rows (5... events) for calibration slope, 95% interval of width 0.2, formula>
    >>> sample_size(cal.calibration_slope, World(scores, TemperatureCurve(1.25)), power=0.8).true_value  # 1 / 1.25
    0.8
    >>> sample_size(cal.ece, scores, power=0.8, below=0.2, runs=20)
    <SampleSize ... calibration error, power 0.8 to end the 95% interval below 0.2, 20 simulations per size>
    """
    level = validation.fraction("level", level)
    power = _checked(width, power, by, below)
    scores = world if isinstance(world, World | Scores) else _SpreadScores(world)
    place = scores if isinstance(scores, World) else World(scores)
    wanted = f"{level:.0%} interval of width {width:g}" if width is not None else f"power {power:g} at {level:.0%}"
    if estimator is net_benefit:
        if threshold is None:
            fail("The sample size of net_benefit needs threshold=...", ValueError)
        threshold = validation.fraction("threshold", threshold)
        found = _net_benefit(place, threshold, standardized=standardized)
    else:
        target = declared_by(estimator)
        quantity = "" if target is None else target.quantity
        if quantity == "true error":
            true_value = place.true_error(1 if target is None or target.norm is None else target.norm)
            goal = _Goal(estimator, true_value, width, power, by, below, level)
            n = _simulated(goal, place, runs, seed)
            return _result(n, place, "calibration error", goal.words, f"{runs} simulations per size", true_value, 0.0)
        if quantity not in _FORMULAS:
            fail(
                f"There is no sample size for {name_of(estimator)}; it is known for observed_expected, "
                "calibration_intercept, calibration_slope, net_benefit and calibration errors.",
                TypeError,
            )
        found = _FORMULAS[quantity](place)
    if by == "interval" or below is not None:
        fail(f"by and below are for calibration errors, not for {name_of(estimator)}.", ValueError)
    n = found.rows(width, power, level)
    return _result(n, place, found.quantity, wanted, "formula", found.value, None if power is None else found.null)


@dataclass(frozen=True)
class Detection:
    """Error rates of an estimate used as a test of calibration, with Monte-Carlo standard errors (`_se`).

    Attributes
    ----------
    estimator, world : str
    n, repeats : int
    alpha : float
        The nominal significance: the rate of false alarms that was asked for.
    true_error, threshold : float
        The world's error, and the estimate above which a model is called miscalibrated.
    type_one : float
        Rate of false alarms on fresh samples of the calibrated world.
    type_two : float
        Rate of misses in the world itself.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.simulate import PowerCurve, UniformScores, World
    >>> world = World(UniformScores(), PowerCurve(1.5), name="power 1.5")
    >>> found = power(cal.ece, world, 200, alpha=0.1, repeats=200)
    >>> found.alpha, round(found.true_error, 3), found.power == 1 - found.type_two
    (0.1, 0.1, True)
    """

    estimator: str
    world: str
    n: int
    repeats: int
    alpha: float
    true_error: float
    threshold: float
    type_one: float
    type_one_se: float
    type_two: float
    type_two_se: float

    @property
    def power(self) -> float:
        """The probability of detecting the miscalibration: 1 - type_two."""
        return 1 - self.type_two

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        rates = (self.type_two, self.type_two_se), (self.type_one, self.type_one_se)
        misses, alarms = (f"{rate:.1%} ± {se:.1%}" for rate, se in rates)
        what = f"<{self.estimator} misses an error of {self.true_error:.4f} in {misses} of samples at n={self.n:_}"
        return f"{what}, with false alarms in {alarms}>"


def power(
    estimator: Estimator,
    world: World,
    n: int,
    *,
    alpha: float = 0.05,
    repeats: int = 1000,
    seed: int = 0,
    norm: Any = None,
) -> Detection:
    """Type I and type II error of calling a model miscalibrated when its estimate is large.

    The threshold is the 1 - `alpha` quantile of the estimator on samples of the same scores from a calibrated model;
    the type I error is measured on independent samples, not those that gave the threshold.

    Parameters
    ----------
    estimator, world, n, repeats, seed, norm
        As for `bias`.
    alpha : float in (0, 1)
        The significance: the accepted rate of false alarms.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), section 7.2 and Figure 5.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.simulate import World, UniformScores, PowerCurve
    >>> result = power(cal.sweep_ece, World(UniformScores(), PowerCurve(1.5)), 500, repeats=200)
    >>> result.type_two < 0.2
    True
    """
    alpha, seed = validation.fraction("alpha", alpha), validation.seed(seed)
    null, name = world.calibrated(), name_of(estimator)

    def simulated(source: World, offset: int) -> Any:
        return estimates({name: estimator}, source, n, repeats=repeats, seed=seed + offset)[name]

    threshold = float(np.quantile(simulated(null, 0), 1 - alpha))
    false_alarms = float(np.mean(simulated(null, 1) > threshold))
    misses = float(np.mean(simulated(world, 0) <= threshold))
    error = world.true_error(norm_of(estimator) if norm is None else norm)
    rates = [(rate, float(np.sqrt(rate * (1 - rate) / repeats))) for rate in (false_alarms, misses)]
    return Detection(name, world.name, n, repeats, alpha, error, threshold, *rates[0], *rates[1])


@dataclass(frozen=True)
class _Known:
    """A quantity with its value, that without error, and the variance of one row's contribution."""

    quantity: str
    value: float
    null: float
    variance: float
    logarithmic: bool = False

    def rows(self, width: float | None, power: float | None, level: float) -> int:
        z = float(ndtri((1 + level) / 2))
        if width is not None:
            error = np.arcsinh(width / (2 * self.value)) / z if self.logarithmic else width / (2 * z)
        else:
            away = abs(np.log(self.value / self.null)) if self.logarithmic else abs(self.value - self.null)
            if not away > 1e-12:
                fail(f"This world has no error to see: its {self.quantity} is {self.value:g}.", ValueError)
            error = away / (z + float(ndtri(power)))
        return max(int(np.ceil(self.variance / error**2)), 2)


def _ratio(world: World) -> _Known:
    predicted, observed = world.expect(lambda p, c: p), world.expect(lambda p, c: c)
    if not 0 < observed <= 1 or not predicted > 0:
        fail("The O:E ratio needs a world with events, observed and predicted.", ValueError)
    return _Known("O:E ratio", observed / predicted, 1.0, (1 - observed) / observed, logarithmic=True)


def _intercept(world: World) -> _Known:
    at, variance = _pseudo_true(world, free_slope=False)
    return _Known("calibration intercept", at[0], 0.0, float(variance[0, 0]))


def _slope(world: World) -> _Known:
    at, variance = _pseudo_true(world, free_slope=True)
    return _Known("calibration slope", round(float(at[1]), 12), 1.0, float(variance[1, 1]))


_FORMULAS = {"observed to expected ratio": _ratio, "calibration intercept": _intercept, "calibration slope": _slope}


def _pseudo_true(world: World, *, free_slope: bool) -> tuple[Floats, Floats]:
    """Intercept and slope that fit the world's curve best, and the covariance of their estimates from one row."""
    at, size = np.array([0.0, 1.0]), 2 if free_slope else 1

    def expect(function: Callable[[Floats, Floats, Floats], Floats], power: int) -> float:
        def inside(p: Floats, c: Floats) -> Floats:
            some = (p > 0) & (p < 1)
            z = np.where(some, log_odds(np.where(some, p, 0.5)), 0.0)
            return np.where(some, function(z, expit(at[0] + at[1] * z), c) * z**power, 0.0)

        return world.expect(inside)

    def matrix(function: Callable[[Floats, Floats, Floats], Floats]) -> Floats:
        found = [expect(function, k) for k in range(2 * size - 1)]
        return np.array([[found[i + j] for j in range(size)] for i in range(size)])

    for _ in range(50):
        gradient = np.array([expect(lambda z, m, c: c - m, k) for k in range(size)])
        information = matrix(lambda z, m, c: m * (1 - m))
        if np.linalg.matrix_rank(information) < size:
            fail("The scores of this world do not vary, so that its slope is undetermined.", ValueError)
        step = np.linalg.solve(information, gradient)
        at[:size] += np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-10:
            break
    inverse = np.linalg.inv(matrix(lambda z, m, c: m * (1 - m)))
    middle = matrix(lambda z, m, c: c * (1 - m) ** 2 + (1 - c) * m**2)
    return at, np.asarray(inverse @ middle @ inverse)


def _net_benefit(world: World, t: float, *, standardized: bool) -> _Known:
    odds = t / (1 - t)
    rate = world.expect(lambda p, c: c)
    true, false = world.expect(lambda p, c: (p >= t) * c), world.expect(lambda p, c: (p >= t) * (1 - c))
    value, everyone = true - odds * false, rate - odds * (1 - rate)
    name = f"{'standardized ' if standardized else ''}net benefit at {t:g}"
    if standardized and not rate > 0:
        fail("A standardized net benefit needs a world with events.", ValueError)
    if standardized:  # the delta method for a ratio of means
        ratio = value / rate
        variance = (true * (1 - ratio) ** 2 + (rate - true) * ratio**2 + odds**2 * false) / rate**2
        return _Known(name, ratio, max(everyone / rate, 0.0), variance)
    return _Known(name, value, max(everyone, 0.0), true + odds**2 * false - value**2)


def _checked(width: float | None, power: float | None, by: str, below: float | None) -> float | None:
    """The power, where what is asked for makes sense."""
    if (width is None) == (power is None):
        fail("Give either width=... (of the interval) or power=... (to see the error of the world).", ValueError)
    if by not in ("test", "interval"):
        fail(f"by must be 'test' or 'interval', got {by!r}.", ValueError)
    for name, value in (("width", width), ("below", below)):
        if value is not None and not (np.isfinite(value) and value > 0):
            fail(f"{name} must be a positive number, got {value!r}.", ValueError)
    if width is not None and below is not None:
        fail("below=... goes with power=..., the chance that larger errors are ruled out.", ValueError)
    return None if power is None else validation.fraction("power", power)


@dataclass(frozen=True, eq=False)
class _Goal:
    """What samples of one size are asked about a calibration error."""

    estimator: Any
    true_value: float
    width: float | None
    power: float | None
    by: str
    below: float | None
    level: float

    def __post_init__(self) -> None:
        if self.below is not None and not self.true_value < self.below:
            fail(f"The error of this world, {self.true_value:.4g}, is not below {self.below:g}.", ValueError)
        if self.width is None and self.below is None and not self.true_value > 1e-9:
            fail("This world has no error to see: its predictions are calibrated.", ValueError)

    @property
    def words(self) -> str:
        """In one line."""
        if self.width is not None:
            return f"{self.level:.0%} interval of width {self.width:g}"
        if self.below is not None:
            return f"power {self.power:g} to end the {self.level:.0%} interval below {self.below:g}"
        if self.by == "interval":
            return f"power {self.power:g} to exclude zero from the {self.level:.0%} interval"
        return f"power {self.power:g} of calibration_test at {1 - self.level:.0%}"

    def met(self, samples: list[Binary]) -> bool:
        """Whether the mean width, or the share of the samples that show what is wanted, is enough."""
        if self.width is None and self.below is None and self.by == "test":
            found = [calibration_test(data, method=MultiScale(199)).p_value <= 1 - self.level for data in samples]
            return bool(np.mean(found) >= (self.power or 0.0))
        known = [interval(self.estimator, data, level=self.level).interval for data in samples]
        ends = np.array([(-np.inf, np.inf) if one is None else (one.low, one.high) for one in known])
        if self.width is not None:
            return bool(np.mean(ends[:, 1] - ends[:, 0]) <= self.width)
        shown = ends[:, 0] > 0 if self.below is None else ends[:, 1] < self.below
        return bool(np.mean(shown) >= (self.power or 0.0))


def _simulated(goal: _Goal, world: World, runs: int, seed: int) -> int:
    """The fewest rows, on a grid of steps of 10%, at which simulated samples reach what is wanted."""
    validation.whole("runs", runs, minimum=10)
    samples = runs if goal.width is None else max(10, round(runs * _WIDTH_SHARE))
    known: dict[int, bool] = {}

    def enough(step: int) -> bool:
        if step not in known:
            n = _size(step)
            seeds = [np.random.SeedSequence([seed, n, k]) for k in range(samples)]
            known[step] = goal.met([world.sample(n, seed=one) for one in seeds])
        return known[step]

    low, high = -1, 0
    while not enough(high):
        if _size(high) >= MOST:
            fail(f"More than {MOST:,} rows are needed.", ValueError)
        low, high = high, high + _JUMP
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return _size(high)


class _SpreadScores(EmpiricalScores):
    """The scores of a sample; those that occur once are spread up to half way to their neighbours."""

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Scores with replacement, uniform about those that occur once."""
        score, count = np.unique(np.asarray(self.scores), return_counts=True)
        return log_odds(_drawn(score, count.astype(np.float64), count > 1, rng, size))


def _drawn(
    score: Floats, share: Floats, atom: NDArray[np.bool_], rng: np.random.Generator, size: int | tuple[int, ...]
) -> Floats:
    """Rising scores in proportion to their shares; others than atoms are spread half way to their neighbours."""
    running = np.cumsum(share)
    place = rng.random(size) * running[-1]
    cell = np.minimum(np.searchsorted(running, place, side="right"), len(score) - 1)
    middle = (score[1:] + score[:-1]) / 2
    low, high = np.append(score[:1], middle), np.append(middle, score[-1:])
    low, high = np.where(atom, score, low), np.where(atom, score, high)
    within = np.clip((running[cell] - place) / share[cell], 0.0, 1.0)
    return np.asarray(low[cell] + within * (high - low)[cell])


def rows_to_rule_out(
    error: float, data: Binary | BinTable, *, level: float = 0.95, power: float = 0.8, seed: int = 0
) -> int | None:
    """About how many rows with these scores rule out an L1 error of this size if calibrated; None of clusters.

    As ``sample_size(ece, scores, below=error, power=power)``, to about 25 %: an upper end of a fresh sample lies below
    the largest of m others with a probability of m / (m + 1), 80% for m = 4.
    """
    if isinstance(data, Binary) and data.group is not None:
        return None
    table = Sample.of(data, needed_by="rows_to_rule_out").table
    score, share = table.predicted_mean, table.share
    atom = (table.count > 1) & of_one_score(table)
    rng, method = generator(seed, "rows to rule out an error"), Inversion(draws=_DRAWS, side="upper")

    def upper_end(n: int) -> float:
        drawn = _drawn(score, share, atom, rng, n)
        return method.interval(Binary(rng.random(n) < drawn, drawn), level=(1 + level) / 2).high

    n, others = _FIRST**2 * float(share @ (score * (1 - score))) / error**2, round(power / (1 - power))
    for samples in (1, max(others, 1)):  # one to find about how many rows, and those that tell
        if n > 4 * MOST and samples > 1:
            break  # too many, whatever the others say
        tried = round(float(np.clip(n, FEWEST, _TRIED)))
        n = tried * (max(upper_end(tried) for _ in range(samples)) / error) ** _POWER
    weighted = float(table.count.sum()) / table.population.effective_n
    return max(round(float(n) * weighted), 1)


def _size(step: int) -> int:
    return round(FEWEST * STEP**step)


def _result(
    n: int, world: World, quantity: str, wanted: str, method: str, value: float, null: float | None
) -> SampleSize:
    events = round(n * world.expect(lambda p, c: c))
    return SampleSize(n, events, quantity, wanted, method, float(value), null)
