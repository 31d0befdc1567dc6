"""The variational estimator, labelled and positive-unlabeled: its formulas, its bound, its parts, its inputs."""

from functools import partial

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

import calibrant as cal
from calibrant.estimators.cross_fitting import binary_rows
from tests.estimators.worlds import Fixed as Fixed_of_worlds
from tests.estimators.worlds import Shift, over_world, paper_world, tempered
from tests.numerics.worlds import draw_classes


def test_the_oracle_map_recovers_the_true_error_in_every_norm():
    rng = np.random.default_rng(1)
    f = rng.dirichlet(0.5 * np.ones(3), 200_000)
    y = draw_classes(rng, tempered(0.3)(f))
    data = cal.Multiclass(y, f)
    found = cal.estimators.variational_errors(
        data, norms=[1, 2, np.inf, "squared"], recalibrator=Fixed_of_worlds(tempered(0.3))
    )
    for estimate, truth in zip(found, (0.4410, 0.27581, 0.2205, 0.0865), strict=True):
        assert abs(estimate - truth) < 3 * estimate.details["standard_error"]


@pytest.mark.parametrize(
    ("norm", "factor"), [(1, 2), (2, 2**0.5), (3, 2 ** (1 / 3)), (np.inf, 1), ("squared", 2), ("kl", 1)]
)
def test_two_columns_give_the_binary_value_times_a_known_factor(norm, factor):
    """The mean length of a vector of two numbers, which in every norm is a multiple of the L1 error of one."""
    rng = np.random.default_rng(2)
    f, oracle = rng.random(500), Fixed_of_worlds(tempered(2))
    y = rng.random(500) < f
    both = cal.variational_error(
        cal.Multiclass(y.astype(int), np.stack([1 - f, f], axis=1)), norm=norm, recalibrator=oracle
    )
    same = norm if isinstance(norm, str) else 1
    one = cal.variational_error(y, f, norm=same, recalibrator=Fixed_of_worlds(lambda p: p**2 / (p**2 + (1 - p) ** 2)))
    assert both == pytest.approx(factor * one, rel=1e-9)


def _gap_above(p):
    return p - 0.4 * (p > 0.9)  # L1 0.04, L2 0.126


def _of_five_scores(p):
    return np.choose(np.searchsorted([0.1, 0.3, 0.5, 0.7, 0.9], p), [0.1, 0.2, 0.5, 0.8, 0.95])


LP_WORLDS = {
    "wrong above 0.9": (lambda rng, n: rng.random(n), _gap_above, 0.8),
    "calibrated": (lambda rng, n: rng.random(n), lambda p: p, -1.0),
    "rare events": (lambda rng, n: 1 / (1 + np.exp(-rng.normal(-5, 1, n))), lambda p: p / 3, 0.8),
    "tied scores": (lambda rng, n: rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], n), _of_five_scores, 0.8),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("world", LP_WORLDS)
def test_the_lp_error_of_one_probability_is_a_lower_bound_that_comes_close(world):
    scores, truth, near = LP_WORLDS[world]
    many = scores(np.random.default_rng(0), 1_000_000)
    found = []
    for seed in range(120):
        rng = np.random.default_rng([seed, 5])
        p = scores(rng, 2000)
        found.append(cal.estimators.variational_errors(rng.random(2000) < truth(p), p, norms=[2, 3]))
    for norm, values in zip((2, 3), np.transpose(found), strict=True):
        wanted = float(np.mean(np.abs(truth(many) - many) ** norm) ** (1 / norm))
        error = np.std(values) / np.sqrt(len(values))
        assert near * wanted - 2 * error <= np.mean(values) <= wanted + 2 * error


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", ["binary", "table", "top label", "top label given the vector", "positive-unlabeled"])
def test_the_lp_error_of_one_probability_estimates_what_its_interval_is_for(kind):
    rng = np.random.default_rng(1)
    p = rng.random(50_000)
    y = rng.random(50_000) < _gap_above(p)
    options = {"top_label": "full" if kind.endswith("vector") else "reduced"} if kind.startswith("top") else {}
    data = cal.Binary(y, p)
    if kind == "table":
        data = cal.BinTable.of(data, cal.table.HybridGrid())
    elif options:  # of three classes: the top one has a confidence above 1/2
        top = 0.5 + p / 2
        y = rng.random(50_000) < top - 0.4 * (top > 0.9)
        data = cal.Multiclass(np.where(y, 0, 1), np.stack([top, (1 - top) * 0.6, (1 - top) * 0.4], axis=1))
    elif kind == "positive-unlabeled":
        data = cal.PositiveUnlabeled(p[y], rng.random(50_000), prior=0.5 - 0.04)
        options = {"recalibrator": cal.pu.PUIsotonic()}
    found = cal.interval(partial(cal.variational_error, norm=2, **options), data)
    truth = 0.4 * np.sqrt(0.2 if kind.startswith("top") else 0.1)
    assert 0.75 * truth < found < 1.05 * truth  # the L1 error is a third to a half of it
    assert found.interval.low - 0.01 < found < found.interval.high
    assert str(found.target) == "true error (L2)"
    assert "(L2)" in found.name


