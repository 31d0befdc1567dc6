"""Intervals of O:E ratio, intercept and slope, binary and multiclass."""

import json

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

import calibrant as cal
from calibrant.inference import MidP, ProfileLikelihood, multinomial_recalibration
from calibrant.inference import validation_intervals as multinomial_framework
from calibrant.inference.sample import Sample
from calibrant.inference.validation_intervals import ScoreCovariance, SlopeStatement
from calibrant.numerics.confidence_limits import mid_p_interval

SCORE_COVARIANCE_RNG = np.random.default_rng(0)
SCORE_COVARIANCE_P = SCORE_COVARIANCE_RNG.random(60)
SCORE_COVARIANCE_Y = (SCORE_COVARIANCE_RNG.random(60) < SCORE_COVARIANCE_P).astype(int)
DESIGN = np.stack([np.ones(60), SCORE_COVARIANCE_P], axis=1)


def of(data):
    return ScoreCovariance.of(
        Sample.with_clusters(data, needed_by="test"),
        fitted=lambda p: 0.9 * p,
        columns=lambda p: np.stack([np.ones(len(p)), p], axis=1),
    )


def test_it_is_the_sum_of_squares_over_rows():
    scores = (SCORE_COVARIANCE_Y - 0.9 * SCORE_COVARIANCE_P)[:, None] * DESIGN
    found = of(cal.Binary(SCORE_COVARIANCE_Y, SCORE_COVARIANCE_P))
    assert found.matrix == pytest.approx(scores.T @ scores * 60 / 59)
    assert found.cluster_sums is None
    assert found.inflation(0.95, np.ones(2)) == 1
    assert of(cal.Binary(SCORE_COVARIANCE_Y, SCORE_COVARIANCE_P, group=np.arange(60))).matrix == pytest.approx(
        found.matrix
    )


def test_weights_add_up_to_kishs_number_of_rows():
    w = SCORE_COVARIANCE_RNG.gamma(1.0, size=60)
    scaled = w * w.sum() / (w @ w)
    scores = (scaled * (SCORE_COVARIANCE_Y - 0.9 * SCORE_COVARIANCE_P))[:, None] * DESIGN
    size = scaled.sum()
    assert of(cal.Binary(SCORE_COVARIANCE_Y, SCORE_COVARIANCE_P, weight=w)).matrix == pytest.approx(
        scores.T @ scores * size / (size - 1)
    )


def test_clusters_are_summed_first():
    group = np.repeat(np.arange(12), 5)
    scores = (SCORE_COVARIANCE_Y - 0.9 * SCORE_COVARIANCE_P)[:, None] * DESIGN
    sums = np.add.reduceat(scores, np.arange(0, 60, 5))
    found = of(cal.Binary(SCORE_COVARIANCE_Y, SCORE_COVARIANCE_P, group=group))
    assert found.matrix == pytest.approx(sums.T @ sums * 12 / 11)
    squares = sums[:, 0] ** 2
    carrying = squares.sum() ** 2 / (squares**2).sum()
    expected = (stats.t.ppf(0.975, carrying) / stats.norm.ppf(0.975)) ** 2
    assert found.inflation(0.95, np.array([1.0, 0.0])) == pytest.approx(expected)
    with pytest.raises(cal.InvalidPredictions, match="at least 8 groups"):
        cal.interval(cal.calibration_slope, SCORE_COVARIANCE_Y, SCORE_COVARIANCE_P, group=np.repeat(np.arange(6), 10))


MID_P_RNG = np.random.default_rng(4)
MID_P_Z = MID_P_RNG.normal(-1, 1.2, 200)
MID_P_P = 1 / (1 + np.exp(-MID_P_Z))
MID_P_Y = (MID_P_RNG.random(200) < MID_P_P).astype(int)


def mid_p_ends(estimator, data, **options):
    found = cal.interval(estimator, data, **options).interval
    return found.low, found.high


