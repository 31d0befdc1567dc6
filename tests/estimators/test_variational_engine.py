"""From cross-fitted rows to estimates: means, standard errors, parts, repeats and split samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.estimators.variational_engine import TRAINING_PARTS, Settings, Variational
from tests.estimators.worlds import Fixed, over_world, tempered
from tests.numerics.worlds import draw_classes


def test_repeats_average_over_divisions_into_folds():
    data = over_world(np.random.default_rng(12), 300, slope=0.9, shift=0.0)
    spread = {r: np.std([cal.calibration_error(data, seed=s, repeats=r) for s in range(12)]) for r in (1, 6)}
    assert spread[6] < 0.7 * spread[1]
    assert cal.calibration_error(data, repeats=6).method.startswith("5 folds x 6")


@pytest.mark.no_cover
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_binary_results_do_not_depend_on_the_order_of_rows(seed, weighted):
    rng = np.random.default_rng(seed)
    f, y = np.round(rng.random(60), 2), rng.integers(0, 2, 60)
    w = rng.integers(1, 4, 60) if weighted else None
    order = rng.permutation(60)
    first = cal.calibration_error(cal.Binary(y, f, weight=w), norm="squared")
    again = cal.calibration_error(
        cal.Binary(y[order], f[order], weight=None if w is None else w[order]), norm="squared"
    )
    assert first == pytest.approx(float(again), abs=1e-12)


def test_the_same_seed_gives_the_same_number_and_another_another():
    data = over_world(np.random.default_rng(11), 300, slope=0.9, shift=0.0)
    assert cal.calibration_error(data, seed=3) == cal.calibration_error(data, seed=3)
    assert cal.calibration_error(data, seed=3) != cal.calibration_error(data, seed=4)


def squared(p):
    return p**2


def test_the_standard_error_is_that_of_a_weighted_mean():
    rng = np.random.default_rng(30)
    f, w = rng.random(400), rng.random(400) + 0.2
    y = rng.random(400) < f
    found = cal.calibration_error(cal.Binary(y, f, weight=w), norm="squared", recalibrator=Fixed(squared))
    values = (f - y) ** 2 - (f**2 - y) ** 2
    mean = w @ values / w.sum()
    assert found == pytest.approx(mean, rel=1e-12)
    assert found.details["standard_error"] == pytest.approx(np.sqrt(w**2 @ (values - mean) ** 2) / w.sum(), rel=1e-12)


def test_clusters_are_the_units_of_the_standard_error():
    rng = np.random.default_rng(31)
    f, cluster = rng.random(400), rng.integers(0, 40, 400)
    y = rng.random(400) < f
    found = cal.calibration_error(cal.Binary(y, f, group=cluster), norm="squared", recalibrator=Fixed(squared))
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
    found = cal.calibration_error(cal.Multiclass(y, f), norm="squared", top_label="full", recalibrator=Fixed(oracle))
    best = f.argmax(axis=1)
    confidence, accuracy, hit = f[np.arange(500), best], oracle(f)[np.arange(500), best], y == best
    assert found == pytest.approx(((confidence - hit) ** 2 - (accuracy - hit) ** 2).mean(), rel=1e-12)
    assert found.name == "Confidence calibration error given the vector (squared)"


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
