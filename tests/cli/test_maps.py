"""Maps by name, and the columns that they add."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli.apply import apply_to_file
from calibrant.cli.columns import Columns
from calibrant.cli.console import UsageError
from calibrant.cli.maps import map_named


@pytest.mark.parametrize(
    ("method", "task", "expected"),
    [
        ("auto", "binary", cal.recalibrate.Auto),
        ("BETA", "binary", cal.recalibrate.Beta),
        ("auto", "spread", cal.recalibrate.AutoForecast),
        ("auto", "members", cal.recalibrate.AutoForecast),
        ("auto", "unlabeled", cal.pu.PUAverage),
        ("dirichlet", "multiclass", cal.recalibrate.Dirichlet),
        ("varianceisotonic", "spread", cal.recalibrate.VarianceIsotonic),
    ],
)
def test_a_map_is_found_by_its_name(method, task, expected):
    assert type(map_named(method, task)) is expected


@pytest.mark.parametrize("method", ["magic", "load", "Recalibrator", "BinaryRecalibrator", "OneVsRest", "StdScaling"])
def test_what_is_no_map_of_probabilities_is_refused(method):
    with pytest.raises(
        UsageError, match=r"--method must be auto or one of Auto, .*Venn.*, which change binary probabilities"
    ):
        map_named(method)


def test_a_map_of_probabilities_is_none_of_distributions():
    with pytest.raises(
        UsageError, match=r"which change predicted means and standard deviations; got 'Platt'. Platt is a map of"
    ):
        map_named("Platt", "spread")


rng = np.random.default_rng(0)


def test_classes_and_forecasts_are_recalibrated(tmp_path):
    probs = rng.dirichlet(np.ones(3), 60)
    labels = np.array(["cat", "cow", "dog"])[rng.integers(0, 3, 60)]
    several = cal.recalibrate.Temperature().fit(cal.Multiclass(labels, probs, classes=["cat", "cow", "dog"]))
    std = rng.lognormal(size=60)
    table = pa.table({"dog": probs[:, 2], "cat": probs[:, 0], "cow": probs[:, 1], "mu": std, "sd": std, "hi": 2 * std})
    pq.write_table(table, tmp_path / "scores.parquet")
    path, out = str(tmp_path / "scores.parquet"), tmp_path / "fixed.parquet"
    apply_to_file(several, path, out, Columns(prob=("dog", "cat", "cow")), suffix="_new")
    found = pq.read_table(out)
    np.testing.assert_array_equal(
        np.stack([found[f"{name}_new"] for name in ("cat", "cow", "dog")], axis=1), several.predict_proba(probs)
    )
    forecast = cal.Gaussian(std + 3 * std * rng.uniform(-1, 1, 60), std, std)
    apply_to_file(cal.recalibrate.StdScaling().fit(forecast), path, out, Columns(mean="mu", std="sd"), suffix="_new")
    found = pq.read_table(out)
    np.testing.assert_array_equal(found["mu_new"], std)
    np.testing.assert_allclose(found["sd_new"], cal.recalibrate.StdScaling().fit(forecast).scale_[0] * std)
    conformal = cal.recalibrate.Conformal(levels=[0.1, 0.9]).fit(forecast)
    apply_to_file(conformal, path, out, Columns(mean="mu", std="sd"), suffix="_new")
    assert pq.read_table(out).column_names[-2:] == ["q0.1_new", "q0.9_new"]
    quantiles = cal.Quantiles(std * rng.normal(size=60), [0.25, 0.75], np.stack([std, 2 * std], axis=1))
    shifted = cal.recalibrate.Conformal().fit(quantiles)
    apply_to_file(shifted, path, out, Columns(quantiles=("0.75=hi", "0.25=sd")), suffix="_new")
    assert pq.read_table(out).column_names[-2:] == ["sd_new", "hi_new"]
    for wrong, inputs, words in (
        (several, Columns(prob=("dog", "cat")), "fitted to 3 columns"),
        (several, Columns(mean="mu", std="sd"), "changes probabilities: give --prob"),
        (conformal, Columns(prob=("dog",)), "changes predicted distributions"),
        (several, Columns(prob=("dog",), mean="mu"), "either --prob"),
        (shifted, Columns(quantiles=("0.5=hi",)), "cannot change these columns"),
        (shifted, Columns(quantiles=("high=hi",)), "takes LEVEL=COLUMN"),
    ):
        with pytest.raises(UsageError, match=words):
            apply_to_file(wrong, path, out, inputs, suffix="_new")
