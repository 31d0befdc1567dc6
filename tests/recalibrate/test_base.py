"""What holds for every map: shapes, labels, weights, bad input, robustness, and scikit-learn's manners."""

import inspect
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import calibrant as cal
from calibrant import pu
from calibrant import recalibrate as rc

ONE_EVENT = [
    rc.Identity(),
    rc.Temperature(),
    rc.Platt(),
    rc.Quadratic(),
    rc.Beta(),
    rc.Spline(),
    rc.Isotonic(),
    rc.CentredIsotonic(),
    rc.Histogram(),
    rc.Histogram(bins=cal.EqualWidth(5)),
    rc.BayesianBinning(),
    rc.VennAbers(),
    rc.ScalingBinning(),
    rc.Smoothed(),
    rc.BayesianAverage(),
    rc.OneVsRest(rc.Beta()),
    rc.Auto(folds=2),
    rc.Auto([rc.Platt(), rc.Isotonic()], combine="stack", cautious=False, folds=2),
]
SEVERAL = [
    rc.Identity(),
    rc.Temperature(),
    rc.OneVsRest(rc.Beta()),
    rc.OneVsRest(rc.Isotonic()),
    rc.OneVsRest(rc.Histogram()),
    rc.Auto([rc.Temperature(), rc.OneVsRest(rc.Platt())], folds=3),
]
HARD = {
    "separable": ([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 0, 1, 1, 1]),
    "wrong way round": ([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [1, 1, 1, 0, 0, 0]),
    "only ones": ([0.2, 0.4, 0.9], [1, 1, 1]),
    "only zeros": ([0.2, 0.4, 0.9], [0, 0, 0]),
    "exactly 0 and 1": ([0.0, 0.0, 1.0, 1.0, 0.5], [0, 1, 1, 0, 1]),
    "nothing but 0 and 1": ([0.0, 1.0, 0.0, 1.0], [0, 1, 1, 1]),
    "constant": ([0.3] * 5, [0, 1, 0, 0, 1]),
    "constant zero": ([0.0] * 4, [0, 1, 0, 0]),
    "two rows": ([0.3, 0.6], [0, 1]),
    "one row": ([0.3], [1]),
    "denormal": ([1e-310, 1e-300, 0.5, 1 - 1e-16], [0, 1, 0, 1]),
    "float32": (np.float32([0.1, 0.5, 1.0, 1e-30]), [0, 1, 1, 0]),
}
NEW = [0.0, 1e-310, 1e-20, 0.1, 0.5, 0.9, 1 - 1e-16, 1.0]


def names(maps):
    return [repr(each).replace("\n", "") for each in maps]


def sample(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(0.7, 0.7, n), 3)
    return p, (rng.random(n) < p**1.7).astype(int)


def sample_of_classes(n=200, k=4, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, k)) * 2
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    return p, np.array([rng.choice(k, p=row) for row in p])


@pytest.mark.parametrize("situation", HARD)
@pytest.mark.parametrize("recalibrator", ONE_EVENT, ids=names(ONE_EVENT))
def test_hard_data_give_finite_probabilities_that_sum_to_one(recalibrator, situation):
    p, y = HARD[situation]
    q = clone(recalibrator).fit(p, y).predict_proba(NEW)
    assert q.shape == (len(NEW), 2)
    assert np.isfinite(q).all()
    assert ((q >= 0) & (q <= 1)).all()
    np.testing.assert_allclose(q.sum(axis=1), 1, rtol=0, atol=1e-12)


@pytest.mark.no_cover
@pytest.mark.parametrize("recalibrator", ONE_EVENT, ids=names(ONE_EVENT))
@pytest.mark.parametrize("logits", [[-1e4, 1e4, 1e3, -3.0, 2.0], [1e300, -1e300, 1.0, -1.0, 0.0]], ids=["big", "huge"])
def test_huge_logits_give_finite_probabilities(recalibrator, logits):
    q = clone(recalibrator).set_params(input="logits").fit(logits, [0, 1, 1, 0, 1]).predict_proba([*logits, 0.3])
    assert np.isfinite(q).all()
    np.testing.assert_allclose(q.sum(axis=1), 1, rtol=0, atol=1e-12)