def test_of_one_constant_prediction_it_is_the_binomial_interval():
    y = np.arange(50) < 7
    rate = 50 * 0.14 * 0.86 / (50 * 0.14 * 0.86 * 50 / 49)
    low, high = mid_p_interval(7 * rate, 50 * rate, 0.9)
    data = cal.Binary(y, np.full(50, 0.2))
    assert mid_p_ends(cal.observed_expected, data, level=0.9) == pytest.approx((low / 0.2, high / 0.2))
    odds = np.log(np.array([low, high]) / (1 - np.array([low, high]))) - np.log(0.25)
    assert mid_p_ends(cal.calibration_intercept, data, level=0.9) == pytest.approx(tuple(odds))


def test_the_intercepts_are_those_at_which_so_many_events_are_expected():
    found = cal.interval(cal.calibration_intercept, cal.Binary(MID_P_Y, MID_P_P))
    assert found.interval.low < found < found.interval.high
    expected = [np.sum(1 / (1 + np.exp(-(a + MID_P_Z)))) for a in (found.interval.low, found.interval.high)]
    moved = MID_P_P + MID_P_Y.mean() - MID_P_P.mean()
    raised = MID_P_P * MID_P_Y.mean() / MID_P_P.mean()
    squares = [((MID_P_Y - m) ** 2).sum() * 200 / 199 for m in (moved, raised)]
    variance = max(*squares, (raised * (1 - raised)).sum()) / 200**2
    size = MID_P_Y.mean() * (1 - MID_P_Y.mean()) / variance
    assert expected == pytest.approx([200 * float(end) for end in mid_p_interval(MID_P_Y.mean() * size, size, 0.95)])


def test_no_events_and_nothing_but_events():
    low, high = mid_p_ends(cal.observed_expected, cal.Binary(np.zeros(100), np.full(100, 0.02)))
    assert low == 0
    assert high == pytest.approx((1 - 0.05 ** (1 / 100)) / 0.02)
    assert mid_p_ends(cal.calibration_intercept, cal.Binary(np.zeros(100), np.full(100, 0.02)))[0] == -np.inf
    low, high = mid_p_ends(cal.calibration_intercept, cal.Binary(np.ones(20), np.full(20, 0.5)))
    assert high == np.inf
    assert 0 < low < 3
    group = np.repeat(np.arange(10), 10)
    assert (
        mid_p_ends(cal.observed_expected, cal.Binary(np.zeros(100), MID_P_P[:100], group=group))[1]
        > 2 * (mid_p_ends(cal.observed_expected, cal.Binary(np.zeros(100), MID_P_P[:100]))[1])
    )


def test_copies_of_rows_in_one_cluster_tell_nothing_new():
    rows = np.repeat(np.arange(200), 4)
    for estimator in (cal.observed_expected, cal.calibration_intercept):
        alone = mid_p_ends(estimator, cal.Binary(MID_P_Y, MID_P_P, group=np.arange(200)))
        copied = mid_p_ends(estimator, cal.Binary(MID_P_Y[rows], MID_P_P[rows], group=rows))
        assert copied == pytest.approx(alone, rel=0.02)  # Student's quantile with 200 clusters
        assert mid_p_ends(
            estimator, cal.BinTable.of(cal.Binary(MID_P_Y, MID_P_P), cal.table.Distinct())
        ) == pytest.approx(mid_p_ends(estimator, cal.Binary(MID_P_Y, MID_P_P)))


def test_rows_of_0_and_1_do_not_move_the_intercept():
    y, p = np.append(MID_P_Y, [0, 1, 1]), np.append(MID_P_P, [0.0, 1.0, 0.0])
    assert mid_p_ends(cal.calibration_intercept, cal.Binary(y, p)) == pytest.approx(
        mid_p_ends(cal.calibration_intercept, cal.Binary(MID_P_Y, MID_P_P)), rel=1e-3
    )


