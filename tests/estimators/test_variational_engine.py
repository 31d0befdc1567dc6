"""From cross-fitted rows to estimates, standard errors and lower confidence bounds."""

import math
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.estimators.variational_engine import TRAINING_PARTS, Settings, Variational, split_sample_interval
from tests.estimators.worlds import Fixed, over_world, tempered
from tests.numerics.worlds import draw_classes


@pytest.mark.no_cover
def test_repeats_average_over_divisions_into_folds():
    data = over_world(np.random.default_rng(12), 300, slope=0.9, shift=0.0)
    spread = {r: np.std([cal.variational_error(data, seed=s, repeats=r) for s in range(12)]) for r in (1, 6)}
    assert spread[6] < 0.7 * spread[1]
    assert cal.variational_error(data, repeats=6).method.startswith("5 folds x 6")


@pytest.mark.no_cover
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_binary_results_do_not_depend_on_the_order_of_rows(seed, weighted):
    rng = np.random.default_rng(seed)
    f, y = np.round(rng.random(60), 2), rng.integers(0, 2, 60)
    w = rng.integers(1, 4, 60) if weighted else None
    order = rng.permutation(60)
    first = cal.variational_error(cal.Binary(y, f, weight=w), norm="squared")
    again = cal.variational_error(
        cal.Binary(y[order], f[order], weight=None if w is None else w[order]), norm="squared"
    )
    assert first == pytest.approx(float(again), abs=1e-12)


def test_the_same_seed_gives_the_same_number_and_another_another():
    data = over_world(np.random.default_rng(11), 300, slope=0.9, shift=0.0)
    assert cal.variational_error(data, seed=3) == cal.variational_error(data, seed=3)
    assert cal.variational_error(data, seed=3) != cal.variational_error(data, seed=4)


def squared(p):
    return p**2


def test_the_standard_error_is_that_of_a_weighted_mean():
    rng = np.random.default_rng(30)
    f, w = rng.random(400), rng.random(400) + 0.2
    y = rng.random(400) < f
    found = cal.variational_error(cal.Binary(y, f, weight=w), norm="squared", recalibrator=Fixed(squared))
    values = (f - y) ** 2 - (f**2 - y) ** 2
    mean = w @ values / w.sum()
    assert found == pytest.approx(mean, rel=1e-12)
    assert found.details["standard_error"] == pytest.approx(np.sqrt(w**2 @ (values - mean) ** 2) / w.sum(), rel=1e-12)


def test_clusters_are_the_units_of_the_standard_error():
    rng = np.random.default_rng(31)
    f, cluster = rng.random(400), rng.integers(0, 40, 400)
    y = rng.random(400) < f
    found = cal.variational_error(cal.Binary(y, f, group=cluster), norm="squared", recalibrator=Fixed(squared))
    values = (f - y) ** 2 - (f**2 - y) ** 2
    sums = np.bincount(cluster, values - values.mean())
    assert found.details["standard_error"] == pytest.approx(np.sqrt(sums @ sums) / 400, rel=1e-12)


def test_repeats_are_averaged_one_by_one():
    data = over_world(np.random.default_rng(32), 300)
    whole = Variational.of(data, None, Settings(repeats=3))
    parts = [Variational([run], whole.settings, whole.method, whole.source).error(1.0) for run in whole.runs]
    assert whole.error(1.0) == pytest.approx(np.mean(parts), rel=1e-14)
    assert whole.error(1.0).details["standard_error"] == pytest.approx(
        np.mean([part.details["standard_error"] for part in parts])
    )


def test_a_split_sample_measures_on_rows_it_did_not_train_on():
    data = over_world(np.random.default_rng(33), 1000)
    bound = cal.estimators.SplitSampleBound(train=0.6)
    fitted = Variational.of(data, None, Settings(bound=bound))
    assert fitted.method == "split sample, averaged smoothers"
    assert fitted.runs[0].n == 400
    assert set(fitted.runs[0].fold) == {TRAINING_PARTS}
    assert sum(Settings(bound=bound).sizes) == pytest.approx(1.0)
    assert Settings(folds=3).sizes == [1.0, 1.0, 1.0]


def test_the_full_top_label_takes_the_column_of_the_predicted_class():
    rng = np.random.default_rng(34)
    f = rng.dirichlet(np.ones(3), 500)
    y = draw_classes(rng, f)
    oracle = tempered(0.5)
    found = cal.variational_error(cal.Multiclass(y, f), norm="squared", top_label="full", recalibrator=Fixed(oracle))
    best = f.argmax(axis=1)
    confidence, accuracy, hit = f[np.arange(500), best], oracle(f)[np.arange(500), best], y == best
    assert found == pytest.approx(((confidence - hit) ** 2 - (accuracy - hit) ** 2).mean(), rel=1e-12)
    assert found.name == "Variational confidence error given the vector (squared)"


