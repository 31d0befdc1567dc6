"""Bad input is refused with the argument, the rule, the count and the first row; good input comes in any container."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import calibrant as cal
from calibrant import InvalidPredictions
from calibrant.data import validation
from calibrant.data.validation import class_probabilities, label_shares, of_logits

CONTAINERS = {
    "list": list,
    "numpy": np.asarray,
    "numpy column": lambda values: np.asarray(values)[:, None],
    "pandas": pd.Series,
    "polars": pl.Series,
    "pyarrow": pa.array,
    "pyarrow chunked": lambda values: pa.chunked_array([values[:2], values[2:]]),
    "torch": torch.tensor,
    "torch with gradient": lambda values: torch.tensor(values, dtype=torch.float64, requires_grad=True),
    "objects": lambda values: np.array(values, dtype=object),
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_every_container_gives_the_same_number(container):
    y, p = [0.0, 1.0, 1.0, 0.0], [0.125, 0.5, 0.75, 0.25]
    expected = cal.ece(y, p)
    assert cal.ece(container(y), container(p)) == expected
    assert len(cal.Binary(container(y), container(p), weight=container(p), group=["a", "a", "b", "b"])) == 4


@pytest.mark.parametrize("labels", [[False, True], [0, 1], [0.0, 1.0], np.array([0, 1], np.uint8)])
def test_labels_may_be_bool_int_or_float(labels):
    np.testing.assert_array_equal(cal.Binary(labels, [0.1, 0.9]).y_true, [0, 1])


def test_bfloat16_and_half_tensors_are_understood():
    for dtype in (torch.bfloat16, torch.float16):
        assert cal.ece([0, 1], torch.tensor([0.25, 0.75], dtype=dtype)) == 0.25


BAD = {
    "nan": (
        [0, 1, 1],
        [0.1, np.nan, 0.3],
        r"y_prob must be finite, but 1 of 3 rows does not \(first: y_prob\[1\] = nan\)",
    ),
    "infinity": ([0, 1], [0.1, np.inf], r"y_prob must be finite, but 1 of 2 .*y_prob\[1\] = inf"),
    "above one": (
        [0, 1, 1],
        [0.1, 1.7, 2],
        r"y_prob must lie in \[0, 1\], but 2 of 3 rows do not \(first: y_prob\[1\] = 1.7",
    ),
    "below zero": ([0, 1], [-0.1, 0.3], r"y_prob must lie in \[0, 1\], but 1 of 2 .*y_prob\[0\] = -0.1"),
    "label two": ([0, 2, 1], [0.1, 0.2, 0.3], r"y_true must be 0 or 1, but 1 of 3 .*y_true\[1\] = 2"),
    "label half": ([0, 0.5], [0.1, 0.2], r"y_true must be 0 or 1, but 1 of 2 .*y_true\[1\] = 0.5"),
    "label nan": ([0, np.nan], [0.1, 0.2], r"y_true must be 0 or 1"),
    "label missing": ([0, None], [0.1, 0.2], r"y_true must not be missing, but 1 of 2"),
    "text label": (["no", "yes"], [0.1, 0.2], r"y_true must be 0 or 1, got .*Multiclass"),
    "text score": ([0, 1], ["a", "b"], r"y_prob must hold numbers"),
    "lengths": ([0, 1], [0.1, 0.2, 0.3], r"y_true has 2 rows, expected 3"),
    "empty": ([], [], r"y_prob is empty"),
    "two columns": (
        [0, 1],
        [[0.1, 0.9], [0.2, 0.8]],
        r"y_prob must have one dimension, got shape \(2, 2\).*Multiclass",
    ),
    "ragged": ([0, 1], [[0.1], [0.2, 0.3]], r"y_prob must be a rectangular array"),
}


@pytest.mark.parametrize(("y", "p", "message"), BAD.values(), ids=BAD)
def test_bad_binary_input_is_named(y, p, message):
    with pytest.raises(InvalidPredictions, match=message):
        cal.Binary(y, p)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, -1], r"weight must not be negative, but 1 of 2 rows does not \(first: weight\[1\] = -1\)"),
        ([0, 0], r"weight must not be all zero"),
        ([1, np.nan], r"weight must be finite"),
        ([1], r"weight has 1 rows, expected 2"),
    ],
)
def test_bad_weights_are_named(weight, message):
    with pytest.raises(InvalidPredictions, match=message):
        cal.Binary([0, 1], [0.2, 0.3], weight=weight)


def test_groups_must_match_in_length():
    with pytest.raises(InvalidPredictions, match="group has 3 rows, expected 2"):
        cal.Binary([0, 1], [0.2, 0.3], group=["a", "b", "c"])


def test_rounding_beyond_one_is_refused_with_a_hint_and_clipped_on_request():
    p = np.array([0.5, 1 + 2e-16 * 2])
    with pytest.raises(InvalidPredictions, match="pass clip=True"):
        cal.Binary([0, 1], p)
    assert cal.Binary([0, 1], p, clip=True).y_prob.max() == 1.0
    with pytest.raises(InvalidPredictions, match=r"must lie in \[0, 1\]"):
        cal.Binary([0, 1], [0.5, 1.01], clip=True)


def test_clipping_leaves_the_users_array_alone():
    p = np.array([0.5, 1 + 1e-9])
    cal.Binary([0, 1], p, clip=True)
    assert p[1] > 1


def test_columns_are_not_copied_without_need():
    p = np.array([0.25, 0.75])
    assert np.shares_memory(cal.Binary.borrowing([0, 1], p).y_prob, p)
    p.flags.writeable = False
    assert np.shares_memory(cal.Binary([0, 1], p).y_prob, p)
    of_arrow = pa.array([0.25, 0.75])
    assert np.shares_memory(cal.Binary([0, 1], of_arrow).y_prob, of_arrow.to_numpy())


def test_multiclass_refuses_what_is_no_distribution():
    with pytest.raises(InvalidPredictions, match=r"rows that sum to 1, but 1 of 2 .*y_prob\[1\]"):
        cal.Multiclass([0, 1], [[0.5, 0.5], [0.5, 0.6]])
    with pytest.raises(InvalidPredictions, match=r"must lie in \[0, 1\], but 1 of 2"):
        cal.Multiclass([0, 1], [[0.5, 0.5], [1.5, -0.5]])
    with pytest.raises(InvalidPredictions, match="one column per class"):
        cal.Multiclass([0, 1], [[0.5], [0.5]])
    with pytest.raises(InvalidPredictions, match="must be finite"):
        cal.Multiclass([0, 1], [[0.5, 0.5], [np.nan, 0.5]])
    with pytest.raises(InvalidPredictions, match=r"one of the 2 classes 0, 1, but 1 of 2 .*y_true\[1\] = .*2"):
        cal.Multiclass([0, 2], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(InvalidPredictions, match="y_true has 3 rows, expected 2"):
        cal.Multiclass([0, 1, 1], [[0.5, 0.5], [0.5, 0.5]])


def test_multiclass_labels_may_be_text_and_name_the_columns():
    probs = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]
    given = cal.Multiclass(["b", "a"], probs, classes=["b", "a", "c"])
    named = cal.Multiclass(["b", "a"], pd.DataFrame(probs, columns=["b", "a", "c"]))
    assert given.classes == named.classes == ("b", "a", "c")
    np.testing.assert_array_equal(named.y_true, [0, 1])
    with pytest.raises(InvalidPredictions, match=r"2 different labels for 3 columns: pass classes"):
        cal.Multiclass(["b", "a"], probs)
    with pytest.raises(InvalidPredictions, match="name each of the 3 columns"):
        cal.Multiclass(["b", "a"], probs, classes=["a", "b"])


def test_regression_tasks_refuse_bad_columns():
    with pytest.raises(
        InvalidPredictions, match=r"std must be positive, but 1 of 2 rows does not \(first: std\[1\] = 0\)"
    ):
        cal.Gaussian([1, 2], [1, 2], [1, 0])
    with pytest.raises(InvalidPredictions, match=r"mean has shape \(3,\), expected \(2,\)"):
        cal.Gaussian([1, 2], [1, 2, 3], [1, 1])
    with pytest.raises(InvalidPredictions, match=r"levels must lie in \(0, 1\)"):
        cal.Quantiles([1.0], [0.0, 0.5], [[1, 2]])
    with pytest.raises(InvalidPredictions, match="levels must rise"):
        cal.Quantiles([1.0], [0.5, 0.5], [[1, 2]])
    with pytest.raises(InvalidPredictions, match=r"must not cross .* 1 of 2 .*sort=True"):
        cal.Quantiles([1.0, 1.0], [0.1, 0.9], [[1, 2], [3, 2]])
    assert cal.Quantiles([1.0], [0.1, 0.9], [[3, 2]], sort=True).values.tolist() == [[2, 3]]
    with pytest.raises(InvalidPredictions, match="at least two columns"):
        cal.Samples([1.0], [[1.0]])
    with pytest.raises(InvalidPredictions, match="draws has 2 rows, expected 1"):
        cal.Samples([1.0], [[1.0, 2.0], [1.0, 2.0]])


def test_positive_unlabeled_needs_a_prior_inside_zero_and_one():
    for prior in (0.0, 1.0, -1, float("nan")):
        with pytest.raises(InvalidPredictions, match=r"prior must lie in \(0, 1\)"):
            cal.PositiveUnlabeled([0.5], [0.5], prior=prior)
    with pytest.raises(InvalidPredictions, match="positive is empty"):
        cal.PositiveUnlabeled([], [0.5], prior=0.5)
    with pytest.raises(InvalidPredictions, match=r"unlabeled must lie in \[0, 1\]"):
        cal.PositiveUnlabeled([0.5], [1.5], prior=0.5)


def test_half_given_arguments_are_a_type_error():
    with pytest.raises(TypeError, match="both y_true and y_prob"):
        cal.ece([0, 1])
    with pytest.raises(TypeError, match="not both"):
        cal.ece(cal.Binary([0, 1], [0.1, 0.2]), [0.1, 0.2])


def test_rows_may_miss_a_sum_of_one_by_rounding():
    nearly = np.array([[0.5, 0.5009]])
    assert class_probabilities("p", nearly, clip=False) is nearly
    with pytest.raises(cal.InvalidPredictions, match=r"p must have rows that sum to 1, but 1 of 1 .*logits"):
        class_probabilities("p", [[0.5, 0.502]], clip=False)
    np.testing.assert_array_equal(class_probabilities("p", [[1 + 1e-9, 0.0]], clip=True), [[1.0, 0.0]])
    with pytest.raises(cal.InvalidPredictions, match=r"p must lie in \[0, 1\], but 1 of 1 .*clip=True"):
        class_probabilities("p", [[1 + 1e-9, 0.0]], clip=False)
    with pytest.raises(cal.InvalidPredictions, match=r"p must lie in \[0, 1\], but 1 of 1"):
        class_probabilities("p", [[1.5, -0.5]], clip=False)


def test_logits_are_normalised_without_overflow():
    np.testing.assert_allclose(of_logits("z", [[1000.0, 1000.0], [-1e5, 0.0]]), [[0.5, 0.5], [0.0, 1.0]])
    with pytest.raises(cal.InvalidPredictions, match="z needs one column per class"):
        of_logits("z", [[1.0], [2.0]])


def test_outcomes_are_one_class_or_probabilities_of_classes():
    np.testing.assert_array_equal(label_shares(np.array([[1, 0], [0, 1]])), np.eye(2))
    np.testing.assert_array_equal(label_shares(np.array([[0.25, 0.75]])), [[0.25, 0.75]])
    for wrong in ([[1, 1]], [[0, 0]], [[2, -1]]):
        with pytest.raises(cal.InvalidPredictions, match=r"single 1 per row, or probabilities .*, but 1 of 1"):
            label_shares(np.array(wrong))


def test_a_seed_is_a_whole_number():
    with pytest.raises(ValueError, match=r"^seed must be a whole number of at least 0, got 1\.5\.$"):
        validation.seed(1.5)