def test_mid_p_other_estimates_are_refused():
    with pytest.raises(TypeError, match="observed_expected, calibration_intercept and accuracy"):
        cal.interval(cal.ece, cal.Binary(MID_P_Y, MID_P_P), method=MidP())
    with pytest.raises(cal.InvalidPredictions):
        cal.interval(cal.observed_expected, cal.Multiclass([0, 1, 2], np.eye(3)))


RNG = np.random.default_rng(8)
Z = RNG.normal(-1, 1.2, 200)
P = 1 / (1 + np.exp(-Z))
Y = (RNG.random(200) < 1 / (1 + np.exp(-0.7 * Z))).astype(int)
DATA = cal.Binary(Y, P)


def profile(b):
    """Minus the log likelihood with this slope and the best intercept."""
    eta = b * Z
    return minimize_scalar(lambda a: np.sum(np.logaddexp(0, a + eta) - Y * (a + eta)), bracket=(-3, 3)).fun


def ends(data, **options):
    found = cal.interval(cal.calibration_slope, data, **options).interval
    return found.low, found.high


def sandwich():
    """The robust variance of the slope over that of the likelihood, written out."""
    b = cal.calibration_slope(DATA)
    design = np.stack([np.ones(200), Z], axis=1)
    chance = 1 / (1 + np.exp(-(b.details["intercept"] + b * Z)))
    inverse = np.linalg.inv(design.T @ (design * (chance * (1 - chance))[:, None]))
    scores = design * (Y - chance)[:, None]
    return (inverse @ scores.T @ scores @ inverse)[1, 1] / inverse[1, 1] * 200 / 199


def test_at_the_ends_the_deviance_is_the_quantile():
    found = cal.interval(cal.calibration_slope, DATA)
    assert found.interval.low < found < found.interval.high
    rise = stats.t.ppf(0.975, 198) ** 2 / 2 * max(1.0, sandwich())
    for end in (found.interval.low, found.interval.high):
        assert profile(end) - profile(float(found)) == pytest.approx(rise, rel=1e-5)


def test_clusters_weights_and_tables():
    rows = np.repeat(np.arange(200), 3)
    alone = ends(cal.Binary(Y, P, group=np.arange(200)))
    assert ends(cal.Binary(Y[rows], P[rows], group=rows)) == pytest.approx(alone, rel=0.03)
    assert ends(cal.Binary(Y, P, weight=np.full(200, 5.0))) == pytest.approx(ends(DATA))
    assert ends(cal.BinTable.of(DATA, cal.table.Distinct())) == pytest.approx(ends(DATA))
    heavy = ends(cal.Binary(Y, P, weight=np.where(np.arange(200) < 20, 20.0, 1.0)))
    assert heavy[1] - heavy[0] > 1.5 * (ends(DATA)[1] - ends(DATA)[0])


