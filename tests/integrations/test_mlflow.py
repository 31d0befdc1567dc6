"""Reports are logged to MLflow with their numbers and their page."""

import pytest

import calibrant as cal
from calibrant.integrations.mlflow import log_report, report_metrics


@pytest.fixture(scope="module")
def report(rows):
    return cal.report(cal.Binary(*rows), title="Logged")


@pytest.mark.filterwarnings("ignore")  # of MLflow's own
def test_a_report_is_logged_with_its_numbers_and_its_page(report, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions want a database unless told
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    mlflow = pytest.importorskip("mlflow")
    with mlflow.start_run(experiment_id=mlflow.create_experiment("calibration")) as run:
        logged = log_report(report)
    stored = mlflow.get_run(run.info.run_id)
    assert stored.data.metrics == pytest.approx(logged)
    assert stored.data.tags["calibration.verdict"] == str(report.verdict)
    assert report.headline.value in logged.values()
    names = {path.name for path in tmp_path.rglob("report.*")}
    assert names == {"report.json", "report.md", "report.html"}


def test_measures_of_one_name_keep_apart(report):
    names = report_metrics(report, prefix="m")
    assert names["m.rows"] == 3000
    assert len(names) > len(report.measures)
