"""What to expect of each estimator on predictions like yours, at your sample size."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.predictions import Predictions
from calibrant.estimators.binned import ece
from calibrant.estimators.debiased import debiased_ece
from calibrant.estimators.kde import kde_ece
from calibrant.estimators.sweep import sweep_ece
from calibrant.numerics.arrays import Floats
from calibrant.results.target import Clipped, Estimator, norm_of
from calibrant.simulate.calibration_curves import Blend, Curve, PowerCurve, as_curve
from calibrant.simulate.estimation_bias import Bias, estimates
from calibrant.simulate.world_fit import WorldFit, fit_world
from calibrant.simulate.worlds import World
from calibrant.table.binning import EqualMass, EqualWidth

#: True errors to detect, as multiples of 1/sqrt(n): no estimator detects the smallest, all detect the largest.
_ERRORS = np.geomspace(0.3, 12.0, 9)

#: A fitted curve closer to the diagonal than this has no shape to exaggerate.
_FLAT = 1e-3


@dataclass(frozen=True)
class EstimatorAdvice:
    """One estimator: its estimate, and its bias in the fitted world and for a calibrated model with the same scores.

    `detectable` is the smallest true error it detects; None where even the largest one tried is missed.
    """

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
    fit : WorldFit
        The world the simulations come from.
    rows : tuple of EstimatorAdvice
    n, simulated_n : int
        Rows of the data and of the simulated samples, which are fewer where the data are large.
    true_error : float
        That of the fitted world.
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

    fit: WorldFit
    rows: tuple[EstimatorAdvice, ...]
    n: int
    simulated_n: int
    norm: float
    true_error: float
    alpha: float
    power: float

    @property
    def least_bias(self) -> EstimatorAdvice:
        """The estimator with the least absolute bias in the fitted world."""
        return min(self.rows, key=lambda row: abs(row.fitted.bias))

    @property
    def least_rmse(self) -> EstimatorAdvice:
        """The estimator with the least root mean squared error in the fitted world."""
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
        return {
            "n": self.n,
            "simulated_n": self.simulated_n,
            "norm": self.norm,
            "true_error": self.true_error,
            "alpha": self.alpha,
            "power": self.power,
            "detectable": self.detectable,
            "least_bias": self.least_bias.name,
            "least_rmse": self.least_rmse.name,
            "most_sensitive": self.most_sensitive.name,
            "estimators": [asdict(row) for row in self.rows],
            "fit": self.fit.to_dict(),
        }

    def __repr__(self) -> str:
        return f"<Advice: least bias {self.least_bias.name}, least rmse {self.least_rmse.name}, n={self.n:_}>"

    def __str__(self) -> str:
        return text(self)


def advise(
    data: Predictions | ArrayLike,
    y_prob: ArrayLike | None = None,
    /,
    *,
    estimators: Mapping[str, Estimator] | None = None,
    norm: float = 1,
    alpha: float = 0.05,
    power: float = 0.8,
    repeats: int = 200,
    seed: int = 0,
    largest: int = 20_000,
) -> Advice:
    """Which estimator has the least bias and error on predictions like these, and how small an error can be detected.

    A world is fitted to the predictions; samples of the same size are drawn from it, from a calibrated model with the
    same scores, and from models between and beyond the two.

    Parameters
    ----------
    data : Binary, or y_true
        Unweighted; for several classes ``data.top_label()``.
    estimators : mapping of name to callable, optional
        By default equal-width and equal-mass ECE with 15 bins, debiased, sweep and kernel density ECE, all of `norm`.
        Give estimators of one norm.
    alpha, power : float in (0, 1)
        An error counts as detectable if a test by the estimator, of significance `alpha`, has this power against it.
    repeats, seed : int
        Simulated samples of each kind.
    largest : int
        Data of more rows are simulated by samples of this size, whose biases are reported.

    Examples
    --------
    >>> from calibrant.simulate import PAPER_WORLDS
    >>> advice = advise(PAPER_WORLDS["resnet110_c100"].sample(500, seed=1), repeats=50)
    >>> advice.least_bias.name, round(advice.true_error, 2)
    ('debiased', 0.17)
    """
    validation.fraction("alpha", alpha)
    validation.fraction("power", power)
    chosen = dict(_default_estimators(norm) if estimators is None else estimators)
    fit = fit_world(data, y_prob)
    n = min(len(fit.data), largest)
    q = norm if estimators is None else norm_of(next(iter(chosen.values())))
    simulated = partial(estimates, chosen, n=n, repeats=repeats, seed=seed)
    calibrated = fit.world.calibrated()
    here, null = simulated(fit.world), simulated(calibrated)
    thresholds = {name: float(np.quantile(values, 1 - alpha)) for name, values in null.items()}
    errors, powers = _detection(fit.world, simulated, thresholds, n, q)
    truth = fit.world.true_error(q)
    rows = tuple(
        EstimatorAdvice(
            name=name,
            estimate=float(estimator(fit.data)),
            fitted=Bias.of(here[name], truth, estimator=name, world="fitted", n=n),
            calibrated=Bias.of(null[name], 0.0, estimator=name, world="calibrated", n=n),
            detectable=_crossing(errors, powers[name], power),
        )
        for name, estimator in chosen.items()
    )
    return Advice(fit, rows, len(fit.data), n, q, truth, alpha, power)


def _default_estimators(norm: float) -> dict[str, Estimator]:
    return {
        "ECE, equal width": partial(ece, bins=EqualWidth(15), norm=norm),
        "ECE, equal mass": partial(ece, bins=EqualMass(15), norm=norm),
        "debiased": Clipped(partial(debiased_ece, norm=norm)),
        "sweep": partial(sweep_ece, norm=norm),
        "kernel density": partial(kde_ece, norm=norm),
    }


def _detection(
    world: World, simulated: Any, thresholds: dict[str, float], n: int, norm: float
) -> tuple[Floats, dict[str, Floats]]:
    """True errors of worlds between calibrated and far beyond the fitted one, and each estimator's power there."""
    shape: Curve = as_curve(world.curve)
    if world.true_error(norm) < _FLAT:
        shape = PowerCurve(2)
    whole = World(world.scores, shape).true_error(norm)
    worlds = [
        World(world.scores, Blend(shape, float(error / whole)), f"{world.name}, error {step}")
        for step, error in enumerate(_ERRORS / np.sqrt(n))
    ]
    values = [simulated(each) for each in worlds]
    errors = np.array([each.true_error(norm) for each in worlds])
    powers = {
        name: np.array([np.mean(value[name] > threshold) for value in values]) for name, threshold in thresholds.items()
    }
    return errors, powers


