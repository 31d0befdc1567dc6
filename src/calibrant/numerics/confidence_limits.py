"""Confidence limits of binomial shares, weighted sums of them, rare events and bounded means; tails of event counts.

None of them rests on a normal approximation, which fails for few events and for shares near 0 or 1. The lower bounds of
bounded means hold for any number of independent rows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, betaln, gammainc, gammaincinv, ndtr, ndtri, stdtr

from calibrant.numerics.arrays import Floats, expit, log_odds

#: The last step of Newton's method is the one from where the logarithm of the tail is off by at most the first, since
#: it squares what is off; or one that is below the rounding of a share, or below any share that matters. Derived: the
#: square of 1e-7, the rounding of a float64, and less than one event in 1e18 rows.
NEAR, SHARE_ROUNDING, NOTHING = 1e-7, 1e-15, 1e-18


def mid_p_interval(count: ArrayLike, size: ArrayLike, level: float) -> tuple[Floats, Floats]:
    r"""Both ends of the mid-P interval of a share, element by element.

    The low end solves

    .. math:: P_\pi(X > x) + \tfrac12 P_\pi(X = x) = \frac{1 - \text{level}}{2}, \qquad X \sim \mathrm{Bin}(n, \pi),

    the high end the same of the other tail; the low end is 0 for x = 0 and the high end 1 for x = n. Both tails are
    means of two incomplete beta functions, which are defined for fractional x and n too: an effective number of rows
    need not be whole (Lancaster 1961, Significance Tests in Discrete Distributions).
    """
    x, n = np.broadcast_arrays(np.asarray(count, dtype=np.float64), np.asarray(size, dtype=np.float64))
    tail = (1 - level) / 2
    return _low_end(x, n, tail), 1 - _low_end(n - x, n, tail)


def _low_end(x: Floats, n: Floats, tail: float) -> Floats:
    """Newton's method for the logarithm of the tail in that of the share, of which it is nearly a line."""
    some = x > 0
    x = np.where(some, x, 1.0)
    above = np.maximum(n - x, 0.0)
    # Between the ends at which either tail alone has this probability.
    low = betaincinv(x, above + 1, tail)
    high = np.where(above > 0, betaincinv(x + 1, np.where(above > 0, above, 1.0), tail), 1.0)
    at, constant = np.sqrt(low * high), -np.log(x) - betaln(x, above + 1)
    for _ in range(60):
        with np.errstate(divide="ignore", invalid="ignore"):
            others = np.where(above > 0, above * np.log1p(-at), 0.0)
            equal = np.exp(constant + x * np.log(at) + others)
            found = betainc(x, above + 1, at) - equal / 2
            slope = equal / 2 * (x + np.where(above > 0, above * at / (1 - at), 0.0)) / found
            missing = np.log(tail / found)
            following = at * np.exp(missing / slope)
        too_high = found > tail
        low, high = np.where(too_high, low, at), np.where(too_high, at, high)
        following = np.where((low <= following) & (following <= high), following, (low + high) / 2)
        moved, at = np.abs(following - at), following
        if ((np.abs(missing) <= NEAR) | (moved <= SHARE_ROUNDING * at + NOTHING)).all():
            break
    return np.where(some, at, 0.0)


def mid_p_value(count: ArrayLike, size: ArrayLike, chance: float) -> Floats:
    r"""Two-sided mid-P p-value of a count: the smallest 1 - level at which `mid_p_interval` excludes the chance.

    .. math:: 2 \min\bigl(P(X > x) + \tfrac12 P(X = x),\; P(X < x) + \tfrac12 P(X = x)\bigr), \qquad
              X \sim \mathrm{Bin}(n, \pi)

    at most 1. Equal tails: no event where five were expected is not weighed against ten events.
    """
    x, n = np.broadcast_arrays(np.asarray(count, dtype=np.float64), np.asarray(size, dtype=np.float64))
    above = x > n * chance
    tail = _mid_tail(np.where(above, x, n - x), n, np.where(above, chance, 1 - chance))
    return np.asarray(2 * np.minimum(tail, 1 - tail))  # both tails add up to 1


