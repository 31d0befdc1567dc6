"""`calibrant recalibrate`, for every task."""

import pytest

import calibrant as cal
from tests.cli.commands.tasks import TASKS

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
    "binary map of classes": ("classes by pattern", "Platt", "Platt is a map of the probability of one event"),
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