@pytest.mark.no_cover
@pytest.mark.parametrize("recalibrator", SEVERAL, ids=names(SEVERAL))
@pytest.mark.parametrize("situation", ["plain", "missing class", "exactly 0 and 1", "two rows", "constant", "float32"])
def test_hard_class_probabilities_give_rows_that_sum_to_one(recalibrator, situation):
    p, y = sample_of_classes()
    if situation == "missing class":
        y = np.where(y == 2, 1, y)
    elif situation == "exactly 0 and 1":
        p[:20] = np.eye(4)[y[:20] - 1]
    elif situation == "two rows":
        p, y = p[:2], np.array([0, 3])
    elif situation == "constant":
        p = np.tile(p[:1], (len(p), 1))
    elif situation == "float32":
        p = p.astype(np.float32)
    q = clone(recalibrator).fit(p, y).predict_proba(np.concatenate([p, np.eye(4)]))
    assert q.shape == (len(p) + 4, 4)
    assert np.isfinite(q).all()
    assert (q >= 0).all()
    np.testing.assert_allclose(q.sum(axis=1), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("recalibrator", ONE_EVENT, ids=names(ONE_EVENT))
def test_one_column_two_columns_logits_and_predictions_say_the_same(recalibrator):
    p, y = sample()
    p = p.clip(0.001, 0.999)
    expected = clone(recalibrator).fit(p, y).predict_proba(p)
    both = np.stack([1 - p, p], axis=1)
    np.testing.assert_array_equal(clone(recalibrator).fit(cal.Binary(y, p)).predict_proba(p), expected)
    x = np.log(p) - np.log1p(-p)
    logits = clone(recalibrator).set_params(input="logits")
    if not isinstance(recalibrator, (rc.Histogram, rc.ScalingBinning, rc.BayesianBinning)):
        np.testing.assert_allclose(logits.fit(x, y).predict_proba(x), expected, atol=1e-7)
        np.testing.assert_allclose(clone(recalibrator).fit(both, y).predict_proba(both), expected, atol=1e-7)


@pytest.mark.parametrize(
    "recalibrator", [m for m in ONE_EVENT if not isinstance(m, (rc.OneVsRest, rc.Auto))], ids=lambda m: repr(m)
)
def test_a_table_of_distinct_scores_gives_the_same_map_as_the_rows(recalibrator):
    p, y = sample()
    table = cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct())
    expected = clone(recalibrator).fit(p, y).predict_proba(p)
    np.testing.assert_allclose(clone(recalibrator).fit(table).predict_proba(p), expected, atol=1e-7)


@pytest.mark.parametrize(
    "recalibrator", [m for m in ONE_EVENT if not isinstance(m, rc.OneVsRest)], ids=lambda m: repr(m)
)
def test_a_map_fitted_to_a_table_knows_its_classes_columns_and_weight(recalibrator):
    p, y = sample(100)
    fitted = clone(recalibrator).fit_table(cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct()))
    np.testing.assert_array_equal(fitted.classes_, [0, 1])
    assert (fitted.n_features_in_, fitted.weight_) == (1, 100)
    with pytest.raises(cal.InvalidPredictions, match=r"has 3 columns, but .* was fitted with 1\."):
        fitted.predict_proba([[0.2, 0.3, 0.5]])


def test_auto_draws_its_folds_from_the_counts_of_a_table():
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    y = rng.random(5000) < p**2
    table = cal.BinTable.of(cal.Binary(y, p), cal.table.HybridGrid())
    auto = rc.Auto().fit(table)
    rows = rc.Auto().fit(p, y)
    assert auto.changed_
    best = {row["name"]: row["loss"] for row in auto.results_}
    for row in rows.results_:
        assert best[row["name"]] == pytest.approx(row["loss"], rel=0.01)
    with pytest.raises(ValueError, match="whole counts"):
        rc.Auto().fit(cal.BinTable.of(cal.Binary(y, p, weight=rng.random(5000)), cal.table.HybridGrid()))


@pytest.mark.parametrize("recalibrator", [m for m in ONE_EVENT if not isinstance(m, rc.Auto)], ids=lambda m: repr(m))
def test_counts_of_rows_with_their_number_are_the_rows_repeated(recalibrator):
    p, y = sample(60)
    count = np.tile([1, 2, 0], 20)
    recalibrator = clone(recalibrator).set_params(laplace=1.0)
    repeated = clone(recalibrator).fit(np.repeat(p, count), np.repeat(y, count))
    for weight in (count, 0.3 * count):
        counted = clone(recalibrator).fit(p, y, sample_weight=weight, effective_n=count.sum())
        assert counted.weight_ == pytest.approx(repeated.weight_)
        np.testing.assert_allclose(counted.predict_proba(p), repeated.predict_proba(p), atol=1e-7)


