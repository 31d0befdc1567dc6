"""Worlds that pages seldom see: rounded, rare, certain or repeated scores, late drift, few members, ties, ...

Rules and sentences were first chosen on the worlds of `page_worlds`.
"""

import numpy as np
from scipy import stats

import calibrant as cal
from tests.fuzz.page_worlds import NEVER, PageWorld, drawn_together, expit, fault_of, probabilities_after, rows


def with_outcomes(rng, p, q, *, fault, seen=None, never=(), options=None, weight=None, group=None):
    """A page of scores p and true probabilities q; `seen` is the mean of q given p, where it is another number."""
    y, share = drawn_together(rng, len(p), group) < q, np.ones(len(p)) if weight is None else weight
    error = share @ np.abs((q if seen is None else seen) - p) / share.sum()
    truth = {"ratio": (share @ q) / (share @ p), "error": error}
    return PageWorld(cal.Binary(y, p, weight=weight, group=group), options or {}, fault, never, truth)


def strange_fault(rng, z, faults=("shift up", "shift down", "too extreme", "too moderate")):
    """A fault of one of these kinds or, half of the time, none: with the true probabilities and the opposite words."""
    fault = fault_of(rng, ("none", *faults))
    q, never = probabilities_after(rng, fault, z)
    return {"q": q, "fault": fault, "never": never}


def high_scores_of_one_group(rng):
    p, inside = rng.beta(2, 2, n := rows(rng, 300)), rng.random(n) < 0.3
    some = {"by": {"group": np.where(inside, "a", "b")}} if rng.random() < 0.5 else {}
    q, seen = (np.where((p > 0.7) & one, p - by, p) for one, by in ((inside, 0.3), (True, 0.09)))
    return with_outcomes(rng, p, q, fault="one group", seen=seen, never=("too low",), options=some)


def odds_of_three_digits(rng):
    z = np.array([float(f"{one:.3g}") for one in rng.normal(-1, 2, rows(rng))])
    return with_outcomes(rng, expit(z), **strange_fault(rng, z))


def repeated_rows(rng):
    once, z = np.arange(n := rows(rng, 100)), rng.normal(-0.5, 1.2, n)
    row = np.sort(np.concatenate([once, rng.choice(once, int(0.3 * n))]))
    found = with_outcomes(rng, expit(z), **strange_fault(rng, z))
    data = cal.Binary(found.data.y_true[row], expit(z[row]), group=row)
    return PageWorld(data, {}, found.fault, found.never, found.details)


def drift_at_the_end(rng):
    z, many = rng.normal(-1, 1, n := rows(rng, 500)), int(rng.choice([10, 20]))
    period, fault = np.arange(n) * many // n, str(rng.choice(["none", "drift"]))
    last, by = period >= 0.9 * many, float(fault == "drift")
    seen = expit(z) + 0.1 * (expit(z + by) - expit(z))
    options = {"time": {"week": period + 1}}
    return with_outcomes(rng, expit(z), expit(z + by * last), fault=fault, seen=seen, options=options)


def one_in_three_thousand(rng):
    p, part = expit(rng.normal(-8.6, 1, 200_000)), float(rng.choice([1, 1, 2, 1 / 3]))
    never = {1.0: (), 2.0: ("too high",)}.get(part, ("too low",))
    return with_outcomes(rng, p, part * p, fault="none" if part == 1 else f"times {part:.1f}", never=never)


def close_to_a_half(rng):
    p, fault = rng.uniform(0.49, 0.51, rows(rng)), fault_of(rng, ("none", "too moderate", "too low"))
    q = {"none": p, "too moderate": 0.5 + 12 * (p - 0.5), "too low": p + 0.05}[fault]
    never = {"too moderate": ("too extreme",), "too low": ("too high",)}.get(fault, ())
    return with_outcomes(rng, p, q, fault=fault, never=never)


def two_clusters(rng):
    z = rng.normal(0, 1, 1030)
    return with_outcomes(rng, expit(z), **strange_fault(rng, z), group=np.repeat([0, 1], [1000, 30]))


def one_large_cluster(rng):
    group = np.repeat(np.arange(41), [int(rng.choice([100, 600])), *[20] * 40])
    z, period = rng.normal(-0.5, 1, len(group)), 1 + np.arange(len(group)) * 8 // len(group)
    options = {"time": {"month": period}, "by": {"shop": rng.choice(["x", "y"], len(z))}}
    return with_outcomes(rng, expit(z), **strange_fault(rng, z), group=group, options=options)