def test_the_lp_error_of_one_probability_written_out():
    rng = np.random.default_rng(3)
    f, weight = rng.random(40), rng.exponential(size=40)
    y = rng.random(40) < f
    other = f**2
    found = cal.variational_error(
        cal.Binary(y, f, weight=weight), norm=3, folds=2, recalibrator=Fixed_of_worlds(lambda p: p**2)
    )
    rows = binary_rows(cal.Binary(y, f, weight=weight), [1, 1], [0, 0])
    expected = 0.0
    for k in (0, 1):
        w, d, e = weight[rows.fold == k], (other - f)[rows.fold == k], (y - f)[rows.fold == k]
        length = (w @ np.abs(d) ** 3 / w.sum()) ** (2 / 3)
        expected += w @ (np.sign(d) * np.abs(d) ** 2 / length * e) / weight.sum()
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_largest_gap_of_one_probability_is_refused():
    rng = np.random.default_rng(4)
    p = rng.random(100)
    for data in (cal.Binary(rng.random(100) < p, p), cal.PositiveUnlabeled(p[:20], p, prior=0.3)):
        with pytest.raises(ValueError, match="mce"):
            cal.variational_error(data, norm=np.inf)


def test_a_one_sided_distance_sees_one_side_only():
    data = over_world(np.random.default_rng(4), 4000, shift=0.0)
    above = cal.estimators.Distance(
        lambda f, q: np.maximum(f - q, 0)[:, 0], lambda f, q: -(q < f).astype(float), name="above"
    )
    below = cal.estimators.Distance(
        lambda f, q: np.maximum(q - f, 0)[:, 0], lambda f, q: (q > f).astype(float), name="below"
    )
    one, two, both = cal.estimators.variational_errors(data, norms=[above, below, 1])
    assert one + two == pytest.approx(float(both), abs=1e-12)
    assert min(one, two) > 0.03
    assert one.name == "Variational error (above)"


@pytest.mark.parametrize("norm", [1, 2, np.inf, "squared", "kl"])
def test_a_map_that_changes_nothing_gives_exactly_zero(norm):
    rng = np.random.default_rng(5)
    f = rng.random(300)
    if norm != np.inf:
        same = cal.variational_error(rng.random(300) < f, f, norm=norm, recalibrator=Fixed_of_worlds(lambda p: p))
        assert same == 0.0
    v = rng.dirichlet(np.ones(3), 300)
    data = cal.Multiclass(draw_classes(rng, v), v)
    assert cal.variational_error(data, norm=norm, recalibrator=Fixed_of_worlds(lambda p: p)) == 0.0


@pytest.mark.parametrize("norm", [1, 2, "squared", "kl"])
def test_overconfidence_and_underconfidence_are_the_whole(norm):
    rng = np.random.default_rng(6)
    f = np.append(rng.beta(0.5, 0.5, 800).clip(1e-3, 1 - 1e-3), np.full(50, 0.5))
    data = cal.Binary(rng.random(850) < f**1.5, f)
    over, under = cal.overconfidence(data, norm=norm), cal.underconfidence(data, norm=norm)
    total = cal.variational_error(data, norm=norm)
    assert over + under == pytest.approx(float(total), abs=1e-14)
    assert total.details["overconfidence"] == float(over)
    assert total.details["underconfidence"] == float(under)


def test_top_labels_below_one_half_are_still_overconfident():
    rng = np.random.default_rng(7)
    f = rng.dirichlet(0.5 * np.ones(10), 20_000)
    data = cal.Multiclass(draw_classes(rng, tempered(0.3)(f)), f)
    oracle = Fixed_of_worlds(tempered(0.3))
    over = cal.overconfidence(data, top_label="full", recalibrator=oracle)
    error = over.details["standard_error"]
    truth = (f - tempered(0.3)(f)).max(axis=1).mean()  # 0.199 in the population
    assert abs(over - truth) < 3 * error
    assert abs(cal.underconfidence(data, top_label="full", recalibrator=oracle)) < error
    assert truth - 4 * error < cal.overconfidence(data) < truth + 3 * error


