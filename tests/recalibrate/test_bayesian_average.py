"""The Bayesian average starts from the identity and goes only as far as the rows say."""

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cal
from calibrant import recalibrate as rc
from calibrant.recalibrate import bayesian_average
from calibrant.recalibrate.base import fitted_each
from calibrant.recalibrate.bayesian_average import LARGEST, Corrections, fit_families
from calibrant.recalibrate.inputs import Scores

GRID = np.concatenate([[0.0, 1e-9, 1e-4], np.linspace(0.005, 0.995, 199), [1 - 1e-4, 1 - 1e-9, 1.0]])


def mapped(p, y, new=GRID, **options):
    return rc.BayesianAverage().fit(p, y, classes=[0, 1], **options).predict_proba(new)[:, 1]


def log_loss(chance, q):
    return -np.mean(chance * np.log(q) + (1 - chance) * np.log1p(-q))


def test_rows_that_say_nothing_leave_the_predictions_as_they_are():
    """Two rows of weight near 0 are no evidence: the average is that of the priors' modes, the identity."""
    q = mapped([0.4, 0.6], [0, 1], sample_weight=[1.0, 1.0], effective_n=1e-9)
    np.testing.assert_allclose(q, GRID, atol=1e-6)


@pytest.mark.parametrize("n", [2, 20, 200])
@pytest.mark.parametrize("outcome", [0, 1])
def test_n_rows_of_one_outcome_do_not_make_certain(n, outcome):
    rng = np.random.default_rng(n)
    q = mapped(rng.random(n), np.full(n, outcome))
    floor = 0.5 / (n + 1)
    assert (q >= np.minimum(GRID, floor) - 1e-12).all()
    assert (q <= np.maximum(GRID, 1 - floor) + 1e-12).all()
    inner = (GRID > 0.3) & (GRID < 0.7)
    assert ((q < GRID) == (outcome == 0))[inner].all()


def test_twenty_rows_without_an_event_do_not_make_certainty_of_absence():
    q = mapped(0.01 * np.linspace(0.5, 1.5, 20), np.zeros(20), [0.01, 0.3])
    assert 0.008 < q[0] <= 0.01 * (1 + 1e-9)
    assert 0.2 < q[1] <= 0.3


def test_separable_rows_sharpen_up_to_the_bound():
    p = np.concatenate([np.linspace(0.3, 0.45, 50), np.linspace(0.55, 0.7, 50)])
    q = mapped(p, p > 0.5, [0.35, 0.65])
    assert 0.5 / 101 <= q[0] < 0.1
    assert 0.9 < q[1] <= 1 - 0.5 / 101


def test_two_rows_that_contradict_the_scores_change_little():
    assert np.abs(mapped([0.2, 0.8], [1, 0]) - GRID).max() < 0.2


def test_reversed_scores_are_turned_round_by_many_rows_but_not_by_few():
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = rng.random(1000) < 1 - p
    few, many = mapped(p[:5], y[:5], [0.1, 0.9]), mapped(p, y, [0.1, 0.9])
    assert few[0] < few[1]
    np.testing.assert_allclose(many, [0.9, 0.1], atol=0.05)


def test_saturated_scores_with_one_error_do_not_shift_the_others():
    """Scores of a confident network: an error at 1 - 1e-9 is no reason to move 0.5."""
    p = np.concatenate([np.full(15, 1 - 1e-9), [0.9, 0.8, 0.7, 0.6, 0.5]])
    y = np.concatenate([np.ones(14), [0], [1, 1, 1, 0, 1]])
    q = mapped(p, y, [0.5, 1 - 1e-9])
    assert 0.3 < q[0] < 0.7
    assert 0.8 < q[1] < 0.99


@pytest.mark.no_cover
def test_calibrated_rows_are_changed_by_less_than_the_fit_of_two_parameters():
    rng = np.random.default_rng(1)
    p, new = rng.random((30, 50)), rng.random(4000)
    harm = {"average": [], "platt": []}
    for row in p:
        y = rng.random(50) < row
        for name, q in (("average", mapped(row, y, new)), ("platt", rc.Platt().fit(row, y).predict_proba(new)[:, 1])):
            harm[name].append(log_loss(new, np.clip(q, 1e-6, 1 - 1e-6)) - log_loss(new, new))
    assert np.mean(harm["average"]) < 0.3 * np.mean(harm["platt"])
    assert np.mean(harm["average"]) < 0.006


