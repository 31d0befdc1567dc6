"""`calibrant recalibrate` and `calibrant apply`, for every task."""

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from tests.cli.tasks import LEVELS, TASKS, frame

AUTOMATIC = {
    "event": cal.recalibrate.Auto,
    "classes by pattern": cal.recalibrate.Auto,
    "classes by name": cal.recalibrate.Auto,
    "unlabeled": cal.pu.PUAverage,
    "single sample": cal.pu.PUAverage,
}
NAMED = {
    "event": "beta",
    "classes by pattern": "VectorScaling",
    "classes by name": "temperature",
    "spread": "stdscaling",
    "quantiles": "conformal",
    "quantiles by pattern": "Conformal",
    "members": "VarianceIsotonic",
    "unlabeled": "PUIsotonic",
    "single sample": "PUPlatt",
}


@pytest.mark.no_cover
@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_map_to_use_without_further_thought(invoke, tmp_path, task):
    code, out, err = invoke("recalibrate all.parquet", TASKS[task])
    assert code == 0, err
    fitted = cal.recalibrate.load(tmp_path / "map.json")
    assert type(fitted) is AUTOMATIC.get(task, cal.recalibrate.AutoForecast)
    assert ("improvement" in out) == hasattr(fitted, "results_")
    assert " loss " not in out.replace("log loss ", "").replace("pinball loss ", "")


@pytest.mark.no_cover
@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_maps_by_name(invoke, tmp_path, task):
    code, _, err = invoke("recalibrate all.parquet", TASKS[task], "--method", NAMED[task])
    assert code == 0, err
    assert type(cal.recalibrate.load(tmp_path / "map.json")).__name__.lower() == NAMED[task].lower()


BAD = {
    "binary map of classes": ("classes by pattern", "Platt", "Platt is a map of binary probabilities"),
    "spread of quantiles": (
        "quantiles",
        "StdScaling",
        "one of AutoForecast, Conformal, which change predicted quantiles",
    ),
    "ordinary map of unlabeled rows": ("unlabeled", "Isotonic", "one of PUAverage, PUBeta"),
    "forecast map of an event": ("event", "Conformal", "Conformal is a map of predicted means"),
    "map without columns": ("members", "CdfIsotonic", "which change the members of an ensemble"),
}


@pytest.mark.parametrize(("task", "method", "message"), BAD.values(), ids=BAD)
def test_maps_of_other_tasks_are_refused_with_those_of_this_one(invoke, task, method, message):
    code, _, err = invoke("recalibrate all.parquet", TASKS[task], "--method", method)
    assert (code, message in " ".join(err.split())) == (2, True), err


def test_what_a_map_warns_of_is_a_sentence(invoke):
    code, _, err = invoke("recalibrate all.parquet --truth known --prob q --labelled yes --prior 0.5")
    assert code == 0, err
    assert "Traceback" not in err
    assert "warnings.warn" not in err


FRAME = frame()
MEMBERS = [f"ma_{k}" for k in range(6)]
QUANTILES = [f"qa_{level}" for level in LEVELS]
#: The options of predictions alone, and the columns that are recalibrated.
PREDICTIONS = {
    "event": ("--prob p", ["p"]),
    "classes by pattern": ("--prob a_*", ["a_cat", "a_dog", "a_eel"]),
    "classes by name": ("--prob n_1 --prob n_2 --prob n_0", ["n_0", "n_1", "n_2"]),
    "spread": ("--mean mean --std std", ["mean", "std"]),
    "quantiles": ("--quantiles qa_*", QUANTILES),
    "members": ("--members ma_*", MEMBERS),
    "unlabeled": ("--prob s", ["s"]),
}


def error(task, values):
    """The calibration error of the columns of a task."""
    if task == "event":
        return cal.averaged_error(FRAME["y"], values[:, 0])
    if task.startswith("classes"):
        return cal.brier(cal.Multiclass(FRAME["number"], values))
    if task == "spread":
        return cal.interval_error(cal.Gaussian(FRAME["outcome"], values[:, 0], values[:, 1]))
    if task == "quantiles":
        return cal.interval_error(cal.Quantiles(FRAME["outcome"], LEVELS, values))
    return cal.interval_error(cal.Samples(FRAME["outcome"], values))


@pytest.mark.no_cover
@pytest.mark.parametrize("source", ["all.parquet", "all.csv"])
@pytest.mark.parametrize("task", PREDICTIONS)
def test_recalibrated_columns_are_appended(invoke, tmp_path, task, source):
    options, columns = PREDICTIONS[task]
    assert invoke("recalibrate all.parquet", TASKS[task])[0] == 0
    code, _, err = invoke("apply map.json", source, options, "-o out.csv")
    assert code == 0, err
    made = pd.read_csv(tmp_path / "out.csv")
    new = [f"{name}_recalibrated" for name in columns]
    assert set(made.columns) == {*FRAME.columns, *new}
    np.testing.assert_allclose(made[columns], FRAME[columns])
    if task != "unlabeled":
        assert error(task, made[new].to_numpy()) < error(task, FRAME[columns].to_numpy())
    else:
        assert made[new].stack().between(0, 1).all()


@pytest.mark.no_cover
def test_probabilities_in_percent_stay_in_percent(invoke, tmp_path):
    FRAME.assign(p=100 * FRAME["p"]).to_csv(tmp_path / "percent.csv", index=False)
    assert invoke("recalibrate percent.csv --truth y --prob p --percent --method platt")[0] == 0
    code, _, err = invoke("apply map.json percent.csv --prob p --percent -o out.csv")
    assert code == 0, err
    expected = cal.recalibrate.Platt().fit(FRAME["p"], FRAME["y"]).predict_proba(FRAME["p"])[:, 1]
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv")["p_recalibrated"], 100 * expected, rtol=1e-6)


APPLY_BAD = {
    "forecast map of probabilities": ("spread", "--prob p", "give --mean and --std, or --quantiles, or --members"),
    "map of probabilities of members": ("event", "--members ma_*", "which changes probabilities: give --prob"),
    "quantiles for a spread": ("spread", "--quantiles qa_*", "cannot change these columns"),
    "other classes": ("classes by pattern", "--prob p", "fitted to 3 columns of probabilities, but --prob names 1"),
    "two kinds": ("event", "--prob p --mean mean --std std", "Give either --prob, or"),
    "a pattern in SQL": ("event", "--prob p* --sql", "give --prob once per column"),
    "percent in SQL": ("event", "--prob p --percent --sql", "not --percent"),
}


@pytest.mark.parametrize(("task", "options", "message"), APPLY_BAD.values(), ids=APPLY_BAD)
def test_columns_of_another_task_are_refused(invoke, task, options, message):
    assert invoke("recalibrate all.parquet", TASKS[task])[0] == 0
    code, _, err = invoke("apply map.json all.parquet", options)
    assert (code, message in " ".join(err.split())) == (2, True), err


def test_an_infinite_loss_is_said_to_be_and_the_brier_score_decides(invoke, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.choice([0.2, 0.5, 0.8, 1.0], 300)
    pd.DataFrame({"y": (rng.random(300) < 0.7 * p).astype(int), "p": p}).to_csv(tmp_path / "sure.csv", index=False)
    code, out, err = invoke("recalibrate sure.csv", "--truth y --prob p")
    assert code == 0, err
    assert "Identity()                   log loss inf" in out
    assert "The log loss is infinite where an outcome of predicted probability 0 was observed. By the Brier" in out
    assert "improvement of BayesianAverage() is +0.0" in out
