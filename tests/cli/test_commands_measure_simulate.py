"""`calibrant simulate`: binary predictions only, and it says so."""

import json

import pytest


def test_advice_is_given_for_binary_predictions(invoke):
    code, out, err = invoke("simulate --scores all.parquet --truth y --prob p --json")
    assert code == 0, err
    assert json.loads(out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "Name a file of predictions"),
        ("all.parquet --truth animal --prob b_*", "Simulation is for binary predictions"),
    ],
)
def test_other_predictions_are_refused(invoke, options, message):
    code, _, err = invoke("simulate", options)
    assert (code, message in err) == (2, True)