def test_the_refinement_is_the_mean_score_after_recalibration():
    rng = np.random.default_rng(35)
    f = rng.random(300)
    y = rng.random(300) < f
    after = cal.Binary(y, f**2)
    for score, mean in (("brier", cal.brier(after)), ("log_loss", cal.log_loss(after))):
        assert cal.refinement(y, f, score=score, recalibrator=Fixed(squared)) == pytest.approx(float(mean), rel=1e-12)


def test_sides_of_several_classes_are_those_of_the_top_label():
    data = cal.Multiclass([0, 1, 2], np.full((3, 3), 1 / 3))
    with pytest.raises(ValueError, match="those of the top label"):
        Variational.of(data, None, Settings(folds=2)).part(1.0, "over")


@pytest.mark.no_cover
@pytest.mark.parametrize("norm", [1, "squared", "kl"])
def test_split_sample_bounds_lie_below_the_truth_and_are_not_empty(norm):
    rng = np.random.default_rng(2)
    truth = {1: 0.128660, "squared": 0.019893, "kl": 0.1113}[norm]
    bound = cal.estimators.SplitSampleBound(level=0.9)
    lows = []
    for _ in range(40):
        f = rng.beta(0.5, 0.5, 2000)
        h = 1 / (1 + ((1 - f) / f) ** 0.4)
        lows.append(cal.variational_error(rng.random(2000) < h, f, norm=norm, bound=bound).interval.low)
    assert np.mean(np.array(lows) > truth) <= 0.1 + 3 * math.sqrt(0.09 / 40)
    assert np.mean(lows) > (0.5 * truth if norm == 1 else 0)


def test_the_interval_says_what_it_is():
    rng = np.random.default_rng(3)
    f = rng.random(1000)
    y = rng.random(1000) < f**2
    exact = cal.variational_error(y, f, bound=cal.estimators.SplitSampleBound())
    assert exact.interval.side == "lower"
    assert exact.interval.high == math.inf
    assert "betting" in exact.interval.method
    assert exact.n == 500
    assert exact.method.startswith("split sample")
    near = cal.variational_error(y, f, bound=cal.estimators.CrossFittedBound(level=0.9))
    z = 1.2815515655446004
    assert near.interval.low == pytest.approx(near - z * 1.5 * near.details["standard_error"])
    assert near == cal.variational_error(y, f)


def test_many_rows_use_sums():
    rng = np.random.default_rng(4)
    f = rng.random(200_000)
    found = cal.variational_error(rng.random(200_000) < f**2, f, bound=cal.estimators.SplitSampleBound())
    assert "Bernstein" in found.interval.method
    assert 0.15 < found.interval.low < 1 / 6
    assert found.n == pytest.approx(100_000, rel=0.02)


def test_several_classes_have_bounds_too():
    rng = np.random.default_rng(5)
    f = rng.dirichlet(np.ones(3), 1500)
    data = cal.Multiclass((rng.random(1500)[:, None] > np.cumsum(f[:, ::-1], axis=1)).sum(axis=1).clip(0, 2), f)
    found = cal.variational_error(data, norm=2, bound=cal.estimators.SplitSampleBound())
    assert 0 < found.interval.low < found


def test_exact_bounds_refuse_what_they_cannot_promise():
    rng = np.random.default_rng(6)
    f, y = rng.random(100), rng.integers(0, 2, 100)
    for extra in ({"weight": 1 + rng.random(100)}, {"group": np.arange(100) // 2}):
        with pytest.raises(ValueError, match="independent rows without weights"):
            cal.variational_error(cal.Binary(y, f, **extra), bound=cal.estimators.SplitSampleBound())
    unbounded = cal.estimators.Distance(lambda f, q: ((f - q) ** 2)[:, 0], lambda f, q: 2 * (q - f))
    with pytest.raises(ValueError, match="give the Distance a `bound`"):
        cal.variational_error(y, f, norm=unbounded, bound=cal.estimators.SplitSampleBound())
    bounded = cal.estimators.Distance(unbounded.phi, unbounded.grad, bound=1.0)
    assert cal.variational_error(y, f, norm=bounded, bound=cal.estimators.SplitSampleBound()).interval.low < 0.2
    with pytest.raises(ValueError, match="level must lie in"):
        cal.estimators.SplitSampleBound(level=1.0)


def test_the_kl_bound_mixes_a_twentieth_of_the_prediction():
    rng = np.random.default_rng(8)
    f = rng.random(4000)
    y, bound = rng.random(4000) < f**2, cal.estimators.SplitSampleBound()
    found = cal.variational_error(y, f, norm="kl", bound=bound)
    rows = Variational.of(y, f, Settings(bound=bound)).runs[0]
    g = 0.05 * rows.predicted + 0.95 * rows.fitted
    gain = np.log(np.where(rows.observed[:, None] == 1, g / rows.predicted, (1 - g) / (1 - rows.predicted)))
    salt = crc32(rows.observed.tobytes(), crc32(rows.predicted[:, 0].tobytes()))
    expected = split_sample_interval(gain[:, 0], rows.weight, -np.log(0.05), bound, seed=0, salt=salt)
    assert found.interval.low == pytest.approx(expected.low, rel=1e-9)