def test_the_papers_split_around_half_is_its_clipped_loss():
    rng = np.random.default_rng(12)
    f = rng.dirichlet(0.7 * np.ones(6), 3000)
    f[:40] = [0.5, 0.3, 0.2, 0.0, 0.0, 0.0]  # a confidence of exactly 1/2 is neither over nor under
    labels = draw_classes(rng, 0.8 * tempered(0.6)(f) + 0.2 * tempered(1.8)(f))
    top, confidence = f.argmax(axis=1), f.max(axis=1)
    g = np.where(confidence < 0.5, 0.9 * confidence, 0.1 + 0.85 * confidence)  # both sides on both sides of 1/2
    y = (labels == top).astype(float)

    def loss(g):  # the proper loss of the L1 distance, centred at f
        return -np.abs(g - confidence) - np.sign(confidence - g) * (g - y)

    up, down = np.maximum(g, confidence), np.minimum(g, confidence)
    over = np.where(confidence > 0.5, down, np.where(confidence < 0.5, up, 0.5))
    under = np.where(confidence > 0.5, up, np.where(confidence < 0.5, down, 0.5))
    curve = Fixed_of_worlds(lambda p: np.where(p < 0.5, 0.9 * p, 0.1 + 0.85 * p))
    for side, clipped in ((cal.overconfidence, over), (cal.underconfidence, under)):
        expected = np.mean(loss(confidence) - loss(clipped))
        found = side(cal.Multiclass(labels, f), around_half=True, recalibrator=curve)
        assert found == pytest.approx(expected, abs=1e-12)
        assert abs(found) > 0.002
        assert abs(found - side(cal.Multiclass(labels, f), recalibrator=curve)) > 0.003  # ours is another number
        assert side(cal.Binary(y, confidence), around_half=True, recalibrator=curve) == pytest.approx(found, abs=1e-12)


def test_given_the_vector_the_confidence_error_is_larger():
    rng = np.random.default_rng(8)
    f = np.repeat(rng.dirichlet(np.ones(3), 3000), 2, axis=0)
    best = f.argmax(axis=1)
    conf = f[np.arange(6000), best]
    chance = np.clip(conf + np.where(best == 0, 0.2, -0.2), 0.05, 0.95)  # wrong in ways that cancel given confidence
    hit = rng.random(6000) < chance
    labels = np.where(hit, best, (best + 1) % 3)
    reduced, full = (cal.variational_error(cal.Multiclass(labels, f), top_label=how) for how in ("reduced", "full"))
    assert full > reduced + 0.05
    assert reduced.name == "Variational confidence error (L1)"


@pytest.mark.no_cover
@pytest.mark.parametrize("folds", ["plain", "stratified"])
def test_calibrated_predictions_have_no_error_on_average_unless_folds_are_stratified(folds):
    rng = np.random.default_rng(9)
    values = []
    for _ in range(1000):
        f = rng.beta(0.5, 0.5, 200)
        y = (rng.random(200) < f).astype(int)
        if folds == "plain":
            values.append(cal.variational_error(y, f, recalibrator=Shift()))
            continue
        total = 0.0
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(f[:, None], y):
            total += (np.sign(y[train].mean() - f[train].mean()) * (y[test] - f[test])).sum()
        values.append(total / 200)
    error = np.std(values) / np.sqrt(len(values))
    biased = abs(np.mean(values)) > 3 * error
    assert biased == (folds == "stratified")


@pytest.mark.no_cover
def test_the_default_map_is_a_lower_bound_that_comes_close():
    rng = np.random.default_rng(10)
    found = [cal.variational_error(over_world(rng, 1000)) for _ in range(40)]
    mean, error = np.mean(found), np.std(found) / np.sqrt(len(found))
    assert 0.137157 - 0.01 < mean < 0.137157 + 2 * error


def test_extreme_scores_are_defined():
    y = np.array([0, 1] * 20, dtype=int)
    f = np.array([0.0, 1.0] * 20, dtype=np.float32)
    assert abs(cal.variational_error(y, f)) < 0.05
    assert np.isfinite(cal.variational_error(y, f, norm="kl"))
    wrong = cal.variational_error(1 - y, f, norm="kl")  # certain and wrong: infinite, and said so
    assert wrong == np.inf
    assert wrong.details["standard_error"] == np.inf
    assert cal.variational_error([0, 1, 1, 0, 1, 0], [0.3] * 6) < 0.5
    with pytest.raises(ValueError, match="5 folds need at least as many rows"):
        cal.variational_error([0, 1], [0.2, 0.4])