def _mid_tail(x: Floats, n: Floats, chance: Floats) -> Floats:
    """P(X > x) + P(X = x) / 2."""
    x, above = np.maximum(x, 0.0), np.maximum(n - x, 0.0)
    reached = np.where(x > 0, betainc(np.where(x > 0, x, 1.0), above + 1, chance), 1.0)
    passed = np.where(above > 0, betainc(x + 1, np.where(above > 0, above, 1.0), chance), 0.0)
    return np.asarray((reached + passed) / 2)


def combined_share_limits(share: Floats, factor: Floats, size: Floats, level: float) -> tuple[Floats, Floats]:
    r"""Both ends of an interval of :math:`\sum_j c_j \pi_j`, with π shares of exclusive kinds of rows.

    The distances of the ends from the estimate are those of the mid-P ends of each share, combined by the method of
    variance estimates recovery (MOVER) with the correlations of multinomial shares:

    .. math:: \Delta^2 = \sum_{jk} \rho_{jk} \operatorname{sign}(c_j c_k)\, d_j d_k, \qquad
              \rho_{jk} = -\sqrt{\frac{\pi_j \pi_k}{(1 - \pi_j)(1 - \pi_k)}}, \quad
              d_j = |c_j| \cdot |\text{end}_j - \pi_j|

    where for the upper end of the sum the upper end of a share counts if its factor is positive, else the lower (Zou,
    Donner 2008, Construction of confidence limits about effect measures). Shares and factors are (kinds, points), and
    `size`, (points,), the numbers of independent rows.
    """
    low, high = mid_p_interval(share * size, size, level)
    value = (factor * share).sum(axis=0)
    up = np.abs(factor) * np.where(factor > 0, high - share, share - low)
    down = np.abs(factor) * np.where(factor > 0, share - low, high - share)
    return value - _recovered(down, share, factor), value + _recovered(up, share, factor)


def _recovered(distance: Floats, share: Floats, factor: Floats) -> Floats:
    odds = np.sqrt(np.divide(share, 1 - share, out=np.zeros_like(share), where=share < 1))
    signed = np.sign(factor) * odds * distance
    # All pairs of unlike kinds, of which each square is taken out again.
    pairs = signed.sum(axis=0) ** 2 - (signed**2).sum(axis=0)
    return np.sqrt(np.maximum((distance**2).sum(axis=0) - pairs, 0.0))


#: Variances of less, by the square of one part, are rounding. Derived: that of sums of up to 1e4 squares.
ROUNDING = 1e-12


def gamma_interval(value: float, variance: float, step: float, level: float) -> tuple[float, float]:
    r"""Both ends of an interval of a sum of positive parts, of which few may have been seen.

    The low end is a quantile of the gamma distribution with the mean v and the variance V of the sum. The high end is
    one of an even mixture of that and of the same with one part more, of size s,

    .. math:: \tfrac12\,\Gamma(v,\ V) + \tfrac12\,\Gamma(v + s,\ V + s^2).

    For parts of one size these are the exact low end and the mid-P high end of a Poisson count; a low end by mid-P is
    above the truth too often where parts are unlike. It is 0 where nothing was seen. A sum that does not vary, as where
    every row has the same loss, is taken to vary by one part (Fay, Feuer 1997, Confidence intervals for directly
    standardized rates: a method based on the gamma distribution; Fay, Kim 2017, the same using mid-p gamma intervals).
    """
    tail = (1 - level) / 2
    seen = value > 0
    variance = step**2 if seen and variance <= ROUNDING * step**2 else variance
    shape, scale = (value**2 / variance, variance / value) if seen else (1.0, 1.0)
    more_shape, more_scale = (value + step) ** 2 / (variance + step**2), (variance + step**2) / (value + step)

    def above(x: float) -> float:
        same = 1 - float(gammainc(shape, x / scale)) if seen else 0.0
        return (same + 1 - float(gammainc(more_shape, x / more_scale))) / 2

    low, high = float(value), float(value) + step
    while above(high) > tail:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) > tail else (low, middle)
    return (float(scale * gammaincinv(shape, tail)) if seen else float(value)), high


