"""A world fitted to predictions: Beta scores and a calibration curve by maximum likelihood, and whether they fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, digamma, polygamma

from calibrant.data import validation
from calibrant.data.predictions import Binary, Multiclass, Predictions, binary
from calibrant.data.validation import fail
from calibrant.estimators.binned import ece
from calibrant.inference.multiscale import MultiScale
from calibrant.numerics.arrays import Floats, log_complement, log_probability
from calibrant.numerics.arrays import log_odds as odds_of
from calibrant.numerics.logistic.binary import affine, logistic_fit
from calibrant.results.estimate import Significance, text_table
from calibrant.results.target import Estimator, name_of
from calibrant.simulate.estimation_bias import estimates
from calibrant.simulate.score_distributions import BetaScores, Scores, WithAtoms
from calibrant.simulate.worlds import Curve, Family, Glm, WithEnds, World, transform
from calibrant.table.binning import Distinct, EqualWidth
from calibrant.table.bintable import BinTable

#: Where other scores are closer to 1 than this, scores of 1 may have been rounded, in single or double precision.
#: Test: tests/simulate/test_world_fit.py::test_scores_of_1_are_rounded_ones_where_others_are_next_to_1.
_ROUNDING = 1e-6

#: A curve that is rejected at this level is not used.
#: Test: tests/simulate/test_world_fit.py::test_a_curve_rejected_at_five_percent_does_not_fit.
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
        from calibrant.plot.validation import goodness_points

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
        lines = [["curve", "AIC", "b0", "b1"]]
        for fit in self.curves:
            free = [f"{getattr(fit.curve, term):.3f}" if term in fit.terms else "" for term in ("b0", "b1")]
            lines.append([fit.name, f"{fit.aic:.2f}", *free])
        verdict = "the first is used" if self.fits else "none of them fits, a smoothed curve is used"
        end = f"goodness of fit: p = {self.test.p_value:.3g}; {verdict}"
        return "\n".join([f"scores  {self.world.scores!r}", *text_table(lines), end])


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
        Unweighted. For multiclass data take ``data.top_label()``.
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
    task.require_same_rows(log_odds=log_odds)
    z = odds_of(task.y_prob)
    if log_odds is not None:
        z = np.asarray(validation.as_array("log_odds", log_odds), dtype=np.float64)
        if z.shape != (len(task),) or np.isnan(z).any():
            shape, missing = z.shape, np.isnan(z).sum()
            fail(f"log_odds must be {len(task)} numbers, one per row, got shape {shape} with {missing} NaN.")
    inside = np.isfinite(z)
    curves = fit_curves(z[inside], task.y_true[inside])
    scores = _fitted_scores(z, last=_last_below_one(task.y_prob) if log_odds is None else np.inf)
    ends = {name: task.y_true[z == end] for name, end in (("at_zero", -np.inf), ("at_one", np.inf))}
    rates = {name: float(outcomes.mean()) if len(outcomes) else None for name, outcomes in ends.items()}

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
        fail("A world has one score per row: fit data.top_label() or data.one_vs_rest()[label].", TypeError)
    if not isinstance(task, Binary) or task.weight is not None:
        what = "weighted predictions" if isinstance(task, Binary) else type(task).__name__
        fail(f"A world is fitted to unweighted Binary predictions, got {what}.", TypeError)
    return task


Terms = Literal["b0", "b1", "b0_b1"]

#: Value, gradient and Hessian of a convex function.
_Second = Callable[[Floats], tuple[float, Floats, Floats]]


def fit_beta(z: Floats) -> BetaScores:
    r"""The Beta distribution of scores with these (finite) log-odds, by maximum likelihood.

    .. math:: \max_{a,b} \; a \, \overline{\log s} + b \, \overline{\log(1-s)} - \log B(a, b)

    Log-odds keep log(1 - s) of scores that are 1 in single or double precision, which published fits lost.

    >>> fit_beta(BetaScores(2.0, 0.1).draw(np.random.default_rng(0), 100_000))
    BetaScores(a=1.992..., b=0.1002...)
    """
    if not len(z) or not np.all(np.isfinite(z)) or np.ptp(z) == 0:
        fail("A Beta distribution needs at least two different scores inside (0, 1).", ValueError)
    means = np.array([log_probability(z).mean(), log_complement(z).mean()])

    def negative_likelihood(parameters: Floats) -> tuple[float, Floats, Floats]:
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

    whose best P is the observed share, or T where that is more. An atom is kept if it lowers the AIC.
    """
    from scipy.optimize import minimize

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
        fail("A calibration curve needs scores strictly between 0 and 1, but there are none.", ValueError)
    if not 0 < outcome.mean() < 1:
        fail(f"A calibration curve needs both outcomes, but all {len(outcome)} rows are {int(outcome[0])}.", ValueError)
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
    return CurveFit(Glm(family, b0, b1), terms, nll, (4 if terms == "b0_b1" else 2) + 2 * nll)


def _logistic(t: Floats, hit: NDArray[np.bool_], terms: Terms) -> tuple[float, float, float]:
    free, full = [term in terms for term in ("b0", "b1")], np.zeros(2)
    design = affine(t)[:, free]
    start = np.zeros(design.shape[1])
    fit = logistic_fit(design, weight=np.ones(len(t)), positive=hit.astype(np.float64), start=start, ridge=0.0)
    full[free] = fit.coefficients
    return float(full[0]), float(full[1]), fit.loss


def _log_binomial(t: Floats, hit: NDArray[np.bool_], terms: Terms) -> tuple[float, float, float]:
    """P(hit) = exp(b0 + b1 t) <= 1: convex as exp(-(u w + v (1 - w))), u, v >= 0, w falling from 1 to 0."""
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
        if np.all(np.abs(gradient[free]) <= 1e-9 * (1 + abs(value))):
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
