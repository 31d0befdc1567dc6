"""`calibrant compare`, for every task."""

import json

import pytest

from tests.cli.commands.tasks import MODELS, frame

ESTIMATORS = {"spread": "ence", "members": "ence", "quantiles": "quantile_error", "classes": "variational_error"}


@pytest.mark.parametrize("task", MODELS)
def test_two_models_of_every_task_are_compared(invoke, task):
    code, out, err = invoke("compare all.parquet", MODELS[task], "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["estimator"] == ESTIMATORS.get(task.split()[0], "calibration_error")
    assert found["interval"]["low"] < found["difference"] < found["interval"]["high"]
    if task != "unlabeled":
        assert found["difference"] > 0  # the first is too sure of itself, the second is calibrated
    if task not in ("event", "unlabeled"):  # whose intervals are wide at this number of rows
        assert found["interval"]["low"] > 0


@pytest.mark.no_cover
def test_the_answer_is_in_words_and_names_the_models(invoke):
    code, out, err = invoke("compare all.parquet", MODELS["members"])
    assert code == 0, err
    assert "for ma_*, " in out
    assert out.endswith("mb_* is better calibrated.\n")
    assert "Difference of the true errors" in out
    assert "Difference less its bias" in invoke("compare all.parquet", MODELS["quantiles"])[1]
    assert "<" not in out.replace("p < 0.001", "")


@pytest.mark.no_cover
def test_missing_rows_of_either_model_are_left_out_of_both(invoke, tmp_path):
    holes = frame()
    holes.loc[:9, "p"] = None
    holes.loc[5:19, "q"] = None
    holes.to_csv(tmp_path / "holes.csv", index=False)
    code, _, err = invoke("compare holes.csv --truth y --prob p --prob q")
    assert code == 2
    assert "Column 'p' (--prob) is missing in 10 of 900 rows" in " ".join(err.split())
    code, _, err = invoke("compare holes.csv --truth y --prob p --prob q --drop-missing")
    assert code == 0
    assert "Left out 20 of 900 rows with missing values" in err


@pytest.mark.no_cover
def test_an_invalid_row_of_the_second_model_is_named(invoke, tmp_path):
    wrong = frame()
    wrong.loc[7, "q"] = 1.5
    wrong.to_csv(tmp_path / "wrong.csv", index=False)
    code, _, err = invoke("compare wrong.csv --truth y --prob p --prob q")
    assert code == 2
    assert "Column 'q' (--prob) is outside [0, 1] in 1 of 900 rows (first: row 8 of 'wrong.csv')" in " ".join(
        err.split()
    )


@pytest.mark.parametrize(
    "options",
    [
        "--truth y --prob p",
        "--truth y --prob p --prob q --prob s",
        "--truth outcome --mean mean --std std",
        "--truth outcome --mean mean --mean mean --std std",
        "--truth outcome --members ma_*",
        "--truth outcome --members ma_* --prob p",
        "--truth y",
    ],
)
def test_anything_but_two_models_shows_how(invoke, options):
    code, _, err = invoke("compare all.parquet", options)
    assert (code, "Name the predictions of two models" in err) == (2, True)


def test_models_of_different_classes_cannot_be_compared(invoke):
    code, _, err = invoke("compare all.parquet --truth animal --prob b_* --prob p")
    assert code == 2
    assert "Traceback" not in err
