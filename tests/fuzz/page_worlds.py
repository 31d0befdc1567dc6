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


def as_forecast(rng, kind, y, mean, std, law=None, members=20, levels=(0.05, 0.25, 0.5, 0.75, 0.95), **given):
    """Forecasts of one standardised law as means and spreads, quantiles, draws, or the law itself."""
    law = stats.norm() if law is None else law
    if kind == "gaussian":
        return cal.Gaussian(y, mean + std * law.mean(), std * law.std(), **given)
    if kind == "distribution":
        return cal.Distribution(y, law.dist(*law.args, loc=mean, scale=std), **given)
    if kind == "samples":
        draws = law.rvs(size=(len(y), members), random_state=rng)
        return cal.Samples(y, mean[:, None] + std[:, None] * draws, **given)
    return cal.Quantiles(y, levels, mean[:, None] + std[:, None] * law.ppf(levels), **given)


def means_and_spreads(rng, n):
    return rng.normal(0, 3, n), np.exp(0.5 * rng.standard_normal(n))


def biased_groups(rng, n, kind, shift=(0.5, -0.5, 0.0, 0.0)):
    """Groups whose biases add up to none, or one of forty that are small."""
    mean, std = means_and_spreads(rng, n)
    g = rng.integers(0, len(shift), n)
    words = {f"g{k}": "too low" if by > 0 else "too high" for k, by in enumerate(shift) if by}
    y = mean + std * (np.array(shift)[g] + rng.normal(size=n))
    options = {"by": {"region": np.array([f"g{k}" for k in range(len(shift))])[g]}}
    return PageWorld(as_forecast(rng, kind, y, mean, std), options, "groups", (), {"groups": words})


