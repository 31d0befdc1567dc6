"""A world fitted to predictions: Beta scores and a calibration curve whose goodness of fit is tested."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.predictions import Binary, Multiclass, Predictions, binary
from calibrant.estimators.binned import ece
from calibrant.inference.hypothesis_tests.multiscale import MultiScale
from calibrant.numerics.arrays import Floats
from calibrant.numerics.special import log_odds as odds_of
from calibrant.results.estimate import Significance
from calibrant.results.target import Estimator, name_of
from calibrant.simulate.calibration_curves import Curve, WithEnds
from calibrant.simulate.curve_fitting import CurveFit, fit_beta, fit_curves, fit_rounded_beta, fit_smoothed
from calibrant.simulate.estimation_bias import estimates
from calibrant.simulate.score_distributions import Scores, WithAtoms
from calibrant.simulate.worlds import World
from calibrant.table.binning import Distinct, EqualWidth
from calibrant.table.bintable import BinTable

#: Where other scores are closer to 1 than this, scores of 1 may have been rounded, in single or double precision.
_ROUNDING = 1e-6

#: A curve that is rejected at this level is not used.
_ALPHA = 0.05

#: The estimator by which the paper compares simulated and real data.
_ECE_BIN = partial(ece, bins=EqualWidth(15), norm=2)


@dataclass(frozen=True)
class Goodness:
    """An estimator on the data and on samples of the fitted world of the same size.

    Examples
    --------
    >>> from calibrant.simulate import PAPER_WORLDS
    >>> found = fit_world(PAPER_WORLDS["resnet110_c100"].sample(2000)).goodness(repeats=50)
    >>> found.n, abs(found.real - found.simulated) < 3 * found.simulated_sd
    (2000, True)
    """

    estimator: str
    n: int
    real: float
    simulated: float
    simulated_sd: float
    repeats: int

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class WorldFit:
    """A world fitted to predictions. Prints the table of curves, best first, and whether the best one fits.

    Attributes
    ----------
    world : World
        `parametric` if its curve fits; otherwise the same scores with a smoothed curve (`fit_smoothed`).
    parametric : World
        Beta scores (with atoms where the data have them) and the curve with the least AIC.
    curves : tuple of CurveFit
        All twelve, best first.
    test : Significance
        Of the hypothesis that the outcomes come from the parametric curve: the statistics of `MultiScale`, of the
        residuals in the order of the scores. Conservative, as the curve was fitted to the same rows.
    data : Binary
        What it was fitted to.

    Examples
    --------
    >>> from calibrant.simulate import BetaScores, PowerCurve, UniformScores, WavyCurve
    >>> fit = fit_world(World(BetaScores(2, 1), PowerCurve(1.5)).sample(20_000))
    >>> fit.best.name, round(fit.best.curve.b1, 1), fit.fits
    ('log_log_b1', 1.5, True)
    >>> wavy = fit_world(World(UniformScores(), WavyCurve()).sample(20_000))
    >>> wavy.fits, wavy.world.curve
    (False, <SmoothedCurve of ... points>)
    """

    world: World
    parametric: World
    curves: tuple[CurveFit, ...]
    test: Significance
    data: Binary

    @property
    def fits(self) -> bool:
        """Whether the parametric curve is not rejected at the 5 % level."""
        return self.test.p_value >= _ALPHA

    @property
    def best(self) -> CurveFit:
        """The curve with the least AIC."""
        return self.curves[0]

    def goodness(self, *, estimator: Estimator = _ECE_BIN, repeats: int = 200, seed: int = 0) -> Goodness:
        """An estimator on the data and in the parametric world; by default the L2 error of 15 equal-width bins."""
        n = len(self.data)
        values = estimates({"": estimator}, self.parametric, n, repeats=repeats, seed=seed)[""]
        real = float(estimator(self.data))
        return Goodness(name_of(estimator), n, real, float(values.mean()), float(values.std(ddof=1)), repeats)

    def plot(self, *, ax: Any = None, **style: Any) -> Any:
        """Simulated against real error, with the diagonal (needs matplotlib)."""
        from calibrant.plot.simulations import goodness_points

        return goodness_points([self.goodness()], ax=ax, **style)

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return {
            "world": repr(self.world.scores) + ", " + repr(self.world.curve),
            "n": len(self.data),
            "fits": self.fits,
            "test": self.test.to_dict(),
            "curves": [fit.to_dict() for fit in self.curves],
        }

    def __repr__(self) -> str:
        curve = self.best.name if self.fits else repr(self.world.curve)
        return f"<WorldFit: {self.world.scores!r}, {curve}, n={len(self.data):_}>"

    def __str__(self) -> str:
        lines = [f"scores  {self.world.scores!r}", f"{'curve':<24}{'AIC':>12}{'b0':>9}{'b1':>9}"]
        for fit in self.curves:
            b0, b1 = (f"{value:>9.3f}" if term in fit.terms else f"{'':>9}" for term, value in _terms(fit))
            lines.append(f"{fit.name:<24}{fit.aic:>12.2f}{b0}{b1}")
        verdict = "the first is used" if self.fits else "none of them fits, a smoothed curve is used"
        lines.append(f"goodness of fit: p = {self.test.p_value:.3g}; {verdict}")
        return "\n".join(lines)


def fit_world(
    data: Predictions | ArrayLike, y_prob: ArrayLike | None = None, /, *, log_odds: ArrayLike | None = None
) -> WorldFit:
    """The world of these predictions by maximum likelihood: Beta scores and the best of twelve curves, if it fits.

    The residuals of the best curve are tested. If they show that no curve of these families can be the true one
    (p < 0.05), the world has a smoothed curve without a family instead; with few rows a wrong curve may go unnoticed.
    The distribution of the scores is not tested: `FixedScores` or `EmpiricalScores` of your scores need no fit.

    Scores of exactly 1 are taken for rounded scores next to it, as far as the other scores predict them; the rest of
    them, and scores of 0, are atoms with event rates of their own. The curve is fitted to the other rows.

    Parameters
    ----------
    data : Binary, or y_true
        Unweighted. For several classes take ``data.top_label()``.
    log_odds : array-like, optional
        Log-odds of the scores, where they are known better than the scores: a network's logits know how far from 1
        a score of 1 is.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), section 6 and appendix A. Their fits are of float32 scores with 1 moved to
    1 - 1e-16, and their AIC is a mean over ten bootstrap samples; these are exact.

    Examples
    --------
    >>> from calibrant.simulate import PAPER_WORLDS
    >>> fit = fit_world(PAPER_WORLDS["resnet110_c100"].sample(20_000))
    >>> fit.best.name
    'logflip_logflip_b0_b1'
    >>> round(fit.world.true_error(2), 2), round(PAPER_WORLDS["resnet110_c100"].true_error(2), 2)
    (0.2, 0.2)
    """
    task = _plain_binary(data, y_prob)
    z = odds_of(task.y_prob) if log_odds is None else _given(log_odds, len(task))
    inside = np.isfinite(z)
    curves = fit_curves(z[inside], task.y_true[inside])
    scores = _fitted_scores(z, last=_last_below_one(task.y_prob) if log_odds is None else np.inf)
    rates = {name: _rate(task, z == end) for name, end in (("at_zero", -np.inf), ("at_one", np.inf))}

    def world(curve: Curve) -> World:
        return World(scores, WithEnds(curve, **rates) if isinstance(scores, WithAtoms) else curve)

    best = curves[0].curve
    test = _residual_test(z[inside], task.y_true[inside], best.at(z[inside]))
    parametric = world(best)
    used = parametric if test.p_value >= _ALPHA else world(fit_smoothed(z[inside], task.y_true[inside]))
    return WorldFit(used, parametric, curves, test, task)


def _residual_test(z: Floats, outcome: Any, probability: Floats) -> Significance:
    """Whether the outcomes may have come from these probabilities, looked at in the order of the log-odds."""
    order = np.argsort(z, kind="stable")
    rank = np.unique(z[order], return_inverse=True)[1].reshape(-1)
    table = BinTable.of(Binary(outcome[order], rank / max(int(rank[-1]), 1)), Distinct())
    sums = table.sums.copy()
    sums[3] = np.bincount(rank, probability[order])
    return MultiScale().test(replace(table, sums=sums))


def _fitted_scores(z: Floats, *, last: float) -> Scores:
    """Beta scores, and atoms for the scores of 0 and of 1 that are not merely Beta scores rounded to 1."""
    inner, zeros, ones = z[np.isfinite(z)], int(np.sum(z == -np.inf)), int(np.sum(z == np.inf))
    at_zero, at_one = zeros / len(z), ones / len(z)
    if ones and np.isfinite(last):
        beta, share = fit_rounded_beta(inner, ones, last)
        at_one = share * (1 - at_zero)
    else:
        beta = fit_beta(inner)
    return WithAtoms(beta, at_zero=at_zero, at_one=at_one) if at_zero or at_one else beta


def _last_below_one(score: Floats) -> float:
    """Log-odds above which scores were rounded to 1: half way from the highest other score, if that is next to 1."""
    step = 1 - score[score < 1].max(initial=0.0).astype(np.float64)
    return float(-np.log(step / 2)) if step < _ROUNDING else np.inf


def _plain_binary(data: Predictions | ArrayLike, y_prob: ArrayLike | None) -> Binary:
    task = binary(data, y_prob)
    if isinstance(task, Multiclass):
        message = "A world has one score per row: fit data.top_label() or data.one_vs_rest()[label]."
        raise TypeError(message)
    if not isinstance(task, Binary) or task.weight is not None:
        what = "weighted predictions" if isinstance(task, Binary) else type(task).__name__
        message = f"A world is fitted to unweighted Binary predictions, got {what}."
        raise TypeError(message)
    return task


def _given(log_odds: ArrayLike, length: int) -> Floats:
    z = np.asarray(validation.as_array("log_odds", log_odds), dtype=np.float64)
    if z.shape != (length,) or np.isnan(z).any():
        message = f"log_odds must be {length} numbers, one per row, got shape {z.shape} with {np.isnan(z).sum()} NaN."
        raise validation.InvalidPredictions(message)
    return z


def _rate(task: Binary, rows: Any) -> float | None:
    return float(task.y_true[rows].mean()) if rows.any() else None


def _terms(fit: CurveFit) -> list[tuple[str, float]]:
    return [("b0", fit.curve.b0), ("b1", fit.curve.b1)]
