"""The reliability section: the numbers of its bins, curve, bands, ranges and threshold."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.part import Part
from calibrant.reporting.sections.omission import CannotBuild
from calibrant.reporting.sections.reliability import BAND_POINTS, corp_curve, reliability_section
from tests.reporting.sections.worlds import binary, part


@pytest.fixture(scope="module")
def data():
    return binary(6000, slope=0.7, shift=-0.4)


@pytest.fixture(scope="module")
def section(data):
    return reliability_section(Part(data), threshold=0.2)


def test_bins_and_bars_hold_every_row_once(section):
    for axis in ("log odds", "linear"):
        assert sum(one.n for one in section.bins[axis]) == 6000
        assert sum(rows for _, _, rows in section.histogram[axis]) == 6000
        assert 8 <= len(section.bins[axis]) <= 14


def test_the_curve_is_the_isotonic_regression(data, section):
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression().fit(data.y_prob, data.y_true).predict(data.y_prob)
    curve = section.curve
    block = np.searchsorted(curve.high, data.y_prob, side="left")
    np.testing.assert_allclose(np.array(curve.rate)[block], fitted, atol=1e-9)


def test_bands_hold_what_they_promise(data, section):
    band = section.curve.confidence
    truth = 1 / (1 + np.exp(0.4 - 0.7 * np.log(np.array(band.score) / (1 - np.array(band.score)))))
    assert np.all((np.array(band.low) <= truth) & (truth <= np.array(band.high)))
    null = section.consistency
    assert np.mean((np.array(null.low) <= null.score) & (null.score <= np.array(null.high))) > 0.95
    assert max(len(band.score), len(null.score)) <= BAND_POINTS


def test_ranges_say_where_the_error_sits(section):
    assert 3 <= len(section.ranges) <= 5
    assert sum(one.n for one in section.ranges) == 6000
    assert sum(one.share for one in section.ranges) == pytest.approx(1)
    gaps = [abs(one.events - one.n * one.predicted) for one in section.bins["log odds"]]
    inside = [one for one in section.bins["log odds"] if one.high <= section.ranges[0].high]
    first = sum(abs(one.events - one.n * one.predicted) for one in inside)
    assert section.ranges[0].share == pytest.approx(first / sum(gaps))
    high = section.ranges[-1]
    assert high.observed.value < high.predicted


def test_rows_around_and_above_the_threshold(data, section):
    found = section.threshold
    above = data.y_prob >= 0.2
    assert found.above.n == above.sum()
    assert found.above.observed.value == pytest.approx(data.y_true[above].mean())
    around = (data.y_prob >= found.around.low) & (data.y_prob <= found.around.high)
    assert found.around.n == around.sum() >= 100
    assert found.around.low < 0.2 < found.around.high
    assert (found.around.low, found.around.high) == (0.16, 0.24)


def test_a_threshold_far_from_all_scores():
    found = reliability_section(part(300, mean=-4.0, spread=0.2), threshold=0.99).threshold
    assert found.around is None
    assert found.above is None


def test_the_highest_scores(data, section):
    assert section.top.n == 300
    top = data.y_prob >= section.top.low
    assert top.sum() == 300
    assert section.top.events == data.y_true[top].sum()


def test_rare_events_start_on_log_odds():
    assert reliability_section(part(4000, mean=-4.5)).axis == "log odds"
    assert reliability_section(part(4000)).axis == "linear"


@pytest.mark.parametrize("digits", [0, 1])
def test_few_scores_are_bins_of_their_own(digits):
    section = reliability_section(part(2000, digits=digits))
    assert section.distinct == (2 if digits == 0 else 11)
    assert all(one.low == one.high for one in section.bins["linear"])
    assert len(section.ranges) <= 5
    assert ("log odds" in section.bins) == (digits == 1)


def test_one_score_and_few_rows():
    one = reliability_section(Part(cal.Binary([0, 1, 0], [0.3, 0.3, 0.3])))
    assert one.distinct == 1
    assert one.top is None
    assert one.ranges[0].share == pytest.approx(1)
    three = reliability_section(Part(cal.Binary([0, 1, 0], [0.1, 0.5, 0.9])), threshold=0.5)
    assert three.threshold.above.n == 2


def test_no_rows():
    table = cal.BinTable.of(cal.Binary([0, 1], [0.3, 0.4]), cal.table.Distinct())
    with pytest.raises(CannotBuild, match="No row"):
        reliability_section(Part(table.take(np.array([False, False]))))


def test_clusters_widen_the_bands():
    group = np.arange(3000) // 30
    p = np.repeat(np.linspace(0.05, 0.95, 100), 30)
    y = np.repeat(np.random.default_rng(0).random(100) < p[::30], 30)  # one outcome per cluster
    wide = reliability_section(Part(cal.Binary(y, p, group=group)))
    narrow = reliability_section(Part(cal.Binary(y, p)))
    width = [np.mean(np.subtract(one.curve.confidence.high, one.curve.confidence.low)) for one in (wide, narrow)]
    assert width[0] > 2 * width[1]


def test_a_grid_of_many_rows_gives_nearly_the_same():
    data = binary(20_000, slope=0.8)
    exact = reliability_section(Part(data))
    grid = reliability_section(Part(cal.BinTable.of(data, cal.table.HybridGrid())))
    assert grid.distinct is None
    for one, other in zip(exact.bins["log odds"], grid.bins["log odds"], strict=True):
        assert one.n == pytest.approx(other.n, abs=5)
        assert one.observed.value == pytest.approx(other.observed.value, abs=0.002)
    assert corp_curve(Part(data).cells) == corp_curve(cal.BinTable.of(data, cal.table.Distinct()))