def small_groups(rng, n, kind):
    return biased_groups(rng, n, kind, (1.2, *(0.0,) * (n // 40)))


def far_means(rng, n, kind):
    """A bias that grows with the predicted mean, so that no shift repairs it."""
    mean, std = means_and_spreads(rng, n)
    return PageWorld(as_forecast(rng, kind, 0.9 * mean + std * rng.normal(size=n), mean, std), {}, "far means")


def two_horizons(rng, n, kind):
    """Spreads that are too wide at one horizon, too narrow at the other, and right on average."""
    mean, std = means_and_spreads(rng, n)
    horizon = rng.integers(1, 3, n)
    y = mean + std * np.array([0.75, np.sqrt(2 - 0.75**2)])[horizon - 1] * rng.normal(size=n)
    words = {"1": "too wide", "2": "too narrow"}
    return PageWorld(
        as_forecast(rng, kind, y, mean, std), {"by": {"horizon": horizon}}, "groups", (), {"groups": words}
    )


def ensembles(rng, n, kind, factor=None):
    """Two, three or two hundred members."""
    mean, std = means_and_spreads(rng, n)
    factor = float(rng.choice([1.0, 1.0, 0.7, 1.5])) if factor is None else factor
    fault = "none" if factor == 1 else "too narrow" if factor > 1 else "too wide"
    data = as_forecast(rng, "samples", mean + factor * std * rng.normal(size=n), mean, std, members=int(kind))
    return PageWorld(data, {}, fault, NEVER.get(fault, ()))


def counts(rng, n, kind, dispersion=None):
    """Counts of a Poisson distribution, or of twice its variance."""
    rate = rng.gamma(2.0, size=n) + 0.3
    more = bool(rng.random() < 0.3) if dispersion is None else dispersion > 1
    y = (stats.nbinom(rate, 0.5) if more else stats.poisson(rate)).rvs(size=n, random_state=rng).astype(float)
    law, levels = stats.poisson(rate), (0.05, 0.25, 0.5, 0.75, 0.95)
    data = {
        "distribution": lambda: cal.Distribution(y, law),
        "samples": lambda: cal.Samples(y, np.stack([law.rvs(size=n, random_state=rng) for _ in range(20)], 1)),
        "quantiles": lambda: cal.Quantiles(y, levels, np.stack([law.ppf(q) for q in levels], 1)),
    }[kind]()
    return PageWorld(data, {}, "too narrow" if more else "none", NEVER["too narrow"] if more else ())


def crossing(rng, n, kind):
    """Quantiles of which a few cross, and are sorted."""
    mean, std = means_and_spreads(rng, n)
    levels = (0.1, 0.45, 0.5, 0.55, 0.9)
    values = mean[:, None] + std[:, None] * stats.norm.ppf(levels)
    values[rng.random(n) < 0.03] += 0.1 * rng.normal(size=5)
    return PageWorld(cal.Quantiles(mean + std * rng.normal(size=n), levels, values, sort=True), {}, "none")


def heavy(rng, n, kind):
    """Student's t with 2.5 degrees of freedom, of which a normal distribution has the right variance at most."""
    mean, std = means_and_spreads(rng, n)
    law = stats.t(2.5)
    y = mean + std * law.rvs(size=n, random_state=rng)
    return PageWorld(as_forecast(rng, kind, y, mean, std, law), {}, "shape" if kind == "gaussian" else "none")


def mostly_zero(rng, n, kind):
    """Outcomes that are 0 in two of five rows; a normal distribution has the right mean and variance."""
    scale, levels = rng.gamma(2.0, size=n) + 0.5, np.arange(1, 10) / 10

    def drawn(*size):
        return scale.reshape(-1, *(1,) * (len(size) - 1)) * np.where(
            rng.random(size) < 0.4, 0.0, rng.gamma(2.0, size=size)
        )

    if kind == "samples":
        return PageWorld(cal.Samples(drawn(n), drawn(n, 15)), {}, "none")
    if kind == "quantiles":
        inner = stats.gamma(2.0).ppf(np.clip((levels - 0.4) / 0.6, 0, 1))
        return PageWorld(cal.Quantiles(drawn(n), levels, scale[:, None] * inner), {}, "none")
    return PageWorld(cal.Gaussian(drawn(n), 1.2 * scale, np.sqrt(2.16) * scale), {}, "shape")


def in_time(rng, n, kind, of="errors"):
    """Calibrated rows whose errors, or whose sizes of errors, hang together in time."""
    mean, std = means_and_spreads(rng, n)
    z = rng.normal(size=n)
    for i in range(1, n):
        z[i] = 0.9 * z[i - 1] + np.sqrt(1 - 0.9**2) * z[i]
    return PageWorld(as_forecast(rng, kind, mean + std * z, mean, std), {}, "none")


def one_cluster(rng, n, kind):
    """Half of the rows belong to one cluster, and clusters share their luck."""
    mean, std = means_and_spreads(rng, n)
    group = np.where(np.arange(n) < n // 2, 0, 1 + np.arange(n) // 10)
    z = np.sqrt(0.5) * (rng.normal(size=n)[group] + rng.normal(size=n))
    return PageWorld(as_forecast(rng, kind, mean + std * z, mean, std, group=group), {}, "none")


def few(rng, n, kind, factor=None):
    """Twenty-five rows."""
    mean, std = means_and_spreads(rng, 25)
    factor = float(rng.choice([1.0, 1.0, 2.0])) if factor is None else factor
    fault = "none" if factor == 1 else "too narrow"
    data = as_forecast(rng, kind, mean + factor * std * rng.normal(size=25), mean, std)
    return PageWorld(data, {}, fault, NEVER.get(fault, ()))


def heavily_weighted(rng, n, kind, factor=None):
    """Weights of which a few are large."""
    mean, std = means_and_spreads(rng, n)
    factor = float(rng.choice([1.0, 1.0, 1.4])) if factor is None else factor
    fault = "none" if factor == 1 else "too narrow"
    y, weight = mean + factor * std * rng.normal(size=n), rng.lognormal(0, 1.0, n)
    return PageWorld(as_forecast(rng, kind, y, mean, std, weight=weight), {}, fault, NEVER.get(fault, ()))


def vectors(rng, n, kind):
    """Classes of which one never occurs, is off alone, or was predicted impossible; and labels with noise."""
    many = 10 if kind == "one wrong class" else 5
    z = rng.standard_normal((n, many)) - (np.arange(many) == many - 1) * (5.0 if kind == "no such class" else 0.0)
    shown = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    truth = np.exp(z + (np.arange(many) == 3) * (0.8 if kind == "one wrong class" else 0.0))
    if kind == "impossible class":
        gone = rng.random(n) < 0.2
        shown[gone, 2] = 0.0
        shown /= shown.sum(axis=1, keepdims=True)
    if kind == "no such class":
        truth[:, -1] = 0.0
    truth /= truth.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, many - 1)
    if kind == "label noise":
        y = np.where(rng.random(n) < 0.2, rng.integers(0, many, n), y)
    fault = "none" if kind in ("no fault", "no such class") else kind
    never = ("Under-confident",) if kind == "label noise" else ()
    return PageWorld(cal.Multiclass(np.arange(many)[y], shown), {}, fault, never)


def noisy_answers(rng, n, kind):
    """Confidence in answers whose judgements are wrong in one of five."""
    p = rng.beta(6, 2, n)
    right = rng.random(n) < p
    right ^= rng.random(n) < (0.2 if kind == "label noise" else 0.0)
    never = ("Under-confident",) if kind == "label noise" else ()
    return PageWorld(cal.Confidence(right, p), {}, "too high" if never else "none", never)


def shares(rng, n, kind):
    """Positive and unlabeled rows with few labels, or an assumed share that is half or twice the true one."""
    u = rng.beta(1, 4, 60 * n)
    labelled = u[rng.random(len(u)) < u][: 25 if kind == "few labels" else max(n // 3, 60)]
    prior = {"too small": 0.1, "too large": 0.35}.get(kind, 0.2)
    fault = "none" if kind in ("few labels", "right") else "share"
    return PageWorld(cal.PositiveUnlabeled(labelled, rng.beta(1, 4, n), prior=prior), {}, fault)


FORECAST_KINDS = ("gaussian", "quantiles", "samples", "distribution")
#: Worlds unlike those above, each with its kinds.
STRANGE = {
    biased_groups: FORECAST_KINDS,
    small_groups: FORECAST_KINDS,
    far_means: FORECAST_KINDS,
    two_horizons: FORECAST_KINDS,
    ensembles: ("2", "3", "200"),
    counts: ("distribution", "samples", "quantiles"),
    crossing: ("quantiles",),
    heavy: FORECAST_KINDS,
    mostly_zero: ("gaussian", "quantiles", "samples"),
    in_time: FORECAST_KINDS,
    one_cluster: FORECAST_KINDS,
    few: FORECAST_KINDS,
    heavily_weighted: FORECAST_KINDS,
    vectors: ("no fault", "no such class", "one wrong class", "impossible class", "label noise"),
    noisy_answers: ("label noise", "none"),
    shares: ("few labels", "too small", "too large", "right"),
}


def strange_page_world(rng):
    """Data, options and truth of one page of a strange world."""
    made = list(STRANGE)[rng.integers(len(STRANGE))]
    return made(rng, rows(rng, 100, 2000), str(rng.choice(STRANGE[made])))