def _crossing(errors: Floats, powers: Floats, wanted: float) -> float | None:
    """The smallest error at which the power is what is wanted, by interpolation."""
    enough = np.flatnonzero(powers >= wanted)
    if not len(enough):
        return None
    at = int(enough[0])
    if at == 0:
        return float(errors[0])
    part = (wanted - powers[at - 1]) / (powers[at] - powers[at - 1])
    return float(errors[at - 1] + part * (errors[at] - errors[at - 1]))


def text(advice: Advice) -> str:
    """The table of estimators and what follows from it; errors in percent."""
    wide = max(len(row.name) for row in advice.rows) + 2
    lines = [
        f"{advice.n:,} rows look like {_short(repr(advice.fit.world.scores))} with a {advice.fit.best.name} curve,",
        f"whose true L{advice.norm:g} error is {100 * advice.true_error:.2f} %.",
    ]
    if advice.simulated_n < advice.n:
        lines.append(f"Simulated with {advice.simulated_n:,} rows; with all of them biases and errors are smaller.")
    header = ("estimate", "bias", "sd", "rmse", "if calibrated", "detects")
    lines += ["", f"{'percent':<{wide}}" + "".join(f"{name:>{max(len(name) + 2, 10)}}" for name in header)]
    for row in advice.rows:
        seen = "-" if row.detectable is None else f"{100 * row.detectable:.2f}"
        numbers = (row.estimate, row.fitted.bias, row.fitted.sd, row.fitted.rmse, row.calibrated.bias)
        signs = ("", "+", "", "", "+")
        cells = [f"{100 * value:{sign}.2f}" for value, sign in zip(numbers, signs, strict=True)] + [seen]
        lines.append(
            f"{row.name:<{wide}}"
            + "".join(f"{cell:>{max(len(name) + 2, 10)}}" for cell, name in zip(cells, header, strict=True))
        )
    return "\n".join([*lines, "", *_conclusions(advice)])


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


def _short(words: str) -> str:
    """Numbers to three digits."""
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.3g}", words)
