"""Two hundred forecasts, and what other packages say of them."""

import json
from pathlib import Path

import numpy as np

import calibrant as cal

PEERS = json.loads((Path(__file__).parents[1] / "reference/regression_peers.json").read_text(encoding="utf8"))["made"]


def peer_rows():
    """The rows of tests/reference/regression_peers.py, and the draws there."""
    rng = np.random.default_rng(7)
    mean, std = rng.normal(size=200), rng.lognormal(0, 0.5, 200)
    y = mean + 0.2 + 1.3 * std * rng.normal(size=200)
    return cal.Gaussian(y, mean, std), mean[:, None] + std[:, None] * rng.normal(size=(200, 12))