def rows_that_stand_for_several(rng):
    z = rng.normal(-1, 1, n := rows(rng, 100))
    return with_outcomes(rng, expit(z), **strange_fault(rng, z), weight=rng.integers(1, 5, n).astype(float))


def a_threshold_among_rare_events(rng):
    z, options = rng.normal(-4.5, 1.2, rows(rng, 500)), {"threshold": float(rng.choice([0.02, 0.05, 0.2]))}
    return with_outcomes(rng, expit(z), **strange_fault(rng, z, ("shift up", "shift down")), options=options)


def a_tolerance_near_the_error(rng):
    p, options = rng.uniform(0.1, 0.9, rows(rng, 500)), {"tolerance": float(rng.choice([0.01, 0.03, 0.05, 0.1]))}
    return with_outcomes(rng, p, p - 0.04, fault="shift down", never=("too low",), options=options)


def one_number(rng):
    by = float(rng.choice([0, 0, 0.05, -0.05]))
    p, never = np.full(rows(rng), 0.2), {0.05: ("too high",), -0.05: ("too low",)}.get(by, ())
    return with_outcomes(rng, p, p + by, fault="shift" if by else "none", never=never)


def decisions_with_wrong_labels(rng):
    p = (rng.random(rows(rng)) < 0.3).astype(float)
    return with_outcomes(rng, p, np.abs(p - 0.07), fault="decisions")


def events_where_none_can_be(rng):
    p, never = expit(rng.normal(-1, 1.5, n := rows(rng, 300))), rng.random(n) < 0.03
    return with_outcomes(rng, np.where(never, 0.0, p), np.where(never, 0.1, p), fault="zeros", never=("too high",))


def heavy_tails_of_odds(rng):
    z = 1.2 * rng.standard_t(2, rows(rng, 100))
    return with_outcomes(rng, expit(z), **strange_fault(rng, z))


def nearly_certain(rng):
    z = np.where(
        rng.random(n := rows(rng, 100)) < 0.5, rng.normal(0, 1, n), rng.choice([-1, 1], n) * rng.uniform(15, 30, n)
    )
    return with_outcomes(rng, expit(z), **strange_fault(rng, z, ("shift up", "shift down")))


def fitted_on_the_same_rows(rng):
    z = rng.normal(-1, 1, rows(rng, 200))
    y = rng.random(len(z)) < expit(z)
    p = cal.recalibrate.Platt().fit(expit(2 * z + 1), y).transform(expit(2 * z + 1))
    truth = {"ratio": expit(z).sum() / p.sum(), "error": np.abs(expit(z) - p).mean()}
    return PageWorld(cal.Binary(y, p), {}, "none", (), truth)


#: Worlds of probabilities.
UNUSUAL = (
    high_scores_of_one_group, odds_of_three_digits, repeated_rows, drift_at_the_end, one_in_three_thousand,
    close_to_a_half, two_clusters, one_large_cluster, rows_that_stand_for_several, a_threshold_among_rare_events,
    a_tolerance_near_the_error, one_number, decisions_with_wrong_labels, events_where_none_can_be, heavy_tails_of_odds,
    nearly_certain, fitted_on_the_same_rows,
)  # fmt: skip


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


def in_time(rng, n, kind):
    """Calibrated rows whose errors hang together in time."""
    mean, std = means_and_spreads(rng, n)
    z = rng.normal(size=n)
    for i in range(1, n):
        z[i] = 0.9 * z[i - 1] + np.sqrt(1 - 0.9**2) * z[i]
    fault = "time"  # of which rows as if independent know nothing
    return PageWorld(as_forecast(rng, kind, mean + std * z, mean, std), {}, fault)


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
#: Worlds of forecasts, vectors, answers and shares, each with its kinds.
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
    if rng.random() < len(UNUSUAL) / (len(UNUSUAL) + len(STRANGE)):
        return UNUSUAL[rng.integers(len(UNUSUAL))](rng)
    made = list(STRANGE)[rng.integers(len(STRANGE))]
    return made(rng, rows(rng, 100, 2000), str(rng.choice(STRANGE[made])))
