"""Exact maximum likelihood: the Beta distribution of scores and the generalised linear calibration curves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats
from calibrant.numerics.logistic import affine, logistic_fit
from calibrant.numerics.special import log_complement, log_probability
from calibrant.simulate.calibration_curves import Curve, Family, Glm, transform
from calibrant.simulate.score_distributions import BetaScores

Terms = Literal["b0", "b1", "b0_b1"]

#: Value, gradient and Hessian of a convex function.
_Second = Callable[[Floats], tuple[float, Floats, Floats]]

#: More than any curve needs: the outcomes are separable, and the likelihood has no maximum.
_STEEPEST = 1e4


def fit_beta(z: Floats) -> BetaScores:
    r"""The Beta distribution of scores with these (finite) log-odds, by maximum likelihood.

    .. math:: \max_{a,b} \; a \, \overline{\log s} + b \, \overline{\log(1-s)} - \log B(a, b)

    Log-odds keep log(1 - s) of scores that are 1 in single or double precision, which published fits lost.

    >>> fit_beta(BetaScores(2.0, 0.1).draw(np.random.default_rng(0), 100_000))
    BetaScores(a=1.992..., b=0.1002...)
    """
    if not len(z) or not np.all(np.isfinite(z)) or np.ptp(z) == 0:
        message = "A Beta distribution needs at least two different scores inside (0, 1)."
        raise ValueError(message)
    means = np.array([log_probability(z).mean(), log_complement(z).mean()])

    def negative_likelihood(parameters: Floats) -> tuple[float, Floats, Floats]:
        from scipy.special import betaln, digamma, polygamma

        total = parameters.sum()
        value = float(betaln(*parameters) - parameters @ means)
        gradient = digamma(parameters) - digamma(total) - means
        return value, gradient, np.diag(polygamma(1, parameters)) - polygamma(1, total)

    start = np.maximum(-1 / means, 1e-3)  # exact for a lone tail: E log s = -1 / a where b = 1
    a, b = minimum(negative_likelihood, start, low=1e-9)
    return BetaScores(float(a), float(b))


def fit_rounded_beta(z: Floats, ones: int, last: float) -> tuple[BetaScores, float]:
    r"""Beta scores of which those above `last` (log-odds) were rounded to 1, and a further share that is exactly 1.

    Of n inner scores and `ones` scores of 1, with T the Beta mass above `last` and P the share of ones,

    .. math:: \max_{a,b,P \ge T} \; n \bigl[\ell(a, b) - \log(1 - T) + \log(1 - P)\bigr] + \mathrm{ones} \log P

    whose best P is the observed share, or T where that is more. An atom on top of the rounding is kept if it
    lowers the AIC. Without this, the inner scores look like a Beta with a lighter tail than the one they came from.
    """
    from scipy.optimize import minimize
    from scipy.special import betaln

    n, start = len(z), fit_beta(z)
    means = np.array([log_probability(z).mean(), log_complement(z).mean()])
    depth = float(log_complement(last))
    observed = ones / (n + ones)

    def negative_likelihood(logs: Floats, *, atom: bool) -> float:
        a, b = np.exp(logs)
        tail = min(np.exp(b * depth - np.log(b) - betaln(a, b)), 1 - 1e-12)  # to first order in 1 - s
        share = max(observed, tail) if atom else tail
        inner = (a * means[0] + b * means[1]) - betaln(a, b) - np.log1p(-tail) + np.log1p(-share)
        return float(-n * inner - ones * np.log(max(share, 1e-300)))

    options = {"xatol": 1e-9, "fatol": 1e-9, "maxiter": 2000}
    logs = np.log([start.a, start.b])
    found = {
        atom: minimize(partial(negative_likelihood, atom=atom), logs, method="Nelder-Mead", options=options)
        for atom in (False, True)
    }
    atom = found[True].fun + 1 < found[False].fun
    a, b = (float(value) for value in np.exp(found[atom].x))
    tail = float(np.exp(b * depth - np.log(b) - betaln(a, b)))
    return BetaScores(a, b), max(0.0, (observed - tail) / (1 - tail)) if atom else 0.0


@dataclass(frozen=True)
class CurveFit:
    """One fitted curve: which terms were free, its negative log likelihood, and Akaike's criterion (lower is better).

    Examples
    --------
    >>> from calibrant.simulate import PAPER_WORLDS, fit_world
    >>> best = fit_world(PAPER_WORLDS["resnet110_c100"].sample(20_000)).best
    >>> best.name, round(best.curve.b1, 2)
    ('logflip_logflip_b0_b1', 0.28)
    """

    curve: Glm
    terms: Terms
    nll: float
    aic: float

    @property
    def name(self) -> str:
        """As the paper writes it, e.g. ``logit_logit_b0_b1``."""
        return f"{self.curve.family}_{self.terms}"

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return {"name": self.name, **asdict(self.curve), "nll": self.nll, "aic": self.aic}


def fit_curves(z: Floats, outcome: NDArray[np.int8]) -> tuple[CurveFit, ...]:
    """All twelve curves (four families; b0, b1 or both free), best first.

    >>> world_z = BetaScores(2, 1).draw(np.random.default_rng(0), 20_000)
    >>> hit = (np.random.default_rng(1).random(20_000) < Glm("log_log", -0.1, 1.5).at(world_z)).astype(np.int8)
    >>> fit_curves(world_z, hit)[0].name
    'log_log_b0_b1'
    """
    if len(outcome) == 0:
        message = "A calibration curve needs scores strictly between 0 and 1, but there are none."
        raise ValueError(message)
    if not 0 < outcome.mean() < 1:
        message = f"A calibration curve needs both outcomes, but all {len(outcome)} rows are {int(outcome[0])}."
        raise ValueError(message)
    fits = [_fit_curve(family, terms, z, outcome) for family in get_args(Family) for terms in get_args(Terms)]
    return tuple(sorted(fits, key=lambda fit: fit.aic))


@dataclass(frozen=True, eq=False)
class SmoothedCurve(Curve):
    """A curve given by its values at some log-odds, with straight lines between them.

    >>> SmoothedCurve(np.array([-1.0, 1.0]), np.array([0.2, 0.6])).at(np.array([-9.0, 0.0, 0.5]))
    array([0.2, 0.4, 0.5])
    """

    log_odds: Floats
    probability: Floats

    def at(self, z: Floats) -> Floats:
        """By interpolation; constant beyond the ends."""
        return np.interp(z, self.log_odds, self.probability)

    def __repr__(self) -> str:
        return f"<SmoothedCurve of {len(self.log_odds)} points>"


def fit_smoothed(z: Floats, outcome: NDArray[np.int8]) -> SmoothedCurve:
    """The curve of (finite) log-odds and outcomes without a parametric family: that of `recalibrate.Smoothed`.

    A weighted average of penalised logistic splines and an isotonic curve. It follows gaps that the sample can show and
    shrinks the others, so that its error tends to be too small where the curve is rough and rows are few.

    >>> z = np.linspace(-4, 4, 4000)
    >>> hit = (np.random.default_rng(0).random(4000) < np.where(z < 0, 0.2, 0.9)).astype(np.int8)
    >>> fit_smoothed(z, hit).at(np.array([-1.0, 1.0])).round(1)
    array([0.2, 0.9])
    """
    from calibrant.numerics.smoothers import LogitBins, SmootherAverage

    bins = LogitBins.of(z, np.ones(len(z)))
    ones = np.bincount(bins.index(z), outcome, len(bins)).astype(np.float64)
    none = np.zeros(len(bins))
    average = SmootherAverage.fit(bins, np.stack([ones, none]), np.stack([bins.mass - ones, none]), [1])
    return SmoothedCurve(bins.logit, average.predict(0, bins.logit))


def _fit_curve(family: Family, terms: Terms, z: Floats, outcome: NDArray[np.int8]) -> CurveFit:
    t = transform(family, z)
    if family.startswith("logit"):
        b0, b1, nll = _logistic(t, outcome == 1, terms)
    else:
        b0, b1, nll = _log_binomial(t, outcome == (1 if family.startswith("log_") else 0), terms)
    free = 2 if terms == "b0_b1" else 1
    return CurveFit(Glm(family, b0, b1), terms, nll, 2 * free + 2 * nll)


def _logistic(t: Floats, hit: NDArray[np.bool_], terms: Terms) -> tuple[float, float, float]:
    design = affine(t)[:, _columns(terms)]
    start = np.zeros(design.shape[1])
    fit = logistic_fit(design, weight=np.ones(len(t)), positive=hit.astype(np.float64), start=start, ridge=0.0)
    full = np.zeros(2)
    full[_columns(terms)] = fit.coefficients
    return float(full[0]), float(full[1]), fit.loss


def _log_binomial(t: Floats, hit: NDArray[np.bool_], terms: Terms) -> tuple[float, float, float]:
    """P(hit) = exp(b0 + b1 t), at most 1 at every t.

    Written as exp(-(u w + v (1 - w))) with w falling from 1 at the lowest t to 0 at the highest, the condition is
    u, v >= 0; the problem is convex.
    """
    low, high = float(t.min()), float(t.max())
    w = (high - t) / (high - low) if high > low else np.ones_like(t)
    design = {"b0": np.ones((len(t), 1)), "b1": -t[:, None], "b0_b1": np.stack([w, 1 - w], axis=1)}[terms]

    def negative_likelihood(beta: Floats) -> tuple[float, Floats, Floats]:
        depth = design @ beta
        missed = depth[~hit]
        if missed.min() <= 0:  # an event of probability 1 that did not happen
            return np.inf, np.zeros_like(beta), np.eye(len(beta))
        with np.errstate(over="ignore"):
            odds = 1 / np.expm1(missed)  # p / (1 - p) of rows without a hit
        value = float(depth[hit].sum() - np.log(-np.expm1(-missed)).sum())
        gradient = design[hit].sum(axis=0) - odds @ design[~hit]
        curvature = (design[~hit] * (odds * (1 + odds))[:, None]).T @ design[~hit]
        return value, gradient, curvature

    beta = minimum(negative_likelihood, np.full(design.shape[1], 0.5), low=0.0)
    nll = negative_likelihood(beta)[0]
    if terms == "b0":
        return -float(beta[0]), 0.0, nll
    if terms == "b1":
        return 0.0, float(beta[0]), nll
    slope = (beta[0] - beta[1]) / (high - low) if high > low else 0.0
    return float(-beta[1] - slope * high), float(slope), nll


def minimum(function: _Second, start: Floats, *, low: float = -np.inf) -> Floats:
    """Where a convex function with parameters of at least `low` is least: Newton steps, halved until they help."""
    at = np.maximum(start, low)
    value, gradient, hessian = function(at)
    for _ in range(200):
        free = (at > low) | (gradient < 0)
        if np.all(np.abs(gradient[free]) <= 1e-9 * (1 + abs(value))) or np.abs(at).max() > _STEEPEST:
            break
        step = np.zeros_like(at)
        damped = hessian[np.ix_(free, free)] + 1e-12 * np.diag(np.diag(hessian)[free] + 1e-300)
        step[free] = -np.linalg.solve(damped, gradient[free])
        for halving in range(60):
            trial = np.maximum(at + step * 0.5**halving, low)
            reached = function(trial)
            if reached[0] < value:
                break
        else:
            break
        at, (value, gradient, hessian) = trial, reached
    return at


def _columns(terms: Terms) -> list[int]:
    return {"b0": [0], "b1": [1], "b0_b1": [0, 1]}[terms]