def betting_lower_bound(values: Floats, alpha: float) -> float:
    r"""Lower confidence bound for the mean of values in [0, 1] by betting that the mean is larger.

    .. math:: K_t(m) = \prod_{s \le t} \bigl(1 + \lambda_s(m)(x_s - m)\bigr)

    is a wealth that exceeds 1/alpha with probability of at most `alpha` where m is the true mean, if each stake λ_s
    depends only on earlier values. The bound is the smallest m for which it never does (Waudby-Smith and Ramdas 2024,
    Estimating means of bounded random variables by betting).
    """
    n = len(values)
    before = np.arange(n)
    mean = (0.5 + np.concatenate([[0.0], np.cumsum(values)])) / (np.arange(n + 1) + 1)
    spread = (0.25 + np.concatenate([[0.0], np.cumsum((values - mean[1:]) ** 2)[:-1]])) / (before + 1)
    stake = np.sqrt(2 * math.log(1 / alpha) / (n * spread))
    low, high = 0.0, float(values.mean())
    for _ in range(2):
        grid = np.linspace(low, high, 65)
        kept = [_most_wealth(values, stake, m) < math.log(1 / alpha) for m in grid]
        first = kept.index(True) if True in kept else len(grid) - 1
        low, high = float(grid[max(first - 1, 0)]), float(grid[first])
    return low


def bernstein_lower_bound(values: Floats, count: Floats, alpha: float) -> float:
    r"""Lower confidence bound for the mean of values in [0, 1], each of which occurred `count` times.

    .. math:: \bar x - \sqrt{\frac{2 s^2 \log(2/\alpha)}{n}} - \frac{7\log(2/\alpha)}{3(n-1)}

    from Maurer and Pontil (2009), Empirical Bernstein Bounds and Sample Variance Penalization, theorem 4.
    """
    n = float(count.sum())
    mean = float(count @ values) / n
    variance = float(count @ (values - mean) ** 2) / (n - 1)
    term = math.log(2 / alpha)
    return max(0.0, mean - math.sqrt(2 * variance * term / n) - 7 * term / (3 * (n - 1)))


#: Numbers of blocks whose gaps are added up. Test: tests/numerics/test_confidence_limits.py::test_blocks_of_a_limit.
BLOCKS = (1, 2, 4, 8)


def mean_gap_size_limit(
    predicted: Floats, observed: Floats, share: Floats, count: Floats, risk: float, *, heaviest: float | None = None
) -> float:
    r"""Lower limit of :math:`\mathrm E|p - h|`, h the probability of the event, that needs no draws at any risk.

    Cells in the order of their scores are united to K = 1, 2, 4 and 8 blocks of about the same share w. For all signs s

    .. math:: \mathrm E|p - h| \ge \sum_b s_b w_b (\bar p_b - \bar h_b),

    and the sum is estimated with an error whose tail Bernstein's inequality bounds; that holds for the :math:`2^K`
    choices of signs together if each has its part of the risk, and then also for the signs of the observed gaps. Upper
    limits of the variances are taken from binomial limits of the rates (Clopper and Pearson), which by Hoeffding (1956)
    also hold if the probabilities within a block differ. Of one block these limits are used as they are. The scores are
    a sample too: the error of the mean over them is added in squares. Where only clusters are independent, `heaviest`
    is the share of the largest.
    """
    each, size = risk / len(BLOCKS), float(1 / (share**2 / count).sum())
    blocks = [_blocks(predicted - observed, observed, share, count, most) for most in BLOCKS]
    finest, rate, part, rows = blocks[-1]
    noise, found = float(part @ (rate * (1 - rate) / rows)), [0.0]
    for gap, rate, weight, rows in blocks:
        seen = np.abs(finest) if len(gap) > 1 else finest
        spread = max(float(part @ (seen - part @ seen) ** 2) - noise, 0.0)
        reach = _reach_of_signs(rate, weight, rows, each, heaviest)
        if len(gap) == 1 and heaviest is None:
            low, high = _exact_limits(rate, rows, each / 2)
            reach = float(high[0] - rate[0] if gap[0] > 0 else rate[0] - low[0])
        sampling = float(ndtri(each)) * float(np.sqrt(spread / size))
        found.append(float(weight @ np.abs(gap)) - float(np.hypot(reach, sampling)))
    return max(found)


