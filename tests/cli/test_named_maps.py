"""Maps by name."""

import pytest

import calibrant as cal
from calibrant.cli.formats import UsageError
from calibrant.cli.named_maps import map_named


@pytest.mark.parametrize(
    ("method", "task", "expected"),
    [
        ("auto", "event", cal.recalibrate.Auto),
        ("BETA", "event", cal.recalibrate.Beta),
        ("auto", "spread", cal.recalibrate.AutoForecast),
        ("auto", "members", cal.recalibrate.AutoForecast),
        ("auto", "unlabeled", cal.pu.PUAverage),
        ("dirichlet", "classes", cal.recalibrate.Dirichlet),
        ("varianceisotonic", "spread", cal.recalibrate.VarianceIsotonic),
    ],
)
def test_a_map_is_found_by_its_name(method, task, expected):
    assert type(map_named(method, task)) is expected


@pytest.mark.parametrize("method", ["magic", "load", "Recalibrator", "BinaryRecalibrator", "OneVsRest", "StdScaling"])
def test_what_is_no_map_of_probabilities_is_refused(method):
    with pytest.raises(
        UsageError, match=r"--method must be auto or one of Auto, .*Venn.*, which change the probability of one event"
    ):
        map_named(method)


def test_a_map_of_probabilities_is_none_of_distributions():
    with pytest.raises(
        UsageError, match=r"which change predicted means and standard deviations; got 'Platt'. Platt is a map of"
    ):
        map_named("Platt", "spread")
