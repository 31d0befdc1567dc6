"""Auto averages, chooses or stacks by a proper loss, says why, and leaves well alone."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import clone

import calibrant as cal
from calibrant import recalibrate as rc
from calibrant.numerics.random_draws import fold_of_rows
from calibrant.recalibrate import auto as selection
from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.model_averaging import row_losses


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
    auto = rc.Auto([rc.Platt(), rc.Histogram()], combine="choose").fit(p, y)
    best = {"Platt()": rc.Platt(), "Histogram()": rc.Histogram()}[auto.results_[0]["name"]]
    np.testing.assert_array_equal(auto.predict_proba(p), best.fit(p, y).predict_proba(p))
    assert auto.results_[0]["weight"] == 1


@pytest.mark.no_cover
@pytest.mark.parametrize("combine", ["choose", "stack"])
def test_calibrated_predictions_are_left_alone(combine):
    kept = 0
    for seed in range(5):
        p, y = world(300, seed, curve=lambda p: p)
        auto = rc.Auto(combine=combine, folds=3).fit(p, y)
        kept += not auto.changed_
        if not auto.changed_:
            np.testing.assert_array_equal(auto.predict_proba(p)[:, 1], p)
    assert kept >= 3


def test_without_caution_the_least_loss_wins_however_narrowly():
    changed = [
        rc.Auto([rc.Platt(), rc.Beta()], combine="choose", cautious=caution)
        .fit(*world(200, seed, curve=lambda p: 0.1 + 0.8 * p))
        .changed_
        for caution in (False, True)
        for seed in range(3)
    ]
    changed, cautious = changed[:3], changed[3:]
    assert sum(changed) >= sum(cautious)
    assert any(changed)


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


def several(n=800, k=3, seed=0, power=0.5):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([0.5] * k, n)
    true = p**power / (p**power).sum(axis=1, keepdims=True)
    return p, (rng.random(n)[:, None] > np.cumsum(true, axis=1)).sum(axis=1)


def test_several_classes_have_candidates_of_their_own():
    p, y = several()
    auto = rc.Auto().fit(p, y)
    names = {row["name"].split("(")[0] for row in auto.results_}
    structured = {"StructuredVectorScaling", "StructuredMatrixScaling", "ConditionalLogit"}
    assert names == {"Identity", "Temperature", "OneVsRest", *structured}
    assert auto.left_out_ == []
    assert auto.changed_
    q = auto.predict_proba(p)
    assert row_losses(q, y, "log_loss").mean() < row_losses(p, y, "log_loss").mean() - 0.05
    assert auto.expected_gain() > 0.1


@pytest.mark.parametrize(("n", "whole"), [(700, True), (1700, False)])
def test_a_thousand_rows_of_a_thousand_classes_hold_out_one_fold(n, whole):
    rng = np.random.default_rng(0)
    p = rng.random((n, 1000))
    p, y = p / p.sum(axis=1, keepdims=True), rng.integers(0, 1000, n)
    found = rc.Auto([rc.Identity()]).fit(p, y, classes=range(1000)).results_[0]["loss"]
    held_out = slice(None) if whole else fold_of_rows(n, [1] * 5, seed=0) == 0
    assert found == pytest.approx(row_losses(p[held_out], y[held_out], "log_loss").mean())


def test_one_map_per_class_is_tried_for_at_most_thirty_classes():
    for classes in (30, 31):
        auto = rc.Auto()
        tried = auto._templates(Scores(np.full((1, classes), 1 / classes), logits=False))
        assert sum(isinstance(each, rc.OneVsRest) for each in tried) == (2 if classes == 30 else 0)
        assert len(auto.left_out_) == (1 if classes == 30 else 3)  # of one row also the conditional logit


def test_work_beyond_the_limit_holds_out_one_fold_and_says_what_is_left_out(monkeypatch):
    p, y = several(400)
    monkeypatch.setattr(selection, "_WORK", 399 * 9)
    monkeypatch.setattr(selection, "_ONE_VS_REST_CLASSES", 2)
    auto = rc.Auto().fit(p, y)
    reason = "one map per class is tried for at most 2 classes, here are 3"
    names = ["OneVsRest(binary=BayesianAverage())", "OneVsRest(binary=Isotonic())"]
    assert auto.left_out_ == [{"name": name, "reason": reason} for name in names]
    assert {row["name"].split("(")[0] for row in auto.results_} >= {"StructuredMatrixScaling"}
    first = fold_of_rows(400, [1] * 5, seed=0) == 0
    identity = next(row for row in auto.results_ if row["name"] == "Identity()")
    assert identity["loss"] == pytest.approx(row_losses(p[first], y[first], "log_loss").mean())


def test_interactions_are_repaired_by_the_conditional_logit_which_can_be_left_out_for_export():
    """Two classes are confused where the third is unlikely: no map of each class's own score sees it."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet([1.0, 1.0, 1.0], 3000)
    turned = np.where((p[:, 2] < 0.2)[:, None], p[:, [1, 0, 2]], p)
    y = (rng.random(3000)[:, None] > np.cumsum(turned, axis=1)).sum(axis=1)
    auto, plain = rc.Auto().fit(p[:2000], y[:2000]), rc.Auto(exportable=True).fit(p[:2000], y[:2000])
    assert auto.results_[0]["name"] == "ConditionalLogit()"
    assert auto.results_[0]["weight"] > 0.99
    q, before = auto.predict_proba(p[2000:]), plain.predict_proba(p[2000:])
    assert row_losses(q, y[2000:], "log_loss").mean() < row_losses(before, y[2000:], "log_loss").mean() - 0.05
    np.testing.assert_allclose(auto.predict_proba(p[2000:2001]), q[:1], rtol=0, atol=1e-12)
    with pytest.raises(TypeError, match=r"fit Auto\(exportable=True\)"):
        auto.to_sql(["a", "b", "c"])
    reason = "it cannot be written as SQL or ONNX (exportable=True)"
    assert plain.left_out_ == [{"name": "ConditionalLogit()", "reason": reason}]
    assert len(plain.to_sql(["a", "b", "c"])) == 3


