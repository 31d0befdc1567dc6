"""smECE against its definition, integrated by brute force."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.estimators.smooth import fixed_point

PEERS = json.loads((Path(__file__).parents[1] / "reference" / "smooth_peers.json").read_text(encoding="utf8"))


def reflected_gaussian(t, p, sigma):
    reach = int(np.ceil(4 * sigma)) + 1
    images = [sign * p + 2 * k for k in range(-reach, reach + 1) for sign in (1, -1)]
    near = [image for image in images if -9 * sigma <= image <= 1 + 9 * sigma]
    return sum(np.exp(-((t - image) ** 2) / (2 * sigma**2)) for image in near) / (np.sqrt(2 * np.pi) * sigma)


def by_brute_force(y, p, sigma, weight=None, nodes=20_001):
    weight = np.ones(len(p)) if weight is None else np.asarray(weight)
    t, smoothed = np.linspace(0, 1, nodes), np.zeros(nodes)
    for one_y, one_p, one_w in zip(y, p, weight, strict=True):
        smoothed += one_w * (one_y - one_p) * reflected_gaussian(t, one_p, sigma)
    return np.trapezoid(np.abs(smoothed), t) / weight.sum()


def sample(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    p = {"uniform": rng.random(n), "skewed": rng.beta(0.1, 0.1, n), "tied": np.round(rng.random(n), 1)}[kind]
    return (rng.random(n) < p**1.3).astype(int), p


@pytest.mark.no_cover
@pytest.mark.parametrize("sigma", [0.005, 0.02, 0.1, 0.5, 1.5])
@pytest.mark.parametrize("kind", ["uniform", "skewed", "tied"])
def test_a_fixed_width_equals_the_integral(kind, sigma):
    y, p = sample(kind, 60)
    assert cal.smooth_ece(y, p, sigma=sigma) == pytest.approx(by_brute_force(y, p, sigma), abs=1e-6)


def test_a_narrow_kernel_stays_within_the_documented_bound():
    y, p = sample("uniform", 60)
    sigma = 5e-4
    bound = (2**-16 / sigma) ** 2 / 8 * np.abs(y - p).mean() + 1e-5
    assert abs(cal.smooth_ece(y, p, sigma=sigma) - by_brute_force(y, p, sigma, nodes=200_001)) < bound


@pytest.mark.parametrize("kind", ["uniform", "skewed", "tied"])
def test_the_error_is_the_width_at_which_the_error_is_the_width(kind):
    y, p = sample(kind, 60)
    error = cal.smooth_ece(y, p)
    assert by_brute_force(y, p, error.value) == pytest.approx(error, abs=1e-6)
    assert cal.smooth_ece(y, p, sigma=error.value) == pytest.approx(error, abs=1e-12)
    assert error.details["sigma"] == error.value


def test_weights_enter_the_integral():
    y, p = sample("skewed", 60)
    weight = np.random.default_rng(1).exponential(size=60)
    error = cal.smooth_ece(cal.Binary(y, p, weight=weight), sigma=0.03)
    assert error == pytest.approx(by_brute_force(y, p, 0.03, weight), abs=1e-6)


@pytest.mark.parametrize("score", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("sigma", [0.001, 0.05, 1.0])
def test_an_atom_has_the_same_mass_wherever_it_is(score, sigma):
    outcome = int(score < 0.5)
    y, p = [outcome] * 3, [score] * 3
    assert cal.smooth_ece(y, p, sigma=sigma) == pytest.approx(abs(outcome - score), abs=1e-12)
    assert cal.smooth_ece(y, p) == pytest.approx(abs(outcome - score), abs=1e-12)


def test_the_authors_code_agrees_away_from_the_ends():
    for case in PEERS["relplot"]["interior"]:
        y, p = interior_sample(case)
        assert cal.smooth_ece(y, p, sigma=case["sigma"]) == pytest.approx(case["smECE_sigma"], rel=5e-3)


def test_the_authors_code_gives_an_atom_at_the_end_half_its_mass():
    case = PEERS["relplot"]["half_at_one_half_at_one_half"]
    right, halved = (1.0 + 0.5) / 2, (1.0 / 2 + 0.5) / (1 / 2 + 1)
    y, p = np.zeros(100), np.repeat([1.0, 0.5], 50)
    assert cal.smooth_ece(y, p, sigma=case["sigma"]) == pytest.approx(right, abs=1e-12)
    assert case["smECE_sigma"] == pytest.approx(halved, abs=0.005)


def interior_sample(case):
    """The sample that tests/reference/smooth_peers.py hands to the peers."""
    rng = np.random.default_rng(case["seed"])
    p = 0.25 + 0.5 * rng.random(case["n"])
    return (rng.random(case["n"]) < p**1.5).astype(int), p


def test_tables_give_what_rows_give():
    y, p = sample("skewed", 5000)
    data = cal.Binary(y, p)
    error = cal.smooth_ece(data)
    assert cal.smooth_ece(cal.BinTable.of(data, cal.table.Distinct())) == pytest.approx(error, abs=1e-12)
    assert cal.smooth_ece(cal.BinTable.of(data, cal.table.HybridGrid())) == pytest.approx(error, abs=1e-7)


def test_a_table_of_bins_is_refused():
    table = cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.EqualWidth(2))
    with pytest.raises(ValueError, match="needs a fine table"):
        cal.smooth_ece(table)


rows = st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1), st.integers(0, 3)), min_size=1, max_size=30).filter(
    lambda rows: any(weight for _, _, weight in rows)
)


@pytest.mark.no_cover
@settings(max_examples=25, deadline=None)
@given(rows=rows, seed=st.integers(0, 99))
def test_order_does_not_matter_and_a_weight_of_two_is_a_row_twice(rows, seed):
    y, p, weight = (np.array(column) for column in zip(*rows, strict=True))
    order = np.random.default_rng(seed).permutation(len(y))
    error = cal.smooth_ece(cal.Binary(y, p, weight=weight))
    assert 0 <= error <= 1
    assert cal.smooth_ece(cal.Binary(y[order], p[order], weight=weight[order])) == pytest.approx(error, abs=1e-9)
    assert cal.smooth_ece(np.repeat(y, weight), np.repeat(p, weight)) == pytest.approx(error, abs=1e-9)
    mirrored = cal.smooth_ece(cal.Binary(1 - y, 1 - p, weight=weight))
    assert mirrored == pytest.approx(error, abs=1e-6)


@pytest.mark.no_cover
@settings(max_examples=25, deadline=None)
@given(rows=rows)
def test_a_wider_kernel_never_finds_a_larger_error(rows):
    y, p, _ = zip(*rows, strict=True)
    errors = [cal.smooth_ece(y, p, sigma=sigma).value for sigma in (0.002, 0.01, 0.05, 0.2, 1.0)]
    assert np.all(np.diff(errors) <= 1e-6)


def test_groups_of_rows_that_match_their_score_have_no_error():
    assert cal.smooth_ece([0, 1, 0, 0, 0, 1], [0.5, 0.5, 0.25, 0.25, 0.25, 0.25]) == pytest.approx(0, abs=1e-12)
    assert cal.smooth_ece([0, 1], [0.0, 1.0]) == 0


def test_an_error_everywhere_alike_is_found_whatever_the_scores():
    rng = np.random.default_rng(3)
    n = 200_000
    p = 0.1 + 0.7 * rng.random(n)
    assert cal.smooth_ece(rng.random(n) < p + 0.1, p) == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_of_one_outcome(n):
    error = cal.smooth_ece([0] * n, np.full(n, 0.25))
    assert error == pytest.approx(0.25, abs=1e-9)
    assert error.n == n


def test_single_precision_scores_are_summed_in_double():
    y, p = sample("uniform", 1000)
    single = p.astype(np.float32)
    assert cal.smooth_ece(y, single) == pytest.approx(cal.smooth_ece(y, single.astype(float)), abs=1e-14)


def test_positive_unlabeled_rows_and_their_tables_agree():
    rng = np.random.default_rng(4)
    everybody = rng.random(4000)
    positive = everybody[rng.random(4000) < everybody]
    data = cal.PositiveUnlabeled(positive, everybody, prior=0.5)
    error = cal.smooth_ece(data)
    assert error < 0.02
    assert cal.smooth_ece(cal.BinTable.of(data, cal.table.Distinct())) == pytest.approx(error, abs=1e-9)
    assert cal.smooth_ece(cal.PositiveUnlabeled(positive, everybody, prior=0.3)) > 0.1


@pytest.mark.parametrize("sigma", [0, -1, np.nan, np.inf])
def test_a_width_must_be_positive(sigma):
    with pytest.raises(ValueError, match="sigma must be a positive number"):
        cal.smooth_ece([0, 1], [0.2, 0.7], sigma=sigma)


def test_other_tasks_are_refused():
    with pytest.raises(ValueError, match="needs probabilities, got Gaussian"):
        cal.smooth_ece(cal.Gaussian([1.0], mean=[1.2], std=[0.3]))
    with pytest.raises(cal.InvalidPredictions, match="Choose what to measure"):
        cal.smooth_ece(cal.Multiclass([0, 1], [[0.8, 0.2], [0.3, 0.7]]))
    with pytest.raises(cal.InvalidPredictions, match="y_prob must lie in"):
        cal.smooth_ece([0, 1], [0.2, 1.7])
    with pytest.raises(ValueError, match="holds predicted spreads"):
        cal.smooth_ece(cal.BinTable.of(cal.Gaussian([1.0], mean=[1.2], std=[3.0]), cal.table.Distinct()))


def test_the_fixed_point_of_known_functions():
    assert fixed_point(lambda x: 0.0 * x) == 0
    assert fixed_point(lambda x: 1.0 + 0 * x) == 1
    assert fixed_point(lambda x: np.cos(x) if x < 1 else 0.5) == pytest.approx(0.7390851332151607, abs=1e-12)
    assert fixed_point(lambda x: 0.001 / np.sqrt(x + 1e-12)) == pytest.approx(0.01, rel=1e-6)
