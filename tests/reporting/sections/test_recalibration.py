"""The recalibration section: which map helps, by how much, and what remains, in worlds of known truth."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibrate import Platt
from calibrant.reporting.part import Part
from calibrant.reporting.sections.omission import CannotBuild
from calibrant.reporting.sections.recalibration import recalibrated, recalibration_section
from tests.reporting.sections.worlds import binary, part

NAMES = {"Temperature", "Platt", "Beta", "Quadratic", "Spline", "Isotonic"}


@pytest.fixture(scope="module")
def section():
    return recalibration_section(part(5000, slope=0.6, shift=-0.8))


def test_every_map_is_judged_and_the_simplest_that_does_as_well_is_best(section):
    assert {row.name for row in section.maps} == NAMES
    assert [row.effect for row in section.maps].count("best") == 1
    assert section.maps[0].name == "Platt"  # the truth is a line on log odds
    assert section.maps[0].effect == "best"
    assert section.loss == "log loss"
    assert section.loss_before == pytest.approx(float(cal.log_loss(binary(5000, slope=0.6, shift=-0.8))))


def test_the_gain_is_that_of_maps_fitted_on_other_rows(section):
    data = binary(5000, slope=0.6, shift=-0.8)
    fold = np.random.default_rng(3).permutation(5000) % 5
    q = np.empty(5000)
    for k in range(5):
        q[fold == k] = (
            Platt().fit(data.y_prob[fold != k], data.y_true[fold != k]).predict_proba(data.y_prob[fold == k])[:, 1]
        )
    before, after = float(cal.log_loss(data)), float(cal.log_loss(data.y_true, q))
    best = section.maps[0].gain
    assert best.value == pytest.approx(1 - after / before, abs=0.002)  # other folds
    assert best.low < 1 - after / before < best.high


def test_the_remaining_error_has_its_interval(section):
    first, before = section.maps[0].remaining, float(cal.averaged_error(binary(5000, slope=0.6, shift=-0.8), norm=1))
    assert first.low == 0.0
    assert first.high < 0.05 < before
    for row in section.maps:
        assert row.remaining.low <= row.remaining.value <= row.remaining.high
        assert row.remaining.high >= first.high
    temperature = next(row for row in section.maps if row.name == "Temperature").remaining
    assert temperature.low > first.high / 2  # a factor cannot repair a shift


def test_the_curve_after_is_near_the_diagonal(section):
    after = section.after
    middle = (np.array(after.low) + np.array(after.high)) / 2
    assert np.abs(middle - np.array(after.rate)).mean() < 0.1
    assert len(after.confidence.score) > 10


@pytest.mark.no_cover
def test_calibrated_predictions_are_not_repaired():
    found = [recalibration_section(part(1500, seed=seed)) for seed in range(8)]
    assert sum(section.maps[0].effect == "best" for section in found) <= 1
    assert all(row.gain.low < 0.005 for section in found for row in section.maps)


def test_brier_score_where_log_loss_is_infinite():
    data = binary(2000, slope=0.5)
    p = data.y_prob.copy()
    p[np.flatnonzero(data.y_true == 1)[:3]] = 0.0
    section = recalibration_section(Part(cal.Binary(data.y_true, p)))
    assert section.loss == "Brier score"
    assert section.loss_before == pytest.approx(float(cal.brier(data.y_true, p)))
    assert np.isfinite(section.maps[0].gain.value)


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", ["weighted", "clustered", "table", "few scores"])
def test_every_kind_of_data(kind):
    rng = np.random.default_rng(0)
    columns = {
        "weighted": {"weight": rng.random(2000)},
        "clustered": {"group": np.arange(2000) // 5},
        "few scores": {"digits": 1},
    }.get(kind, {})
    data = binary(2000, slope=0.6, shift=-0.8, **columns)
    whole = cal.BinTable.of(data, cal.table.HybridGrid()) if kind == "table" else data
    section, after = recalibrated(Part(whole))
    assert section.maps[0].effect == "best"
    assert after.cells.n == 2000
    assert section.maps[0].remaining.high < 0.1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (cal.Binary([0, 1] * 20, [0.4, 0.6] * 20), "Too few rows"),
        (cal.Binary([0] * 990 + [1] * 10, np.linspace(0.01, 0.5, 1000)), "Too few rows"),
        (cal.Binary([0, 1] * 200, [0.4, 0.6] * 200, group=[1] * 400), "one group"),
    ],
)
def test_what_cannot_be_judged(data, reason):
    with pytest.raises(CannotBuild, match=reason):
        recalibration_section(Part(data))


def test_rows_after_the_map_are_those_before_it():
    data = binary(1000, slope=0.5, group=np.arange(1000)[::-1] // 4)
    after = recalibrated(Part(data))[1].data
    np.testing.assert_array_equal(after.y_true, data.y_true)
    np.testing.assert_array_equal(after.group, data.group)
    assert float(cal.log_loss(after)) < float(cal.log_loss(data))
