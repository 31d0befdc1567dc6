"""A Bayesian average of corrections of the log odds, from none to affine and wavy ones.

Each family of corrections has a prior centred at no correction. Families and their members are weighted by a prior and
their evidence, so that little data changes little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain, islice
from typing import Self

import numpy as np

from calibrant.numerics.arrays import Floats, expit, softmax
from calibrant.numerics.logistic.stacked import logistic_fits, unfitted
from calibrant.numerics.smoothers import matern, nystrom_root
from calibrant.recalibrate.base import BinaryRecalibrator, Sample
from calibrant.recalibrate.expressions import Expression, ScoreExpressions, kept_from_certainty
from calibrant.recalibrate.expressions import expit as expit_expression
from calibrant.recalibrate.inputs import BinomialCells, Scores, pooled_log_odds
from calibrant.recalibrate.model_averaging import certainty_floor

#: Log odds are cut at this size. Derived: those of 1 - 1e-12, beyond which a float64 loses digits of 1 - p.
LARGEST = 27.6
#: Rows are pooled into at most this many groups of neighbouring log odds. Test:
#: tests/recalibrate/test_bayesian_average.py::test_maps_fitted_with_these_constants.
_GROUPS = 200

#: The factor of a correction that reverses the order of the scores: models that are wrong in this way are rare, small
#: samples that look so are not. Test:
#: tests/recalibrate/test_bayesian_average.py::test_maps_fitted_with_these_constants.
_REVERSED = 0.1

#: The power of the marginal likelihoods. Members are fitted by their modes, which few rows flatter: below 1, a sample
#: that looks wrong by chance does less harm, and no correction needs less prior weight to be as safe. Test:
#: tests/recalibrate/test_bayesian_average.py::test_maps_fitted_with_these_constants.
_POWER = 0.7

#: The least weight of a member that is used. Speed: most members have none; each moves probabilities by less than 1e-4
#: times their spread.
_MIN_WEIGHT = 1e-4

#: How far the lines between the points of the map are from the average, in log odds. Derived: a log loss of less than
#: 1e-7.
_TOLERANCE = 1e-3

#: Maps that are fitted at once. Speed: most of the time of a single fit is that of calls; no result depends on it.
_TOGETHER = 16

#: Rising log odds, the weight of the rows there, and of those with the outcome 1.
_Pooled = tuple[Floats, Floats, Floats]


class BayesianAverage(BinaryRecalibrator):
    r"""Bayesian average of corrections of the log odds, from none through affine to wavy ones.

    .. math:: q = \sum_m w_m \operatorname{expit}(x + \Phi_m(x)\, \hat b_m), \qquad x = \operatorname{logit} p,
              \qquad b_m \sim N(0, S_m), \qquad w_m \propto \pi_m \Bigl(\int L(b)\, dN(b; 0, S_m)\Bigr)^{0.7}

    Every correction has a prior centred at zero, is fitted by its mode, and counts by its prior weight times its
    marginal likelihood (Laplace's approximation), to a power below 1 because modes fit the sample too well. Without
    data the map is the identity, and it departs from it only as far as the rows support that: there is nothing to tune,
    and few rows cannot do much harm.

    **Never certain without evidence.** n rows do not move a probability closer to 0 or 1 than :math:`\tfrac12/(n+1)`,
    unless it was predicted there already: :math:`\min(p, \tfrac{1}{2(n+1)}) \le q \le \max(p, 1 - \tfrac{1}{2(n+1)})`.
    **Nor uncertain without evidence.** Scores closer to 0 or 1 than n rows can resolve are moved away from there only
    if one of them was wrong, or if they are certain to within 1e-12, which is rounding.

    Level and slope are measured at the centre of information, where a change of one does not change the other, in units
    of the spread of the log odds; beyond the scores that were fitted, by more than one such unit, corrections are
    constant.

    Parameters
    ----------
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    members_ : list of str
        What is averaged.
    member_weight_ : array
        Posterior probability of each.

    References
    ----------
    MacKay (1992), The Evidence Framework Applied to Classification Networks. Hoeting, Madigan, Raftery, Volinsky
    (1999), Bayesian Model Averaging. Grünwald, van Ommen (2017), Inconsistency of Bayesian Inference for Misspecified
    Linear Models, and a Proposal for Repairing It (powers of the likelihood below 1).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> fitted = BayesianAverage().fit(p, rng.random(5000) < p**2)
    >>> bool(abs(fitted.predict_proba([0.5])[0, 1] - 0.25) < 0.02)
    True

    Twenty rows without an event say little about a score of 0.3:

    >>> few = BayesianAverage().fit(np.linspace(0.005, 0.015, 20), np.zeros(20), classes=[0, 1])
    >>> bool(0.2 < few.predict_proba([0.3])[0, 1] < 0.3)
    True
    """

    def _fit_cells(self, cells: BinomialCells) -> None:
        _fit_pooled([(self, _pooled(cells))])

    @classmethod
    def _fit_each(cls, samples: Iterable[tuple[Self, Sample]]) -> Iterator[Self]:
        rest = iter(samples)
        while some := [(inner, _pooled(BinomialCells.of_rows(*given))) for inner, given in islice(rest, _TOGETHER)]:
            _fit_pooled(some)
            yield from (inner for inner, _ in some)

    def _average(self, corrections: Corrections, families: list[Family], fits: list[tuple[Floats, Floats]]) -> None:
        """Set the fitted attributes from the fits of all families."""
        scores = []
        for family, (coefficients, evidence) in zip(families, fits, strict=True):
            turned = np.where(family.slope(coefficients) < 0, np.log(_REVERSED), 0.0)
            scores.append(np.log(family.weight) + _POWER * evidence + turned)
        self.members_ = [name for family in families for name in family.members]
        self.member_weight_ = softmax(np.concatenate(scores)[None])[0]
        fitted = [coefficients for coefficients, _ in fits]
        average = partial(_averaged, corrections, coefficients=fitted, member_weight=self.member_weight_)
        self.log_odds_, self.corrected_ = broken_line(average, corrections.corners, tolerance=_TOLERANCE)

    def _map(self, scores: Scores) -> Floats:
        x = np.clip(scores.log_odds, -LARGEST, LARGEST)
        p, floor = expit(x), certainty_floor(self.weight_)
        q = expit(np.interp(x, self.log_odds_, self.corrected_))
        return np.clip(q, np.minimum(p, floor), np.maximum(p, 1 - floor))

    def _map_expression(self, scores: ScoreExpressions) -> Expression:
        corrected = scores.interpolated(self.log_odds_, self.corrected_, of="log_odds")
        q = expit_expression(corrected, largest=float(np.abs(self.corrected_).max()))
        p = expit_expression(scores.log_odds_within(-LARGEST, LARGEST), largest=LARGEST)
        return kept_from_certainty(q, p, certainty_floor(self.weight_))


def _pooled(cells: BinomialCells) -> _Pooled:
    x = np.clip(cells.log_odds, -LARGEST, LARGEST)
    return pooled_log_odds(x, cells.weight, cells.positive, groups=_GROUPS)


def _fit_pooled(maps: Sequence[tuple[BayesianAverage, _Pooled]]) -> None:
    """Fit each map to its own log odds; all at once, because most of the time of a single fit is that of calls."""
    corrections = [Corrections.of(*pooled) for _, pooled in maps]
    families = [list(unit.families(unit.scores)) for unit in corrections]
    outcomes = [(positive, weight - positive) for _, (_, weight, positive) in maps]
    seen = [each for own, each in zip(families, outcomes, strict=True) for _ in own]
    fits = iter(fit_families(list(chain.from_iterable(families)), seen))
    for (inner, _), unit, own in zip(maps, corrections, families, strict=True):
        inner._average(unit, own, list(islice(fits, len(own))))


def _averaged(corrections: Corrections, x: Floats, coefficients: list[Floats], member_weight: Floats) -> Floats:
    """Log odds of the mean probability of the members that count."""
    logits, first = [], 0
    used = member_weight > _MIN_WEIGHT
    for family, fitted in zip(corrections.families(x), coefficients, strict=True):
        some, first = used[first : first + len(fitted)], first + len(fitted)
        if some.any():
            logits.append(family.offset + fitted[some] @ family.basis.T)
    z, share = np.concatenate(logits), member_weight[used]
    return np.asarray(np.log(share @ expit(z)) - np.log(share @ expit(-z)))


#: Prior standard deviations of level and slope, in units of the spread of the log odds, and their prior weights. Those
#: of Platt's maps fitted to 76 real sets of predictions have the quartiles .2, .6, 1.2 and .4, .7, 1.1. Slopes can be
#: far off (boosted trees need 8); a level that far off is mostly a small sample with too many events or too few. Test:
#: tests/recalibrate/test_bayesian_average.py::test_maps_fitted_with_these_constants.
_LEVELS, _SCALES, _SCALE_WEIGHTS = (0.3, 0.6, 2.0, 2.0), (0.3, 1.0, 4.0, 16.0), (0.40, 0.46, 0.12, 0.02)

#: Prior weights of no correction, of a level or a slope alone, an affine correction, one with a bend, and wavy ones.
#: Corrections of one parameter are found by few rows, at half the harm that affine ones do to calibrated predictions.
#: Test: tests/recalibrate/test_bayesian_average.py::test_maps_fitted_with_these_constants.
_IDENTITY, _LEVEL, _SLOPE, _AFFINE, _BENT, _WAVY = 0.50, 0.03, 0.26, 0.12, 0.04, 0.05

#: Prior standard deviations of a level alone, and of the slope of the log odds about 0, less 1, with their weights.
#: Test: tests/recalibrate/test_bayesian_average.py::test_maps_fitted_with_these_constants.
_LEVEL_SCALES, _LEVEL_WEIGHTS = (0.3, 1.0), (0.5, 0.5)
_SLOPE_SCALES, _SLOPE_WEIGHTS = (0.3, 0.8), (0.35, 0.65)

#: Wavy corrections need this many rows and distinct scores; their length scales and prior standard deviations. Test:
#: tests/recalibrate/test_bayesian_average.py::test_maps_fitted_with_these_constants.
_WAVY_ROWS, _WAVY_SCORES = 50, 8
_LENGTHS, _WAVE_SCALES = (0.4, 0.15), (0.15, 0.4, 1.0)

#: Prior weight of log odds that are cut where n rows cannot tell a probability from 0 or 1, at log 4n, and the same
#: where some scores are certain to within 1e-6: see `_cuts`. Test:
#: tests/recalibrate/test_bayesian_average.py::test_maps_fitted_with_these_constants.
_CUT, _CUT_IF_CERTAIN, _CERTAIN = 0.4, 0.6, 13.8

#: The smallest spread of log odds that corrections are measured in, and the smallest step between corners. Test:
#: tests/recalibrate/test_bayesian_average.py::test_maps_fitted_with_these_constants.
_SMALLEST_SPREAD, _SMALLEST_STEP = 0.05, 1e-4

#: Part of all rows that differences of sums of weights may miss zero by. Derived: the rounding of sums of 1e4 weights.
_ROUNDING = 1e-12

#: Prior standard deviations of level, slope and bend. Derived: from those above, half as much for the bend.
_SDS = np.stack([_LEVELS, _SCALES, np.array(_SCALES) / 2], axis=1)

#: Precisions of the coefficients, a member per line, and prior weights of the members of each family but waves.
_PRIORS = {
    "identity": (np.empty((1, 0)), np.array([_IDENTITY])),
    "level": (1 / np.array(_LEVEL_SCALES)[:, None] ** 2, _LEVEL * np.array(_LEVEL_WEIGHTS)),
    "slope": (1 / np.array(_SLOPE_SCALES)[:, None] ** 2, _SLOPE * np.array(_SLOPE_WEIGHTS)),
    "affine": (1 / _SDS[:, :2] ** 2, _AFFINE * np.array(_SCALE_WEIGHTS)),
    "bent": (1 / _SDS**2, _BENT * np.array(_SCALE_WEIGHTS)),
}


@dataclass(frozen=True, eq=False)
class Family:
    """Members that share an offset and a basis: their prior standard deviations, precisions and weights."""

    #: Families of the same name differ in offset and basis only; the note says what the offset is.
    name: str
    note: str
    offset: Floats
    #: Makes the basis, (m, p), which not everyone needs.
    columns: Callable[[], Floats]
    scales: tuple[float, ...]
    precision: Floats
    weight: Floats
    slope_unit: float = np.inf

    @cached_property
    def basis(self) -> Floats:
        """The functions of the log odds whose coefficients are fitted."""
        return self.columns()

    @property
    def members(self) -> list[str]:
        """Their names."""
        return [self.name + self.note + (f", prior sd {scale:g}" if scale else "") for scale in self.scales]

    def slope(self, coefficients: Floats) -> Floats:
        """Slope of the corrected log odds in the predicted ones, of each member at the centre."""
        if self.slope_unit == np.inf:
            return np.ones(len(coefficients))
        return np.asarray(1 + coefficients[:, min(1, coefficients.shape[1] - 1)] / self.slope_unit)


@dataclass(frozen=True, eq=False)
class Corrections:
    """The families, in units that were learnt from log odds (rising, with their mid-ranks) and their weights."""

    scores: Floats
    ranks: Floats
    rows: float
    #: Where log odds are cut, below and above; at `LARGEST` none are.
    cuts: tuple[float, float]
    #: Of the log odds, weighted by information, as they are and (if there are any beyond the cuts) cut.
    centres: Floats
    spreads: Floats

    @classmethod
    def of(cls, scores: Floats, weight: Floats, positive: Floats) -> Corrections:
        """From pooled log odds, rising, the rows they stand for, and those of the outcome 1 among them."""
        total = float(weight.sum())
        cuts = _cuts(scores, weight, positive)
        found = [_centre_and_spread(x, weight) for x in _offsets(scores, cuts)]
        centres, spreads = np.array(found).T
        return cls(scores, (np.cumsum(weight) - weight / 2) / total, total, cuts, centres, spreads)

    @property
    def corners(self) -> Floats:
        """Log odds where corrections bend, the ends, and some between: where a broken line may begin."""
        low, high = self.scores[0], self.scores[-1]
        spread = self.spreads[0]
        inside = np.linspace(low - spread, high + spread, 9)
        quantiles = np.interp(np.linspace(0, 1, 9), self.ranks, self.scores)
        ends = [-LARGEST, *self.cuts, LARGEST, low, high]
        found = np.unique(np.clip(np.concatenate([ends, inside, quantiles]), -LARGEST, LARGEST))
        return np.append(found[:-1][np.diff(found) > _SMALLEST_STEP], found[-1])

    def families(self, x: Floats) -> Iterator[Family]:
        """What is averaged, with the bases at the log odds x."""
        offsets, fitted = _offsets(x, self.cuts), _offsets(self.scores, self.cuts)
        cut = _CUT_IF_CERTAIN if np.abs(self.scores).max() > _CERTAIN else _CUT
        shares = (1.0,) if len(offsets) == 1 else (1 - cut, cut)
        for k, share in enumerate(shares):
            note = "" if k == 0 else ", log odds cut at {:.1f} and {:.1f}".format(*self.cuts)
            yield from self._of_offset(offsets[k], fitted[k], (self.centres[k], self.spreads[k]), share, note)

    def _of_offset(
        self, x: Floats, fitted: Floats, unit: tuple[float, float], share: float, note: str
    ) -> Iterator[Family]:
        """No correction, affine, bent and wavy ones of the log odds x."""
        (centre, spread), low, high = unit, fitted[0], fitted[-1]
        inside = np.clip(x, low - spread, high + spread)
        u = (inside - centre) / spread
        bent = np.stack([np.ones_like(u), u, np.sqrt(1 + u * u) - 1], axis=1)
        for name, columns, scales, slope_unit in (
            ("identity", bent[:, :0], (0.0,), np.inf),
            ("level", bent[:, :1], _LEVEL_SCALES, np.inf),
            ("slope", inside[:, None], _SLOPE_SCALES, 1.0),
            ("affine", bent[:, :2], _SCALES, spread),
            ("bent", bent, _SCALES, spread),
        ):
            precision, weight = _PRIORS[name]
            yield Family(name, note, x, partial(np.asarray, columns), scales, precision, share * weight, slope_unit)
        if self.rows < _WAVY_ROWS or len(self.scores) < _WAVY_SCORES:
            return
        place = cache(partial(self._place, x, inside, fitted))
        for length in _LENGTHS:
            name, waves = f"waves of length {length:g}", partial(_wavy, bent, place, length)
            precision, weight = _wavy_prior(length)
            yield Family(name, note, x, waves, _WAVE_SCALES, precision, share * weight, spread)

    def _place(self, x: Floats, inside: Floats, fitted: Floats) -> Floats:
        """Where the log odds stand between the ends, half by rank and half by value, in [0, 1]."""
        low, high = fitted[0], fitted[-1]
        rank = np.interp(inside, fitted, self.ranks)
        return np.asarray(0.5 * rank + 0.5 * (np.clip(x, low, high) - low) / max(high - low, 1e-9))


def fit_families(families: Sequence[Family], outcomes: Sequence[tuple[Floats, Floats]]) -> list[tuple[Floats, Floats]]:
    """Coefficients (members, p) and evidence of each family for its own ones and zeros; those of one name at once."""
    found: dict[int, tuple[Floats, Floats]] = {}
    for name in dict.fromkeys(family.name for family in families):
        alike = [i for i, family in enumerate(families) if family.name == name]
        offset = _stacked([families[i].offset for i in alike])
        positive, negative = (_stacked([outcomes[i][side] for i in alike]) for side in (0, 1))
        if families[alike[0]].precision.size:
            basis = _stacked([families[i].basis for i in alike])
            fits = [logistic_fits(basis, offset, positive, negative, families[alike[0]].precision)]
        else:
            fits = [unfitted(*one) for one in zip(offset, positive[:, None], negative[:, None], strict=True)]
        coefficients, evidence = (
            np.concatenate([getattr(fit, part) for fit in fits]) for part in ("coefficients", "evidence")
        )
        found.update(zip(alike, zip(coefficients, evidence, strict=True), strict=True))
    return [found[i] for i in range(len(families))]


def _stacked(parts: Sequence[Floats]) -> Floats:
    """Arrays that differ in length only, one below the other; the shorter ones end in zeros, which count nothing."""
    whole = np.zeros((len(parts), max(map(len, parts)), *parts[0].shape[1:]))
    for place, part in zip(whole, parts, strict=True):
        place[: len(part)] = part
    return whole


def _wavy(trend: Floats, place: Callable[[], Floats], length: float) -> Floats:
    """The trend, and waves that are independent and of unit variance a priori."""
    knots, root = _knots(length)
    return np.hstack([trend, matern(place()[:, None] - knots, length) @ root])


@cache
def _wavy_prior(length: float) -> tuple[Floats, Floats]:
    """Precisions of the coefficients, a member per line, and prior weights of waves of this length."""
    trend, waves = np.tile([1.0, 1.0, 4.0], (len(_WAVE_SCALES), 1)), np.ones(len(_knots(length)[0]))
    precision = np.hstack([trend, waves / np.array(_WAVE_SCALES)[:, None] ** 2])
    return precision, np.full(len(_WAVE_SCALES), _WAVY / (len(_LENGTHS) * len(_WAVE_SCALES)))


@cache
def _knots(length: float) -> tuple[Floats, Floats]:
    """The knots of waves of this length, and what makes the waves of independent coefficients out of kernels there."""
    knots = np.linspace(0, 1, max(6, round(3 / length)))
    return knots, np.asarray(np.linalg.inv(nystrom_root(knots, matern, length)).T, np.float64)


def _cuts(x: Floats, weight: Floats, positive: Floats) -> tuple[float, float]:
    """Where log odds are cut, below and above.

    At log 4n, which n rows cannot tell from certainty, if one of the scores beyond was wrong. If none was, that is no
    evidence: n rows without an event must not raise the risk of a rare one. Only scores that are certain to within
    1e-12, which is rounding, are then cut, to the largest of the others.
    """
    rows = float(weight.sum())
    limit = min(float(np.log(4 * max(rows, 1.0))), LARGEST)
    wrong = np.where(x > 0, weight - positive, positive)
    if (wrong[np.abs(x) > limit] > _ROUNDING * rows).any():
        return -limit, limit
    low, high = (
        float(side[side < LARGEST].max(initial=limit)) if (side >= LARGEST).any() else LARGEST for side in (-x, x)
    )
    return -low, high


def _offsets(x: Floats, cuts: tuple[float, float]) -> list[Floats]:
    """The log odds as they are and, if some are to be, cut."""
    return [x] if cuts == (-LARGEST, LARGEST) else [x, np.clip(x, *cuts)]


def _centre_and_spread(x: Floats, weight: Floats) -> tuple[float, float]:
    """Mean and standard deviation of log odds, weighted by information."""
    p = expit(x)
    information = weight * p * (1 - p)
    centre = float(information @ x / information.sum())
    spread = float(np.sqrt(information @ (x - centre) ** 2 / information.sum()))
    return centre, max(spread, _SMALLEST_SPREAD)


#: Into how many parts an interval is divided at once, and how often. Derived: each time four halvings are tried and
#: their quarters looked at, which takes 32 parts; six times are 24 halvings, to 6e-8 of the interval.
_PARTS, _ROUNDS = 32, 6


def broken_line(function: Callable[[Floats], Floats], points: Floats, *, tolerance: float) -> tuple[Floats, Floats]:
    """Points, and the values there, between which straight lines are close to a continuous function.

    Intervals between the given points, the ends and the corners of the function, are halved until a line misses it at
    their quarters by at most `tolerance`.
    """
    x = np.asarray(points, dtype=np.float64)
    places = _divided(x[:-1], x[1:])
    values = function(np.append(places[:-1], x[-1]))
    within = values[:-1].reshape(_PARTS, -1)
    y = np.append(within[0], values[-1])
    middles, ends = _halved(np.stack([places, np.vstack([within, y[1:]])]), tolerance)
    found = [np.stack([x, y]), middles]
    for _ in range(_ROUNDS - 1):
        if not ends.size:
            break
        (left, right), (low, high) = ends
        places = _divided(left, right)
        within = function(places[1:-1].ravel()).reshape(_PARTS - 1, -1)
        middles, ends = _halved(np.stack([places, np.vstack([low, within, high])]), tolerance)
        found.append(middles)
    x, y = np.concatenate(found, axis=1)
    order = np.argsort(x)
    return x[order], y[order]


def _divided(left: Floats, right: Floats) -> Floats:
    """Points at equal distances from the left end of each interval to the right one, (parts + 1, m)."""
    places = left + np.linspace(0, 1, _PARTS + 1)[:, None] * (right - left)
    places[-1] = right
    return np.asarray(places)


def _halved(points: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """Points (2, middles) at which intervals (2, parts + 1, m) are halved, and the ends (2, 2, m) that are left open.

    An interval of four parts is the last whose quarters are known. One call of the function for several halvings is
    what saves time: most of its cost does not depend on the number of points.
    """
    y, width, middles = points[1], points.shape[1] - 1, []
    is_open = np.ones((1, points.shape[2]), dtype=bool)
    while width >= 4:
        start = np.arange(0, points.shape[1] - 1, width)
        rise = y[start + width] - y[start]
        gaps = [np.abs(y[start + k * width // 4] - y[start] - k / 4 * rise) for k in (1, 2, 3)]
        far = is_open & (np.max(gaps, axis=0) > tolerance)
        middles.append(points[:, start + width // 2][:, far])
        is_open, width = np.repeat(far, 2, axis=0), width // 2
    start = np.arange(0, points.shape[1] - 1, width)
    ends = np.stack([points[:, start][:, is_open], points[:, start + width][:, is_open]], axis=1)
    return np.concatenate(middles, axis=1), ends