def test_bad_options_say_what_is_right():
    data = over_world(np.random.default_rng(18), 50)
    for norm in (0.5, "brier", None, True):
        with pytest.raises(ValueError, match="norm must be a number of at least 1"):
            cal.variational_error(data, norm=norm)
    with pytest.raises(ValueError, match="folds must be a whole number of at least 2"):
        cal.variational_error(data, folds=1)
    with pytest.raises(ValueError, match="top_label must be"):
        cal.variational_error(data, top_label=True)
    with pytest.raises(TypeError, match="needs Binary or Multiclass"):
        cal.variational_error(cal.Gaussian([1.0], [1.0], [1.0]))
    with pytest.raises(ValueError, match="score must be"):
        cal.refinement(data, score="squared")


@pytest.mark.no_cover
def test_negative_estimates_are_kept():
    rng = np.random.default_rng(19)
    found = []
    for _ in range(20):
        f = rng.random(100)
        found.append(cal.variational_error(rng.random(100) < f, f, norm="squared"))
    assert min(found) < 0
    assert min(found).clipped == 0.0


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("kind", "truth"), [("calibrated", 0), ("over", 0.137157), ("under", 0.131246), ("shifted", 0.018797)]
)
def test_the_mean_estimate_does_not_exceed_the_truth(kind, truth):
    rng = np.random.default_rng(5)
    found = [cal.variational_error(paper_world(rng, 200, kind)) for _ in range(60)]
    assert np.mean(found) <= truth + 2.5 * np.std(found) / np.sqrt(60)
    assert np.mean(found) > 0.8 * truth - 0.012


class Fixed:
    """A map that is known beforehand."""

    def get_params(self, deep=True):
        return {}

    def fit(self, data):
        return self

    def predict_proba(self, scores):
        g = 0.1 + 0.8 * np.asarray(scores, dtype=float)
        return np.stack([1 - g, g], axis=1)