def _blocks(gap: Floats, observed: Floats, share: Floats, count: Floats, most: int) -> tuple[Floats, ...]:
    """Gap, rate, share and effective rows of at most `most` blocks of neighbouring cells."""
    block = np.minimum((most * (np.cumsum(share) - share / 2)).astype(np.intp), most - 1)
    sums = np.stack([np.bincount(block, values) for values in (share * gap, share * observed, share, share**2 / count)])
    gaps, events, part, squares = sums[:, sums[2] > 0].astype(np.float64)
    return gaps / part, events / part, part, part**2 / squares


def _reach_of_signs(rate: Floats, part: Floats, rows: Floats, risk: float, heaviest: float | None) -> float:
    """Bernstein's bound of the error of the sum of gaps, for all signs together; half of the risk is for variances."""
    low, high = _exact_limits(rate, rows, risk / (4 * len(rate)))
    nearest = np.clip(0.5, low, high)
    weight = part / rows
    variance = float(weight**2 @ (rows * nearest * (1 - nearest)))
    tail = len(rate) * np.log(2.0) - np.log(risk / 2)
    linear = (float(weight.max()) if heaviest is None else heaviest) * tail / 3
    return float(linear + np.sqrt(linear**2 + 2 * variance * tail))


def _exact_limits(rate: Floats, rows: Floats, risk: float) -> tuple[Floats, Floats]:
    """Clopper and Pearson's limits of shares, each exceeded with at most this risk."""
    events, others = rate * rows, (1 - rate) * rows
    low = np.where(events > 0, betaincinv(np.where(events > 0, events, 1.0), others + 1, risk), 0.0)
    high = np.where(others > 0, 1 - betaincinv(np.where(others > 0, others, 1.0), events + 1, risk), 1.0)
    return low, high


def _most_wealth(values: Floats, stake: Floats, m: float) -> float:
    """Largest log wealth at any time; stakes are capped so that no single value loses everything."""
    safe = np.minimum(stake, 0.75 / max(m, 1e-12))
    return float(np.cumsum(np.log1p(safe * (values - m))).max())


#: Where the saddlepoint is closer to zero than this, the number of events is the expected one. Derived: closer to it
#: the two terms of the formula cancel to rounding, and its limit is off by less than 1e-4.
CENTRE = 1e-4

#: The log odds of probabilities stay within this. Derived: exp(709.8) is the largest float64.
LIMIT = 700.0


def two_sided_tail(count: Floats, probability: Floats, events: Floats) -> Floats:
    r"""Twice the smaller tail probability of each number of events, at most 1.

    Each line has cells of `count` rows with `probability` each; the number of events S has the cumulant generating
    function :math:`K(t) = \sum_c n_c \log(1 - p_c + p_c e^t)`. The upper tail is Lugannani and Rice's approximation
    with the continuity correction for whole numbers, whose *relative* error stays small far out in the tail,

    .. math:: P(S \ge s) \approx 1 - \Phi(w) + \phi(w) \Bigl(\frac1u - \frac1w\Bigr), \qquad K'(t) = s - \tfrac12,
              \quad w = \operatorname{sign}(t) \sqrt{2 (t K'(t) - K(t))}, \quad u = 2 \sinh(t / 2) \sqrt{K''(t)}

    and the lower tail is that of the rows without the event. Pooling rows of unlike probability into cells makes tails
    heavier (Hoeffding 1956). Counts need not be whole. References: Lugannani, Rice (1980), Saddle point approximation
    for the distribution of the sum of independent random variables; Daniels (1987), Tail probability approximations.
    """
    sure = np.where(probability >= 1, count, 0.0).sum(axis=1)
    open_count = np.where((probability > 0) & (probability < 1), count, 0.0)
    size, s = open_count.sum(axis=1), events - sure
    inside = np.clip(probability, 1e-300, 1 - 1e-16)
    odds = np.clip(log_odds(inside), -LIMIT, LIMIT)
    below = s < (open_count * inside).sum(axis=1)  # the tail on that side is the smaller one
    odds = np.where(below[:, None], -odds, odds)
    tail = np.minimum(2 * _upper_tail(open_count, odds, size, np.where(below, size - s, s)), 1.0)
    return np.where((s < -1e-9) | (s > size + 1e-9), 0.0, tail)


