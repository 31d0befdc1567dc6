"""assert_calibrated fails for models that are off, and rarely for others."""

import numpy as np
import pytest

import calibrant as cal


def test_a_model_that_is_off_fails_and_says_by_how_much(rows):
    y, p = rows
    with pytest.raises(AssertionError, match=r"^Gate: failed\. .* the limit is 2 points \(shown to be above it\)"):
        cal.assert_calibrated(y, p)
    assert cal.assert_calibrated(y, p, below=0.2) == pytest.approx(0.1, abs=0.03)


def test_a_calibrated_model_of_any_size_rarely_fails():
    rng = np.random.default_rng(1)
    failures = 0
    for _ in range(40):
        p = rng.random(300)
        try:
            cal.assert_calibrated(rng.random(300) < p, p, below=0.001)
        except AssertionError:
            failures += 1
    assert failures <= 5  # 2 are expected; 6 or more come once in a hundred such tests


def test_the_estimate_or_the_upper_end_decide_if_asked(rows):
    y, p = rows
    with pytest.raises(AssertionError, match="estimated at"):
        cal.assert_calibrated(y[:100], p[:100], by="estimate", below=0.001)
    honest = np.random.default_rng(99).random(50) < p[:50]
    cal.assert_calibrated(honest, p[:50])
    with pytest.raises(AssertionError, match="too few rows to decide"):  # fifty rows show nothing
        cal.assert_calibrated(honest, p[:50], by="upper")


def test_one_group_that_is_off_fails_and_honest_ones_do_not():
    rng = np.random.default_rng(5)
    p, land = rng.random(6000), np.repeat(["at", "de", "dk"], 2000)
    y = rng.random(6000) < np.where(land == "dk", p**1.6, p)
    cal.assert_calibrated(y, p, below=0.05)
    with pytest.raises(
        AssertionError, match=r"1 failed.*\n  Failed\. dk: the calibration error .* \(shown to be above it\)"
    ):
        cal.assert_calibrated(y, p, below=0.05, per_group=land)


@pytest.mark.parametrize(
    "options", [{"below": float("nan")}, {"below": 5}, {"level": float("nan")}, {"level": 5}, {"by": "middle"}]
)
def test_impossible_limits_and_levels_are_refused(rows, options):
    with pytest.raises(cal.InvalidPredictions):
        cal.assert_calibrated(*rows, **options)


def test_all_tasks_can_be_asserted():
    rng = np.random.default_rng(2)
    std = rng.lognormal(0, 0.3, 2000)
    noise = std * rng.normal(size=2000)
    cal.assert_calibrated(cal.Gaussian(noise, np.zeros(2000), std))
    with pytest.raises(AssertionError, match="failed"):
        cal.assert_calibrated(cal.Gaussian(3 * noise, np.zeros(2000), std))
    p = rng.dirichlet([1, 1, 1], 2000)
    with pytest.raises(AssertionError):
        cal.assert_calibrated(cal.Multiclass(rng.integers(0, 3, 2000), p))
    score = rng.random(4000)
    positive = rng.random(4000)[rng.random(4000) < 0.5]
    with pytest.raises(AssertionError):
        cal.assert_calibrated(cal.PositiveUnlabeled(positive, score, prior=0.5))
    with pytest.raises(cal.InvalidPredictions, match="own prior"):
        cal.assert_calibrated(
            cal.PositiveUnlabeled(positive, score, prior=0.5), below=0.9, per_group=np.zeros(len(score) + len(positive))
        )


def test_a_limit_that_cannot_be_exceeded_is_warned_of_and_others_see_more():
    rng = np.random.default_rng(6)
    y = rng.random(20_000) < 0.0016
    weak = "^The limit of 2 points is not below the share of events"
    with pytest.warns(UserWarning, match=weak):
        cal.assert_calibrated(y, np.zeros(20_000))
    with pytest.warns(UserWarning, match=weak), pytest.raises(AssertionError, match="relative to the base rate"):
        cal.assert_calibrated(y, np.zeros(20_000), limits={"relative": 0.25})
    with pytest.warns(UserWarning, match=weak), pytest.raises(AssertionError, match="ratio of observed to expected"):
        cal.assert_calibrated(y, np.full(20_000, 0.01), limits={"oe": (0.8, 1.25)})