def sample(*, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    positive, unlabeled = rng.beta(3, 1.5, 60), rng.beta(1, 1.2, 200)
    weight = rng.random(260) + 0.2 if weighted else None
    return cal.PositiveUnlabeled(positive, unlabeled, prior=0.4, weight=weight)


def means(data):
    """Weighted mean over the positives and over the unlabeled rows."""
    w_p, w_u = (
        np.ones(len(side)) if weight is None else weight
        for side, weight in ((data.positive, data.positive_weight), (data.unlabeled, data.unlabeled_weight))
    )
    return (lambda x: w_p @ x / w_p.sum()), (lambda x: w_u @ x / w_u.sum())


@pytest.mark.parametrize("weighted", [False, True])
def test_the_formulas_written_out(weighted):
    data = sample(weighted=weighted)
    of_p, of_u = means(data)
    f_p, f_u = data.positive, data.unlabeled
    g_p, g_u = 0.1 + 0.8 * f_p, 0.1 + 0.8 * f_u
    l1 = 0.4 * of_p(np.sign(g_p - f_p)) - of_u(np.sign(g_u - f_u) * f_u)
    squared = of_u(f_u**2 - g_u**2) - 2 * 0.4 * of_p(f_p - g_p)

    def log_loss(p, u):
        return -0.4 * of_p(np.log(p / (1 - p))) - of_u(np.log(1 - u))

    kl = log_loss(f_p, f_u) - log_loss(g_p, g_u)
    for norm, expected in ((1, l1), ("squared", squared), ("kl", kl)):
        found = cal.variational_error(data, norm=norm, recalibrator=Fixed())
        assert found == pytest.approx(expected, rel=1e-9)
        assert found.method == "5 folds, Fixed"
    assert cal.variational_error(data, norm="kl", recalibrator=Fixed()).name == "Variational error (KL)"


def test_the_standard_error_adds_those_of_the_two_samples():
    data = sample()
    f_p, f_u = data.positive, data.unlabeled
    of_p, of_u = np.sign(0.1 - 0.2 * f_p), np.sign(0.1 - 0.2 * f_u) * f_u
    expected = np.sqrt(0.4**2 * of_p.var() / len(f_p) + of_u.var() / len(f_u))
    found = cal.variational_error(data, norm=1, recalibrator=Fixed())
    assert found.details["standard_error"] == pytest.approx(expected, rel=1e-9)


def test_labelled_rows_of_a_single_sample_are_not_counted_as_independent():
    rng = np.random.default_rng(1)
    p = rng.random(400)
    labelled = (rng.random(400) < p) & (rng.random(400) < 0.5)
    data = cal.PositiveUnlabeled.from_labels(labelled, p, prior=0.5, scenario="single-sample")
    found = cal.variational_error(data, norm=1, recalibrator=Fixed())
    s = np.sign(0.1 - 0.2 * p)
    share = labelled / labelled.sum()
    mean_p, mean_u = share @ s, (s * p).mean()
    noise = 0.5 * share * (s - mean_p) - (s * p - mean_u) / 400
    assert found == pytest.approx(0.5 * mean_p - mean_u, rel=1e-9)
    assert found.details["standard_error"] == pytest.approx(np.sqrt(noise @ noise), rel=1e-9)


def test_variational_unlabeled_a_map_that_changes_nothing_gives_exactly_zero():
    class Same(Fixed):
        def predict_proba(self, scores):
            return np.stack([1 - scores, scores], axis=1)

    for norm in (1, "squared", "kl"):
        assert cal.variational_error(sample(), norm=norm, recalibrator=Same()) == 0.0


def test_repeats_are_averaged_and_the_seed_decides():
    data = sample()
    again = cal.variational_error(data, repeats=3)
    assert again.method == "5 folds x 3, PUPlatt"
    assert again == cal.variational_error(data, repeats=3)
    assert cal.variational_error(data, seed=1) != cal.variational_error(data, seed=2)


def test_weights_may_be_scaled():
    data = sample(weighted=True)
    scaled = cal.PositiveUnlabeled(data.positive, data.unlabeled, prior=0.4, weight=5 * data.weight)
    assert cal.variational_error(scaled) == pytest.approx(float(cal.variational_error(data)), rel=1e-6)


def test_other_distances_are_refused():
    distance = cal.estimators.Distance(lambda f, q: q, lambda f, q: q)
    with pytest.raises(ValueError, match="on positive-unlabeled data"):
        cal.variational_error(sample(), norm=distance)


def test_no_result_of_several_classes_depends_on_the_order_of_rows():
    rng = np.random.default_rng(31)
    p = rng.dirichlet([0.7] * 4, 500)
    data = cal.Multiclass(draw_classes(rng, p), p**1.3 / (p**1.3).sum(axis=1, keepdims=True))
    again = rng.permutation(500)
    other = cal.Multiclass(data.y_true[again], data.y_prob[again])
    for options in ({}, {"repeats": 1}, {"top_label": "full"}):
        assert float(cal.variational_error(other, **options)) == pytest.approx(
            float(cal.variational_error(data, **options)), abs=1e-12
        )
    low = [cal.interval(cal.variational_error, one).interval.low for one in (data, other)]
    assert low[0] == pytest.approx(low[1], abs=1e-12)


def test_no_bound_of_one_probability_depends_on_the_order_of_rows():
    rng = np.random.default_rng(33)
    p, again = rng.random(400), rng.permutation(400)
    data = cal.Binary(rng.random(400) < p**1.5, p)
    other = cal.Binary(data.y_true[again], data.y_prob[again])
    for bound in (cal.estimators.SplitSampleBound(), cal.estimators.CrossFittedBound()):
        low = [cal.variational_error(one, bound=bound).interval.low for one in (data, other)]
        assert low[0] == pytest.approx(low[1], abs=1e-12)


def test_no_two_samples_have_one_order_of_bets():
    """One order of sorted rows for all samples of a seed would not be random: its bets would favour the same rows."""
    rng, bound = np.random.default_rng(34), cal.estimators.SplitSampleBound()
    p = rng.random(1000)
    y = rng.random(1000) < p**3
    low = [cal.variational_error(y, scores, bound=bound).interval.low for scores in (p, p * (1 - 1e-12))]
    assert low[0] == pytest.approx(low[1], abs=0.03)
    assert abs(low[0] - low[1]) > 1e-5


@pytest.mark.no_cover
def test_seeds_move_little():
    """Three divisions are averaged by default: the spread over seeds is that of one division over the root of 3."""
    rng = np.random.default_rng(32)
    p = rng.dirichlet([0.7] * 4, 400)
    data = cal.Multiclass(draw_classes(rng, p), p)
    default = cal.variational_error(data)
    assert float(default) == float(cal.variational_error(data, repeats=3))
    assert default.method == "5 folds x 3, conditional logit"
    spread = [
        np.std([float(cal.variational_error(data, repeats=repeats, seed=seed)) for seed in range(8)])
        for repeats in (None, 1)
    ]
    assert spread[0] < 0.9 * spread[1]
