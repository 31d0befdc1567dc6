"""Frozen ends of intervals in small worlds, in each of which some constants of the inversion matter.

Each constant that names this test, doubled or halved, makes at least one of them fail.
"""

from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.numerics.cells import PooledCells


def ends(*intervals):
    return [end for one in intervals for end in (one.low, one.high)]


def binary(n, curve, scores=None, seed=0, level=0.95, draws=99, **columns):
    rng = np.random.default_rng(seed)
    p = rng.random(n) if scores is None else scores(rng, n)
    data = cal.Binary(rng.random(n) < np.clip(curve(p), 0, 1), p, **columns)
    return ends(*cal.inference.Inversion(draws).intervals(data, norms=(1.0, 2.0), level=level))


def rare(rng, n):
    return rng.beta(0.6, 30, n)


def levels(rng, n):
    return rng.integers(1, 20, n) / 20


def square_wave(p):
    return p + 0.06 * np.sign(np.sin(28 * np.pi * p)) * (np.abs(p - 0.5) < 0.4)


def large_table():
    rng = np.random.default_rng(0)
    count = rng.integers(1, 3, 9000) * 1000.0
    p = np.sort(rng.random(9000))
    cells = PooledCells.fine(np.stack([count, count, count, count * p, count * p]))
    return [len(cells.share), len(PooledCells.fine(np.ones((5, 6)) * 0.5).share)]


def spread(n, ratio, errors=None, seed=0, names=("ence", "uce"), spreads=None, level=0.95, **columns):
    rng = np.random.default_rng(seed)
    std = rng.lognormal(0, 0.5, n) if spreads is None else spreads(rng, n)
    noise = rng.normal(size=n) if errors is None else errors(rng, n)
    data = cal.Gaussian(ratio(std) * std * noise, np.zeros(n), std, **columns)
    found = [cal.interval(getattr(cal, name), data, level=level).interval for name in names]
    return [*ends(*found), float("too heavy" in found[0].assumption)]


def student(rng, n, freedom=3):
    return rng.standard_t(freedom, n)


lighter = partial(student, freedom=5)


def spread_steps(std):
    return np.exp(0.4 * np.sign(np.sin(6 * np.log(std))))


def classes(n, power, k=3, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    y = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    data = cal.Multiclass(np.minimum(y, k - 1), p**power / (p**power).sum(axis=1, keepdims=True))
    return ends(cal.inference.ClasswiseInversion(99).interval(data))


def one_class_wrong(n, k, kept):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(k), n)
    true = p.copy()
    true[:, 0], true[:, 1] = p[:, 0] * kept, p[:, 1] + (1 - kept) * p[:, 0]
    y = np.minimum((rng.random((n, 1)) > np.cumsum(true, axis=1)).sum(axis=1), k - 1)
    return ends(cal.inference.ClasswiseInversion(99).interval(cal.Multiclass(y, p)))


def lucky_classes():
    return ends(cal.inference.ClasswiseInversion(99).interval(cal.Multiclass([0, 1] * 50, np.full((100, 2), 0.5))))


def labels_in_proportion(n):
    p = np.sort(np.random.default_rng(0).random(n))
    data = cal.Multiclass((np.cumsum(p) % 1 < p).astype(int), np.stack([1 - p, p], axis=1))
    return ends(cal.inference.ClasswiseInversion(99).interval(data))


def coverage(n, scale, level=0.95):
    y = np.random.default_rng(0).normal(size=n)
    data = cal.Gaussian(y, np.zeros(n), np.full(n, scale))
    return ends(*(cal.interval(f, data, level=level).interval for f in (cal.interval_error, cal.pit_error)))


def unlabeled(positives, n, prior=0.4, beta=2, **options):
    rng = np.random.default_rng(0)
    data = cal.PositiveUnlabeled(rng.beta(beta, 1, positives), rng.random(n), prior=prior)
    return ends(cal.pu.PUInversion(**options).interval(data), cal.pu.PUInversion(**options).interval(data, norm=2))


