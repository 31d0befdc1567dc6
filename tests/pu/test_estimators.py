"""The estimators on positive-unlabeled data: formulas, the exact identity with labelled data, and known worlds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from tests.pu.worlds import BETTER, CALIBRATED, LESS, TRUE_ERROR, drawn, everybody, positives

BINNINGS = [
    cal.EqualWidth(7),
    cal.EqualMass(7),
    cal.pu.PaperBins(),
    cal.pu.PaperBins(cal.EqualMass),
    cal.pu.BoundBins(),
]
scores = st.lists(st.integers(0, 40).map(lambda k: k / 40), min_size=1, max_size=60)


def labelled(seed=0, n=997):
    rng = np.random.default_rng(seed)
    p, y = everybody(rng, n, LESS)
    return np.round(p, 2), y


def as_positive_unlabeled(p, y, **extra):
    return cal.PositiveUnlabeled(p[y], p, prior=y.mean(), **extra)


def formula(positive, unlabeled, prior, inner):
    """Sum over bins of |prior P_b - F_b|, written out."""
    which_p, which_u = (np.searchsorted(inner, f, side="left") for f in (positive, unlabeled))
    total = 0.0
    for b in range(len(inner) + 1):
        total += abs(prior * np.mean(which_p == b) - np.mean(np.where(which_u == b, unlabeled, 0.0)))
    return total


def test_pu_ece_is_the_sum_of_error_masses_over_equal_widths():
    data = drawn(np.random.default_rng(0), 50, 300, LESS)
    inner = np.linspace(0, 1, 11)[1:-1]
    assert cal.ece(data, bins=cal.EqualWidth(10)) == pytest.approx(
        formula(data.positive, data.unlabeled, 0.5, inner), abs=1e-15
    )


def test_equal_mass_edges_come_from_the_unlabeled_alone():
    data = drawn(np.random.default_rng(1), 50, 303, LESS)
    inner = np.sort(data.unlabeled)[303 * np.arange(1, 8) // 8 - 1]
    estimate = cal.ece(data, bins=cal.EqualMass(8))
    assert estimate == pytest.approx(formula(data.positive, data.unlabeled, 0.5, inner), abs=1e-15)
    np.testing.assert_array_equal(estimate.bins.edges[1:-1], inner)


def test_a_bin_of_positives_alone_adds_its_mass():
    data = cal.PositiveUnlabeled([0.9, 0.1], [0.1, 0.2, 0.3, 0.1], prior=0.5)
    assert cal.ece(data, bins=cal.EqualWidth(2)) == pytest.approx(abs(0.25 - 0.175) + 0.25)
    assert cal.ece(data, bins=cal.EqualWidth(2), norm=2) == pytest.approx(0.075)


@pytest.mark.parametrize("bins", BINNINGS[:2], ids=repr)
@pytest.mark.parametrize("estimator", [cal.ece, cal.mce, cal.estimators.label_binned_ece])
def test_binned_errors_equal_those_of_labelled_data_when_the_positives_are_its_own(estimator, bins):
    p, y = labelled()
    difference = estimator(as_positive_unlabeled(p, y), bins=bins) - estimator(cal.Binary(y, p), bins=bins)
    assert abs(difference) < 1e-14


@pytest.mark.parametrize("estimator", [cal.sweep_ece, cal.ks_error, cal.brier, cal.log_loss, cal.auc])
def test_other_estimates_equal_those_of_labelled_data_when_the_positives_are_its_own(estimator):
    p, y = labelled()
    p = np.clip(p, 0.01, 0.99)
    data = as_positive_unlabeled(p, y)
    assert estimator(data) == pytest.approx(estimator(cal.Binary(y, p)), abs=1e-13)
    assert estimator(cal.BinTable.of(data, cal.table.Distinct())) == pytest.approx(estimator(data), abs=1e-13)


def test_the_identity_holds_with_weights():
    p, y = labelled()
    weight = np.random.default_rng(5).uniform(0.5, 2, len(p))
    data = cal.PositiveUnlabeled(
        p[y], p, prior=np.average(y, weights=weight), weight=np.concatenate([weight[y], weight])
    )
    supervised = cal.Binary(y, p, weight=weight)
    for bins in (cal.EqualWidth(7), cal.EqualMass(7)):
        assert cal.ece(data, bins=bins) == pytest.approx(cal.ece(supervised, bins=bins), abs=1e-14)
    for estimator in (cal.brier, cal.ks_error, cal.auc, cal.sweep_ece):
        assert estimator(data) == pytest.approx(estimator(supervised), abs=1e-12)


@pytest.mark.no_cover
@settings(max_examples=60, deadline=None)
@given(scores, scores, st.floats(0.01, 0.99), st.integers(1, 12), st.randoms())
def test_pu_ece_has_its_range_and_forgets_the_order_of_rows(positive, unlabeled, prior, n, random):
    for bins in (cal.EqualWidth(n), cal.EqualMass(n)):
        value = _quiet_ece(positive, unlabeled, prior, bins)
        gap = abs(prior - np.mean(unlabeled))
        assert gap - 1e-12 <= value <= prior + np.mean(unlabeled) + 1e-12
        shuffled = _quiet_ece(random.sample(positive, len(positive)), unlabeled[::-1], prior, bins)
        assert value == pytest.approx(shuffled, abs=1e-14)
        weights = [2.0] * (len(positive) + len(unlabeled))
        assert value == pytest.approx(_quiet_ece(positive, unlabeled, prior, bins, weight=weights), abs=1e-14)


def _quiet_ece(positive, unlabeled, prior, bins, **extra):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cal.ece(cal.PositiveUnlabeled(positive, unlabeled, prior=prior, **extra), bins=bins)


def test_tables_of_shards_add_up():
    data = drawn(np.random.default_rng(2), 400, 3000, LESS)
    whole = cal.ece(data, bins=cal.EqualWidth(15))
    parts = [
        cal.PositiveUnlabeled(data.positive[part::2], data.unlabeled[part::2], prior=0.5, scenario="case-control")
        for part in (0, 1)
    ]
    first, second = (cal.BinTable.of(part, cal.EqualWidth(15)) for part in parts)
    assert cal.ece(first + second) == pytest.approx(whole, abs=1e-14)
    other = cal.BinTable.of(cal.PositiveUnlabeled([0.5], [0.5], prior=0.4), cal.EqualWidth(15))
    with pytest.raises(ValueError, match="equal task and prior"):
        first + other


@pytest.mark.parametrize("bins", BINNINGS, ids=repr)
def test_a_fine_table_gives_the_same_bins_as_the_rows(bins):
    data = drawn(np.random.default_rng(3), 400, 3000, LESS)
    fine = cal.BinTable.of(data, cal.table.Distinct())
    assert cal.ece(fine, bins=bins) == pytest.approx(cal.ece(data, bins=bins), abs=1e-14)
    assert cal.debiased_ece(fine, bins=bins) == pytest.approx(cal.debiased_ece(data, bins=bins), abs=1e-12)


def test_a_float32_score_is_summed_in_double_precision():
    data = drawn(np.random.default_rng(4), 400, 3000, LESS)
    narrow = cal.PositiveUnlabeled(data.positive.astype("f4"), data.unlabeled.astype("f4"), prior=0.5)
    wide = cal.PositiveUnlabeled(
        narrow.positive.astype(float), narrow.unlabeled.astype(float), prior=0.5, scenario="case-control"
    )
    for bins in (cal.EqualWidth(15), cal.EqualMass(15)):
        assert cal.ece(narrow, bins=bins) == pytest.approx(cal.ece(wide, bins=bins), abs=1e-14)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("world", "row"), [(LESS, [0.1497, 0.0790, 0.0387, 0.0213]), (BETTER, [0.1860, 0.1133, 0.0614, 0.0435])]
)
def test_the_bias_is_that_of_the_recorded_rows(world, row):
    rng = np.random.default_rng(0)
    for n, expected in zip([10, 30, 100, 300], row, strict=True):
        errors = np.array([_paper_bias(rng, n, world) for _ in range(100)])
        assert abs(errors.mean() - expected) < 3 * errors.std() * np.sqrt(2 / len(errors))  # both are means of 100


def _paper_bias(rng, n, world):
    data = drawn(rng, n, 10 * n, world)
    return abs(_quiet_ece(data.positive, data.unlabeled, 0.5, cal.pu.PaperBins()) - TRUE_ERROR[world])


def test_the_bias_falls_with_the_cube_root_where_the_model_is_calibrated():
    rng = np.random.default_rng(1)
    sizes = np.array([30, 100, 300, 1000, 3000])
    means = [np.mean([_paper_bias(rng, n, CALIBRATED) for _ in range(40)]) for n in sizes]
    assert np.polyfit(np.log(sizes), np.log(means), 1)[0] == pytest.approx(-0.324, abs=0.03)


def test_debiasing_removes_the_noise_of_both_samples():
    rng = np.random.default_rng(2)
    draws = [drawn(rng, 200, 2000, CALIBRATED) for _ in range(100)]
    powers = np.array([cal.debiased_ece(data, norm=2).details["power"] for data in draws])
    plain = np.mean([cal.ece(data, norm=2) ** 2 for data in draws])
    assert abs(powers.mean()) < 3 * powers.std() / 10
    assert abs(powers.mean()) < plain / 5
    halved = np.mean([cal.debiased_ece(data, bins=cal.EqualWidth(15), norm=1) for data in draws])
    assert halved < 0.7 * np.mean([cal.ece(data, bins=cal.EqualWidth(15)) for data in draws])


def test_the_sweep_is_close_in_the_less_calibrated_world():
    rng = np.random.default_rng(3)
    results = [cal.sweep_ece(drawn(rng, 1000, 10_000, LESS)) for _ in range(30)]
    assert np.mean(results) == pytest.approx(0.077, abs=0.004)
    assert np.mean([result.details["bins"] for result in results]) == pytest.approx(7.7, abs=1.0)


def test_scores_agree_with_those_of_labelled_data_in_the_long_run():
    rng = np.random.default_rng(4)
    data = cal.PositiveUnlabeled(positives(rng, 50_000, LESS), everybody(rng, 200_000, LESS)[0], prior=0.5)
    p, y = everybody(rng, 200_000, LESS)
    assert cal.brier(data) == pytest.approx(cal.brier(y, p), abs=0.004)
    assert cal.log_loss(data) == pytest.approx(cal.log_loss(y, p), abs=0.01)
    assert cal.auc(data) == pytest.approx(cal.auc(y, p), abs=0.004)


def test_log_loss_is_infinite_only_where_a_certain_forecast_failed():
    assert cal.log_loss(cal.PositiveUnlabeled([1.0, 0.5], [1.0, 0.5, 0.5, 0.5], prior=0.5)) < np.inf
    assert cal.log_loss(cal.PositiveUnlabeled([0.5, 0.5], [1.0, 0.5, 0.5, 0.5], prior=0.5)) == np.inf
    assert cal.log_loss(cal.PositiveUnlabeled([0.0, 0.5], [0.2, 0.5, 0.5, 0.5], prior=0.5)) == np.inf


def test_scores_that_need_labels_refuse():
    data = drawn(np.random.default_rng(5), 20, 50, LESS)
    with pytest.raises(ValueError, match="no outcome"):
        cal.decompose(data)
