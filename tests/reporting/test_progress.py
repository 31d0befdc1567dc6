"""A report says which section it begins."""

import numpy as np

import calibrant as cal
from calibrant.reporting.progress import tell, told_to


def test_sections_are_told_while_somebody_listens():
    heard = []
    p = np.random.default_rng(0).random(300)
    with told_to(heard.append):
        cal.report(cal.Binary(np.arange(300) % 2, p))
    assert "Recalibration" in heard
    assert "" not in heard
    before = list(heard)
    tell("Nobody listens")
    assert heard == before
