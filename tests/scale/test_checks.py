"""Rules for rows: the first that a row breaks is the reason under which it is counted."""

import narwhals.stable.v2 as nw
import polars as pl

from calibrant.scale.checks import all_hold, counted, first_broken, named_reasons, probability, weight_checks
from calibrant.scale.named_columns import NamedFrame

NAN = float("nan")
COLUMNS = NamedFrame(nw.from_native(pl.LazyFrame({"p": [0.5, None, NAN, 2.0, 0.5], "w": [1.0, 1.0, 1.0, None, -1.0]})))
CHECKS = (*probability(COLUMNS, "p")[1], *weight_checks(COLUMNS, "w"))


def test_null_and_nan_are_missing_and_the_first_rule_counts():
    found = COLUMNS.frame.select(first_broken(CHECKS).alias("rule"), all_hold(CHECKS).alias("holds")).collect()
    reasons = [CHECKS[rule].reason if rule >= 0 else "" for rule in found["rule"].to_list()]
    missing = "y_prob missing"
    assert reasons == ["", missing, missing, "y_prob outside [0, 1]", "weight negative or not finite"]
    assert [bool(holds) for holds in found["holds"].to_list()] == [True, False, False, False, False]


def test_reasons_are_said_with_the_names_of_the_columns():
    named = named_reasons(CHECKS)
    assert named["y_prob missing"] == "y_prob 'p' missing"
    assert counted({"y_prob missing": 1200, "another": 1}, named) == "y_prob 'p' missing: 1,200, another: 1"
