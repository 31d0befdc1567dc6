"""The data sets that the frozen calls are made on, each from a fixed seed."""

from functools import cache
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import expit, logit, softmax

import calibrant as cal


@cache
def samples() -> dict[str, Any]:
    """Predictions of every task, by name."""
    y, p, _ = _binary(300, 1)
    data: dict[str, Any] = {"small": cal.Binary(y, p)}
    y, p, rng = _binary(2000, 2, wave=0.5)
    data["medium"] = cal.Binary(y, p)
    data["calibrated"] = cal.Binary((rng.random(1000) < p[:1000]).astype(int), p[:1000])
    data["rounded"] = cal.Binary(y[:800], np.round(p[:800], 1))
    data["weighted"] = cal.Binary(y[:600], p[:600], weight=rng.uniform(0.2, 3, 600))
    data["clustered"] = cal.Binary(y[:600], p[:600], group=np.arange(600) // 4)
    data["single"] = cal.Binary(y[:500], p[:500].astype(np.float32))
    data["table"] = cal.BinTable.of(cal.Binary(y, p), cal.table.HybridGrid(1024))
    data["classes"] = _classes(rng)
    data["top"] = data["classes"].top_label()
    return data | _forecasts(rng) | _unlabeled(rng)


def _binary(n: int, seed: int, *, wave: float = 0.0) -> tuple[Any, Any, np.random.Generator]:
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1.6, n)
    true = expit(0.6 * x - 0.3 + wave * np.sin(4 * x))
    return (rng.random(n) < true).astype(int), expit(x), rng


def _classes(rng: np.random.Generator) -> cal.Multiclass:
    logits = rng.normal(0, 1.5, (900, 4))
    label = (softmax(0.6 * logits, axis=1).cumsum(1) > rng.random((900, 1))).argmax(1)
    return cal.Multiclass(label, softmax(logits, axis=1))


def _forecasts(rng: np.random.Generator) -> dict[str, Any]:
    std, mean = np.exp(rng.normal(0, 0.5, 500)), rng.normal(0, 2, 500)
    y = mean + 1.3 * std * rng.standard_t(6, 500)
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    return {
        "gaussian": cal.Gaussian(y, mean, std),
        "gaussian clusters": cal.Gaussian(y, mean, std, group=np.arange(500) // 5),
        "quantiles": cal.Quantiles(y, levels, mean[:, None] + std[:, None] * stats.norm.ppf(levels)),
        "ensemble": cal.Samples(y[:300], mean[:300, None] + std[:300, None] * rng.normal(size=(300, 20))),
        "distribution": cal.Distribution(y[:200], stats.norm(mean[:200], std[:200])),
    }


def _unlabeled(rng: np.random.Generator) -> dict[str, Any]:
    score = rng.beta(2, 5, 3000)
    event = rng.random(3000) < np.clip(1.2 * score, 0, 1)
    seen = event & (rng.random(3000) < 0.4)
    return {
        "unlabeled": cal.PositiveUnlabeled(score[:1500][event[:1500]], score[1500:], prior=float(event.mean())),
        "one sample": cal.PositiveUnlabeled.from_labels(seen, score, scenario="single-sample", label_frequency=0.4),
    }


#: Name, rows and shape of the worlds in which the rules of the default interval differ.
WORLDS = {
    "one score": (200, "one"),
    "two scores": (400, "two"),
    "rare": (4000, "rare"),
    "square wave": (8000, "square"),
    "step": (2000, "step"),
    "steep": (1000, "steep"),
    "tiny": (40, "steep"),
    "fine wave": (5000, "fine"),
    "large": (20000, "shift"),
}


def world(name: str) -> cal.Binary:
    """A sample of one of `WORLDS`."""
    n, kind = WORLDS[name]
    rng = np.random.default_rng(len(kind) * 1000 + n)
    p = rng.random(n)
    if kind == "one":
        p = np.full(n, 0.3)
    elif kind == "two":
        p = rng.choice([0.2, 0.6], n)
    elif kind == "rare":
        p = np.minimum(rng.lognormal(-5, 1, n), 0.9)
    gap = {
        "one": 0.05,
        "two": 0.1 * (p > 0.5),
        "rare": 0.3 * p,
        "square": 0.06 * np.sign(np.sin(2 * np.pi * 14 * p)),
        "step": 0.1 * (p > 0.7),
        "steep": expit(2 * logit(np.clip(p, 1e-9, 1 - 1e-9))) - p,
        "fine": 0.05 * np.sin(2 * np.pi * 30 * p),
        "shift": 0.02,
    }[kind]
    return cal.Binary((rng.random(n) < np.clip(p + gap, 0, 1)).astype(int), p)
