"""Calibrant inside torch loops, MLflow, scikit-learn and test suites."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.integrations.mlflow import log_report, report_metrics
from calibrant.integrations.torchmetrics import CalibrationError


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    return (rng.random(3000) < 0.5 + 0.6 * (p - 0.5)).astype(int), p


def test_batches_give_the_estimate_of_all_rows(rows):
    y, p = rows
    metric = CalibrationError(partial(cal.ece, bins=cal.EqualMass(10)))
    for start in range(0, 3000, 700):
        metric.update(p[start : start + 700], y[start : start + 700])
    assert metric.compute() == pytest.approx(cal.ece(y, p, bins=cal.EqualMass(10)), abs=2e-4)
    assert metric.compute().n == 3000
    metric.reset()
    assert metric.table().n == 0


def test_tensors_of_class_probabilities_count_by_their_top_label():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    logits = torch.randn(4, 3, 5, 6, requires_grad=True)
    target = torch.randint(0, 3, (4, 5, 6))
    target[0, 0] = -100
    metric = CalibrationError(ignore_index=-100)
    metric.update(logits.softmax(1), target)
    keep = (target != -100).numpy()
    p = np.moveaxis(logits.detach().softmax(1).numpy(), 1, -1)[keep]
    expected = cal.ece(cal.Multiclass(target.numpy()[keep], p).top_label())
    assert metric.compute().n == 4 * 30 - 6
    assert metric.compute() == pytest.approx(expected, abs=1e-3)


def test_two_metrics_merge_into_one_of_all_rows(rows):
    y, p = rows
    whole, left, right = CalibrationError(), CalibrationError(), CalibrationError()
    whole.update(p, y)
    assert left(p[:1000], y[:1000]).n == 1000
    right.update(p[1000:], y[1000:])
    left.merge_state(right)
    assert left.compute() == pytest.approx(whole.compute(), abs=1e-12)


def test_logits_and_wrong_shapes_are_refused():
    with pytest.raises(cal.InvalidPredictions, match=r"\[0, 1\]"):
        CalibrationError().update([3.0, -2.0], [1, 0])
    with pytest.raises(cal.InvalidPredictions, match="shape of target"):
        CalibrationError().update(np.zeros((2, 3)), np.zeros(3))


def test_a_model_that_is_off_fails_and_says_by_how_much(rows):
    y, p = rows
    with pytest.raises(AssertionError, match=r"above 0\.02: <.*at 95%"):
        cal.assert_calibrated(y, p)
    assert cal.assert_calibrated(y, p, below=0.2) == pytest.approx(0.1, abs=0.03)


def test_a_calibrated_model_of_any_size_rarely_fails():
    rng = np.random.default_rng(1)
    failures = 0
    for _ in range(40):
        p = rng.random(300)
        try:
            cal.assert_calibrated(rng.random(300) < p, p, below=0.001)
        except AssertionError:
            failures += 1
    assert failures <= 5  # 2 are expected; 6 or more come once in a hundred such tests


def test_without_level_the_estimate_decides(rows):
    y, p = rows
    with pytest.raises(AssertionError, match="Averaged error"):
        cal.assert_calibrated(y[:100], p[:100], level=None, below=0.001)


def test_all_tasks_can_be_asserted():
    rng = np.random.default_rng(2)
    std = rng.lognormal(0, 0.3, 2000)
    noise = std * rng.normal(size=2000)
    cal.assert_calibrated(cal.Gaussian(noise, np.zeros(2000), std))
    with pytest.raises(AssertionError, match="Interval error"):
        cal.assert_calibrated(cal.Gaussian(3 * noise, np.zeros(2000), std))
    p = rng.dirichlet([1, 1, 1], 2000)
    with pytest.raises(AssertionError):
        cal.assert_calibrated(cal.Multiclass(rng.integers(0, 3, 2000), p))
    score = rng.random(4000)
    positive = rng.random(4000)[rng.random(4000) < 0.5]
    with pytest.raises(AssertionError):
        cal.assert_calibrated(cal.PositiveUnlabeled(positive, score, prior=0.5))


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
    assert stored.data.tags["calibration.verdict"] == report.verdict
    assert report.headline.value in logged.values()
    names = {path.name for path in tmp_path.rglob("report.*")}
    assert names == {"report.json", "report.md", "report.html"}


def test_measures_of_one_name_keep_apart(report):
    names = report_metrics(report, prefix="m")
    assert names["m.rows"] == 3000
    assert len(names) > len(report.measures)


def test_a_recalibrated_classifier_reports_on_rows_it_did_not_see():
    from sklearn.datasets import make_classification
    from sklearn.naive_bayes import GaussianNB

    from calibrant.integrations.sklearn import RecalibratedClassifier
    from calibrant.recalibrate import Beta

    X, y = make_classification(400, random_state=0)
    model = RecalibratedClassifier(GaussianNB(), Beta(), cv=2)
    found = model.report(X, np.array(["no", "yes"])[y], folds=2, title="Bayes")
    assert (found.n, found.title) == (400, "Bayes")