def _upper_tail(count: Floats, odds: Floats, size: Floats, s: Floats) -> Floats:
    """P(S >= s) of lines of cells with these log odds."""
    wanted = np.clip(s - 0.5, 0.0, None)
    found = (wanted > 0) & (wanted < size)
    t = _saddlepoints(count, odds, np.where(found, wanted, size / 2))
    chance = expit(odds + t[:, None])
    generating = (count * (np.logaddexp(0.0, odds + t[:, None]) - np.logaddexp(0.0, odds))).sum(axis=1)
    spread = np.sqrt((count * chance * (1 - chance)).sum(axis=1))
    w = np.sign(t) * np.sqrt(2 * np.maximum(t * wanted - generating, 0.0))
    away = found & (np.abs(t) > CENTRE) & (spread > 0) & (np.abs(w) > 0)
    w, u = np.where(away, w, 1.0), np.where(away, 2 * np.sinh(np.clip(t, -LIMIT, LIMIT) / 2) * spread, 1.0)
    tail = ndtr(-w) + np.exp(-(w**2) / 2) / np.sqrt(2 * np.pi) * (1 / u - 1 / w)
    centre = np.where(found, 0.5, 1.0)  # at least no event is certain
    return np.clip(np.where(away, tail, centre), 0.0, 1.0)


def _saddlepoints(count: Floats, odds: Floats, wanted: Floats) -> Floats:
    """The shift of all log odds of each line at which this many events are expected."""
    low, high = np.full(len(wanted), -2 * LIMIT), np.full(len(wanted), 2 * LIMIT)
    size = np.maximum(count.sum(axis=1), 1e-300)
    middle = (count * odds).sum(axis=1) / size
    t = log_odds(np.clip(wanted / size, 1e-12, 1 - 1e-12)) - middle  # exact for rows of one probability
    for _ in range(60):
        chance = expit(odds + t[:, None])
        excess = (count * chance).sum(axis=1) - wanted
        low, high = np.where(excess > 0, low, t), np.where(excess > 0, t, high)
        slope = (count * chance * (1 - chance)).sum(axis=1)
        step = t - np.divide(excess, slope, out=np.full_like(t, np.inf), where=slope > 0)
        following = np.where((low <= step) & (step <= high), step, (low + high) / 2)
        done = bool(np.all(np.abs(following - t) <= 1e-9 * np.maximum(1.0, np.abs(t))))
        t = following
        if done:
            break
    return t


#: Below this sum of variances the tail of a weighted sum is simulated, by so many draws, for at most so many rows.
#: Test: tests/numerics/test_confidence_limits_weighted.py::test_few_events_are_simulated.
_FEW_EVENTS, _DRAWS, _SIMULATED_ROWS = 40.0, 4000, 20_000
#: Draws that must reach the sum for their share to be used. Test:
#: tests/numerics/test_confidence_limits_weighted.py::test_few_events_are_simulated.
_FEWEST_HITS = 5
#: Uniform numbers drawn at once. Speed: 16 MB; no result depends on it but for the order of draws.
_AT_ONCE = 2_000_000


def weighted_tail(coefficient: Floats, y: Floats, p: Floats, rng: np.random.Generator) -> float:
    r"""P(S >= s) of :math:`S = \sum_i a_i (Y_i - p_i)` for independent Y ~ Bernoulli(p), s being its observed value.

    Simulated where few events are expected and the tail is not too small, else Barndorff-Nielsen's

    .. math:: \Phi\Bigl(-r - \frac1r \log\frac ur\Bigr), \qquad K'(t) = s, \quad
              r = \operatorname{sign}(t) \sqrt{2 (t s - K(t))}, \quad u = t \sqrt{K''(t)}

    with K the cumulant generating function (Barndorff-Nielsen 1986, Inference on full or partial parameters based on
    the standardized signed log likelihood ratio). A half where no row can vary.
    """
    noise = p * (1 - p)
    s, variance = float(coefficient @ (y - p)), float(coefficient**2 @ noise)
    if not variance > 0:
        return 0.5
    some = (coefficient != 0) & (noise > 0)
    a, p, noise = coefficient[some] / math.sqrt(variance), p[some], noise[some]
    s = float(a @ (y[some] - p))
    if noise.sum() < _FEW_EVENTS and len(a) <= _SIMULATED_ROWS:
        hits = _hits(a, p, s, rng)
        if hits >= _FEWEST_HITS or s <= 0:
            return (1 + hits) / (1 + _DRAWS)
    skewness = float(a**3 @ (noise * (1 - 2 * p)))
    if abs(s) < 0.05:
        return float(ndtr(-(s - skewness * (s * s - 1) / 6)))
    return _saddlepoint_tail(a, p, s)


