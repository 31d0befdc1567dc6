"""Names for readers."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.calibration_tests import Cox, HosmerLemeshow, KernelTest, KolmogorovSmirnov, Spiegelhalter
from calibrant.inference.forecasts import MeanSquaredZ, PitUniformity, SpreadChiSquare
from calibrant.reporting.names import listed, map_in_sentence, name_of_estimate, name_of_map, name_of_test, plural

rng = np.random.default_rng(0)
P = rng.random(300)
BINARY = cal.Binary(rng.random(300) < P, P)
FORECAST = cal.Gaussian(rng.normal(size=300), np.zeros(300), rng.uniform(0.5, 2, 300))

OF_BINARY = [
    cal.averaged_error, cal.variational_error, cal.ece, partial(cal.ece, bins=cal.EqualWidth(15)), cal.debiased_ece,
    cal.sweep_ece, cal.smooth_ece, cal.kde_ece, cal.ks_error, cal.kernel_error, cal.mce, cal.overconfidence,
    cal.underconfidence, cal.calibration_slope, cal.calibration_intercept, cal.observed_expected, cal.ici, cal.brier,
    cal.log_loss, cal.auc,
]  # fmt: skip
OF_FORECASTS = [
    cal.ence, cal.debiased_ence, cal.uce, cal.mean_squared_z, cal.scale_factor, cal.std_dispersion, cal.interval_error,
    cal.quantile_error, cal.coverage, cal.pit_error, cal.estimators.sharpness, cal.crps, cal.nll, cal.sweep_ence,
]  # fmt: skip


def _is_for_readers(text):
    assert not set("=_<>^") & set(text), text
    assert "EqualMass" not in text
    assert "EqualWidth" not in text


def test_no_name_of_an_estimate_holds_python():
    found = [name_of_estimate(f(BINARY)) for f in OF_BINARY] + [name_of_estimate(f(FORECAST)) for f in OF_FORECASTS]
    for name in found:
        _is_for_readers(name.text)
        _is_for_readers(name.line)
        assert name.line
    texts = [name.text for name in found]
    assert len(set(texts)) == len(texts)
    assert {"ECE, 15 equal-mass bins", "ECE, 15 equal-width bins", "ENCE, 10 bins", "Coverage of 90 % intervals"} < set(
        texts
    )


@pytest.mark.parametrize(
    ("data", "method", "name"),
    [
        (BINARY, None, "Multiscale test (999 simulations)"),
        (BINARY, Cox(), "Intercept and slope (Cox)"),
        (BINARY, HosmerLemeshow(), "Hosmer–Lemeshow, 10 groups"),
        (BINARY, Spiegelhalter(), "Spiegelhalter"),
        (BINARY, KolmogorovSmirnov(), "Kolmogorov–Smirnov (999 simulations)"),
        (BINARY, KernelTest(), "Kernel test (999 simulations)"),
        (FORECAST, PitUniformity(), "Uniformity of F(y)"),
        (FORECAST, MeanSquaredZ(), "Error-to-spread test"),
        (FORECAST, SpreadChiSquare(), "Spread by bins"),
    ],
)
def test_tests_have_names(data, method, name):
    found = name_of_test(cal.calibration_test(data, method=method))
    assert found.text == name
    assert found.line.endswith(("?", "."))


def test_bins_are_those_of_the_table_whatever_the_text_says():
    found = cal.ece(BINARY, bins=cal.EqualWidth(12))
    renamed = cal.Estimate(float(found), name=found.name, method="EqualMass(n_bins=99)", n=found.n, bins=found.bins)
    assert name_of_estimate(renamed).text == "ECE, 12 equal-width bins"
    assert name_of_estimate(cal.ece(BINARY, bins=cal.Edges([0, 0.5, 1]))).text == "ECE (L1)"
    assert name_of_estimate(cal.ece(BINARY, bins=7)).text == "ECE, 7 equal-mass bins"
    assert name_of_estimate(cal.coverage(FORECAST, nominal=0.925)).text == "Coverage of 92.5 % intervals"


def test_maps():
    assert name_of_map("Beta") == "Beta calibration"
    assert name_of_map("Other") == "Other"
    assert map_in_sentence("Beta calibration") == "beta calibration"
    assert map_in_sentence("Dirichlet calibration") == "Dirichlet calibration"
    assert map_in_sentence("Spline of the spread", start=True) == "A spline of the spread"


def test_nouns():
    assert [plural(x) for x in ("day", "lead time", "person", "class", "")] == [
        "days", "lead times", "people", "classes", "",
    ]  # fmt: skip
    assert [plural(x) for x in ("fraud", "country", "box", "deaths", "status")] == [
        "frauds", "countries", "boxes", "deaths", "statuses",
    ]  # fmt: skip
    assert plural("death", 1) == "death"
    assert plural("death in hospital", 1, kind="event") == "event of death in hospital"
    assert plural("loss", 2) == "losses"
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"


@pytest.mark.parametrize(
    ("noun", "kind", "several"),
    [
        ("diagnosis", "row", "diagnoses"),
        ("sepsis", "event", "events of sepsis"),
        ("age>=65", "group", "groups by age>=65"),
        ("readmission within 30 days", "event", "events of readmission within 30 days"),
        ("death in hospital", "event", "events of death in hospital"),
        ("heart attack", "event", "heart attacks"),
        ("sales", "row", "sales"),
        ("ICU stay", "row", "ICU stays"),
        ("bus", "row", "buses"),
    ],
)
def test_no_plural_is_invented(noun, kind, several):
    assert plural(noun, 2, kind=kind) == several