def test_fifty_rows_are_enough_for_the_conditional_logit():
    p, y = several(50)
    assert "ConditionalLogit()" in {row["name"] for row in rc.Auto().fit(p, y).results_}
    reason = "it needs at least 50 rows, here are 49"
    assert rc.Auto().fit(p[:49], y[:49]).left_out_ == [{"name": "ConditionalLogit()", "reason": reason}]


def test_chunks_of_rows_are_mixed_as_all_at_once(monkeypatch):
    p, y = several(200)
    auto = rc.Auto([rc.Temperature(laplace=1.0)]).fit(p, y)
    whole = auto.predict_proba(p)
    monkeypatch.setattr(selection, "_CHUNK", 50)
    np.testing.assert_array_equal(auto.predict_proba(p), whole)


def test_one_event_is_averaged_by_marginal_likelihood():
    p, y = world(300)
    auto = rc.Auto().fit(p, y)
    np.testing.assert_allclose(auto.predict_proba(p), rc.BayesianAverage().fit(p, y).predict_proba(p), atol=1e-12)
    assert {row["name"]: row["weight"] for row in auto.results_} == {"Identity()": 0.0, "BayesianAverage()": 1.0}


def test_given_candidates_count_by_prior_and_cross_validated_likelihood():
    p, y = world(60, curve=lambda p: p**1.3)
    auto = rc.Auto([rc.Platt(), rc.Histogram(bins=2)]).fit(p, y)
    rows = {row["name"].split("(")[0]: row for row in auto.results_}
    weight = {name: {"Identity": 0.3}.get(name, 0.35) * np.exp(-60 * row["loss"]) for name, row in rows.items()}
    for name, row in rows.items():
        assert row["weight"] == pytest.approx(weight[name] / sum(weight.values()), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("candidates", [None, "steps"])
def test_an_average_never_makes_certain(classes, candidates):
    """Rows whose first class never occurs, and that temperature or steps separate."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(classes), 20)
    y = p[:, 1:].argmax(axis=1) + 1
    steps = None if candidates is None else [rc.OneVsRest(rc.Histogram(bins=2, allow_certainty=True)), rc.Temperature()]
    new = np.concatenate([p, rng.dirichlet(np.full(classes, 0.2), 200)])
    q = rc.Auto(steps, folds=2).fit(p, y, classes=np.arange(classes)).predict_proba(new)
    floor = 0.5 / 21
    assert (q >= np.minimum(new, floor) - 1e-12).all()
    assert (q <= np.maximum(new, 1 - floor) + 1e-12).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_two_rows_change_little(classes):
    p = np.full((2, classes), 0.5 / (classes - 1))
    p[:, 0] = 0.5
    q = rc.Auto().fit(p, [1, 1], classes=np.arange(classes)).predict_proba(p)
    assert np.abs(q - p).max() < 0.25


def test_the_expected_gain_is_that_of_new_rows():
    def curve(p):
        return p**2

    p, y = world(1000, curve=curve)
    auto = rc.Auto().fit(p, y)
    new = np.linspace(0.0005, 0.9995, 1000)
    q = auto.predict_proba(new)[:, 1]

    def loss(q):
        return -(curve(new) * np.log(q) + (1 - curve(new)) * np.log1p(-q)).mean()

    gain = auto.expected_gain()
    assert loss(new) - loss(q) in gain.interval
    assert gain.interval.low > 0
    assert gain.n == 1000
    narrow = auto.expected_gain(level=0.5).interval
    assert gain.interval.low < narrow.low < gain < narrow.high < gain.interval.high
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        auto.expected_gain(level=95)


@pytest.mark.parametrize("combine", ["average", "choose", "stack"])
def test_no_gain_is_promised_where_nothing_was_observed(combine):
    """Rare events, none of which occurred: lower probabilities look better on these rows, by any number of them."""
    p = np.random.default_rng(0).uniform(0.005, 0.02, 60)
    auto = rc.Auto(combine=combine, cautious=False).fit(p, np.zeros(60), classes=[0, 1])
    assert auto.expected_gain().interval.low < 0


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


#: Two folds, because the bound is that of the final map whatever the folds are.
USED = [
    rc.BayesianAverage(),
    rc.Auto(folds=2),
    rc.Auto([rc.Platt()], folds=2),
    rc.Auto([rc.Isotonic(allow_certainty=True), rc.Beta()], folds=2),
]
HARD = {
    "one label": lambda p, rng: np.zeros(len(p), int),
    "separable": lambda p, rng: (p > 0.5).astype(int),
    "reversed": lambda p, rng: (p < 0.5).astype(int),
    "random": lambda p, rng: rng.integers(0, 2, len(p)),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("n", [1, 2, 3, 10, 50])
@pytest.mark.parametrize("situation", HARD)
@pytest.mark.parametrize("template", USED, ids=repr)
def test_n_rows_never_move_a_score_nearer_to_certainty_than_one_half_over_n_plus_one(template, situation, n):
    """Unless it was predicted there. Scores from narrow over ordinary to saturated ones, and new ones beyond them."""
    rng = np.random.default_rng([n, *situation.encode()])
    new = np.concatenate([[0.0, 1e-12, 1e-6], np.linspace(0.001, 0.999, 101), [1 - 1e-6, 1 - 1e-12, 1.0]])
    for p in (rng.random(n), 0.5 + 0.01 * rng.standard_normal(n), np.round(rng.random(n)), 0.01 * rng.random(n)):
        fitted = clone(template).fit(p, HARD[situation](p, rng), classes=[0, 1])
        q, floor = fitted.predict_proba(new)[:, 1], 0.5 / (n + 1)
        low, high = np.minimum(new, floor), np.maximum(new, 1 - floor)
        assert (q >= low - 1e-11).all()
        assert (q <= high + 1e-11).all()


@pytest.mark.no_cover
@pytest.mark.parametrize("situation", HARD)
@pytest.mark.parametrize("k", [3, 10])
def test_n_rows_of_several_classes_never_make_certain_either(k, situation):
    """Classes that were never seen among them."""
    rng = np.random.default_rng(k)
    p = rng.dirichlet(np.full(k, 0.3), 20)
    labels = {"one label": np.zeros(20, int), "separable": p.argmax(axis=1), "reversed": p.argmin(axis=1)}
    y = labels.get(situation, rng.integers(0, k, 20))
    candidates = None if k == 3 else [rc.Temperature(laplace=1.0), rc.StructuredVectorScaling()]
    new = np.concatenate([rng.dirichlet(np.full(k, 0.3), 200), np.eye(k)])
    q = rc.Auto(candidates, folds=2).fit(p, y, classes=np.arange(k)).predict_proba(new)
    assert (q >= np.minimum(new, 0.5 / 21) - 1e-11).all()
    np.testing.assert_allclose(q.sum(axis=1), 1, atol=1e-12)


@pytest.mark.no_cover
@pytest.mark.parametrize("k", [3, 100])
def test_few_rows_of_many_classes_do_little_harm_and_repair_what_is_grossly_wrong(k):
    """Of 50 rows of 100 classes most classes are never seen."""
    rng = np.random.default_rng(1)
    z = 2 * rng.normal(size=(1050, k))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    for power, worst in ((1.0, 0.02), (0.5, -0.04)):
        true = p**power / (p**power).sum(axis=1, keepdims=True)
        y = np.minimum((rng.random(50)[:, None] > np.cumsum(true[:50], axis=1)).sum(axis=1), k - 1)
        auto = rc.Auto().fit(p[:50], y, classes=np.arange(k))
        change = -(true[50:] * (np.log(auto.predict_proba(p[50:])) - np.log(p[50:]))).sum(axis=1).mean()
        assert change < worst


@pytest.mark.no_cover
def test_a_thousand_classes_drop_no_candidate_in_silence():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(1000, 0.05), 20)
    y = p.argmax(axis=1)
    auto = rc.Auto(folds=2).fit(p, y, classes=np.arange(1000))
    named = {row["name"] for row in (*auto.results_, *auto.left_out_)}
    assert named == {repr(template) for template in (rc.Identity(), *selection.default_candidates(1000, "average"))}
    assert all(row["reason"] for row in auto.left_out_)


def test_an_impossible_outcome_makes_the_log_loss_infinite_and_says_what_the_brier_score_gains(tmp_path):
    rng = np.random.default_rng(0)
    p = np.where(rng.random(400) < 0.5, 1.0, rng.random(400))
    y = (rng.random(400) < np.where(p == 1, 0.8, p)).astype(int)
    auto = rc.Auto([rc.BayesianAverage(), rc.Platt()]).fit(p, y)
    auto.save(tmp_path / "map.json")
    for found in (auto, rc.load(tmp_path / "map.json")):
        rows = {row["name"]: row for row in found.results_}
        identity, average = rows["Identity()"], rows["BayesianAverage()"]
        assert (identity["loss"], identity["gain"]) == (np.inf, 0)
        assert np.isfinite(average["loss"])
        assert (average["gain"], average["gain_se"]) == (np.inf, np.inf)
        assert 0.01 < average["brier_gain"] < 0.1
        assert (identity["brier_gain"], identity["brier_gain_se"]) == (0, 0)
        gain = found.expected_gain()
        assert (float(gain), gain.interval.low, gain.interval.high) == (np.inf, np.inf, np.inf)
    brier = rc.Auto(loss="brier").fit(p, y)
    assert np.isfinite(brier.gain_)
    assert all(row["gain"] == row["brier_gain"] for row in brier.results_)


def _by_hand(template, data, folds=5, seed=0):
    """The losses of the rows before, and after a map fitted without their fold."""
    p, y = data.y_prob, data.y_true
    fold = fold_of_rows(len(y), [1] * folds, seed=seed, cluster=data.group)
    q = np.empty(len(y))
    for k in range(folds):
        q[fold == k] = clone(template).fit(p[fold != k], y[fold != k]).predict_proba(p[fold == k])[:, 1]
    return [-np.where(y == 1, np.log(each), np.log1p(-each)) for each in (p, q)]


def test_the_gain_is_the_mean_paired_difference_of_cross_fitted_losses():
    p, y = world(400)
    data = cal.Binary(y, p)
    found = rc.gain(data, rc.Platt(), folds=4, seed=3)
    before, after = _by_hand(rc.Platt(), data, folds=4, seed=3)
    assert found.before == pytest.approx(before.mean(), rel=1e-9)
    assert found.after == pytest.approx(after.mean(), rel=1e-9)
    assert found.gain == pytest.approx((before - after).mean(), rel=1e-7)
    z, sharing = 1.959963984540054, np.sqrt(1 + 4 / 3)
    assert found.before.interval.high - found.before == pytest.approx(z * before.std() / 20, rel=1e-9)
    assert found.after.interval.high - found.after == pytest.approx(sharing * z * after.std() / 20, rel=1e-9)
    assert found.gain.interval.high - found.gain >= 0.999 * sharing * z * (before - after).std() / 20
    assert (found.gain.n, found.gain.name, found.before.name) == (400, "Gain in log loss", "Log loss")
    assert str(found).startswith("Log loss of 400 rows: ")


def test_the_gain_of_the_default_map_is_the_gain_it_expects():
    p, y = world(500)
    found = rc.gain(cal.Binary(y, p), score="brier")
    expected = rc.Auto(loss="brier").fit(p, y).expected_gain()
    assert found.gain == pytest.approx(expected, rel=1e-3)
    assert found.gain.interval.low == pytest.approx(expected.interval.low, rel=1e-3)
    assert found.map == "Auto()"


def test_clusters_are_held_out_whole_and_are_the_units_of_the_error():
    p, y = world(200)
    data = cal.Binary(np.tile(y, 5), np.tile(p, 5), group=np.tile(np.arange(200), 5))  # each row five times
    found = rc.gain(data, rc.Platt())
    before, after = _by_hand(rc.Platt(), data)
    assert found.gain == pytest.approx((before - after).mean(), rel=1e-7)
    assert found.before.interval.high - found.before == pytest.approx(1.96 * before.std() / np.sqrt(200), rel=1e-3)
    with pytest.raises(ValueError, match="all rows are of one group"):
        rc.gain(cal.Binary(y, p, group=np.zeros(200)), rc.Platt())


def test_the_gain_of_a_table_and_of_weights_is_that_of_rows():
    p, y = world(3000)
    rows = rc.gain(cal.Binary(y, p), rc.Platt())
    table = rc.gain(cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct()), rc.Platt())
    assert table.before == pytest.approx(rows.before, rel=1e-9)
    assert table.gain == pytest.approx(rows.gain, abs=0.01)
    assert table.gain.n == 3000
    weight = np.append(np.full(3000, 2.0), 0.0)  # zero-weight rows are ignored, and so is the unit
    weighted = rc.gain(cal.Binary(np.append(y, 1), np.append(p, 0.001), weight=weight), rc.Platt())
    assert weighted.gain == pytest.approx(rows.gain, rel=1e-9)


def test_the_gain_of_multiclass_maps_covers_that_of_new_rows():
    p, y = several(2000)
    new, outcome = several(20_000, seed=1)
    q = rc.Temperature().fit(p, y).predict_proba(new)
    truth = (row_losses(new, outcome, "log_loss") - row_losses(q, outcome, "log_loss")).mean()
    found = rc.gain(cal.Multiclass(y, p), rc.Temperature())
    assert truth in found.gain.interval
    assert found.gain.interval.low > 0


def test_an_outcome_that_was_excluded_makes_the_loss_infinite():
    p, y = world(300)
    certain = np.append(p, 0.0)
    found = rc.gain(cal.Binary(np.append(y, 1), certain), rc.Platt())
    assert found.before == found.gain == found.gain.interval.low == np.inf
    assert np.isfinite(found.after)
    same = rc.gain(cal.Binary(np.append(y, 1), certain), rc.Identity())
    assert (same.after, same.gain, same.gain.interval.low) == (np.inf, 0.0, -np.inf)
    assert 0 < rc.gain(cal.Binary(np.append(y, 1), certain), rc.Platt(), score="brier").before < 1


def test_a_gain_says_what_it_cannot_take():
    p, y = world(100)
    data = cal.Binary(y, p)
    with pytest.raises(TypeError, match="map must be a recalibration map"):
        rc.gain(data, rc.StdScaling())
    with pytest.raises(ValueError, match="score must be 'log_loss' or 'brier'"):
        rc.gain(data, score="ece")
    with pytest.raises(ValueError, match="folds must be a whole number"):
        rc.gain(data, folds=1)
    with pytest.raises(TypeError, match="gain takes Binary, Multiclass or a BinTable, got Gaussian"):
        rc.gain(cal.Gaussian(p, p, p + 1))
    with pytest.raises(ValueError, match="one row, or all rows are of one group"):
        rc.gain(cal.Binary([1], [0.5]))