@pytest.mark.parametrize(
    "curve",
    [lambda p: expit(0.5 * logit(p) - 1), lambda p: p + 0.1 * np.sin(4 * np.pi * p), lambda p: np.full_like(p, 0.3)],
    ids=["affine", "wave", "constant"],
)
def test_many_rows_find_the_curve(curve):
    rng = np.random.default_rng(2)
    p = 0.02 + 0.96 * rng.random(20_000)
    q = mapped(p, rng.random(20_000) < curve(p), np.linspace(0.05, 0.95, 91))
    assert np.abs(q - curve(np.linspace(0.05, 0.95, 91))).mean() < 0.012


def test_the_weights_are_posterior_probabilities_of_named_members():
    rng = np.random.default_rng(3)
    p, kept = rng.random(300), []
    for curve in [p] * 8 + [p**2] * 2:
        fitted = rc.BayesianAverage().fit(p, rng.random(300) < curve)
        assert len(fitted.members_) == len(fitted.member_weight_)
        assert fitted.member_weight_.sum() == pytest.approx(1)
        kept.append(fitted.member_weight_[fitted.members_.index("identity")])
    assert np.mean(kept[:8]) > 0.5  # more than all corrections together
    assert max(kept[8:]) < 0.001


def test_members_count_by_prior_weight_times_a_power_of_their_marginal_likelihood():
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(size=40))
    y = (rng.random(40) < expit(2 * x)).astype(float)
    fitted = rc.BayesianAverage(input="logits").fit(x, y)
    expected = []
    for family in corrections_of(x, np.ones(40)).families(x):
        coefficients, evidence = fit_families([family], [(y, 1 - y)])[0]
        turned = np.where(family.slope(coefficients) < 0, 0.1, 1.0)
        expected += (family.weight * turned * np.exp(0.7 * evidence)).tolist()
    np.testing.assert_allclose(fitted.member_weight_, np.array(expected) / np.sum(expected), rtol=1e-9)


def test_a_table_gives_the_same_map_as_its_rows_and_the_unit_of_weights_does_not_matter():
    rng = np.random.default_rng(4)
    p = np.round(rng.random(400), 2)
    y, weight = (rng.random(400) < p**2).astype(int), rng.exponential(size=400)
    table = rc.BayesianAverage().fit(cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct()))
    np.testing.assert_allclose(table.predict_proba(GRID)[:, 1], mapped(p, y), atol=1e-9)
    weighted = mapped(p, y, sample_weight=weight)
    np.testing.assert_allclose(mapped(p, y, sample_weight=1e6 * weight), weighted, atol=1e-9)
    np.testing.assert_allclose(mapped(p, y, sample_weight=np.full(400, 0.2)), mapped(p, y), atol=1e-12)


@pytest.mark.no_cover
def test_the_map_is_the_average_of_its_members_at_every_score(monkeypatch):
    """It is kept as lines between few points; with many more points it hardly changes."""
    rng = np.random.default_rng(5)
    p = np.concatenate([rng.random(500), [0.0, 1.0, 1 - 1e-12]])
    y = rng.random(503) < p + 0.1 * np.sin(6 * np.pi * p)
    q = mapped(p, y)
    few = len(rc.BayesianAverage().fit(p, y).log_odds_)
    monkeypatch.setattr(bayesian_average, "_TOLERANCE", 1e-7)
    assert len(rc.BayesianAverage().fit(p, y).log_odds_) > 10 * few
    np.testing.assert_allclose(q, mapped(p, y), rtol=0, atol=3e-4)


