"""What the columns of a table mean, for tasks whose rows have an outcome each, and how tasks are told apart."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import calibrant as cal
from calibrant.numerics.weights import Mass
from calibrant.table.task import Labelled, Spread, task_of
from calibrant.table.unlabeled import Unlabeled

P = [0.1, 0.2, 0.7, 0.8, 0.9]
Y = [0, 1, 0, 1, 1]
GAUSSIAN = cal.Gaussian([0.3, -1.2], mean=[0.0, 0.0], std=[0.5, 1.0])


@pytest.mark.parametrize(
    ("data", "task"),
    [
        (cal.Binary(Y, P), Labelled()),
        (cal.Quantiles([1.0, 3.0], [0.25, 0.75], [[1, 2], [1, 2]]), Labelled()),
        (GAUSSIAN, Spread()),
        (cal.Samples([2.0, 1.0], [[0.0, 2.0], [1.0, 3.0]]), Spread()),
        (cal.PositiveUnlabeled([0.8], P, prior=0.4), Unlabeled(0.4)),
        (cal.PositiveUnlabeled([0.8], P, prior=0.4, scenario="single-sample"), Unlabeled(0.4, None, nested=True)),
        (
            cal.PositiveUnlabeled([0.8], P, label_frequency=0.5, scenario="single-sample"),
            Unlabeled(None, 0.5, nested=True),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_task_of_predictions_and_of_their_table(data, task):
    assert task_of(data) == task
    table = cal.BinTable.of(data, cal.table.Distinct())
    assert table.task == task
    assert task_of(table) is table.task


def test_tasks_have_names_and_only_differences_have_rounding():
    tasks = [Labelled(), Spread(), Unlabeled(0.5)]
    assert [task.name for task in tasks] == ["labelled", "spread", "positive-unlabeled"]
    assert [task.rounding for task in tasks] == [0.0, 0.0, 1e-12]
    assert Labelled() != Spread()
    for task in tasks[:2]:
        with pytest.raises(FrozenInstanceError):
            task.name = "other"


@pytest.mark.parametrize("task", [Labelled(), Spread()])
def test_outcomes_are_taken_as_they_are(task):
    table = cal.BinTable.of(cal.Binary(Y, P), cal.EqualMass(2))
    assert task.observed_scale(3.0, 7.0) == 1
    assert task.mass_variance(Mass(6.0, 12.0), Mass(1.0, 1.0)) == pytest.approx(1 / 3)
    assert task.most_bins(table) == 5
    assert task.of_part(table, table.take([0])) is task
    np.testing.assert_allclose(task.mean_score(table), [0.15, 0.8])
    np.testing.assert_allclose(task.shared_mass(table), [0.2, 1.7])
    assert task.warn(table) is None


@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 2.0, 1.0, 3.0, 5.0]])
def test_the_variance_of_a_gap_is_that_of_the_mean_outcome_times_the_squared_share(weight):
    p, y = np.array([*P, 0.3]), np.array([*Y, 1])
    table = cal.BinTable.of(cal.Binary(y, p, weight=weight), cal.Edges([0, 0.5, 1]))
    w = np.ones(6) if weight is None else np.array(weight)
    for b, inside in enumerate((p <= 0.5, p > 0.5)):
        mean = np.average(y[inside], weights=w[inside])
        rows = w[inside].sum() ** 2 / (w[inside] ** 2).sum()
        spread = np.average((y[inside] - mean) ** 2, weights=w[inside])
        expected = spread / (rows - 1) * (w[inside].sum() / w.sum()) ** 2
        assert table.task.gap_variance(table)[b] == pytest.approx(expected, rel=1e-12)
        if weight is None:
            assert expected == pytest.approx(np.var(y[inside], ddof=1) / 3 / 4)


def test_one_row_or_none_does_not_tell_the_variance():
    table = cal.BinTable.of(cal.Binary([0, 1, 1], [0.1, 0.9, 0.8]), cal.EqualWidth(3))
    assert np.isnan(table.task.gap_variance(table)).tolist() == [True, True, False]
    table = cal.BinTable.of(GAUSSIAN, cal.table.Distinct())
    assert np.isnan(table.task.gap_variance(table)).all()
