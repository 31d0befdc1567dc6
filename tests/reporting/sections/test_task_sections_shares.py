"""Shares of positives: the error at each, the largest that is possible, and what scores imply."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.numerics.arrays import expit
from calibrant.reporting.contents import CannotBuild
from calibrant.reporting.sections.task_sections import SHARE_BINS, shares_section


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    z = rng.normal(-2, 1.5, 40_000)
    y = rng.random(40_000) < expit(z)  # calibrated for the true share
    p = expit(z)
    return cal.PositiveUnlabeled(p[y][:400], p[-3000:], prior=float(y.mean()))


@pytest.fixture(scope="module")
def section(data):
    return shares_section(data)


@pytest.mark.no_cover
def test_the_true_share_has_the_smallest_error(data, section):
    assert section.prior == pytest.approx(data.prior)
    assert len(section.priors) == len(section.errors) == 17
    assert section.priors[8] == pytest.approx(data.prior)
    values = [error.value for error in section.errors]
    assert abs(int(np.argmin(values)) - 8) <= 3
    assert section.errors[8].low == 0.0
    assert section.errors[0].low > 0
    assert section.errors[-1].low > 0
    own = cal.interval(lambda d: cal.ece(d, bins=cal.table.PaperBins()), data)
    ends = own.interval
    assert section.errors[8].value == pytest.approx(min(max(float(own), ends.low), ends.high))


def test_implied_shares(section):
    assert len(section.implied) == 12
    assert sum(one.n for one in section.implied) == pytest.approx(3000)
    assert sum(one.events for one in section.implied) == 400
    inside = [one.observed.low <= one.predicted <= one.observed.high for one in section.implied]
    assert sum(inside) >= SHARE_BINS - 2


def test_the_largest_share(data, section):
    assert data.prior < section.largest < 1


@pytest.mark.no_cover
def test_a_table_gives_the_same(data, section):
    found = shares_section(cal.BinTable.of(data, cal.table.HybridGrid()))
    np.testing.assert_allclose([e.value for e in found.errors], [e.value for e in section.errors], atol=2e-3)
    assert len(found.implied) == SHARE_BINS


def test_other_data():
    with pytest.raises(CannotBuild, match="positive-unlabeled"):
        shares_section(cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.table.Distinct()))
