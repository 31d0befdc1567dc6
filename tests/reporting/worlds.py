"""Worlds of known truth: data whose calibration is known, and what a report must say of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import calibrant as cal


def expit(z):
    return 1 / (1 + np.exp(-z))


def logit(p):
    return np.log(p) - np.log1p(-p)


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def drawn(rng, p):
    """One class per row."""
    return (rng.random((len(p), 1)) > p.cumsum(axis=1)).sum(axis=1)


@dataclass(frozen=True, eq=False)
class World:
    """How to draw data, and the truth about them.

    Attributes
    ----------
    make : callable
        From a random generator to the arguments of `report`: the data, and options.
    states, severities, directions : sets
        What may be said; several where the truth lies at a boundary.
    flagged : set or None
        Names of the groups that are wrong; None where there are no groups.
    advice : str
        What the recommendation must contain.
    by_chance : bool
        Whether nothing is wrong, so that a rejection is an error of the first kind.
    """

    name: str
    make: Callable[[np.random.Generator], tuple[Any, dict[str, Any]]]
    states: set[str]
    severities: set[str]
    directions: set[str | None]
    flagged: set[str] | None = None
    advice: str = ""
    by_chance: bool = False
    changed: bool | None = None
    kind: str = "binary"
    tags: tuple[str, ...] = field(default=())


WRONG, QUIET = {"not calibrated"}, {"not significant"}
NOTHING = "Nothing needs to be done"
HELPS = "lowers cross-validated"


def binary(base, n, truth=lambda z: z, *, spread=1.0, digits=None, extra=None):
    """Scores with normal log odds around `base`; the true log odds are a function of them."""

    def make(rng):
        z = rng.normal(logit(base), spread, n)
        p = expit(z)
        if digits is not None:
            p = np.clip(np.round(p, digits), 10.0**-digits, 1 - 10.0**-digits)
            z = logit(p)
        q = expit(truth(z))
        options = {} if extra is None else extra(rng, n)
        return cal.Binary(rng.random(n) < q, p), options

    return make


def shifted(by):
    return lambda z: z + by


def sloped(factor):
    """Log odds times a factor, shifted so that totals agree: neither too high nor too low on the whole."""

    def truth(z):
        low, high = -20.0, 20.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if expit(middle + factor * z).sum() < expit(z).sum() else (low, middle)
        return low + factor * z

    return truth


def grouped(base, n, groups, wrong, by):
    """Equal groups, calibrated but for some whose log odds are shifted."""

    def make(rng):
        z, group = rng.normal(logit(base), 1.0, n), np.arange(n) % groups
        names = np.array([f"g{k:02d}" for k in range(groups)])[group]
        moved = np.array(
            [by.get(k, 0.0) if isinstance(by, dict) else (by if k in wrong else 0.0) for k in range(groups)]
        )
        return cal.Binary(rng.random(n) < expit(z + moved[group]), expit(z)), {"by": {"group": names}}

    return make


def over_months(base, n, change, always=0.0):
    """Twelve months; the log odds are shifted always, and once more from the ninth on."""

    def make(rng):
        z, month = rng.normal(logit(base), 1.0, n), np.arange(n) * 12 // n
        dates = np.array([f"2025-{k + 1:02d}-15" for k in range(12)], dtype="datetime64[D]")[month]
        return cal.Binary(rng.random(n) < expit(z + always + change * (month >= 8)), expit(z)), {"time": dates}

    return make


def classes(n, k, *, sharp=1.0, tilt=0.0, scale=1.5):
    """Vectors that are too sharp by a factor, and one class whose log odds are shifted."""

    def make(rng):
        z = scale * rng.standard_normal((n, k))
        truth = z.copy()
        truth[:, 0] += tilt
        return cal.Multiclass(drawn(rng, softmax(truth)), softmax(sharp * z)), {}

    return make


def gaussian(n, factor=1.0, *, bias=0.0, heteroscedastic=False, tails=None, constant=False):
    """Normal forecasts whose errors are `factor` times the predicted spread."""

    def make(rng):
        std = np.ones(n) if constant else np.exp(0.5 * rng.standard_normal(n))
        errors = rng.standard_normal(n) if tails is None else rng.standard_t(tails, n) / np.sqrt(tails / (tails - 2))
        true = factor * std
        if heteroscedastic:  # right on average, but all rows have the same true spread
            true = np.sqrt(np.mean(std**2)) * np.ones(n)
            std = std * np.sqrt(np.mean((true / std) ** 2))
        return cal.Gaussian(true * errors + bias * std, np.zeros(n), std), {}

    return make


def quantiles(n, factor):
    levels = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
    ends = np.array([-1.645, -1.2816, -0.6745, 0.0, 0.6745, 1.2816, 1.645])

    def make(rng):
        std = np.exp(0.5 * rng.standard_normal(n))
        return cal.Quantiles(factor * std * rng.standard_normal(n), levels, np.outer(std, ends)), {}

    return make


def ensemble(n, factor, members=30):
    def make(rng):
        mean, std = rng.normal(size=n), np.exp(0.5 * rng.standard_normal(n))
        draws = mean[:, None] + std[:, None] * rng.standard_normal((n, members))
        return cal.Samples(mean + factor * std * rng.standard_normal(n), draws), {}

    return make


def unlabeled(positives, n, power=1.0, prior=0.2, assumed=None):
    """Scores of unlabeled rows follow Beta(1, 4), whose mean is the share 0.2; predictions are a power of them."""

    def make(rng):
        u = rng.beta(1, 4, 60 * positives)
        labelled = u[rng.random(len(u)) < u][:positives]
        return cal.PositiveUnlabeled(labelled**power, rng.beta(1, 4, n) ** power, prior=assumed or prior), {}

    return make


def clustered(n_clusters, size, shift=0.0):
    """Rows of a cluster share most of their luck."""

    def make(rng):
        z = np.repeat(rng.normal(-0.5, 1, n_clusters), size)
        luck = np.where(rng.random(len(z)) < 0.7, np.repeat(rng.random(n_clusters), size), rng.random(len(z)))
        group = np.repeat(np.arange(n_clusters), size)
        return cal.Binary(luck < expit(z + shift), expit(z), group=group), {}

    return make


def table(make):
    """The same as a fine table."""

    def made(rng):
        data, options = make(rng)
        return cal.BinTable.of(data, cal.table.HybridGrid()), options

    return made


def weighted(make):
    def made(rng):
        data, options = make(rng)
        return cal.Binary(data.y_true, data.y_prob, weight=rng.uniform(0.5, 1.5, len(data))), options

    return made


def hard(n):
    def make(rng):
        y = rng.random(n) < 0.4
        return cal.Binary(y, (y ^ (rng.random(n) < 0.1)).astype(float)), {}

    return make


def constant(p, base, n):
    return lambda rng: (cal.Binary(rng.random(n) < base, np.full(n, p)), {})


PROBLEM, CAUTION, NOTE = {"problem"}, {"caution"}, {"note"}
CALM = {"note", "caution"}

WORLDS = [
    # Calibrated: never accused beyond chance, and never called calibrated where few rows cannot tell.
    World("calibrated 50 %, 60000", binary(0.5, 60_000), QUIET, NOTE, {None}, advice=NOTHING, by_chance=True),
    World("calibrated 50 %, 3000", binary(0.5, 3000), QUIET, CALM, {None}, by_chance=True),
    World("calibrated 50 %, 300", binary(0.5, 300), QUIET, CAUTION, {None}, advice="Collect about", by_chance=True),
    World("calibrated 3 %, 20000", binary(0.03, 20_000), QUIET, CALM, {None}, by_chance=True),
    World(
        "calibrated 1 %, 300",
        binary(0.008, 300),
        {"too few"},
        CAUTION,
        {None},
        advice="Too few events to fit",
        by_chance=True,
    ),
    World("calibrated 97 %, 20000", binary(0.97, 20_000), QUIET, CALM, {None}, by_chance=True),
    World("calibrated, ten scores", binary(0.4, 5000, digits=1), QUIET, CALM, {None}, by_chance=True),
    World("calibrated, weighted", weighted(binary(0.4, 5000)), QUIET, CALM, {None}, by_chance=True),
    World("calibrated, as a table", table(binary(0.4, 20_000)), QUIET, CALM, {None}, by_chance=True),
    World("calibrated, clusters that repeat each other", clustered(200, 10), QUIET, CAUTION, {None}, by_chance=True),
    World("calibrated, sixty groups", grouped(0.3, 12_000, 60, (), 0.0), QUIET, CALM, {None}, set(), by_chance=True),
    World("calibrated over time", over_months(0.2, 12_000, 0.0), QUIET, CALM, {None}, changed=False, by_chance=True),
    World("constant and right", constant(0.3, 0.3, 3000), QUIET, CALM, {None}, by_chance=True),
    # Too high, too low.
    World("too high, 50 %", binary(0.5, 5000, shifted(-0.6)), WRONG, PROBLEM, {"too high"}, advice=HELPS),
    World("too low, 50 %", binary(0.5, 5000, shifted(0.6)), WRONG, PROBLEM, {"too low"}, advice=HELPS),
    World("too high, 10 %", binary(0.1, 10_000, shifted(-0.5)), WRONG, PROBLEM, {"too high"}, advice=HELPS),
    World("too low, 10 %", binary(0.1, 10_000, shifted(0.5)), WRONG, PROBLEM, {"too low"}, advice=HELPS),
    World("risks half the truth, 2 %", binary(0.015, 20_000, shifted(0.75)), WRONG, PROBLEM, {"too low"}, advice=HELPS),
    World(
        "risks twice the truth, 2 %", binary(0.03, 20_000, shifted(-0.75)), WRONG, PROBLEM, {"too high"}, advice=HELPS
    ),
    World(
        "non-events half the truth, 97 %",
        binary(0.98, 20_000, shifted(-0.75)),
        WRONG,
        PROBLEM,
        {"too high"},
        advice=HELPS,
    ),
    World("too low, 95 %", binary(0.93, 20_000, shifted(0.6)), WRONG, PROBLEM, {"too low"}, advice=HELPS),
    World("too high, weighted", weighted(binary(0.4, 6000, shifted(-0.6))), WRONG, PROBLEM, {"too high"}, advice=HELPS),
    World(
        "too high, as a table", table(binary(0.4, 20_000, shifted(-0.5))), WRONG, PROBLEM, {"too high"}, advice=HELPS
    ),
    World("too high in clusters", clustered(600, 10, -1.0), WRONG, PROBLEM, {"too high"}),
    World(
        "too high, ten scores", binary(0.4, 5000, shifted(-0.5), digits=1), WRONG, PROBLEM, {"too high"}, advice=HELPS
    ),
    World("constant and too high", constant(0.4, 0.3, 3000), WRONG, PROBLEM, {"too high"}),
    World("few rows, far too high", binary(0.7, 120, shifted(-2.5)), WRONG, PROBLEM, {"too high"}),
    World(
        "eight events where fifty were predicted",
        binary(0.004, 10_000, shifted(-1.9)),
        WRONG,
        PROBLEM,
        {"too high"},
        advice="Too few events to fit",
    ),
    # Slopes.
    World("too extreme, 50 %", binary(0.5, 5000, sloped(0.5)), WRONG, PROBLEM, {"too extreme"}, advice=HELPS),
    World("too moderate, 50 %", binary(0.5, 5000, sloped(1.8)), WRONG, PROBLEM, {"too moderate"}, advice=HELPS),
    World(
        "too extreme, 10 %", binary(0.1, 20_000, sloped(0.5), spread=1.2), WRONG, PROBLEM, {"too extreme"}, advice=HELPS
    ),
    World("too moderate, 10 %", binary(0.1, 20_000, sloped(1.7)), WRONG, PROBLEM, {"too moderate"}, advice=HELPS),
    World(
        "rare and too extreme, slope 0.59",
        binary(0.02, 60_000, sloped(0.59), spread=1.3),
        WRONG,
        PROBLEM,
        {"too extreme"},
        advice=HELPS,
    ),
    World(
        "too extreme, ten scores",
        binary(0.5, 5000, sloped(0.5), digits=1),
        WRONG,
        PROBLEM,
        {"too extreme"},
        advice=HELPS,
    ),
    World(
        "too extreme and too high",
        binary(0.5, 8000, lambda z: 0.6 * z - 0.8),
        WRONG,
        PROBLEM,
        {"too high"},
        advice=HELPS,
    ),
    # Neither.
    World(
        "waves",
        binary(0.5, 20_000, lambda z: z + 0.8 * np.sin(4 * z)),
        WRONG,
        PROBLEM,
        {"mixed", "too extreme", "too moderate"},
        advice=HELPS,
    ),
    World(
        "significant but small",
        binary(0.5, 400_000, shifted(0.02), spread=1.0),
        {"small", "not calibrated"},
        {"note", "caution"},
        {"too low"},
    ),
    # Decisions, one outcome, little.
    World("hard scores", hard(2000), {"cannot be judged"}, CAUTION, {None}, advice="predict_proba"),
    World(
        "no event, few expected",
        lambda rng: (cal.Binary(np.zeros(60), rng.uniform(0.001, 0.02, 60)), {}),
        {"too few"},
        CAUTION,
        {None},
    ),
    World(
        "no event, many expected",
        lambda rng: (cal.Binary(np.zeros(900), rng.uniform(0.02, 0.2, 900)), {}),
        WRONG,
        PROBLEM,
        {"too high"},
    ),
    World(
        "three rows",
        lambda rng: (cal.Binary([0, 1, 0], [0.2, 0.7, 0.4]), {}),
        {"too few"},
        CAUTION,
        {None},
        advice="Too few rows to fit",
    ),
    # Groups and time.
    World(
        "three of sixty groups too low",
        grouped(0.3, 18_000, 60, (3, 17, 41), 1.4),
        WRONG,
        PROBLEM,
        {"too low", "mixed", "too moderate"},
        {"g03", "g17", "g41"},
    ),
    World(
        "groups in opposite directions",
        grouped(0.3, 6000, 6, (), {1: 0.8, 4: -0.8}),
        WRONG,
        PROBLEM,
        {"mixed", "too extreme", "too low", "too high"},
        {"g01", "g04"},
    ),
    World(
        "one group against the rest",
        grouped(0.3, 6000, 5, (), {0: -0.6, 1: -0.6, 2: -0.6, 3: -0.6, 4: 0.7}),
        WRONG,
        PROBLEM,
        {"too high"},
        {"g00", "g01", "g02", "g03", "g04"},
    ),
    World(
        "a hundred groups, one wrong",
        grouped(0.3, 15_000, 100, (7,), 2.0),
        WRONG | QUIET,
        {"problem"},
        {"too low", "mixed", "too moderate"},
        {"g07"},
    ),
    World(
        "change in September",
        over_months(0.2, 12_000, -0.9),
        WRONG,
        PROBLEM,
        {"too high"},
        changed=True,
        advice="Refit",
    ),
    World(
        "always too high",
        over_months(0.2, 12_000, 0.0, always=-0.6),
        WRONG,
        PROBLEM,
        {"too high"},
        changed=False,
        advice=HELPS,
    ),
    # Several classes.
    World(
        "softmax too sharp by 1.7",
        classes(2500, 5, sharp=1.7),
        WRONG,
        PROBLEM,
        {"over-confident"},
        kind="classes",
        advice="emperature scaling",
    ),
    World(
        "softmax too flat",
        classes(2500, 5, sharp=0.6),
        WRONG,
        PROBLEM,
        {"under-confident"},
        kind="classes",
        advice="emperature scaling",
    ),
    World("calibrated classes, 5", classes(2500, 5), QUIET, CALM, {None}, kind="classes", by_chance=True),
    World("calibrated classes, 12", classes(3000, 12), QUIET, CALM, {None}, kind="classes", by_chance=True),
    World(
        "one class too rare",
        classes(4000, 4, tilt=0.6),
        WRONG,
        PROBLEM,
        {"too low", "mixed", "under-confident", "over-confident", "too high"},
        kind="classes",
    ),
    World("forty vectors", classes(40, 6), {"too few"}, CAUTION, {None}, kind="classes", by_chance=True),
    # Forecasts.
    World("spread too narrow", gaussian(3000, 1.3), WRONG, PROBLEM, {"too narrow"}, kind="regression", advice="CRPS"),
    World("spread too wide", gaussian(3000, 0.75), WRONG, PROBLEM, {"too wide"}, kind="regression", advice="CRPS"),
    World(
        "calibrated forecasts", gaussian(3000), QUIET, NOTE, {None}, kind="regression", by_chance=True, advice=NOTHING
    ),
    World(
        "right spread, heavy tails",
        gaussian(3000, tails=5),
        QUIET | WRONG,
        CALM,
        {None, "mixed", "too wide"},
        kind="regression",
    ),
    World(
        "calibrated, one spread", gaussian(1000, constant=True), QUIET, CALM, {None}, kind="regression", by_chance=True
    ),
    World("shifted forecasts", gaussian(3000, bias=0.4), WRONG, PROBLEM, {"too low", "too narrow"}, kind="regression"),
    World(
        "right on average only",
        gaussian(5000, heteroscedastic=True),
        WRONG,
        {"problem", "caution"},
        {"mixed"},
        kind="regression",
    ),
    World("twenty forecasts", gaussian(20), {"too few"}, CAUTION, {None}, kind="regression", by_chance=True),
    World("quantiles too narrow", quantiles(2000, 1.4), WRONG, PROBLEM, {"too narrow"}, kind="regression"),
    World("quantiles right", quantiles(2000, 1.0), QUIET, CALM, {None}, kind="regression", by_chance=True),
    World("ensemble too narrow", ensemble(1500, 1.5), WRONG, PROBLEM, {"too narrow"}, kind="regression"),
    # Positive and unlabeled.
    World("unlabeled, right", unlabeled(800, 8000), QUIET, CALM, {None}, kind="unlabeled", by_chance=True),
    World("unlabeled, too high", unlabeled(800, 8000, power=0.5), WRONG, PROBLEM, {"too high"}, kind="unlabeled"),
    World("unlabeled, too low", unlabeled(800, 8000, power=2.0), WRONG, PROBLEM, {"too low"}, kind="unlabeled"),
    World(
        "a share that cannot be",
        unlabeled(800, 8000, assumed=0.9),
        {"cannot be judged"},
        PROBLEM,
        {None},
        kind="unlabeled",
    ),
    World("few labelled", unlabeled(15, 2000), {"too few"}, CAUTION, {None}, kind="unlabeled", by_chance=True),
]
