"""Reference numbers for smooth_ece and kde_ece, from relplot and KDEpy.

Run with an interpreter that has both (pip install relplot KDEpy): python tests/reference/smooth_peers.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np


def sample(seed, n):
    rng = np.random.default_rng(seed)
    p = 0.25 + 0.5 * rng.random(n)
    return (rng.random(n) < p**1.5).astype(int), p


def of_relplot():
    from relplot.metrics import smECE_sigma

    interior = []
    for seed, n, sigma in [(0, 500, 0.01), (1, 2000, 0.02), (2, 500, 0.05), (3, 5000, 0.005)]:
        y, p = sample(seed, n)
        interior.append({"seed": seed, "n": n, "sigma": sigma, "smECE_sigma": float(smECE_sigma(p, y, sigma))})
    scores = np.repeat([1.0, 0.5], 50)
    atom = {"sigma": 0.02, "smECE_sigma": float(smECE_sigma(scores, np.zeros(100), 0.02))}
    return {"version": version("relplot"), "interior": interior, "half_at_one_half_at_one_half": atom}


def of_kdepy():
    """The code published with Mix-n-Match, step by step, with the density from KDEpy as there."""
    from KDEpy import FFTKDE

    x = np.linspace(-0.6, 1.6, 2**14)
    cases = []
    for seed, n in [(0, 500), (1, 5000)]:
        y, p = sample(seed, n)
        width = float(np.std(p[y == 1]) * (2 * n) ** -0.2)

        def density(scores, width=width):
            mirrored = np.concatenate([scores, np.where(scores < 0.5, -scores, 2 - scores)])
            values = FFTKDE(bw=width, kernel="triweight").fit(mirrored).evaluate(x)
            values[(x <= 0) | (x >= 1)] = 0
            return 2 * values

        positive, every = density(p[y == 1]), density(p)
        some = np.maximum(positive, every) > 1e-6
        curve = np.minimum(1, y.mean() * positive[some] / every[some])
        integrand = np.zeros(len(x))
        integrand[some] = (x[some] - curve) ** 2 * every[some]
        value = np.trapezoid(integrand, x) / np.trapezoid(every, x)
        cases.append({"seed": seed, "n": n, "bandwidth": width, "order": 2, "shipped": float(value)})
    return {"version": version("KDEpy"), "cases": cases}


if __name__ == "__main__":
    numbers = {"relplot": of_relplot(), "KDEpy": of_kdepy()}
    text = json.dumps(numbers, indent=1) + "\n"
    Path(__file__).with_suffix(".json").write_text(text, encoding="utf8")