@pytest.mark.parametrize(
    "recalibrator", [rc.Temperature(), rc.Platt(), rc.Beta(), rc.Isotonic(allow_certainty=True)], ids=repr
)
def test_maps_of_means_alone_see_a_row_of_weight_two_as_the_row_twice(recalibrator):
    p, y = sample(60)
    count = np.tile([1, 2, 0], 20)
    repeated = clone(recalibrator).fit(np.repeat(p, count), np.repeat(y, count)).predict_proba(p)
    np.testing.assert_allclose(recalibrator.fit(p, y, count).predict_proba(p), repeated, atol=1e-7)


WEIGHTED = [
    *((recalibrator, sample) for recalibrator in ONE_EVENT),
    *((recalibrator, sample_of_classes) for recalibrator in SEVERAL),
    *(
        (recalibrator, sample_of_classes)
        for recalibrator in (
            rc.VectorScaling(),
            rc.MatrixScaling(),
            rc.Dirichlet(),
            rc.StructuredVectorScaling(),
            rc.StructuredMatrixScaling(),
            rc.EnsembleTemperature(),
            rc.ConditionalLogit(),
            rc.FromClassifier(LogisticRegression()),
        )
    ),
    (rc.CatBoost(trees=5, folds=2), sample),
    (rc.LightGBM(trees=5, folds=2), sample),
]


def test_classes_without_an_order_are_refused():
    p, y = sample()
    with pytest.raises(cal.InvalidPredictions, match="one per column in their order"):
        rc.Platt().fit(p, y, classes={0, 1})


@pytest.mark.no_cover
@pytest.mark.parametrize(("recalibrator", "world"), WEIGHTED, ids=[names([m])[0] for m, _ in WEIGHTED])
def test_the_unit_of_the_weights_does_not_matter(recalibrator, world):
    """Importance weights: a constant factor changes nothing, and equal weights are no weights."""
    if isinstance(recalibrator, (rc.CatBoost, rc.LightGBM)):
        pytest.importorskip(recalibrator._library)
    p, y = world(200)
    rng = np.random.default_rng(3)
    template = clone(recalibrator).set_params(laplace=1.0)
    for weight in (rng.exponential(size=200), rng.integers(0, 4, 200)):
        expected = clone(template).fit(p, y, weight)
        some = weight[weight > 0]
        assert expected.weight_ == pytest.approx(some.sum() ** 2 / (some**2).sum())
        for factor in (1e-3, 7e6):
            scaled = clone(template).fit(p, y, factor * weight).predict_proba(p)
            np.testing.assert_allclose(scaled, expected.predict_proba(p), rtol=0, atol=1e-9)
    plain = clone(template).fit(p, y).predict_proba(p)
    for constant in (1e-200, 0.3, 7e200):
        np.testing.assert_array_equal(clone(template).fit(p, y, np.full(200, constant)).predict_proba(p), plain)
    extreme = clone(template).fit(p, y, 10.0 ** rng.uniform(-200, 200, 200)).predict_proba(p)
    assert np.isfinite(extreme).all()


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "recalibrator", [m for m in ONE_EVENT if not isinstance(m, (rc.OneVsRest, rc.Auto))], ids=lambda m: repr(m)
)
def test_the_unit_of_the_weights_of_a_table_does_not_matter(recalibrator):
    p, y = sample()
    weight = np.random.default_rng(3).exponential(size=len(p))

    def fitted(weight):
        table = cal.BinTable.of(cal.Binary(y, p, weight=weight), cal.table.Distinct())
        return clone(recalibrator).set_params(laplace=1.0).fit(table)

    expected = fitted(weight)
    assert expected.weight_ == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    for factor in (1e-3, 7e6):
        np.testing.assert_allclose(
            fitted(factor * weight).predict_proba(p), expected.predict_proba(p), rtol=0, atol=1e-9
        )
    plain = fitted(None).predict_proba(p)
    for constant in (1e-200, 0.3, 7e200):
        equal = fitted(np.full(len(p), constant)).predict_proba(p)
        np.testing.assert_allclose(equal, plain, rtol=0, atol=1e-9)