def _hits(a: Floats, p: Floats, s: float, rng: np.random.Generator) -> int:
    """How many simulated sums are at least s."""
    mean, hits, step = float(a @ p), 0, max(1, _AT_ONCE // len(a))
    for start in range(0, _DRAWS, step):
        drawn = (rng.random((min(step, _DRAWS - start), len(a))) < p) @ a - mean
        hits += int(np.sum(drawn >= s - 1e-12 * (1 + abs(s))))
    return hits


def _saddlepoint_tail(a: Floats, p: Floats, s: float) -> float:
    """The tail of a standardised sum, away from its mean."""
    odds, mean = np.clip(log_odds(p), -LIMIT, LIMIT), float(a @ p)
    low, high, t = (0.0, math.inf, s) if s > 0 else (-math.inf, 0.0, s)
    for _ in range(80):
        chance = expit(odds + a * t)
        excess, slope = float(a @ chance) - mean - s, float(a**2 @ (chance * (1 - chance)))
        low, high = (low, t) if excess > 0 else (t, high)
        if abs(excess) <= 1e-9:
            break
        step = t - excess / slope if slope > 0 else math.nan
        t = step if low < step < high else (low + high) / 2 if math.isfinite(low + high) else 2 * t
        if abs(t) > 1e6:  # beyond what the sum can reach
            return 0.0 if s > 0 else 1.0
    generating = float(np.sum(np.logaddexp(0.0, odds + a * t) - np.logaddexp(0.0, odds))) - t * mean
    reach = 2 * (t * s - generating)
    u = t * math.sqrt(slope)
    if reach <= 0 or u == 0:
        return float(ndtr(-s))
    r = math.copysign(math.sqrt(reach), t)
    return float(min(1.0, max(0.0, ndtr(-(r + math.log(u / r) / r)))))


#: Units below which the spread between them is not known, and the least degrees of freedom of their sum. Test:
#: tests/numerics/test_confidence_limits_weighted.py::test_few_units_claim_nothing.
_FEWEST_UNITS, _LEAST_FREEDOM = 15, 5.0


def sum_of_units_tail(sums: Floats, least_variance: float = 0.0) -> float:
    r"""One-sided p-value of the hypothesis that independent sums (of clusters) have mean zero; 1 if nothing is known.

    Student's t of the sums, with the degrees of freedom :math:`(\sum u^2)^2 / \sum u^4 - 1` that their sizes leave,
    and with Johnson's correction for skewness where it makes the p-value larger (Johnson 1978, Modified t tests and
    confidence intervals for asymmetrical populations). The variance is at least `least_variance`, that of calibrated
    independent outcomes: with few events, sums hardly vary at all.
    """
    sums = sums[sums != 0]
    square, fourth, n = float(sums @ sums), float((sums**2) @ (sums**2)), len(sums)
    if n < _FEWEST_UNITS or square**2 < (_LEAST_FREEDOM + 1) * fourth:
        return 1.0
    freedom = square**2 / fourth - 1
    x = float(sums.sum()) / math.sqrt(max(square, least_variance))
    x = max(min(x, 0.99 * math.sqrt(n)), -0.99 * math.sqrt(n))
    t = x * math.sqrt((n - 1) / (n - x * x))
    skewness = float((sums**3).sum()) / square**1.5
    return float(stdtr(freedom, -min(t, t + skewness * (1 + 2 * t * t) / 6)))


def event_tail(events: Floats, rows: Floats, expected: Floats) -> Floats:
    """Upper bound of P(S >= events) of sums of unequal Bernoulli outcomes: the binomial tail at their mean.

    It bounds the tail from one event beyond the mean on (Hoeffding 1956, On the distribution of the number of successes
    in independent trials); below it is 1.
    """
    k = np.maximum(events, 1.0)
    found = betainc(k, rows - k + 1, np.clip(expected / np.maximum(rows, 1), 0.0, 1.0))
    return np.asarray(np.where(events >= expected + 1, found, 1.0))
