"""What to expect of each estimator on predictions like yours, at your sample size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.predictions import Predictions
from calibrant.estimators.binned import debiased_ece, ece, sweep_ece
from calibrant.estimators.recommended import averaged_error
from calibrant.estimators.smooth_errors import kde_ece
from calibrant.inference.intervals import interval
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Interval, text_table
from calibrant.results.target import Clipped, Estimator, norm_of
from calibrant.simulate.estimation_bias import Bias, estimates
from calibrant.simulate.score_distributions import FixedScores
from calibrant.simulate.world_fit import WorldFit, fit_world
from calibrant.simulate.worlds import Blend, Curve, PowerCurve, World, as_curve
from calibrant.table.binning import EqualMass, EqualWidth

#: True errors to detect, as multiples of 1/sqrt(n): no estimator detects the smallest, all detect the largest.
#: Test: tests/simulate/test_advice.py::test_the_errors_that_are_tried_and_their_shape.
_ERRORS = np.geomspace(0.3, 12.0, 9)

#: Words for the families of curves.
_CURVES = {
    "logit_logit": "logistic curve of the log-odds",
    "logit_logflip": "logistic curve of log(1 - score)",
    "log_log": "power of the score",
    "logflip_logflip": "power of 1 - score",
}

#: A fitted curve closer to the diagonal than this has no shape to exaggerate.
#: Test: tests/simulate/test_advice.py::test_the_errors_that_are_tried_and_their_shape.
_FLAT = 1e-3


@dataclass(frozen=True)
class EstimatorAdvice:
    """One estimator: its estimate, its bias in both worlds, and the smallest error it detects (None: missed all)."""

    name: str
    estimate: float
    fitted: Bias
    calibrated: Bias
    detectable: float | None


@dataclass(frozen=True, eq=False)
class Advice:
    """Which estimator to use at this sample size, and how small an error can be detected. Prints as a table.

    Attributes
    ----------
    true_error : Interval
        For the true error of the model, from the data.
    fit : WorldFit
        The fit behind the simulations, with a test of its goodness.
    world : World
        What was simulated: the scores of the data, and the curve of `fit.world`.
    world_error : float
        The true error of that world, which the model need not have: see `true_error`.
    rows : tuple of EstimatorAdvice
    n, simulated_n : int
        Rows of the data and of the simulated samples, which are fewer where the data are large.
    alpha, power : float
        Rate of false alarms, and probability of detection, behind `detectable`.

    Examples
    --------
    >>> from functools import partial
    >>> from calibrant.simulate import PAPER_WORLDS
    >>> data = PAPER_WORLDS["resnet110_c100"].sample(400)
    >>> advice = advise(data, estimators={"ECE": ece, "sweep": sweep_ece}, repeats=50)
    >>> [row.name for row in advice.rows], advice.least_bias.name in {"ECE", "sweep"}
    (['ECE', 'sweep'], True)
    >>> 0 < advice.detectable < 0.1
    True
    """

    true_error: Interval
    fit: WorldFit
    world: World
    world_error: float
    rows: tuple[EstimatorAdvice, ...]
    n: int
    simulated_n: int
    norm: float
    alpha: float
    power: float

    @property
    def least_bias(self) -> EstimatorAdvice:
        """The estimator with the least absolute bias in the simulated world."""
        return min(self.rows, key=lambda row: abs(row.fitted.bias))

    @property
    def least_rmse(self) -> EstimatorAdvice:
        """The estimator with the least root mean squared error in the simulated world."""
        return min(self.rows, key=lambda row: row.fitted.rmse)

    @property
    def most_sensitive(self) -> EstimatorAdvice:
        """The estimator that detects the smallest error."""
        return min(self.rows, key=lambda row: np.inf if row.detectable is None else row.detectable)

    @property
    def detectable(self) -> float | None:
        """The smallest true error that the most sensitive estimator detects."""
        return self.most_sensitive.detectable

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        names = ("n", "simulated_n", "norm", "world_error", "alpha", "power", "detectable")
        return {
            **{name: getattr(self, name) for name in names},
            "true_error": self.true_error.to_dict(),
            "least_bias": self.least_bias.name,
            "least_rmse": self.least_rmse.name,
            "most_sensitive": self.most_sensitive.name,
            "estimators": [asdict(row) for row in self.rows],
            "fit": self.fit.to_dict(),
        }

    def __repr__(self) -> str:
        return f"<Advice: least bias {self.least_bias.name}, least rmse {self.least_rmse.name}, n={self.n:_}>"

    def __str__(self) -> str:
        lines = [["percent", "estimate", "bias", "sd", "rmse", "if calibrated", "detects"]]
        for row in self.rows:
            numbers = (row.estimate, row.fitted.bias, row.fitted.sd, row.fitted.rmse, row.calibrated.bias)
            cells = [f"{100 * value:{sign}.2f}" for value, sign in zip(numbers, ("", "+", "", "", "+"), strict=True)]
            lines.append([row.name, *cells, "-" if row.detectable is None else f"{100 * row.detectable:.2f}"])
        return "\n".join([*_before(self), "", *text_table(lines), "", *_conclusions(self)])

    def _repr_html_(self) -> str:
        from calibrant.reporting.notebook import advice_html

        return advice_html(self, _before(self), _conclusions(self))


def advise(
    data: Predictions | ArrayLike,
    y_prob: ArrayLike | None = None,
    /,
    *,
    estimators: Mapping[str, Estimator] | None = None,
    norm: float = 1,
    alpha: float = 0.05,
    power: float = 0.8,
    level: float = 0.95,
    repeats: int = 100,
    seed: int = 0,
    largest: int = 20_000,
) -> Advice:
    """Which estimator has the least bias and error on predictions like these, and how small an error can be detected.

    Outcomes are drawn at the scores of the data from a fitted calibration curve (that of `fit_world`: parametric if it
    fits, otherwise smoothed), from a calibrated model, and from models between and beyond the two. What is said about
    the biases holds in that world; the true error of the model itself is given as an interval.

    Parameters
    ----------
    data : Binary, or y_true
        Unweighted; for multiclass data ``data.top_label()``.
    estimators : mapping of name to callable, optional
        By default the averaged error, equal-width and equal-mass ECE with 15 bins, debiased, sweep and kernel density
        ECE, all of `norm`. Give estimators of one norm. `variational_error` can be given, but takes many seconds.
    alpha, power : float in (0, 1)
        An error counts as detectable if a test by the estimator, of significance `alpha`, has this power against it.
    level : float in (0, 1)
        Of the interval for the true error.
    repeats, seed : int
        Simulated samples of the fitted and of the calibrated world; half as many of each of the others.
    largest : int
        Data of more rows are simulated by samples of this size, whose biases are reported.

    Examples
    --------
    >>> from calibrant.simulate import PAPER_WORLDS
    >>> world = PAPER_WORLDS["resnet110_c100"]  # its true error is 0.153
    >>> advice = advise(world.sample(500, seed=2), repeats=40)
    >>> advice.fit.fits, advice.rows[0].name, 0.153 in advice.true_error
    (True, 'averaged', True)
    """
    validation.fraction("alpha", alpha)
    validation.fraction("power", power)
    chosen = dict(_default_estimators(norm) if estimators is None else estimators)
    fit = fit_world(data, y_prob)
    q = norm if estimators is None else norm_of(next(iter(chosen.values())))
    known = interval(partial(ece, norm=q), fit.data, level=level).interval
    assert known is not None
    score = np.sort(fit.data.y_prob.astype(np.float64))
    n = min(len(score), largest)
    world = World(FixedScores(score[(np.arange(n) * len(score) + len(score) // 2) // n]), fit.world.curve, "fitted")
    simulated = partial(estimates, n=n, seed=seed)
    here, null = (simulated(chosen, each, repeats=repeats) for each in (world, world.calibrated()))
    truth = world.true_error(q)
    worlds = _worse_and_worse(world, q, n)
    errors = np.array([each.true_error(q) for each in worlds])

    def detectable(name: str, estimator: Estimator) -> float | None:
        threshold, few = float(np.quantile(null[name], 1 - alpha)), max(repeats // 2, 1)

        def detected(step: int) -> float:
            return float(np.mean(simulated({name: estimator}, worlds[step], repeats=few)[name] > threshold))

        return _crossing(errors, detected, power)

    rows = []
    for name, estimator in chosen.items():
        fitted = Bias.of(here[name], truth, estimator=name, world="fitted", n=n)
        calibrated = Bias.of(null[name], 0.0, estimator=name, world="calibrated", n=n)
        least = detectable(name, estimator)
        rows.append(EstimatorAdvice(name, float(estimator(fit.data)), fitted, calibrated, least))
    return Advice(known, fit, world, truth, tuple(rows), len(fit.data), n, q, alpha, power)


def _default_estimators(norm: float) -> dict[str, Estimator]:
    return {
        "averaged": partial(averaged_error, norm=norm),
        "ECE, equal width": partial(ece, bins=EqualWidth(15), norm=norm),
        "ECE, equal mass": partial(ece, bins=EqualMass(15), norm=norm),
        "debiased": Clipped(partial(debiased_ece, norm=norm)),
        "sweep": partial(sweep_ece, norm=norm),
        "kernel density": partial(kde_ece, norm=norm),
    }


def _worse_and_worse(world: World, norm: float, n: int) -> list[World]:
    """Worlds between calibrated and far beyond the fitted one, in the order of their true errors."""
    shape: Curve = PowerCurve(2) if world.true_error(norm) < _FLAT else as_curve(world.curve)
    shares = _ERRORS / np.sqrt(n) / World(world.scores, shape).true_error(norm)
    return [World(world.scores, Blend(shape, float(share)), f"error {step}") for step, share in enumerate(shares)]


def _crossing(errors: Floats, power: Callable[[int], float], wanted: float) -> float | None:
    """The smallest error at which the power is what is wanted: by bisection, then between two of the errors."""
    known: dict[int, float] = {}
    low, high = -1, len(errors)
    while high - low > 1:
        middle = (low + high) // 2
        known[middle] = power(middle)
        low, high = (low, middle) if known[middle] >= wanted else (middle, high)
    if high == len(errors):
        return None
    if high == 0:
        return float(errors[0])
    part = (wanted - known[low]) / (known[high] - known[low])
    return float(errors[low] + part * (errors[high] - errors[low]))


def _before(advice: Advice) -> list[str]:
    """What is known of the true error, and what was simulated."""
    known = advice.true_error
    low, high = (f"{100 * end:.2f}" for end in (known.low, known.high))
    lies = {"lower": f"is at least {low} %", "upper": f"is at most {high} %"}
    words = lies.get(known.side, f"lies between {low} and {high} %")
    lines = [f"The true L{advice.norm:g} error {words} ({known.level:.0%} interval from {advice.n:,} rows)."]
    p = f"p = {advice.fit.test.p_value:.2g}"
    if advice.fit.fits:
        curve = f"a {_CURVES[advice.fit.best.curve.family]} (no lack of fit detected, {p})"
    else:
        curve = f"a smoothed curve (no parametric curve fits, {p})"
    size = f"the L{advice.norm:g} error of this curve is {100 * advice.world_error:.2f} %"
    lines += ["Simulated: outcomes at the same scores, drawn from", f"{curve}; {size}."]
    if not known.low <= advice.world_error <= known.high:
        lines.append("That lies outside the interval: take the biases below as a rough guide.")
    if advice.simulated_n < advice.n:
        lines.append(f"Simulated with {advice.simulated_n:,} rows; with all of them biases and errors are smaller.")
    return lines


def _conclusions(advice: Advice) -> list[str]:
    bias, rmse, sharp = advice.least_bias, advice.least_rmse, advice.most_sensitive
    unbiased = _others(advice, bias, [abs(row.fitted.bias) for row in advice.rows], 2 * bias.fitted.bias_se)
    exact = _others(advice, rmse, [row.fitted.rmse for row in advice.rows], rmse.fitted.rmse_se)
    lines = [
        f"Least bias: {bias.name} ({100 * bias.fitted.bias:+.2f} ± {100 * bias.fitted.bias_se:.2f}{unbiased}).",
        f"Least error: {rmse.name} (rmse {100 * rmse.fitted.rmse:.2f} ± {100 * rmse.fitted.rmse_se:.2f}{exact}).",
    ]
    if sharp.detectable is None:
        return [*lines, "No estimator detects a miscalibration of any size tried at this sample size."]
    odds = f"{advice.power:.0%} of the time, with {advice.alpha:.0%} false alarms"
    return [*lines, f"Detectable: a true error above {100 * sharp.detectable:.2f} %, by {sharp.name} ({odds})."]


def _others(advice: Advice, best: EstimatorAdvice, sizes: list[float], noise: float) -> str:
    """Those that the simulation cannot distinguish from the best."""
    names = [
        row.name for row, size in zip(advice.rows, sizes, strict=True) if row is not best and size < min(sizes) + noise
    ]
    return f"; within its noise: {', '.join(names)}" if names else ""