def test_auto_takes_a_table_of_equal_weights_as_one_of_rows():
    p, y = sample()
    tables = [cal.BinTable.of(cal.Binary(y, p, weight=w), cal.table.Distinct()) for w in (None, np.full(len(p), 0.3))]
    rows, equal = (rc.Auto(folds=3).fit(table).predict_proba(p) for table in tables)
    np.testing.assert_allclose(equal, rows, rtol=0, atol=1e-9)


def test_an_effective_number_of_rows_needs_weights_and_a_table_has_its_own():
    with pytest.raises(ValueError, match="effective_n must be a positive number and come with sample_weight"):
        rc.Platt().fit([0.2, 0.7], [0, 1], effective_n=5)
    with pytest.raises(ValueError, match="effective_n must be a positive number"):
        rc.Platt().fit([0.2, 0.7], [0, 1], [1, 2], effective_n=0)
    table = cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.table.Distinct())
    with pytest.raises(TypeError, match="A table holds its outcomes and weights"):
        rc.Platt().fit(table, sample_weight=[1, 2])


@pytest.mark.parametrize("recalibrator", [m for m in ONE_EVENT if not isinstance(m, rc.Auto)], ids=lambda m: repr(m))
def test_the_order_of_the_rows_does_not_matter(recalibrator):
    p, y = sample(80)
    order = np.random.default_rng(1).permutation(80)
    expected = clone(recalibrator).fit(p, y).predict_proba(p)
    np.testing.assert_allclose(clone(recalibrator).fit(p[order], y[order]).predict_proba(p), expected, atol=1e-7)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "recalibrator", [rc.Temperature(), rc.Beta(), rc.Isotonic(), rc.CentredIsotonic(), rc.VennAbers()], ids=repr
)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_monotone_maps_keep_the_ranking(recalibrator, data):
    n = data.draw(st.integers(2, 30))
    p = np.array(data.draw(st.lists(st.integers(0, 20), min_size=n, max_size=n))) / 20
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    new = np.linspace(0, 1, 101)
    q = clone(recalibrator).fit(p, y).predict_proba(new)[:, 1]
    assert (np.diff(q) >= -1e-15).all()
    if isinstance(recalibrator, rc.CentredIsotonic):
        assert (np.diff(q) > 0).all()
        if 0 < y.sum() < n:
            assert roc_auc_score(y, np.interp(p, new, q)) == pytest.approx(roc_auc_score(y, p), abs=1e-12)


@pytest.mark.parametrize("recalibrator", [rc.Isotonic(), rc.Histogram(), rc.OneVsRest(rc.Isotonic())], ids=repr)
def test_no_certainty_unless_asked(recalibrator):
    q = clone(recalibrator).fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]).predict_proba(NEW)
    assert ((q > 0) & (q < 1)).all()


def test_the_laplace_mixture_is_the_formula():
    p, y = sample(50)
    plain = rc.Platt().fit(p, y).predict_proba(p)
    mixed = rc.Platt(laplace=1.0).fit(p, y).predict_proba(p)
    share = 1 / (50 + 1)
    np.testing.assert_allclose(mixed, (1 - share) * plain + share / 2, atol=1e-15)
    with pytest.raises(ValueError, match="laplace must be"):
        rc.Platt(laplace=-1).fit(p, y)


def test_labels_may_be_words_truth_values_or_any_two_numbers():
    p = [0.1, 0.4, 0.6, 0.9]
    assert rc.Platt().fit(p, ["no", "no", "yes", "yes"]).predict([0.95]).tolist() == ["yes"]
    assert rc.Platt().fit(p, [False, False, True, True]).classes_.tolist() == [False, True]
    assert rc.Platt().fit(p, [-1, -1, 1, 1]).classes_.tolist() == [-1, 1]
    assert rc.Platt().fit(p, ["no"] * 4, classes=["no", "yes"]).predict([0.5]).tolist() == ["no"]


def test_a_class_that_never_came_keeps_its_column():
    p, y = sample_of_classes()
    y = np.where(y == 3, 0, y)
    fitted = rc.OneVsRest(rc.Beta()).fit(p, y)
    assert fitted.classes_.tolist() == [0, 1, 2, 3]
    assert (fitted.predict_proba(p)[:, 3] < 1e-3).all()


