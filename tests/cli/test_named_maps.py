"""Maps by name."""

import pytest

import calibrant as cal
from calibrant.cli.formats import UsageError
from calibrant.cli.named_maps import map_named


@pytest.mark.parametrize(
    ("method", "kind", "expected"),
    [
        ("auto", {}, cal.recalibrate.Auto),
        ("BETA", {}, cal.recalibrate.Beta),
        ("auto", {"spread": True}, cal.recalibrate.StdScaling),
        ("auto", {"quantiles": True}, cal.recalibrate.Conformal),
        ("varianceisotonic", {"spread": True}, cal.recalibrate.VarianceIsotonic),
    ],
)
def test_a_map_is_found_by_its_name(method, kind, expected):
    assert type(map_named(method, **kind)) is expected


@pytest.mark.parametrize("method", ["magic", "load", "Recalibrator", "BinaryRecalibrator", "OneVsRest", "StdScaling"])
def test_what_is_no_map_of_probabilities_is_refused(method):
    with pytest.raises(UsageError, match=r"--method must be auto or one of Auto, .*Venn.*, which change probabilities"):
        map_named(method)


def test_a_map_of_probabilities_is_none_of_distributions():
    with pytest.raises(UsageError, match="which change predicted distributions"):
        map_named("Platt", spread=True)
