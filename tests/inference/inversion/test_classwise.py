"""The interval of the mean error over classes: fitted gaps, their noise, coverage in a few worlds, and refusals."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import ClasswiseInversion
from calibrant.inference.inversion.classwise import CELLS, ClasswiseFit
from tests.inference.class_worlds import sample, softmax


@pytest.fixture
def fit():
    data, _ = sample(400, 4, temperature=1.5, seed=2)
    return ClasswiseFit.of(data.y_prob, data.y_true)


def test_bases_are_orthonormal_and_reproduce_straight_lines(fit):
    for k, one in enumerate(fit.classes):
        for basis in (one.fit, one.smooth, one.straight):
            assert np.allclose((basis.T * one.share) @ basis, np.eye(basis.shape[1]))
        assert one.straight.shape[1] <= one.smooth.shape[1] < one.fit.shape[1]
        assert one.share.sum() == pytest.approx(1)
        assert len(np.unique(fit.cell[:, k])) == (one.share > 0).sum()


def test_sums_and_outcomes_are_those_of_the_rows(fit):
    residual = fit.sums(fit.probability) - fit.outcomes(fit.labels)
    assert residual.shape == (4, CELLS)
    written_out = (fit.probability - np.eye(4)[fit.labels]).mean(axis=0)
    assert np.allclose(residual.sum(axis=1), written_out)
    fitted = fit.fitted(residual, "fit")
    assert np.allclose(fit.mean_squares(fitted), [(c**2).sum() for c in fit.coordinates(residual)])
    assert np.allclose(fit.of_rows(fitted)[:, 2], fitted[2][fit.cell[:, 2] - 2 * CELLS])
    assert np.allclose(fit.means(np.ones((400, 4)))[0], fit.classes[0].share > 0)


def test_noise_has_mean_zero_and_is_dependent_between_classes(fit):
    noise = fit.noise(fit.probability, 3000, np.random.default_rng(0))
    for one in noise:
        assert np.abs(one.mean(axis=0)).max() < 5 * one.std(axis=0).max() / np.sqrt(3000)
    whole = [some @ (one.fit.T @ one.share) for some, one in zip(noise, fit.classes, strict=True)]
    assert np.allclose(np.sum(whole, axis=0), 0, atol=1e-9)  # one class gains what the others lose


def test_a_constant_probability_is_one_cell():
    fit = ClasswiseFit.of(np.full((20, 2), 0.5), np.arange(20) % 2)
    assert fit.classes[0].fit.shape[1] == 1
    assert fit.fitted(fit.sums(fit.probability) - fit.outcomes(fit.labels), "fit") == pytest.approx(0)


def one_vs_rest_truth(predicted, truth, norm):
    """By averages over many rows of like probability."""
    errors = []
    for p, t in zip(predicted.T, truth.T, strict=True):
        gaps = (p - t)[np.argsort(p)].reshape(200, -1).mean(axis=1)
        errors.append(np.mean(np.abs(gaps) ** norm) ** (1 / norm))
    return float(np.mean(errors))


def swapped(n, seed):
    """Two of eight classes are wrong: what is said to be the first is the second."""
    rng = np.random.default_rng(seed)
    stated = softmax(2 * rng.normal(size=(n, 8)))
    truth = stated.copy()
    moved = 0.9 * stated[:, 0] * stated[:, 1] / (stated[:, 0] + stated[:, 1])
    truth[:, 0] -= moved
    truth[:, 1] += moved
    y = (rng.random((n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)
    return cal.Multiclass(np.minimum(y, 7), stated), truth


WORLDS = {
    "calibrated": lambda n, seed: sample(n, 4, seed=seed),
    "temperature": lambda n, seed: sample(n, 4, temperature=1.4, seed=seed),
    "two of eight classes": swapped,
}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", WORLDS)
def test_it_covers(name):
    data, true = WORLDS[name](100_000, 99)
    for norm in (1, 2):
        truth = one_vs_rest_truth(data.y_prob, true, norm) if name != "calibrated" else 0.0
        found = [ClasswiseInversion(99, seed=k).interval(WORLDS[name](1000, k)[0], norm=norm) for k in range(10)]
        assert sum(truth in one for one in found) >= 8
        if name == "temperature":
            assert all(one.low > 0 for one in found)


def test_more_rows_give_a_narrower_interval():
    few, many = (ClasswiseInversion().interval(sample(n, 3, temperature=1.4)[0]) for n in (300, 6000))
    assert many.high - many.low < 0.5 * (few.high - few.low)


def test_it_is_the_default_of_classwise_errors():
    data, _ = sample(300, 3, temperature=1.5)
    for inner, norm in ((cal.ece, 1), (partial(cal.ece, norm=2), 2), (cal.sweep_ece, 1)):
        found = cal.interval(partial(cal.classwise, inner), data)
        assert found.interval == ClasswiseInversion().interval(data, norm=norm)
        assert found.target == found.interval.target == cal.results.Target("classwise mean", norm)
    assert found.interval.side == "two-sided"


def test_what_it_is_not_for_is_refused():
    data, _ = sample(60)
    with pytest.raises(ValueError, match="from 1 to 2"):
        ClasswiseInversion().interval(data, norm=3)
    with pytest.raises(TypeError, match="classwise mean"):
        cal.interval(cal.variational_error, data, method=ClasswiseInversion())
    with pytest.raises(cal.InvalidPredictions, match="group"):
        cal.interval(
            partial(cal.classwise, cal.ece), cal.Multiclass(data.y_true, data.y_prob, group=np.arange(60) // 2)
        )
    with pytest.raises(ValueError, match="draws"):
        ClasswiseInversion(draws=1)


def test_certain_and_empty_classes_do_no_harm():
    p = np.tile([0.3, 0.7, 0.0], (50, 1))
    found = ClasswiseInversion().interval(cal.Multiclass((np.arange(50) % 10 >= 3).astype(int), p))
    assert found.low == 0.0
    assert 0 < found.high < 1


def test_few_rows_leave_all_open_but_the_impossible():
    found = ClasswiseInversion().interval(cal.Multiclass([0, 2], [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]), norm=2)
    assert found.high == pytest.approx((2 / 3) ** 0.5)


def test_no_surprise_is_no_proof():
    certain = cal.Multiclass(np.zeros(30, int), np.tile([1.0, 0.0], (30, 1)))
    found = ClasswiseInversion().interval(certain)
    assert (found.low, found.high) == (0.0, pytest.approx(np.log(1 / 0.00875) / 30))


def test_names_of_classes_and_the_order_of_rows_do_not_matter():
    data, _ = sample(400, 4, temperature=1.5, seed=3)
    names, rows = np.array([2, 0, 3, 1]), np.random.default_rng(0).permutation(400)
    renamed = cal.Multiclass(np.argsort(names)[data.y_true][rows], data.y_prob[:, names][rows])
    first, second = (ClasswiseInversion(99).interval(one) for one in (data, renamed))
    assert first.low > 0
    assert second.low == pytest.approx(first.low, abs=1e-9)
    assert second.high == pytest.approx(first.high, abs=1e-9)