@pytest.mark.parametrize(
    ("scores", "y", "message"),
    [
        ([0.5, 1.2], [0, 1], r"scores must lie in \[0, 1\], but 1 of 2"),
        ([0.5, np.nan], [0, 1], "scores must be finite"),
        ([0.5, 1.0000001], [0, 1], "clip=True"),
        ([0.5, 0.6], [0, 1, 1], "y has 3 rows, expected 2"),
        ([0.5, 0.6, 0.7], [0, 1, 2], "y must be one of the 2 classes"),
        ([[0.5, 0.6], [0.5, 0.5]], [0, 1], "rows that sum to 1"),
        ([[0.5, 0.2, 0.3], [0.5, 0.2, 0.3]], [0, 1], r"use OneVsRest\(Platt\(\)\)"),
        ([0.5, 0.6], None, "needs scores and y"),
        (
            cal.Gaussian([1.0], [0.0], [1.0]),
            None,
            "takes Binary or Multiclass predictions, with an outcome of every row",
        ),
    ],
)
def test_bad_input_is_named(scores, y, message):
    with pytest.raises(cal.InvalidPredictions, match=message):
        rc.Platt().fit(scores, y)


def test_rounding_is_repaired_when_asked():
    assert rc.Platt(clip=True).fit([0.5, 1.0000001, 0.2], [0, 1, 1]).predict_proba([1.0000001]).shape == (1, 2)


def test_new_scores_must_have_as_many_columns_as_those_fitted():
    p, y = sample_of_classes()
    with pytest.raises(cal.InvalidPredictions, match="fitted with 4"):
        rc.Temperature().fit(p, y).predict_proba([0.5])


def test_what_cannot_be_fitted_to_a_table_says_so():
    p, y = sample()
    table = cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct())
    with pytest.raises(TypeError, match="cannot be fitted to a table"):
        rc.FromClassifier(LogisticRegression()).fit(table)
    with pytest.raises(TypeError, match="fit it without y"):
        rc.Platt().fit(table, y)


@pytest.mark.no_cover
@pytest.mark.parametrize("recalibrator", ONE_EVENT, ids=names(ONE_EVENT))
def test_maps_are_well_behaved_scikit_learn_estimators(recalibrator):
    from sklearn.utils.estimator_checks import (
        check_estimator_tags_renamed,
        check_mixin_order,
        check_no_attributes_set_in_init,
        check_parameters_default_constructible,
        check_set_params,
        check_valid_tag_types,
    )

    name = type(recalibrator).__name__
    for check in (
        check_estimator_tags_renamed,
        check_mixin_order,
        check_valid_tag_types,
        check_no_attributes_set_in_init,
    ):
        check(name, clone(recalibrator))
    if not isinstance(recalibrator, (rc.OneVsRest, rc.Histogram, rc.ScalingBinning)):
        # OneVsRest must be given a map; binnings are frozen, but the check lets only built-in types be defaults
        check_parameters_default_constructible(name, clone(recalibrator))
    check_set_params(name, clone(recalibrator))
    p, y = sample(40)
    fitted = clone(recalibrator).fit(p, y)
    before = {key: repr(value) for key, value in vars(fitted).items()}
    q = fitted.predict_proba(p)
    assert {key: repr(value) for key, value in vars(fitted).items()} == before
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(p), q)
    np.testing.assert_array_equal(fitted.fit(p, y).predict_proba(p), q)
    assert clone(fitted).get_params(deep=False).keys() == recalibrator.get_params(deep=False).keys()
    assert 0 <= fitted.score(p, y) <= 1


def test_temperature_passes_the_checks_of_scikit_learn_that_apply_to_scores():
    """The others feed features that are no scores, or fewer columns than classes."""
    from sklearn.utils.estimator_checks import check_estimator

    checks = check_estimator(rc.Temperature(input="logits"), on_skip=None, on_fail=None)
    passed = {check["check_name"] for check in checks if check["status"] == "passed"}
    assert passed >= {
        "check_all_zero_sample_weights_error",
        "check_decision_proba_consistency",
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_estimator_sparse_array",
        "check_estimators_dtypes",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit_idempotent",
        "check_fit_score_takes_y",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_pipeline_consistency",
        "check_requires_y_none",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weights_not_overwritten",
    }


