"""The paired gain is its formula, and its interval covers where a plain standard error would not."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.numerics.arrays import expit
from calibrant.recalibrate.held_out_gains import Entries, differences, fold_tables, gain_share, losses
from tests.reporting.samples import OVER
from tests.reporting.samples import P as P_of_samples


def cells_of(data):
    return data if isinstance(data, cal.BinTable) else cal.BinTable.of(data, cal.table.Distinct())


@pytest.mark.parametrize("kind", ["rows", "weighted", "clustered", "table"])
def test_five_folds_hold_every_row_once(kind):
    weight = np.random.default_rng(2).integers(0, 3, 3000) if kind == "weighted" else None
    group = np.arange(3000) // 10 if kind == "clustered" else None
    data = cal.Binary(OVER.y_true, P_of_samples, weight=weight, group=group)
    data = cal.BinTable.of(data, cal.table.HybridGrid()) if kind == "table" else data
    cells = cells_of(data).filled()
    held_out, training = fold_tables(data, cells, 0)
    assert len(held_out) == 5
    assert sum(fold.n for fold in held_out) == cells.n
    for held, others in zip(held_out, training, strict=True):
        both = cal.table.merge([held, others])
        np.testing.assert_allclose(both.sums[[0, 1, 2, 4]], cells.sums[[0, 1, 2, 4]], atol=1e-9)
        np.testing.assert_allclose(both.predicted, cells.predicted, rtol=1e-9)


def test_clusters_stay_in_one_fold():
    scores = np.repeat(np.linspace(0.01, 0.99, 50), 4)
    data = cal.Binary(np.arange(200) % 2, scores, group=np.repeat(np.arange(50), 4))
    held_out, _ = fold_tables(data, cells_of(data), 3)
    assert all(np.all(fold.count == 4) for fold in held_out)


P = np.array([0.2, 0.2, 0.7, 0.9])
Q = np.array([0.1, 0.3, 0.6, 0.8])
Y = np.array([0, 1, 1, 0])


def entries(y, **columns):
    return Entries(np.where(y, 1.0, 0.0), np.where(y, 0.0, 1.0), np.ones(len(y)), **columns)


@pytest.mark.parametrize("loss", ["log loss", "Brier score"])
def test_the_gain_is_the_mean_difference_over_the_mean_loss(loss):
    before, after = (np.where(Y, *losses(p, loss)) for p in (P, Q))
    found = gain_share(entries(Y), P, Q, loss, parameters=2, size=4)
    share = (before - after).mean() / before.mean()
    assert found.value == pytest.approx(share)
    rest = before - after - share * before
    spread = [np.sqrt((rest**2).sum()) / 4]
    by_outcome = [a - b - share * a for a, b in zip(losses(P, loss), losses(Q, loss), strict=True)]
    spread += [np.sqrt((p * (1 - p) * (by_outcome[0] - by_outcome[1]) ** 2).sum()) / 4 for p in (P, Q)]
    unit = 0.5 if loss == "log loss" else (P * (1 - P)).mean()
    error = np.hypot(max(spread), 2.5 * 2 * unit / 4) / before.mean()
    assert found.value - found.low == pytest.approx(1.959964 * error, rel=1e-6)
    assert found.high == pytest.approx(min(share + 1.959964 * error, 1.0), rel=1e-6)


def test_cells_give_the_gain_of_their_rows():
    cells = Entries(np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0]), np.array([2.0, 1.0, 1.0]))
    p, q = P[[0, 2, 3]], np.array([0.1, 0.6, 0.8])
    rows = gain_share(entries(Y), P, np.array([0.1, 0.1, 0.6, 0.8]), "log loss", parameters=1, size=4)
    found = gain_share(cells, p, q, "log loss", parameters=1, size=4)
    assert (found.value, found.low, found.high) == pytest.approx((rows.value, rows.low, rows.high))


def test_clusters_are_units():
    y, p = np.tile(Y, 50), np.tile(P, 50)
    q = np.tile(Q, 50)
    alone = gain_share(entries(y), p, q, "log loss", parameters=1, size=200)
    copied = gain_share(entries(y, cluster=np.arange(200) % 4), p, q, "log loss", parameters=1, size=4)
    assert copied.value == pytest.approx(alone.value)
    assert copied.high - copied.low > 4 * (alone.high - alone.low)


def test_an_outcome_that_was_excluded_is_an_infinite_loss():
    found = gain_share(entries(Y), P, np.array([0.1, 0.0, 0.5, 0.5]), "log loss", parameters=1, size=4)
    assert found.value == found.high == -np.inf


def test_rows_that_are_certain_and_right_have_no_part_in_the_gain():
    """The loss of the outcome that did not occur is infinite, but nothing has lost it."""
    sure, y = np.append(P, [1.0, 0.0]), np.append(Y, [1, 0])
    found = gain_share(entries(y), sure, np.append(Q, [1.0, 0.0]), "log loss", parameters=1, size=6)
    plain = gain_share(entries(Y), P, Q, "log loss", parameters=1, size=4)
    assert found.value == pytest.approx(plain.value)
    assert found.low < found.value < found.high


def test_losses_of_outcomes_that_did_not_occur_add_no_error():
    sure, y = np.append(P, 1.0), np.append(Y, 1)
    change = differences(losses(sure, "log loss"), losses(np.append(Q, 0.9), "log loss"))
    assert np.isinf(change[1][-1])
    assert 0 < entries(y).error_of_mean(*change) < 1
    assert 0 < entries(y, cluster=np.arange(5)).error_of_mean(*change) < 1
    assert differences(losses(sure, "log loss"), losses(sure, "log loss"))[1][-1] == 0


def test_certain_and_right_has_no_loss_to_lower():
    certain = Y.astype(float)
    assert gain_share(entries(Y), certain, Q, "Brier score", parameters=1, size=4).value == 0.0


def cross_validated(rng, n, slope):
    """Temperature scaling by hand, cross-validated: the interval, and the gain of the map fitted to all rows."""
    z = rng.normal(-0.5, 1.3, n)
    y = rng.random(n) < expit(slope * z)

    def fit(rows):
        b = 1.0
        for _ in range(20):
            q = expit(b * z[rows])
            b += (z[rows] @ (y[rows] - q)) / (z[rows] ** 2 @ (q * (1 - q)))
        return b

    fold, q = rng.permutation(n) % 5, np.empty(n)
    for k in range(5):
        q[fold == k] = expit(fit(fold != k) * z[fold == k])
    grid = -0.5 + 1.3 * np.sqrt(2) * np.polynomial.hermite.hermgauss(80)[0]
    mass = np.polynomial.hermite.hermgauss(80)[1]
    truth = expit(slope * grid)

    def expected(b):
        one, zero = losses(expit(b * grid), "log loss")
        return mass @ (truth * one + (1 - truth) * zero) / mass.sum()

    b = fit(np.ones(n, dtype=bool))
    return gain_share(entries(y), expit(z), q, "log loss", parameters=1, size=n), 1 - expected(b) / expected(1.0)


@pytest.mark.no_cover
@pytest.mark.parametrize("slope", [1.0, 0.7])
def test_intervals_cover_the_gain_of_the_map(slope):
    rng = np.random.default_rng(11)
    found = [cross_validated(rng, 200, slope) for _ in range(400)]
    assert np.mean([gain.low <= truth <= gain.high for gain, truth in found]) > 0.93
