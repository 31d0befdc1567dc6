"""The report on positive-unlabeled data."""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(1)


def test_positive_unlabeled_data_say_what_hangs_on_the_prior():
    found = cal.report(cal.PositiveUnlabeled(rng.beta(3, 1, 400), rng.random(3000), prior=0.4))
    assert "if the share of positives is 0.4" in found.verdict
    assert "CAL201" in {finding.code for finding in found.findings}