def test_a_map_is_the_last_step_of_a_pipeline():
    p, y = sample()
    halves = make_pipeline(FunctionTransformer(lambda x: x / 2), rc.Beta())
    np.testing.assert_allclose(
        halves.fit(p.reshape(-1, 1), y).predict_proba(p.reshape(-1, 1)), rc.Beta().fit(p / 2, y).predict_proba(p / 2)
    )


def test_every_map_shares_the_options_of_the_base_in_an_explicit_signature():
    classes = [getattr(room, name) for room in (rc, cal.pu) for name in room.__all__]
    maps = [each for each in classes if isinstance(each, type) and issubclass(each, rc.Recalibrator)]
    assert len(maps) > 30
    for each in maps:
        parameters = inspect.signature(each).parameters
        for name, default in {"input": "probabilities", "laplace": 0.0, "clip": False}.items():
            assert parameters[name].default == default, each
            assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY, each
        assert all(parameter.annotation is not inspect.Parameter.empty for parameter in parameters.values()), each
        assert not any(name.endswith("_") for name in parameters), each  # what is fitted is no option
        assert set(each._get_param_names()) == set(parameters), each


def test_options_come_back_from_get_params_set_params_clone_and_repr():
    spline = rc.Spline(knots=5, laplace=1.0, input="logits")
    assert clone(spline).get_params() == {"knots": 5, "laplace": 1.0, "input": "logits", "clip": False}
    assert repr(spline) == "Spline(input='logits', knots=5, laplace=1.0)"
    assert spline.set_params(knots=7).knots == 7
    assert spline != clone(spline)  # estimators compare by identity
    with pytest.raises(TypeError, match="positional"):
        rc.Spline(5)
    with pytest.raises(TypeError, match="unexpected keyword"):
        rc.Spline(nodes=5)


def _classes(n=60):
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), n)
    return p, rng.integers(0, 3, n)


TRANSFORMED = [
    *((m, "binary") for m in ONE_EVENT),
    *((m, "multiclass") for m in SEVERAL),
    *((rc.VectorScaling(), kind) for kind in ("binary", "multiclass")),
    *((m(), "unlabeled") for m in (pu.PUPlatt, pu.PUTemperature, pu.PUBeta, pu.PUIsotonic, pu.PUHistogram)),
    (pu.PUAverage(), "unlabeled"),
    *((m(), "forecast") for m in (rc.StdScaling, rc.SpreadSpline, rc.VarianceIsotonic, rc.VarianceHistogram)),
    *((m(), "forecast") for m in (rc.CdfIsotonic, rc.AutoForecast)),
    (rc.Conformal(levels=[0.1, 0.9]), "forecast"),
    (rc.PerGroup(rc.StdScaling()), "groups"),
]


@pytest.mark.filterwarnings("ignore::calibrant.pu.PriorSensitivityWarning")
@pytest.mark.parametrize(("made", "task"), TRANSFORMED, ids=lambda each: repr(each))
def test_transform_keeps_the_shape_of_what_it_is_given(made, task):
    p, y = _classes()
    if task == "forecast":
        columns = np.column_stack([p[:, 0], p[:, 1] + 0.5])
        assert clone(made).fit(columns, p[:, 2]).transform(columns).shape == columns.shape
        return
    if task == "groups":
        forecast = cal.Gaussian(p[:, 2], p[:, 0], p[:, 1] + 0.5, group=y)
        assert clone(made).fit(forecast).transform(forecast).std.shape == forecast.std.shape
        return
    if task == "multiclass":
        fitted = clone(made).fit(p, y)
        np.testing.assert_array_equal(fitted.transform(p), fitted.predict_proba(p))
        return
    score, event = p[:, 0], (y == 0).astype(int)
    unlabeled = cal.PositiveUnlabeled(score[event == 1], score, prior=0.3)
    fitted = clone(made).fit(unlabeled) if task == "unlabeled" else clone(made).fit(score, event)
    expected = fitted.predict_proba(score)
    np.testing.assert_array_equal(fitted.transform(score), expected[:, 1])
    np.testing.assert_array_equal(fitted.transform(score[:, None]), expected[:, [1]])
    assert fitted.transform(score.tolist()).shape == score.shape
    pairs = np.column_stack([1 - score, score])
    np.testing.assert_array_equal(fitted.transform(pairs), fitted.predict_proba(pairs))
