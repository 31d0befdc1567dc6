"""The report on positive-unlabeled data."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.table.binning import PaperBins

rng = np.random.default_rng(1)
U = rng.beta(1, 4, 6000)
POSITIVE = U[rng.random(6000) < U]


@pytest.mark.no_cover
def test_calibrated_predictions_at_the_right_share():
    data = cal.PositiveUnlabeled(POSITIVE[:800], rng.beta(1, 4, 6000), prior=0.2)
    found = cal.report(data)
    assert found.verdict.rule == "P2"
    assert found.verdict.sentence.startswith("No significant miscalibration detected if 20 % are positive")
    assert found.headline == pytest.approx(cal.ece(data, bins=PaperBins()))
    assert "CAL704" in {finding.code for finding in found.findings}


@pytest.mark.no_cover
def test_predictions_that_are_too_high():
    found = cal.report(cal.PositiveUnlabeled(POSITIVE[:800] ** 0.5, rng.beta(1, 4, 6000) ** 0.5, prior=0.2))
    assert found.verdict.rule == "P1"
    assert found.verdict.direction == "too high"
    assert found.verdict.severity == "problem"


@pytest.mark.no_cover
def test_a_share_that_cannot_be():
    found = cal.report(cal.PositiveUnlabeled(rng.beta(8, 1, 800), rng.random(6000), prior=0.6))
    assert found.verdict.rule == "P3"
    assert "CAL702" in {finding.code for finding in found.findings}
    assert "CAL201" not in {finding.code for finding in found.findings}


def test_groups_are_left_out_with_the_reason():
    data = cal.PositiveUnlabeled(POSITIVE[:100], U[:400], prior=0.2)
    found = cal.report(data, by=np.arange(len(data)) % 2)
    assert "share of positives" in next(left.reason for left in found.contents.omitted if left.section == "Groups")


@pytest.mark.no_cover
@pytest.mark.parametrize("positives", [5, 29])
def test_few_labelled_positives(positives):
    assert cal.report(cal.PositiveUnlabeled(POSITIVE[:positives], U[:400], prior=0.2)).verdict.rule == "P4"
