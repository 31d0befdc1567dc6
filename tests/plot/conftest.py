"""Axes, predictions and settings that the tests of figures share."""

import numpy as np
import pytest

import calibrant as cal


@pytest.fixture
def ax():
    from matplotlib.figure import Figure

    return Figure().subplots()


@pytest.fixture
def unchanged_settings():
    """Fails if a figure changes a setting of Matplotlib."""
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before


@pytest.fixture(scope="module")
def data():
    """Overconfident probabilities of one event."""
    rng = np.random.default_rng(0)
    p = rng.random(500).round(2)
    return cal.Binary(rng.random(500) < 0.5 + 0.7 * (p - 0.5), p)