def pair(kind, n=600, freedom=5, factor=0.7, **columns):
    rng = np.random.default_rng(0)
    if kind == "binary":
        p = rng.random(n)
        y = rng.random(n) < p
        a, b = cal.Binary(y, p**1.6, **columns), cal.Binary(y, np.clip(p + rng.normal(0, 0.05, n), 0, 1), **columns)
        found = [cal.compare(partial(cal.ece, norm=norm), a, b) for norm in (1, 2)]
    elif kind == "steps":
        p = rng.random(n)
        y = rng.random(n) < (np.floor(5 * p) + 0.5) / 5
        found = [cal.compare(partial(cal.ece, norm=2), cal.Binary(y, p), cal.Binary(y, p**1.1))]
    elif kind == "bent":
        p = rng.random(n)
        y = rng.random(n) < p
        found = [cal.compare(partial(cal.ece, norm=2), cal.Binary(y, p), cal.Binary(y, p**1.3))]
    elif kind == "no event":
        y = np.zeros(n, int)
        found = [cal.compare(partial(cal.ece, norm=2), cal.Binary(y, rare(rng, n)), cal.Binary(y, rare(rng, n)))]
    elif kind == "spreads":
        std = rng.uniform(0.5, 1.5, n)
        y = std * rng.standard_t(freedom, n)
        a, b = (cal.Gaussian(y, np.zeros(n), wrong) for wrong in (factor * std, std**2))
        found = [cal.compare(cal.ence, a, b)]
    else:
        p = rng.dirichlet([1, 1, 1], n)
        y = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
        sharp = cal.Multiclass(y, p**1.5 / (p**1.5).sum(axis=1, keepdims=True))
        found = [cal.compare(cal.variational_error, sharp, cal.Multiclass(y, p))]
    return [*ends(*(one.interval for one in found)), *(one.p_value for one in found)]