def test_it_comes_back_from_disk(tmp_path):
    rng = np.random.default_rng(6)
    p = np.concatenate([rng.random(300), [0.0, 1.0, 1 - 1e-12]])
    fitted = rc.BayesianAverage().fit(p, rng.random(303) < p**2)
    fitted.save(tmp_path / "map.json")
    loaded = rc.load(tmp_path / "map.json")
    np.testing.assert_array_equal(loaded.predict_proba(GRID), fitted.predict_proba(GRID))
    assert loaded.members_ == fitted.members_


def test_maps_that_are_fitted_together_are_those_fitted_alone(monkeypatch):
    """Samples of different sizes, with and without waves and scores that are cut, in more than one batch."""
    monkeypatch.setattr(bayesian_average, "_TOGETHER", 3)
    rng, samples = np.random.default_rng(6), []
    for n, sharp in ((30, 1.0), (400, 1.0), (400, 6.0), (7, 1.0)):
        x = sharp * rng.normal(size=n)
        samples.append((Scores(x, logits=True), (rng.random(n) < expit(0.5 * x)).astype(int), None))
    for (x, y, _), found in zip(samples, fitted_each(rc.BayesianAverage(), iter(samples)), strict=True):
        alone = rc.BayesianAverage(input="logits").fit(x.values, y, classes=[0, 1])
        assert found.members_ == alone.members_
        np.testing.assert_allclose(found.member_weight_, alone.member_weight_, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(found._map(x), alone._map(x), rtol=1e-9)


SCORES = np.linspace(-3.0, 4.0, 60)


def corrections_of(scores, weight, positive=None):
    return Corrections.of(scores, weight, weight / 2 if positive is None else positive)


def weights(corrections, x=SCORES):
    return np.concatenate([family.weight for family in corrections.families(x)])


@pytest.mark.parametrize("rows", [20, 60])
def test_prior_weights_are_shares_but_for_waves_that_few_rows_do_not_have(rows):
    corrections = corrections_of(SCORES[:rows], np.ones(rows))
    names = [name for family in corrections.families(SCORES) for name in family.members]
    assert len(names) == len(set(names)) == len(weights(corrections))
    assert weights(corrections).sum() == pytest.approx(1.0 if rows == 60 else 0.95)
    assert any(name.startswith("waves") for name in names) == (rows == 60)


def test_centre_and_spread_are_weighted_by_information():
    corrections = corrections_of(SCORES, np.arange(1.0, 61.0))
    information = np.arange(1.0, 61.0) * np.exp(-SCORES) / (1 + np.exp(-SCORES)) ** 2
    centre = np.average(SCORES, weights=information)
    assert corrections.centres[0] == pytest.approx(centre)
    assert corrections.spreads[0] == pytest.approx(np.sqrt(np.average((SCORES - centre) ** 2, weights=information)))
    assert corrections_of(np.array([1.0]), np.array([5.0])).spreads[0] == 0.05


def test_scores_beyond_what_n_rows_can_tell_are_cut_in_some_members():
    """The weight of these is larger where some scores are certain."""
    for top, share in ((4.0, 0.0), (9.0, 0.4), (LARGEST, 0.6)):
        corrections = corrections_of(np.append(SCORES[:-1], top), np.ones(60))
        cut = [family for family in corrections.families(SCORES) if "cut at -5.5 and 5.5" in family.note]
        assert sum(family.weight.sum() for family in cut) == pytest.approx(share)
    assert max(family.offset.max() for family in cut) <= np.log(240)


@pytest.mark.parametrize("n", [30, 100, 1000])
@pytest.mark.parametrize("outcome", [0, 1])
def test_rows_without_an_event_do_not_raise_small_scores(n, outcome):
    """Nor do rows without a non-event lower large ones."""
    x = np.random.default_rng(n).normal(-12 if outcome == 0 else 12, 2, n)
    fitted = rc.Auto(input="logits").fit(x, np.full(n, outcome), classes=[0, 1])
    small = np.geomspace(1e-10, 0.4 / n, 50)
    q = fitted.predict_proba(logit(small) * (1 if outcome == 0 else -1))[:, 1 - outcome]
    assert (q <= small * (1 + 1e-5)).all()  # of 1 - q, rounding leaves that much


def test_only_an_error_beyond_what_n_rows_can_tell_or_certainty_is_cut():
    x, seen = np.array([-9.0, -1.0, 1.0, 8.0]), np.full(4, 15.0)
    limit = np.log(240)
    right = np.array([0.0, 5.0, 10.0, 15.0])
    assert corrections_of(x, seen, right).cuts == (-LARGEST, LARGEST)
    for place, wrong in ((0, 1.0), (3, 14.0)):
        positive = right.copy()
        positive[place] = wrong
        assert corrections_of(x, seen, positive).cuts == pytest.approx((-limit, limit))
    certain = np.array([-LARGEST, -9.0, 1.0, LARGEST])  # certain scores count as the most certain of the others
    assert corrections_of(certain, seen, np.array([0.0, 0.0, 10.0, 15.0])).cuts == pytest.approx((-9.0, limit))


def test_corrections_are_constant_beyond_the_scores_by_more_than_one_unit():
    corrections = corrections_of(SCORES, np.ones(60))
    far = 4.0 + corrections.spreads[0] + np.array([0.0, 1.0, 20.0])
    for family in corrections.families(far):
        np.testing.assert_allclose(family.basis, np.broadcast_to(family.basis[:1], family.basis.shape))


def test_fits_and_slopes_are_those_of_the_corrected_log_odds():
    corrections = corrections_of(SCORES, np.ones(60))
    positive = (SCORES < 0.5).astype(float)  # the order of the scores is turned round
    for family in corrections.families(SCORES):
        coefficients, _ = fit_families([family], [(positive, 1 - positive)])[0]
        slope = family.slope(coefficients)
        if family.name in ("identity", "level"):
            assert (slope == 1).all()
        if family.name in ("slope", "affine"):
            ends = (family.offset + coefficients @ family.basis.T)[:, [0, -1]]
            np.testing.assert_allclose((ends[:, 1] - ends[:, 0]) / 7.0, slope, rtol=1e-9)
            assert slope[-1] < 0


def test_corners_rise_from_end_to_end():
    corners = corrections_of(np.array([-3.0, -3.0 + 1e-12, 2.0, LARGEST]), np.ones(4)).corners
    assert (np.diff(corners) > 1e-5).all()
    assert corners[0] == -LARGEST
    assert corners[-1] == LARGEST


def chosen_worlds():
    rng = np.random.default_rng(3)
    p = rng.random(12)
    yield p, rng.random(12) < p
    p = rng.beta(0.6, 0.8, 60)
    yield p, rng.random(60) < p**2
    p = rng.beta(0.6, 0.8, 600)
    yield p, rng.random(600) < np.clip(p + 0.15 * np.sin(12 * p), 0, 1)
    p = rng.beta(0.6, 0.8, 9)
    yield p, rng.random(9) < 1 - p
    p = np.append(rng.beta(0.1, 0.1, 300), [1e-9, 1 - 1e-8])
    yield p, np.append(rng.random(300) < np.clip(p[:300], 0.02, 0.98), [True, True])
    yield np.append(rng.beta(0.6, 0.8, 30), 1e-4), np.append(rng.random(30) < 0.3, True)
    yield np.round(0.5 + 0.002 * rng.normal(size=80), 3), rng.random(80) < 0.7


EXPECTED = [
    [0.02, 0.278564, 0.610423, 0.97],
    [0.008197, 0.072396, 0.308711, 0.980513],
    [0.057445, 0.351836, 0.649871, 0.915423],
    [0.663966, 0.549142, 0.479642, 0.34641],
    [0.087394, 0.35569, 0.629687, 0.932116],
    [0.282968, 0.334441, 0.358565, 0.424295],
    [0.024529, 0.341903, 0.644327, 0.974596],
]


def test_maps_fitted_with_these_constants():
    """Prior weights and scales were chosen on 76 sets of real predictions: whoever changes one looks at
    benchmarks/recalibrate_safety.py and recalibrate_quality.py."""
    found = [mapped(p, y, [0.02, 0.3, 0.6, 0.97]) for p, y in chosen_worlds()]
    np.testing.assert_allclose(found, EXPECTED, atol=1e-5)
