"""Tail probabilities of the number of events among independent rows that each have their own probability."""

from __future__ import annotations

import numpy as np

from calibrant.numerics.arrays import Floats
from calibrant.numerics.special import expit, log_odds

#: Steps of Newton's method, which halves a bracket where it would leave it.
STEPS = 60

#: Where the saddlepoint is closer to zero than this, the number of events is the expected one.
CENTRE = 1e-4

#: The log odds of probabilities stay within this.
LIMIT = 700.0


def two_sided_tail(count: Floats, probability: Floats, events: Floats) -> Floats:
    r"""Twice the smaller tail probability of each number of events, at most 1.

    Each line has cells of `count` rows with `probability` each; the number of events S has the cumulant generating
    function :math:`K(t) = \sum_c n_c \log(1 - p_c + p_c e^t)`. The upper tail is Lugannani and Rice's approximation
    with the continuity correction for whole numbers, whose *relative* error stays small far out in the tail,

    .. math:: P(S \ge s) \approx 1 - \Phi(w) + \phi(w) \Bigl(\frac1u - \frac1w\Bigr), \qquad K'(t) = s - \tfrac12,
              \quad w = \operatorname{sign}(t) \sqrt{2 (t K'(t) - K(t))}, \quad u = 2 \sinh(t / 2) \sqrt{K''(t)}

    and the lower tail is that of the rows without the event. Pooling rows of unlike probability into cells makes tails
    heavier (Hoeffding 1956). Counts need not be whole.

    Parameters
    ----------
    count, probability : array (lines, cells)
    events : array (lines,)

    References
    ----------
    Lugannani, Rice (1980), Saddle point approximation for the distribution of the sum of independent random variables;
    Daniels (1987), Tail probability approximations, for the correction.

    Examples
    --------
    >>> from scipy.stats import binom
    >>> found = two_sided_tail(np.array([[100.0]]), np.array([[0.1]]), np.array([30.0]))[0]
    >>> bool(abs(found / (2 * binom.sf(29, 100, 0.1)) - 1) < 0.001)
    True
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
    from scipy.special import ndtr

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
    """The shift of all log odds of each line at which so many events are expected."""
    low, high = np.full(len(wanted), -2 * LIMIT), np.full(len(wanted), 2 * LIMIT)
    size = np.maximum(count.sum(axis=1), 1e-300)
    middle = (count * odds).sum(axis=1) / size
    t = log_odds(np.clip(wanted / size, 1e-12, 1 - 1e-12)) - middle  # exact for rows of one probability
    for _ in range(STEPS):
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
