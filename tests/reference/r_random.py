"""The random numbers of R (Mersenne Twister, inversion), so that printed examples of its packages can be computed."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri


class RRandom:
    """``set.seed(seed)``, then `runif`, `rnorm` and `rbinom` of size 1, as in R since 1.7."""

    def __init__(self, seed: int) -> None:
        state = np.empty(625, dtype=np.uint32)
        scrambled = seed
        for _ in range(50):
            scrambled = (69069 * scrambled + 1) & 0xFFFFFFFF
        for k in range(625):
            scrambled = (69069 * scrambled + 1) & 0xFFFFFFFF
            state[k] = scrambled
        self._bits = np.random.MT19937()
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": state[1:], "pos": 624}}

    def runif(self, n: int) -> np.ndarray:
        values = self._bits.random_raw(n) * 2.3283064365386963e-10
        return np.clip(values, 2.328306437080797e-10 / 2, 1 - 2.328306437080797e-10 / 2)

    def rnorm(self, n: int) -> np.ndarray:
        pairs = self.runif(2 * n).reshape(n, 2)
        big = 134217728
        return ndtri((np.floor(big * pairs[:, 0]) + pairs[:, 1]) / big)

    def rbinom(self, p: np.ndarray) -> np.ndarray:
        """One outcome of each probability."""
        u = self.runif(len(p))
        smaller = np.minimum(p, 1 - p)
        drawn = (u >= 1 - smaller).astype(int)
        return np.where(p > 0.5, 1 - drawn, drawn)
