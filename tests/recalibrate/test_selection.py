"""Auto chooses by a proper loss, says why, and leaves well alone."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import clone

from calibrant import recalibrate as rc
from calibrant.numerics.folds import fold_of_rows
from calibrant.recalibrate.selection import default_candidates, row_losses, stacking_weights


def world(n=3000, seed=0, curve=lambda p: p**2):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < curve(p)).astype(int)


def test_the_losses_in_the_table_are_cross_validated_by_hand():
    p, y = world(400)
    auto = rc.Auto([rc.Platt(), rc.Histogram()], folds=4, seed=3).fit(p, y)
    fold = fold_of_rows(400, [1] * 4, seed=3)
    losses = {}
    for template in (rc.Identity(), rc.Platt(), rc.Histogram()):
        q = np.empty(400)
        for k in range(4):
            q[fold == k] = clone(template).fit(p[fold != k], y[fold != k]).predict_proba(p[fold == k])[:, 1]
        losses[repr(template)] = -np.where(y == 1, np.log(q), np.log1p(-q))
    assert [row["name"] for row in auto.results_] == sorted(losses, key=lambda name: losses[name].mean())
    for row in auto.results_:
        own, gain = losses[row["name"]], losses["Identity()"] - losses[row["name"]]
        assert row["loss"] == pytest.approx(own.mean(), rel=1e-9)
        assert row["loss_se"] == pytest.approx(own.std() / 20, rel=1e-9)
        assert row["gain"] == pytest.approx(gain.mean(), rel=1e-7, abs=1e-12)
        assert row["gain_se"] == pytest.approx(gain.std() / 20, rel=1e-7, abs=1e-12)


def test_the_best_candidate_is_fitted_to_all_rows():
    p, y = world()
    auto = rc.Auto([rc.Platt(), rc.Histogram()]).fit(p, y)
    best = {"Platt()": rc.Platt(), "Histogram()": rc.Histogram()}[auto.results_[0]["name"]]
    np.testing.assert_array_equal(auto.predict_proba(p), best.fit(p, y).predict_proba(p))
    assert auto.results_[0]["weight"] == 1


@pytest.mark.parametrize("combine", ["choose", "stack"])
def test_calibrated_predictions_are_left_alone(combine):
    kept = 0
    for seed in range(5):
        p, y = world(300, seed, curve=lambda p: p)
        auto = rc.Auto(combine=combine).fit(p, y)
        kept += not auto.changed_
        if not auto.changed_:
            np.testing.assert_array_equal(auto.predict_proba(p)[:, 1], p)
    assert kept >= 3


def test_without_caution_the_least_loss_wins_however_narrowly():
    changed = [
        rc.Auto(cautious=False).fit(*world(200, seed, curve=lambda p: 0.1 + 0.8 * p)).changed_ for seed in range(3)
    ]
    cautious = [rc.Auto().fit(*world(200, seed, curve=lambda p: 0.1 + 0.8 * p)).changed_ for seed in range(3)]
    assert sum(changed) >= sum(cautious)
    assert any(changed)


def test_stacking_weights_are_the_best_point_of_the_simplex():
    rng = np.random.default_rng(0)
    p, y = world(600)
    maps = [p, np.clip(p**2 + rng.normal(size=600) * 0.05, 0.01, 0.99), np.full(600, y.mean())]
    columns = [np.stack([1 - q, q], axis=1) for q in maps]
    for loss in ("log_loss", "brier"):
        weights = stacking_weights(columns, y, np.ones(600), loss)
        assert weights.sum() == pytest.approx(1)
        assert (weights >= 0).all()

        def mean_loss(z, loss=loss):
            a = np.exp(z - z.max())
            return row_losses(np.einsum("m,mik->ik", a / a.sum(), np.stack(columns)), y, loss).mean()

        peer = minimize(mean_loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12}).fun
        assert row_losses(np.einsum("m,mik->ik", weights, np.stack(columns)), y, loss).mean() <= peer + 1e-8


def test_a_stack_beats_its_members_when_each_knows_a_part():
    def curve(p):
        return np.where(p < 0.5, 0.3 * p, expit(logit(p) * 0.5 + 1))

    p, y = world(20_000, curve=curve)
    new = np.linspace(0.01, 0.99, 99)
    members = [rc.Platt(), rc.Histogram()]
    stack = rc.Auto(members, combine="stack").fit(p, y).predict_proba(new)[:, 1]
    errors = [np.mean((clone(each).fit(p, y).predict_proba(new)[:, 1] - curve(new)) ** 2) for each in members]
    assert np.mean((stack - curve(new)) ** 2) < 1.02 * min(errors)


def test_the_brier_score_can_choose_too():
    p, y = world(1000)
    auto = rc.Auto(loss="brier").fit(p, y)
    identity = next(row for row in auto.results_ if row["name"] == "Identity()")
    assert identity["loss"] == pytest.approx(((p - y) ** 2).mean())


def test_several_classes_have_candidates_of_their_own():
    assert {type(each).__name__ for each in default_candidates(2)} >= {"Beta", "Quadratic", "Spline"}
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.5] * 3, 800)
    sharp = p**0.5 / (p**0.5).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(3, p=row) for row in sharp])
    auto = rc.Auto().fit(p, y)
    assert auto.changed_
    q = auto.predict_proba(p)
    assert row_losses(q, y, "log_loss").mean() < row_losses(p, y, "log_loss").mean()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"loss": "ece"}, "a calibration error cannot choose"), ({"combine": "vote"}, "combine"), ({"folds": 1}, "folds")],
)
def test_wrong_options_list_the_right_ones(options, message):
    with pytest.raises(ValueError, match=message):
        rc.Auto(**options).fit(*world(50))


@pytest.mark.parametrize("name", ["pycalib_kitti_AdaBoost", "pycalib_kitti_random_forest", "toplabel_snacks"])
def test_on_real_predictions_auto_is_never_clearly_worse_than_nothing(shared_data, name):
    arrays = np.load(shared_data / "classification" / f"{name}.npz")
    p = arrays["probs"][:, 1] if "probs" in arrays else arrays["conf"]
    y = arrays["labels"].astype(int) if "probs" in arrays else (arrays["pred"] == arrays["labels"]).astype(int)
    order = np.random.default_rng(0).permutation(len(y))[:3000]
    fit, test = order[::2], order[1::2]
    q = rc.Auto().fit(p[fit], y[fit]).predict_proba(p[test])
    plain = rc.Identity().fit(p[fit], y[fit]).predict_proba(p[test])
    worse = row_losses(q, y[test], "log_loss") - row_losses(plain, y[test], "log_loss")
    assert worse.mean() <= worse.std() / np.sqrt(len(test))


def test_the_default_candidates_leave_out_matrices_of_many_classes():
    names = {classes: [type(m).__name__ for m in default_candidates(classes)] for classes in (2, 30, 31)}
    assert names[2] == ["Temperature", "Platt", "Beta", "Quadratic", "Spline"]
    assert names[30] == ["Temperature", "StructuredVectorScaling", "StructuredMatrixScaling", "OneVsRest", "OneVsRest"]
    assert names[31] == ["Temperature", "StructuredVectorScaling", "OneVsRest", "OneVsRest"]
