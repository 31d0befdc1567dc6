"""`calibrant test`, for every task."""

import json

import pytest

import calibrant as cal
from tests.cli.tasks import TASKS, frame

FRAME = frame()


@pytest.mark.no_cover
@pytest.mark.parametrize("task", [task for task in TASKS if task not in ("unlabeled", "single sample")])
def test_predictions_that_are_too_sure_are_rejected(invoke, task):
    code, out, err = invoke("test all.parquet", TASKS[task], "--fail")
    assert code == 1, err
    assert "calibration is rejected" in out
    assert "p = 0.00" not in out


@pytest.mark.parametrize("task", ["unlabeled", "single sample"])
def test_unlabeled_rows_are_tested(invoke, task):
    code, out, err = invoke("test all.parquet", TASKS[task], "--json")
    assert code == 0, err
    assert json.loads(out)["method"].startswith("PU score test")


def test_of_several_classes_the_whole_vector_decides_and_each_class_follows(invoke):
    code, out, err = invoke("test all.parquet", TASKS["classes by name"], "--json")
    assert code == 0, err
    found = json.loads(out)
    data = cal.Multiclass(FRAME["number"], FRAME[["n_0", "n_1", "n_2"]].to_numpy())
    assert found["p_value"] == cal.calibration_test(data).p_value
    assert found["top_label"]["p_value"] == cal.calibration_test(data.top_label()).p_value
    assert {one["label"] for one in found["classes"]} == {"0", "1", "2"}
    adjusted = [one["adjusted"] for one in found["classes"]]
    assert adjusted == sorted(adjusted)
    _, text, _ = invoke("test all.parquet", TASKS["classes by pattern"])
    assert all(word in text for word in ("Top label: p", "cat", "dog", "eel", "too"))