CASES = {
    "bent": partial(binary, 2000, lambda p: p**1.3),
    "bent, 300": partial(binary, 300, lambda p: p**1.3),
    "calibrated": partial(binary, 1000, lambda p: p),
    "rare": partial(binary, 1000, lambda p: 2 * p, rare),
    "rare, large": partial(binary, 20_000, lambda p: p, rare),
    "rare, 100": partial(binary, 100, lambda p: p, rare),
    "square wave": partial(binary, 20_000, square_wave, seed=4),
    "wave": partial(binary, 20_000, lambda p: p + 0.3 * np.sin(14 * np.pi * p) * p * (1 - p)),
    "small wave": partial(binary, 2000, lambda p: p + 0.6 * np.sin(14 * np.pi * p) * p * (1 - p)),
    "levels": partial(binary, 1000, lambda p: p + 0.08 * (-1) ** np.round(20 * p), levels),
    "far from zero": partial(binary, 20_000, lambda p: p**3),
    "far from zero, 3000": partial(binary, 3000, lambda p: p**3),
    "reversed, rare": partial(binary, 100, lambda p: 1 - p, rare),
    "no event, rare": partial(binary, 1000, lambda p: 0 * p, rare),
    "30 rows": partial(binary, 30, lambda p: p**3, seed=2),
    "two scores": partial(binary, 40, lambda p: 1 - p, lambda rng, n: rng.choice([0.2, 0.7], n)),
    "no event": partial(binary, 50, lambda p: 0 * p, lambda rng, n: np.zeros(n)),
    "clusters": partial(binary, 300, lambda p: p**1.5, group=np.arange(300) // 5),
    "many clusters": partial(binary, 3000, lambda p: p**1.5, group=np.arange(3000) // 2),
    "uneven clusters": partial(binary, 300, lambda p: p**1.5, group=np.minimum(np.arange(300) // 5, 20)),
    "six clusters": partial(binary, 300, lambda p: p**3, group=np.arange(300) // 50),
    "three clusters": partial(binary, 300, lambda p: p**3, group=np.arange(300) // 100),
    "one large cluster": partial(binary, 300, lambda p: p**3, group=np.maximum(np.arange(300) - 230, 0)),
    "level 0.99": partial(binary, 400, lambda p: p**1.5, level=0.99),
    "level 0.9999": partial(binary, 400, lambda p: p**1.5, level=0.9999),
    "cells of a large table": large_table,
    "spread 1.3": partial(spread, 1000, lambda s: 1.3),
    "spread, sloped": partial(spread, 1000, lambda s: s**0.5),
    "spread, calibrated": partial(spread, 300, lambda s: 1.0),
    "spread, step": partial(spread, 3000, lambda s: np.where(s > 1, 0.8, 1.25)),
    "spread, steps": partial(spread, 4000, spread_steps),
    "spread, top tenth": partial(spread, 1000, lambda s: np.where(s > 1.9, 1.6, 1.0)),
    "spread, heavy tails": partial(spread, 1000, lambda s: 1.0, student),
    "spread, heavier tails": partial(spread, 5000, lambda s: 1.0, lambda rng, n: rng.standard_t(2.2, n)),
    "spread, few": partial(spread, 60, lambda s: 1.3, student),
    "spread, levels": partial(spread, 400, lambda s: s, spreads=lambda rng, n: rng.choice([0.5, 0.8, 1.0, 2.0], n)),
    "spread, 100 steps": partial(spread, 100, lambda s: np.where(s > 1, 0.8, 1.25), lighter),
    "spread, 100 sloped": partial(spread, 100, lambda s: s**0.5),
    "spread, 100 sloped, tails": partial(spread, 100, lambda s: s**0.5, lighter),
    "spread, 100 calibrated, tails": partial(spread, 100, lambda s: 1.0, lighter),
    "spread, 400 calibrated": partial(spread, 400, lambda s: 1.0),
    "spread, steps, tails": partial(spread, 2000, spread_steps, lighter),
    "spread, 4000 calibrated, tails": partial(spread, 4000, lambda s: 1.0, partial(student, freedom=4), seed=3),
    "spread, level 0.5": partial(spread, 100, lambda s: s**0.5, level=0.5),
    "spread, level 0.999": partial(spread, 1000, lambda s: s**0.5, level=0.999),
    "classes": partial(classes, 600, 2.0),
    "classes, calibrated": partial(classes, 600, 1.0),
    "one class wrong": partial(one_class_wrong, 1000, 6, 0.3),
    "one of eight classes wrong": partial(one_class_wrong, 300, 8, 0.5),
    "labels in proportion": partial(labels_in_proportion, 200),
    "lucky classes": lucky_classes,
    "coverage": partial(coverage, 400, 0.8),
    "coverage, calibrated": partial(coverage, 100, 1.0),
    "coverage, far from zero": partial(coverage, 2000, 0.5),
    "coverage, 0.9999": partial(coverage, 400, 0.8, level=0.9999),
    "unlabeled": partial(unlabeled, 300, 2000),
    "unlabeled, calibrated": partial(unlabeled, 200, 1000, prior=0.5, beta=2),
    "unlabeled, level of the mean": partial(unlabeled, 100, 1000, prior=0.47),
    "unlabeled, many": partial(unlabeled, 4000, 20_000, prior=0.45),
    "unlabeled, 2500 positives": partial(unlabeled, 2500, 20_000, beta=1.5),
    "unlabeled, a prior between 0.2 and 0.8": partial(unlabeled, 300, 2000, prior_interval=(0.2, 0.8)),
    "unlabeled, a prior between": partial(unlabeled, 300, 2000, prior_interval=(0.3, 0.5)),
    "compare": partial(pair, "binary"),
    "compare clusters": partial(pair, "binary", group=np.arange(600) // 5),
    "compare stairs": partial(pair, "steps", 4000),
    "compare 12 stairs": partial(pair, "steps", 12),
    "compare 12 bent": partial(pair, "bent", 12),
    "compare bent": partial(pair, "bent", 8000),
    "compare rare": partial(pair, "no event", 300),
    "compare spreads": partial(pair, "spreads"),
    "compare spreads, heavy tails": partial(pair, "spreads", 1000, 3),
    "compare wide spreads": partial(pair, "spreads", 200, 5, 1.2),
    "compare classes": partial(pair, "classes"),
}  # fmt: skip

FROZEN = {
    "bent": [0.0429856, 0.0988389, 0.056162, 0.108468],
    "bent, 300": [0.03165, 0.15718, 0.03165, 0.167721],
    "calibrated": [0.0, 0.0599012, 0.0, 0.0672301],
    "rare": [0.000762626, 0.0322311, 0.000762626, 0.061271],
    "rare, large": [0.0, 0.00721712, 0.0, 0.0101135],
    "rare, 100": [0.0, 0.0511504, 0.0, 0.0683846],
    "square wave": [0.0270567, 0.0503656, 0.0387959, 0.0617401],
    "wave": [0.0135161, 0.0383969, 0.0263276, 0.0437528],
    "small wave": [0.047389, 0.115345, 0.0647034, 0.13422],
    "levels": [0.0536221, 0.12377, 0.0706311, 0.132483],
    "far from zero": [0.244354, 0.254541, 0.268655, 0.280343],
    "far from zero, 3000": [0.237941, 0.265792, 0.26705, 0.296825],
    "reversed, rare": [0.931791, 0.974665, 0.954779, 0.975119],
    "no event, rare": [0.0151142, 0.0293058, 0.0143944, 0.0458051],
    "30 rows": [0.258697, 0.526249, 0.264107, 0.5791],
    "two scores": [0.324177, 0.642163, 0.340203, 0.646537],
    "no event": [0.0, 0.0935017, 0.0, 0.0935017],
    "clusters": [0.0615143, 0.18373, 0.0615143, 0.199941],
    "many clusters": [0.0880676, 0.125438, 0.100035, 0.138962],
    "uneven clusters": [0.0, 0.270117, 0.0, 0.270117],
    "six clusters": [0.100904, 0.342768, 0.100904, 0.36341],
    "three clusters": [0.0, 0.758163, 0.0, 0.772656],
    "one large cluster": [0.0, 0.758163, 0.0, 0.771976],
    "level 0.99": [0.0492146, 0.172368, 0.0512831, 0.18554],
    "level 0.9999": [0.025864, 0.201889, 0.025864, 0.235337],
    "cells of a large table": [1024.0, 3.0],
    "spread 1.3": [0.25634, 0.40682, 0.878003, 1.85327, 0.0],
    "spread, sloped": [0.152, 0.28633, 1.00473, 2.79302, 0.0],
    "spread, calibrated": [0.0, 0.161327, 0.0, 0.858446, 0.0],
    "spread, step": [0.162729, 0.225958, 0.423337, 0.6722, 0.0],
    "spread, steps": [0.356337, 0.492284, 1.07684, 1.83684, 0.0],
    "spread, top tenth": [0.02897, 0.187392, 0.605348, 2.14644, 0.0],
    "spread, heavy tails": [0.436407, 0.918847, 1.07047, 3.52723, 1.0],
    "spread, heavier tails": [1.10934, 4.43453, 3.39765, 50.235, 1.0],
    "spread, few": [0.522511, 2.28124, 0.659888, 15.7724, 1.0],
    "spread, levels": [0.291925, 0.566146, 1.94685, 5.3482, 0.0],
    "spread, 100 steps": [0.138788, 0.991629, 0.0, 2.38328, 0.0],
    "spread, 100 sloped": [0.0644415, 0.424596, 0.0110831, 2.74482, 0.0],
    "spread, 100 sloped, tails": [0.0, 0.430443, 0.0, 4.02506, 0.0],
    "spread, 100 calibrated, tails": [0.0, 0.448154, 0.0, 1.34173, 1.0],
    "spread, 400 calibrated": [0.0, 0.145173, 0.0, 0.778424, 0.0],
    "spread, steps, tails": [0.385049, 0.731983, 1.12302, 3.42105, 1.0],
    "spread, 4000 calibrated, tails": [0.338469, 0.534572, 1.13084, 2.29912, 1.0],
    "spread, level 0.5": [0.118215, 0.346322, 0.472384, 1.85935, 0.0],
    "spread, level 0.999": [0.101754, 0.315787, 0.604019, 3.43182, 0.0],
    "classes": [0.0733837, 0.134426],
    "classes, calibrated": [0.0, 0.044074],
    "one class wrong": [0.0327372, 0.0637945],
    "one of eight classes wrong": [0.0139457, 0.0545035],
    "labels in proportion": [0.0, 0.0940754],
    "lucky classes": [0.0, 0.131425],
    "coverage": [0.0400337, 0.107361, 0.0138043, 0.110902],
    "coverage, calibrated": [0.0, 0.0714603, 0.0, 0.131069],
    "coverage, far from zero": [0.193403, 0.22133, 0.150115, 0.191878],
    "coverage, 0.9999": [0.0, 0.154544, 0.0, 0.152365],
    "unlabeled": [0.0741168, 0.105607, 0.0741168, 0.171081],
    "unlabeled, calibrated": [0.0, 0.175205, 0.0, 0.227118],
    "unlabeled, level of the mean": [0.0, 0.130984, 0.0, 0.188285],
    "unlabeled, many": [0.0456183, 0.0548021, 0.0456183, 0.0672442],
    "unlabeled, 2500 positives": [0.129509, 0.158304, 0.159678, 0.193278],
    "unlabeled, a prior between 0.2 and 0.8": [0.0, 0.326761, 0.0, 0.402725],
    "unlabeled, a prior between": [0.0, 0.204219, 0.0, 0.263869],
    "compare": [0.0620667, 0.172941, 0.045031, 0.232122, 8.5479e-05, 0.000456428],
    "compare clusters": [0.0617813, 0.170019, 0.0355869, 0.235725, 0.000113296, 0.0010336],
    "compare stairs": [-0.0235859, 0.00306961, 0.095834],
    "compare 12 stairs": [-0.0615947, 0.0912286, 0.511635],
    "compare 12 bent": [-0.232277, 0.210568, 1.0],
    "compare bent": [-0.0731025, -0.0195449, 1.30049e-06],
    "compare rare": [-0.0463266, 0.0463478, 1.0],
    "compare spreads": [0.297116, 0.604504, 9.34242e-09],
    "compare spreads, heavy tails": [0.432006, 0.69849, 7.85396e-15],
    "compare wide spreads": [-0.810181, -0.257063, 0.00226208],
    "compare classes": [0.151418, 0.390525, 8.90006e-06],
}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", CASES)
def test_ends_are_as_frozen(name):
    assert CASES[name]() == pytest.approx(FROZEN[name], rel=2e-3, abs=2e-5)
