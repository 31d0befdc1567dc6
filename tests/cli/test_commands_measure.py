"""`calibrant measure`, for every task.

`calibrant compare`, for every task.
"""

import json

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from tests.cli.tasks import LEVELS, MODELS, TASKS, frame

FRAME = frame()


def headline(invoke, options, *more):
    code, out, err = invoke("measure all.parquet", options, "--json", *more)
    assert code == 0, err
    return json.loads(out)


@pytest.mark.no_cover
@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_an_error_with_an_interval(invoke, task):
    first = headline(invoke, TASKS[task])[0]
    assert first["name"].startswith("Calibration error (")
    assert 0 <= first["interval"]["low"] <= first["interval"]["high"]


@pytest.mark.no_cover
def test_the_numbers_are_those_of_the_library(invoke):
    draws = FRAME[[f"ma_{k}" for k in range(6)]].to_numpy()
    quantiles = FRAME[[f"qa_{level}" for level in LEVELS]].to_numpy()
    expected = {
        "members": cal.interval_error(cal.Samples(FRAME["outcome"], draws)),
        "quantiles by pattern": cal.interval_error(cal.Quantiles(FRAME["outcome"], LEVELS, quantiles)),
        "spread": cal.interval_error(cal.Gaussian(FRAME["outcome"], FRAME["mean"], FRAME["std"])),
    }
    for task, value in expected.items():
        assert headline(invoke, TASKS[task])[0]["value"] == pytest.approx(float(value), rel=1e-9), task


def test_classes_are_told_by_what_their_columns_are_called_not_by_their_order(invoke):
    by_pattern = {one["name"]: one["value"] for one in headline(invoke, TASKS["classes by pattern"])}
    by_number = {one["name"]: one["value"] for one in headline(invoke, TASKS["classes by name"])}
    assert by_pattern == pytest.approx(by_number)
    sure = cal.Multiclass(FRAME["number"], FRAME[["n_0", "n_1", "n_2"]].to_numpy())
    assert by_number["Brier score"] == pytest.approx(float(cal.brier(sure)))


@pytest.mark.no_cover
def test_weights_of_unlabeled_rows_count(invoke):
    known = (FRAME["known"] == "yes").to_numpy()
    weight = FRAME["w"].to_numpy()
    data = cal.PositiveUnlabeled(
        FRAME["s"][known], FRAME["s"][~known], prior=0.5, weight=np.concatenate([weight[known], weight[~known]])
    )
    expected = float(cal.ece(data, bins=cal.pu.PaperBins()))
    assert headline(invoke, TASKS["unlabeled"], "--weight w")[0]["value"] == pytest.approx(expected)
    assert headline(invoke, TASKS["unlabeled"])[0]["value"] != pytest.approx(expected)


def test_a_single_sample_is_all_of_its_rows(invoke):
    known = (FRAME["known"] == "yes").to_numpy()
    sides = (FRAME["s"][known], FRAME["s"][~known])
    expected = {
        task: float(cal.ece(cal.PositiveUnlabeled(*sides, prior=0.5, scenario=scenario), bins=cal.pu.PaperBins()))
        for task, scenario in (("unlabeled", "case-control"), ("single sample", "single-sample"))
    }
    assert expected["unlabeled"] != pytest.approx(expected["single sample"])
    for task, value in expected.items():
        assert headline(invoke, TASKS[task])[0]["value"] == pytest.approx(value)


@pytest.mark.no_cover
@pytest.mark.parametrize("task", ["event", "classes by pattern", "spread", "quantiles", "members"])
def test_groups_of_every_labelled_task_have_a_line(invoke, task):
    assert [one.get("group") for one in headline(invoke, TASKS[task], "--by g")][-2:] == ["even", "odd"]


BAD = {
    "two kinds": ("--truth y --prob p --mean mean --std std", "Give one kind of predictions"),
    "no mean": ("--truth y --std std", "--std needs --mean"),
    "unlabeled classes": ("--truth known --prob n_0 --prob n_1 --labelled yes --prior 0.5", "--labelled is for"),
    "unlabeled groups": (f"{TASKS['unlabeled']} --by g", "measure each with its own --prior"),
    "no such pattern": ("--truth outcome --members none_*", "No column fits the pattern --members 'none_*'"),
    "one member": ("--truth outcome --members ma_0", "--members needs at least two columns"),
    "levels are words": ("--truth animal --quantiles a_*", "--quantiles takes LEVEL=COLUMN"),
    "crossing": (
        "--truth outcome --quantiles 0.1=qa_0.9 --quantiles 0.9=qa_0.1",
        "Column 'qa_0.1' (--quantiles) is below column 'qa_0.9', a quantile of a lower level, in 900 of 900 rows",
    ),
    "members of words": ("--truth outcome --members ma_* --members animal", "--members must hold numbers"),
    "too few classes": ("--truth animal --prob b_c* --prob b_d*", "--prob does not sum to 1"),
    "no class": ("--truth animal --prob a_cat --prob a_dog --prob a_eel", 'say --prob "a_*"'),
    "percent of forecasts": ("--truth outcome --mean mean --std std --percent", "--percent is for probabilities"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_meant_says_what_to_use(invoke, options, message):
    code, _, err = invoke("measure all.parquet", options)
    assert (code, message in " ".join(err.split())) == (2, True), err


def test_words_of_the_event_are_an_ordinary_event(invoke, tmp_path):
    rng = np.random.default_rng(5)
    p = rng.random(2000)
    fraud = rng.random(2000) < p
    days = np.datetime64("2026-01-01") + np.arange(2000) % 59
    log = pd.DataFrame({"label": np.where(fraud, "fraud", "legit"), "score": 100 * p, "ts": days})
    log.to_csv(tmp_path / "log.csv", index=False)
    code, _, err = invoke("measure log.csv --truth label --prob score --percent")
    assert (code, "say which one is the event, --positive VALUE" in " ".join(err.split())) == (2, True)
    options = "--truth label --prob score --percent --positive fraud --by month(ts) --json"
    code, out, err = invoke("measure log.csv", options)
    assert code == 0, err
    found = json.loads(out)
    assert found[0]["value"] == pytest.approx(float(cal.averaged_error(fraud, p)), abs=1e-9)
    assert found[0]["interval"]["low"] == 0  # the file is calibrated
    assert [one["group"] for one in found if "group" in one] == ["1", "2"]


@pytest.mark.no_cover
def test_a_wrong_row_is_named_as_the_file_has_it_also_after_a_condition(invoke, tmp_path):
    log = FRAME[["y", "p"]].assign(day=np.repeat([1, 2], 450))
    log.loc[600, "p"] = 1.5
    log.loc[700, "p"] = None
    log.to_csv(tmp_path / "log.csv", index=False)
    code, _, err = invoke("measure log.csv --truth y --prob p --where day=2 --drop-missing")
    assert code == 2
    said = "Column 'p' (--prob) is outside [0, 1] in 1 of 449 rows (first: row 601 of 'log.csv')"
    assert said in " ".join(err.split())


ESTIMATORS = {"spread": "ence", "members": "ence", "quantiles": "quantile_error", "classes": "variational_error"}


@pytest.mark.no_cover
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
