"""Data that the tests of integrations share."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def rows():
    """Outcomes and overconfident probabilities; the true error is 0.1."""
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    return (rng.random(3000) < 0.5 + 0.6 * (p - 0.5)).astype(int), p
