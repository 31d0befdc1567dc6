"""Random data of known truth for reports: every task, many faults, and every option of `calibrant.report`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

import calibrant as cal


def expit(z):
    return 1 / (1 + np.exp(-z))


def logit(p):
    return np.log(p) - np.log1p(-p)


@dataclass(frozen=True, eq=False)
class PageWorld:
    """Data and options of one page, what is wrong with them, and words that would be the opposite of the truth."""

    data: Any
    options: dict[str, Any]
    fault: str
    never: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def calibrated(self):
        return self.fault == "none"


def rows(rng, least=40, most=6000):
    return int(np.exp(rng.uniform(np.log(least), np.log(most))))


def scores(rng, n):
    """Log odds of one of many shapes."""
    base = rng.choice([0.5, 0.3, 0.1, 0.02, 0.005, 0.95])
    shapes = {
        "normal": lambda: rng.normal(logit(base), rng.choice([0.3, 1.0, 2.0]), n),
        "uniform": lambda: logit(rng.uniform(0.001, 0.999, n)),
        "few levels": lambda: logit(rng.choice(rng.uniform(0.02, 0.98, rng.integers(2, 9)), n)),
        "two digits": lambda: logit(np.clip(rng.beta(1, 3, n).round(2), 0.01, 0.99)),
        "two modes": lambda: logit(np.where(rng.random(n) < 0.6, 0.01, rng.uniform(0.9, 0.95, n))),
        "one score": lambda: np.full(n, logit(base)),
    }
    return shapes[rng.choice(list(shapes), p=[0.45, 0.15, 0.15, 0.1, 0.1, 0.05])]()


def probabilities_after(rng, fault, z):
    """True probabilities of rows with these log odds, and the words that would be the opposite."""
    by = float(rng.choice([0.1, 0.3, 0.8]))
    if fault == "shift up":
        return expit(z + by), ("too high",)
    if fault == "shift down":
        return expit(z - by), ("too low",)
    middle = float(np.mean(z))
    if fault == "too extreme":
        return expit(middle + (z - middle) / (1 + by)), ("too moderate",)
    if fault == "too moderate":
        return expit(middle + (z - middle) * (1 + by)), ("too extreme",)
    if fault == "wave":
        p = expit(z)
        return np.clip(p + 0.1 * np.sin(10 * np.pi * p), 0, 1), ()
    if fault == "jump":
        return np.clip(expit(z) + np.where(expit(z) > np.median(expit(z)), 0.15, 0.0) * by, 0, 1), ("too high",)
    if fault == "reversed":
        return expit(2 * middle - z), ()
    if fault == "random":
        return np.full(len(z), expit(z).mean()), ("too moderate",)
    return expit(z), ()


OF_EVENTS = ("none", "shift up", "shift down", "too extreme", "too moderate", "wave", "jump", "reversed", "random")


def fault_of(rng, faults):
    """One of them; half of all pages are of calibrated models."""
    return "none" if rng.random() < 0.5 else str(rng.choice(faults[1:]))


def extras(rng, n, *, threshold=True):
    """Groups, times, a threshold, a tolerance."""
    found = {}
    if rng.random() < 0.35:
        many = int(rng.choice([2, 3, 8, 30]))
        found["by"] = {"group": np.array([f"g{k}" for k in range(many)])[rng.integers(0, many, n)]}
        if rng.random() < 0.3:
            found["by"]["channel"] = rng.choice(["web", "shop", "phone"], n)
    if rng.random() < 0.3:
        found["time"] = {"month": np.sort(rng.integers(1, 1 + int(rng.choice([3, 12])), n))}
    if threshold and rng.random() < 0.2:
        found["threshold"] = float(rng.choice([0.1, 0.3, 0.5]))
    if rng.random() < 0.2:
        found["tolerance"] = float(rng.choice([0.005, 0.02, 0.1]))
    if rng.random() < 0.1:
        found |= {"event": "fraud", "row": "payment"}
    return found


def rows_together(rng, n):
    """None, or weights; None, or clusters of rows that share their luck."""
    weight = rng.choice([None, "some"], p=[0.8, 0.2])
    group = rng.choice([None, "some"], p=[0.75, 0.25])
    sizes = int(rng.choice([2, 5, 20]))
    return (
        None if weight is None else np.exp(rng.normal(0, 0.5, n)),
        None if group is None else np.arange(n) // sizes,
    )


def drawn_together(rng, n, group):
    """Uniform numbers; those of a group depend on each other."""
    own = rng.normal(size=n)
    if group is None:
        return stats.norm.cdf(own)
    shared = rng.normal(size=group.max() + 1)[group]
    return stats.norm.cdf(np.sqrt(0.5) * (own + shared))


def wrong_group(options, q, rng):
    """The truth of one group is another one."""
    names = options["by"]["group"]
    return np.where(names == "g0", expit(logit(np.clip(q, 1e-12, 1 - 1e-12)) + rng.choice([-1.0, 1.0])), q)


def binary(rng):
    """Probabilities of an event."""
    n, fault = rows(rng), fault_of(rng, OF_EVENTS)
    z, options = scores(rng, n), extras(rng, n)
    q, never = probabilities_after(rng, fault, z)
    if fault == "none" and "by" in options and rng.random() < 0.4:
        fault, q = "one group", wrong_group(options, q, rng)
    elif fault == "none" and "time" in options and rng.random() < 0.4:
        late = options["time"]["month"] > options["time"]["month"].max() * 0.6
        fault, q = "drift", np.where(late, expit(logit(np.clip(q, 1e-12, 1 - 1e-12)) + 0.8), q)
    weight, group = rows_together(rng, n)
    y = drawn_together(rng, n, group) < q
    sums = np.ones(n) if weight is None else weight
    truth = {"ratio": (sums @ q) / (sums @ expit(z))}
    return PageWorld(cal.Binary(y, expit(z), weight=weight, group=group), options, fault, never, truth)


def table(rng):
    """The same as a fine table."""
    n, fault = rows(rng), fault_of(rng, OF_EVENTS)
    z = scores(rng, n)
    q, never = probabilities_after(rng, fault, z)
    data = cal.Binary(rng.random(n) < q, expit(z))
    return PageWorld(cal.BinTable.of(data, cal.table.Distinct()), {}, fault, never)


def multiclass(rng):
    """Probability vectors."""
    n, k = rows(rng, most=2000), int(rng.choice([3, 4, 10]))
    fault = fault_of(rng, ("none", "too sharp", "too flat", "one class"))
    z = rng.choice([0.5, 1.5]) * rng.standard_normal((n, k))
    sharp = {"too sharp": 1.6, "too flat": 0.6}.get(fault, 1.0)
    truth = z.copy()
    truth[:, 0] += 0.8 if fault == "one class" else 0.0
    truth, shown = (np.exp(one - one.max(axis=1, keepdims=True)) for one in (truth, sharp * z))
    truth, shown = truth / truth.sum(axis=1, keepdims=True), shown / shown.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    never = {"too sharp": ("under-confident",), "too flat": ("over-confident",)}.get(fault, ())
    weight = np.exp(rng.normal(0, 0.5, n)) if rng.random() < 0.1 else None
    labels = np.arange(k)
    return PageWorld(cal.Multiclass(labels[y], shown, weight=weight), extras(rng, n), fault, never)


OF_FORECASTS = ("none", "too narrow", "too wide", "too low", "too high", "wide ones wrong", "heavy tails", "skewed")
#: Words of the opposite fault.
NEVER = {
    "too narrow": ("too wide", "too rarely"),
    "too wide": ("too narrow", "too often"),
    "too low": ("are high",),
    "too high": ("are low",),
}


def errors(rng, n, fault, std, group):
    """Outcomes less the predicted mean."""
    u = np.clip(drawn_together(rng, n, group), 1e-12, 1 - 1e-12)
    by = float(rng.choice([0.15, 0.4]))
    if fault == "heavy tails":
        return std * stats.t(4).ppf(u) / np.sqrt(2)
    if fault == "skewed":
        return std * (stats.gamma(3).ppf(u) - 3) / np.sqrt(3)
    factor = {"too narrow": 1 + by, "too wide": 1 / (1 + by)}.get(fault, 1.0)
    factor = np.where(std > np.median(std), 1 + by, 1.0) if fault == "wide ones wrong" else factor
    return std * (factor * stats.norm.ppf(u) + {"too low": by, "too high": -by}.get(fault, 0.0))


def forecast(rng, kind):
    """Predicted distributions of a number: normal, quantiles, draws, or a law of SciPy."""
    n, fault = rows(rng, least=20, most=2000), fault_of(rng, OF_FORECASTS)
    mean, std = rng.normal(0, 3, n), np.exp(0.5 * rng.standard_normal(n))
    std = np.ones(n) if rng.random() < 0.1 else std
    _, group = rows_together(rng, n)
    y = mean + errors(rng, n, fault, std, group)
    options = extras(rng, n, threshold=False)
    if "by" in options and rng.random() < 0.3:
        options["by"] = {"horizon": rng.integers(1, 15, n)}
    if kind == "gaussian":
        weight = np.exp(rng.normal(0, 0.5, n)) if rng.random() < 0.15 else None
        data = cal.Gaussian(y, mean, std, weight=weight, group=group)
    elif kind == "quantiles":
        levels = [(0.05, 0.5, 0.95), (0.1, 0.25, 0.5, 0.75, 0.9), tuple(np.arange(1, 20) / 20), (0.5,)]
        some = np.array(levels[rng.integers(4)])
        data = cal.Quantiles(y, some, mean[:, None] + std[:, None] * stats.norm.ppf(some), group=group)
    elif kind == "samples":
        members = int(rng.choice([5, 20, 50]))
        draws = mean[:, None] + std[:, None] * rng.standard_normal((n, members))
        data = cal.Samples(y, draws, group=group)
    else:
        data = cal.Distribution(y, stats.norm(mean, std), group=group)
    return PageWorld(data, options, fault, NEVER.get(fault, ()))


def unlabeled(rng):
    """Labelled positives and unlabeled rows."""
    fault = fault_of(rng, ("none", "too low", "too high"))
    positives, n = rows(rng, 20, 800), rows(rng, 200, 3000)
    power = {"too low": 1.5, "too high": 0.7}.get(fault, 1.0)
    u = rng.beta(1, 4, 60 * positives)
    labelled = u[rng.random(len(u)) < u][:positives]
    never = {"too low": ("are too high",), "too high": ("are too low",)}.get(fault, ())
    return PageWorld(cal.PositiveUnlabeled(labelled**power, rng.beta(1, 4, n) ** power, prior=0.2), {}, fault, never)


def judged(rng):
    """Answers with a confidence and judges of any kind, of which few have a gold label."""
    fault = fault_of(rng, ("none", "too low", "too high"))
    n = rows(rng, 200, 3000)
    truth = rng.beta(*((4, 2), (30, 1), (1, 1))[rng.integers(3)], n)
    p = truth ** {"too low": 1.8, "too high": 0.5}.get(fault, 1.0)
    if fault == "none" and rng.random() < 0.3:  # few levels
        truth = p = np.round(truth * 5) / 5
    right = rng.random(n) < truth
    kinds = [
        np.where(rng.random(n) < 0.9, right, ~right) * 1.0, rng.random(n), np.clip(0.3 + 0.4 * right, 0, 1),
        np.round(rng.normal(3 + right, 1)), np.where(rng.random(n) < 0.3, np.nan, right * 1.0),
    ]  # fmt: skip
    judge = np.column_stack([kinds[k] for k in rng.choice(5, rng.integers(1, 3), replace=False)])
    chance = np.full(n, min(1.0, float(rng.choice([15, 30, 60, 200, 600])) / n))
    weight = None
    if rng.random() < 0.3:
        chance = np.minimum(chance * rng.choice([0.5, 2.0], n), 1.0)
        weight = 1 / chance
    gold = np.where(rng.random(n) < chance, right * 1.0, np.nan)
    gold[:6] = right[:6]
    options = {"by": {"model": rng.integers(0, int(rng.choice([2, 4, 12])), n)}} if rng.random() < 0.5 else {}
    group = np.arange(n) // int(rng.choice([2, 5])) if rng.random() < 0.3 else None
    never = {"too low": ("Over-confident",), "too high": ("Under-confident",)}.get(fault, ())
    return PageWorld(cal.Judged(gold, p, judge=judge, weight=weight, group=group), options, fault, never)


#: How many of a hundred pages are of each kind; those of positive-unlabeled rows take a second each.
KINDS = {
    "binary": (binary, 45),
    "table": (table, 5),
    "multiclass": (multiclass, 12),
    "gaussian": (lambda rng: forecast(rng, "gaussian"), 12),
    "quantiles": (lambda rng: forecast(rng, "quantiles"), 11),
    "samples": (lambda rng: forecast(rng, "samples"), 8),
    "distribution": (lambda rng: forecast(rng, "distribution"), 4),
    "unlabeled": (unlabeled, 3),
}


def page_world(rng):
    """Data, options and truth of one page."""
    names, odds = list(KINDS), np.array([share for _, share in KINDS.values()], dtype=float)
    return KINDS[names[rng.choice(len(names), p=odds / odds.sum())]][0](rng)


def confidence(rng):
    """The confidence of a model in its answers."""
    world = binary(rng)
    data = world.data
    made = cal.Confidence(data.y_true, data.y_prob, weight=data.weight, group=data.group)
    words = {"too high": ("Over-confident",), "too low": ("Under-confident",)}
    return PageWorld(made, world.options, world.fault, words.get("".join(world.never), ()), world.details)


def tables(rng):
    """A table of all rows, with a table per group and per period."""
    n, fault = rows(rng), fault_of(rng, OF_EVENTS)
    z = scores(rng, n)
    q, never = probabilities_after(rng, fault, z)
    y, p = rng.random(n) < q, expit(z)

    def parts(number):
        which = rng.integers(0, number, n)
        return [made(which == k) for k in range(number)]

    def made(some):
        return cal.BinTable.of(cal.Binary(y[some], p[some]), cal.table.Distinct())

    options = {}
    if rng.random() < 0.6:
        options["by"] = {f"country = c{k}": one for k, one in enumerate(parts(int(rng.choice([2, 6]))))}
    if rng.random() < 0.6:
        options["time"] = {f"2026-{k + 1:02}": one for k, one in enumerate(parts(int(rng.choice([3, 9]))))}
    whole = cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct())
    return PageWorld(whole, options, fault, never, {"ratio": q.sum() / p.sum()})


def spreads(rng):
    """Forecasts as a table of their spreads."""
    world = forecast(rng, "gaussian")
    data = cal.Gaussian(world.data.y_true, world.data.mean, world.data.std)
    fault = world.fault if world.data.group is None else "clusters"  # of which a table knows nothing
    return PageWorld(cal.BinTable.of(data, cal.table.LogGrid()), {}, fault, world.never)


def with_more_options(rng, world):
    """The same rows with features, crossed or confirmed groups, dates and names; sometimes a segment is off."""
    data, options = world.data, dict(world.options)
    if isinstance(data, (cal.BinTable, cal.PositiveUnlabeled, cal.Judged)):
        return world
    n, fault = len(data), world.fault
    if rng.random() < 0.3:
        place = rng.choice(np.array(["a", "b", "c", None], dtype=object), n)
        options["audit"] = {"place": place, "age": rng.integers(18, 80, n), "x": rng.normal(size=n)}
        if fault == "none" and type(data) is cal.Binary and rng.random() < 0.5:
            off = expit(logit(np.clip(data.y_prob, 1e-12, 1 - 1e-12)) + rng.choice([-1.0, 1.0]))
            y = np.where(place == "a", rng.random(n) < off, data.y_true)
            data, fault = cal.Binary(y, data.y_prob, weight=data.weight, group=data.group), "segment"
    if rng.random() < 0.3:
        options.pop("by", None)
        options["by"] = {"shop": rng.choice(["x", "y", "z"], n), "amount": rng.lognormal(3, 1, n)}
        options["quantiles"] = int(rng.choice([2, 4]))
        options["depth"] = int(rng.choice([1, 2]))
        options["confirm"] = bool(rng.random() < 0.4)
    if "time" in options and rng.random() < 0.3:
        months = np.asarray(options["time"]["month"]) - 1
        options["time"] = {"day": np.datetime64("2026-01") + months.astype("timedelta64[M]")}
    if rng.random() < 0.1:
        options |= {"model": "model 7", "source": "scores.csv", "title": "A page"}
    return PageWorld(data, options, fault, world.never, world.details if fault == world.fault else {})


#: Every task, and every option of `calibrant.report`.
ALL_KINDS = KINDS | {
    "confidence": (confidence, 12),
    "judged": (judged, 8),
    "tables": (tables, 6),
    "spreads": (spreads, 3),
}


def any_page_world(rng):
    """Data, options and truth of one page, of any task and with any options."""
    names, odds = list(ALL_KINDS), np.array([share for _, share in ALL_KINDS.values()], dtype=float)
    return with_more_options(rng, ALL_KINDS[names[rng.choice(len(names), p=odds / odds.sum())]][0](rng))
