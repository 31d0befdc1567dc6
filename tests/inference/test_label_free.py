"""Performance without labels: formulas, coverage where the assumption holds, failure where it does not."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cal
from calibrant.inference import label_free as module

MEASURES = ("accuracy", "brier", "auc", "observed_expected", "rate")


def world(seed, *, drift=0.0, rows=2000, new=800):
    rng = np.random.default_rng([seed, 3])
    z, other = rng.normal(0, 1.5, rows), rng.normal(0.5, 1.2, new)
    y = rng.random(rows) < expit(0.7 * z - 0.2)
    return cal.Binary(y, expit(z)), expit(other), rng.random(new) < expit(0.7 * other - 0.2 + drift)


def observed(p, y):
    data = cal.Binary(y, p)
    found = [cal.accuracy(data), cal.brier(data), cal.auc(data), cal.observed_expected(data), y.mean()]
    return dict(zip(MEASURES, map(float, found), strict=True))


@pytest.mark.no_cover
def test_intervals_cover_what_is_observed_where_the_assumption_holds_and_not_after_a_drift():
    """Of 60 samples a coverage of 0.93 leaves out more than 11 in one of a thousand."""
    missed, after = dict.fromkeys(MEASURES, 0), 0
    for seed in range(60):
        reference, p, y = world(seed)
        found = cal.without_labels(reference, p)
        for name, value in observed(p, y).items():
            missed[name] += value not in found[name].interval
        after += world(seed, drift=-0.6)[2].mean() not in found["rate"].interval
    assert max(missed.values()) <= 11
    assert after > 50


def test_measures_of_cells_are_those_of_the_rows():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(3000), 2)  # ties, one half among them
    y = rng.random(3000) < p
    cells = module._Cells.of(p)
    events = np.array([y[p == score].sum() for score in np.unique(p)], float)
    assert cells.score == pytest.approx(np.unique(p))
    found = cells.measures(events)
    assert {name: float(value) for name, value in found.items()} == pytest.approx(observed(p, y))


def test_the_curve_of_the_reference_is_the_regression_written_out():
    reference, p, _ = world(1)
    curve = module._Curve.of(reference, p, None)
    z = logit(reference.y_prob)
    knots = np.quantile(z, [0.2, 0.4, 0.6, 0.8])
    basis = np.column_stack([np.ones(len(z)), z, *(np.maximum(z - k, 0) for k in knots)])
    m = expit(basis @ curve.coefficients)
    gradient = basis.T @ (reference.y_true - m) - np.r_[0, 0, curve.coefficients[2:]] * 0.01
    assert np.abs(gradient).max() < 1e-3
    score = basis * (reference.y_true - m)[:, None]
    bread = np.linalg.inv((basis * (m * (1 - m))[:, None]).T @ basis + np.diag([0, 0, *[0.01] * 4]))
    assert curve.covariance == pytest.approx(bread @ score.T @ score @ bread * 2000 / 1994, rel=1e-4)


def test_clusters_of_the_reference_widen_intervals():
    reference, p, _ = world(2, rows=1000, new=20_000)
    group = np.arange(1000) // 20
    order = np.argsort(reference.y_true + np.random.default_rng(0).normal(0, 0.5, 1000))
    alike = cal.Binary(reference.y_true[order], reference.y_prob[order], group=group)
    plain = cal.Binary(reference.y_true[order], reference.y_prob[order])
    wide, narrow = (cal.without_labels(one, p)["rate"].interval for one in (alike, plain))
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)
    assert "independent clusters of rows" in wide.assumption


def test_label_shift_finds_the_new_share_and_tests_the_scores():
    rng = np.random.default_rng(5)
    reference, _, _ = world(3, rows=4000)
    ones, zeros = (reference.y_prob[reference.y_true == value] for value in (1, 0))
    new = np.r_[rng.choice(ones, 400), rng.choice(zeros, 1600)]
    found = cal.without_labels(reference, new, shift="label")
    assert 0.2 in found.prior.interval
    assert 0.2 in found["rate"].interval
    assert found.test.p_value > 0.01
    assert "P(score | Y) is that of the reference" in found["auc"].interval.assumption
    other = cal.without_labels(reference, np.full(2000, 0.5), shift="label")
    assert other.test.p_value == pytest.approx(1 / 200)
    assert cal.without_labels(reference, new).prior is None


def test_the_most_likely_share_is_where_the_derivative_is_zero():
    rng = np.random.default_rng(0)
    eta, count = rng.normal(0, 1, (1, 30)), np.full((1, 30), 10.0)
    share = module._most_likely_share(eta, count, np.array([0.4]))[0]
    ratio = np.exp(eta[0]) * 0.6 / 0.4

    def loss(s):
        return -(count[0] * np.log(s * ratio + 1 - s)).sum()

    grid = np.linspace(0.001, 0.999, 999)
    assert abs(share - grid[np.argmin([loss(s) for s in grid])]) < 0.002


def test_columns_that_moved_are_allowed_for_by_weights():
    rng = np.random.default_rng(4)
    x, x_new = rng.normal(0, 1, 4000), rng.normal(0.8, 1, 2000)
    z, new = rng.normal(0, 1, 4000), rng.normal(0, 1, 2000)
    reference = cal.Binary(rng.random(4000) < expit(z + x), expit(z))
    rate = (rng.random(2000) < expit(new + x_new)).mean()
    told = cal.without_labels(reference, expit(new), x=(x, x_new))
    assert rate in told["rate"].interval
    assert rate not in cal.without_labels(reference, expit(new))["rate"].interval
    assert told.effective_rows < 3500
    assert "P(Y | score, x)" in told.assumption


def test_weights_of_the_reference_are_cut():
    rng = np.random.default_rng(4)
    p = np.full(3000, 0.5)
    ratio, _ = module._density_ratio(p, p, (rng.normal(0, 1, 3000), rng.normal(4, 0.5, 3000)))
    assert ratio.max() == 20.0


def test_new_rows_beyond_the_reference_are_counted():
    reference, p, _ = world(0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=len(reference))
    apart = cal.without_labels(reference, p, x=(x, rng.normal(20, 1, len(p))))
    assert "(100 % of the new rows lie beyond all of the reference)" in apart.assumption
    assert module._density_ratio(p, p, (p, p))[1] == 0


def test_a_single_row_has_no_auc():
    found = cal.without_labels(world(0)[0], [0.3])
    assert math.isnan(found["auc"].interval.low)
    assert str(found).startswith("1 row without labels")


def test_periods_that_differ_widen_intervals():
    rng = np.random.default_rng(6)
    period, z = rng.integers(0, 12, 6000), rng.normal(0, 1, 6000)
    shift = rng.normal(0, 0.4, 12)
    reference = cal.Binary(rng.random(6000) < expit(z + shift[period]), expit(z))
    plain, told = (cal.without_labels(reference, expit(z[:1000]), period=one) for one in (None, period))
    assert plain.drift == 0
    assert told.drift == pytest.approx(shift.std(ddof=1), rel=0.35)
    width = [one["rate"].interval.high - one["rate"].interval.low for one in (plain, told)]
    assert width[1] > 2 * width[0]
    assert "as between its 12 periods" in told.assumption


def test_the_numbers_of_draws_and_cells():
    reference, p, _ = world(0, new=50_000)
    assert (module.DRAWS, module.TEST_DRAWS, module.TEST_CELLS) == (1000, 199, 20)
    assert 195 <= len(module._Cells.of(p).count) <= 201
    assert cal.without_labels(reference, p[:500], shift="label").test.draws == 199


def test_each_result_says_how_far_it_moves_and_prints():
    reference, p, _ = world(1)
    found = cal.without_labels(reference, p)
    assert set(found) == set(MEASURES)
    assert len(found) == 5
    assert 0.01 < found["rate"].details["per 0.1 log odds"] < 0.025
    text = str(found)
    assert "800 rows without labels, if P(Y | score) is that of the reference." in text
    assert "per 0.1 log odds" in text
    assert f"The reference counts as {len(reference):,} rows." in text
    assert found.to_dict()["estimates"]["auc"]["interval"]["level"] == 0.95
    again = cal.without_labels(reference, p)
    assert tuple(again["auc"].interval) == tuple(found["auc"].interval)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"shift": "covariate"}, ValueError, "shift must be None or 'label'"),
        ({"x": np.zeros(5)}, TypeError, "x must be a pair"),
        ({"x": (np.zeros((2000, 2)), np.zeros((800, 1)))}, ValueError, "same columns twice, got 2 and 1"),
        ({"period": np.zeros(2000)}, ValueError, "at least three periods"),
        ({"p": [0.5, 1.5]}, ValueError, r"p must lie in \[0, 1\]"),
        ({"reference": cal.Binary([1, 1], [0.2, 0.4])}, ValueError, "both outcomes"),
        ({"reference": cal.Multiclass([0, 1], [[0.5, 0.5]] * 2)}, TypeError, "reference must be Binary"),
    ],
)
def test_what_cannot_be_used_is_refused(options, error, message):
    reference, p, _ = world(0)
    with pytest.raises(error, match=message):
        cal.without_labels(**{"reference": reference, "p": p, **options})
