"""Reports are logged to MLflow with their numbers and their page."""

import sys
from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.integrations.mlflow import evaluation_metric, log_report, log_status, report_metrics


@pytest.fixture(scope="module")
def report(rows):
    return cal.report(cal.Binary(*rows), title="Logged")


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """MLflow that keeps its runs in a folder of the test."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions want a database unless told
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    return pytest.importorskip("mlflow")


@pytest.mark.filterwarnings("ignore")  # of MLflow's own
def test_a_report_is_logged_with_its_numbers_and_its_page(report, tmp_path, mlflow):
    with mlflow.start_run(experiment_id=mlflow.create_experiment("calibration")) as run:
        logged = log_report(report)
    stored = mlflow.get_run(run.info.run_id)
    assert stored.data.metrics == pytest.approx(logged)
    assert stored.data.tags["calibration.verdict"] == str(report.verdict)
    assert report.headline.value in logged.values()
    names = {path.name for path in tmp_path.rglob("report.*")}
    assert names == {"report.json", "report.md", "report.html"}


@pytest.mark.filterwarnings("ignore")  # of MLflow's own
def test_the_status_of_a_monitor_is_logged_by_step(rows, mlflow):
    monitor = cal.Monitor()
    with mlflow.start_run(experiment_id=mlflow.create_experiment("monitor")) as run:
        for day, (y, p) in enumerate(zip(*(np.array_split(part, 3) for part in rows), strict=True)):
            status = monitor.update(y, p, time=day)
            logged = log_status(status, step=day)
    stored = mlflow.get_run(run.info.run_id).data
    assert stored.metrics == pytest.approx(logged)
    assert stored.metrics["monitor/alarm"] == status.alarm
    assert stored.metrics["monitor/gap_low"] < stored.metrics["monitor/gap"] < stored.metrics["monitor/gap_high"]
    assert stored.tags["monitor.status"] == status.sentence


def test_measures_of_one_name_keep_apart(report):
    names = report_metrics(report, prefix="m")
    assert names["m.rows"] == 3000
    assert len(names) > len(report.measures)


@pytest.mark.filterwarnings("ignore")  # of MLflow's own
def test_an_evaluation_has_the_estimate_and_its_interval(rows, mlflow):
    pd = pytest.importorskip("pandas")
    y, p = (part[:400] for part in rows)
    metrics = [evaluation_metric(), evaluation_metric(partial(cal.ece, bins=5), name="ece_5", level=None)]
    with mlflow.start_run(experiment_id=mlflow.create_experiment("evaluation")) as run:
        mlflow.models.evaluate(
            data=pd.DataFrame({"y": y, "p": p}),
            targets="y",
            predictions="p",
            extra_metrics=metrics,
            evaluators="default",
        )
    found = cal.interval(cal.calibration_error, cal.Binary(y, p))
    assert mlflow.get_run(run.info.run_id).data.metrics == {
        "calibration_error/value": pytest.approx(float(found)),
        "calibration_error/low": pytest.approx(found.interval.low),
        "calibration_error/high": pytest.approx(found.interval.high),
        "ece_5/value": pytest.approx(float(cal.ece(y, p, bins=5))),
    }


@pytest.mark.filterwarnings("ignore")
def test_a_matrix_of_probabilities_is_an_event_or_a_top_label(mlflow):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 200)
    c = rng.integers(3, size=200)
    value = evaluation_metric(cal.ece, level=None).eval_fn(P, c).aggregate_results["value"]
    assert value == float(cal.ece(cal.Multiclass(c, P).top_label()))
    two = np.stack([1 - P[:, 0], P[:, 0]], axis=1)
    assert evaluation_metric(cal.ece, level=None).eval_fn(two, c == 0).aggregate_results["value"] == float(
        cal.ece(c == 0, P[:, 0])
    )


def test_without_mlflow_it_says_what_to_install(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    for call in (evaluation_metric, partial(log_report, report)):
        with pytest.raises(ImportError, match=r"calibrant\[mlflow\]"):
            call()