@pytest.mark.parametrize("group", [None, np.arange(200) // 5])
def test_the_p_value_of_the_slope_is_where_its_interval_ends(group):
    found = SlopeStatement.of(Sample.with_clusters(cal.Binary(Y, P, group=group), needed_by="a test"))
    low, high = found.limits(1 - found.p_value)
    assert min(abs(low - 1), abs(high - 1)) < 1e-4
    assert found.direction == (1 if (low + high) / 2 < 1 else -1)


def test_one_cluster_that_dominates_allows_every_slope_and_every_ratio():
    """Of such calibrated samples, O:E excluded 1 in 87 %."""
    group = np.maximum(np.arange(200) - 180, 0)
    data = cal.Binary(Y, P, group=group)
    assert ends(data) == (-np.inf, np.inf)
    assert mid_p_ends(cal.observed_expected, data) == pytest.approx((0, 1 / P.mean()))


def test_rows_of_0_and_1_do_not_move_the_slope():
    y, p = np.append(Y, [0, 1, 1]), np.append(P, [0.0, 1.0, 0.0])
    assert ends(cal.Binary(y, p)) == pytest.approx(ends(DATA), rel=1e-3)


@pytest.mark.parametrize("up", [True, False])
def test_separated_outcomes_have_one_end(up):
    y = np.array([0, 0, 0, 1, 1])
    found = cal.interval(cal.calibration_slope, [*y] if up else [*(1 - y)], [0.1, 0.3, 0.4, 0.6, 0.8]).interval
    assert found.side == ("lower" if up else "upper")
    assert np.isinf(found.high if up else found.low)
    assert np.isfinite(found.low if up else found.high)
    assert "separated" in found.assumption


def test_one_outcome_or_one_score_allow_every_slope():
    for data in (cal.Binary(np.zeros(9), P[:9]), cal.Binary(Y[:50], np.full(50, 0.3))):
        found = cal.interval(cal.calibration_slope, data)
        assert (found.interval.low, found.interval.high) == (-np.inf, np.inf)
        assert "every slope" in found.interval.assumption
        assert found.note == ""


def test_other_estimates_are_refused():
    with pytest.raises(TypeError, match="calibration_slope"):
        cal.interval(cal.ece, DATA, method=ProfileLikelihood())


def rows(n, seed=0, shape=(2.0, 2.0, 2.0), power=1.0, shift=(1.0, 1.0, 1.0)):
    """Rows whose true probabilities are those predicted, to some power and times some factor."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(shape, n)
    true = p**power * np.array(shift)
    true /= true.sum(axis=1, keepdims=True)
    return cal.Multiclass((rng.random((n, 1)) > true.cumsum(axis=1)[:, :-1]).sum(axis=1), p)


def test_two_classes_have_the_numbers_of_binary_predictions():
    rng = np.random.default_rng(0)
    p = rng.random(250)
    y = (rng.random(250) < p**1.5).astype(int)
    found = multinomial_recalibration(y, np.stack([1 - p, p], axis=1), reference=0)
    slope, intercept = (cal.interval(number, y, p) for number in (cal.calibration_slope, cal.calibration_intercept))
    assert found.slopes[0] == pytest.approx(slope, abs=1e-6)
    assert found.slopes[0].interval.low == pytest.approx(slope.interval.low, abs=5e-3)
    assert found.slopes[0].interval.high == pytest.approx(slope.interval.high, abs=5e-3)
    assert found.intercepts[0] == pytest.approx(intercept, abs=1e-6)
    assert found.intercepts[0].interval.high == pytest.approx(intercept.interval.high, abs=0.05)
    assert found.joint_intercepts == pytest.approx([slope.details["intercept"]], abs=1e-6)


def test_the_numbers_are_those_of_the_world():
    found = multinomial_recalibration(rows(30_000, power=0.5), reference=0)
    assert all(0.5 in slope.interval for slope in found.slopes)
    shifted = multinomial_recalibration(rows(30_000, shift=(1.0, 1.5, 0.7)), reference=0)
    assert shifted.intercepts[0] == pytest.approx(np.log(1.5), abs=0.1)
    assert shifted.intercepts[1] == pytest.approx(np.log(0.7), abs=0.1)
    assert shifted.slopes[0].interval.method == "normal approximation"


def test_other_references_turn_the_sign_and_labels_are_kept():
    data = rows(2000, shift=(1.0, 2.0, 1.0))
    named = cal.Multiclass(np.array(["x", "y", "z"])[data.y_true], data.y_prob, classes=["x", "y", "z"])
    found = multinomial_recalibration(named, reference="y")
    assert found.classes == ("x", "z")
    first = multinomial_recalibration(named, reference="x")
    assert found.intercepts[0] == pytest.approx(-first.intercepts[0])
    assert multinomial_recalibration(named).reference == "y"  # the most frequent


@pytest.mark.no_cover
@pytest.mark.parametrize(("n", "shape"), [(120, (2.0, 2.0, 2.0)), (400, (0.4, 2.0, 6.0))])
def test_intervals_cover_with_few_rows_and_a_rare_class(n, shape):
    covered = []
    for seed in range(20):
        found = multinomial_recalibration(rows(n, seed=seed, shape=shape), reference=2)
        covered += [[0.0 in a.interval, 1.0 in b.interval] for a, b in zip(found.intercepts, found.slopes, strict=True)]
    assert np.mean(covered, axis=0).min() > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 120)


def test_normal_and_profile_intervals_agree_for_many_rows(monkeypatch):
    data = rows(5000)
    profile = multinomial_recalibration(data).slopes[0].interval
    monkeypatch.setattr(multinomial_framework, "_PROFILED_ROWS", 100)
    normal = multinomial_recalibration(data).slopes[0].interval
    assert (profile.low, profile.high) == pytest.approx((normal.low, normal.high), abs=0.01)


def test_weights_have_no_unit_and_copies_in_clusters_say_no_more():
    data = rows(400)
    weight = np.random.default_rng(1).gamma(2.0, size=400)
    once, again = (
        multinomial_recalibration(cal.Multiclass(data.y_true, data.y_prob, weight=c * weight)) for c in (1, 50)
    )
    assert once.slopes[0].interval.high == pytest.approx(again.slopes[0].interval.high)
    copies = np.repeat(np.arange(400), 3)
    clustered = cal.Multiclass(data.y_true[copies], data.y_prob[copies], group=copies)
    wide, alone = multinomial_recalibration(clustered).slopes[1], multinomial_recalibration(data).slopes[1]
    assert wide == pytest.approx(alone)
    assert wide.interval.high - wide == pytest.approx(alone.interval.high - alone, rel=0.1)
    with pytest.raises(cal.InvalidPredictions, match="at least 8 groups"):
        multinomial_recalibration(cal.Multiclass(data.y_true, data.y_prob, group=np.arange(400) % 4))


def test_classes_that_never_occur_separation_and_constant_scores_are_said():
    data = rows(200)
    seen = cal.Multiclass(data.y_true % 2, data.y_prob, classes=[0, 1, 2])
    found = multinomial_recalibration(seen, reference=0)
    assert found.intercepts[1] == -np.inf
    assert np.isnan(found.slopes[1])
    assert "never observed: 2" in found.note
    assert np.isfinite(found.slopes[0])
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["classes"][1]["intercept"]["value"] is None
    assert plain["classes"][1]["slope"]["interval"]["high"] is None
    sure = np.full((30, 3), 0.1) + 0.7 * np.eye(3)[np.arange(30) % 3]
    separated = multinomial_recalibration(np.arange(30) % 3, sure)
    assert "separated" in separated.note
    flat = multinomial_recalibration(np.arange(30) % 3, np.full((30, 3), 1 / 3))
    assert "all scores" in str(flat).lower()
    assert flat.intercepts[0] == pytest.approx(0, abs=1e-9)
    one = multinomial_recalibration(cal.Multiclass(np.zeros(20, int), data.y_prob[:20], classes=[0, 1, 2]))
    assert [a.value for a in one.intercepts] == [-np.inf, -np.inf]


def test_rows_of_probability_zero_are_left_out_and_wrong_references_refused():
    data = rows(100)
    p = data.y_prob.copy()
    p[:10] = [0.5, 0.5, 0.0]
    found = multinomial_recalibration(data.y_true, p)
    assert found.left_out == 10
    assert "10 left out" in str(found)
    with pytest.raises(cal.InvalidPredictions, match="not one of the classes"):
        multinomial_recalibration(data, reference="z")
    with pytest.raises(cal.InvalidPredictions, match="never observed"):
        multinomial_recalibration(cal.Multiclass(np.zeros(9, int), data.y_prob[:9], classes=[0, 1, 2]), reference=1)
    with pytest.raises(cal.InvalidPredictions, match="it never is"):
        multinomial_recalibration(data.y_true[:10], p[:10])
