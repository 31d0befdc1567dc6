"""The rows that options select are the same below and above the size at which tables are used."""

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.data.validation import InvalidPredictions
from tests.cli.loading import both, loaded

DAYS = pd.to_datetime(["2026-01-05", "2026-02-06", "2026-02-07", "2026-02-08"])
FRAME = pd.DataFrame(
    {
        "y": [1.0, 0.0, 1.0, np.nan],
        "p": [50, 25, 75, 10],
        "day": DAYS,
        "country": ["at", None, "de", "(missing)"],
        "a,b": ["u", "v", "u", "v"],
        "code": [1.0, np.nan, 2.5, 1.0],
    }
)


@pytest.fixture(params=["log.parquet", "log.csv"])
def path(request, tmp_path):
    target = tmp_path / request.param
    if request.param == "log.csv":
        FRAME.to_csv(target, index=False)
    else:
        FRAME.to_parquet(target)
    return target


def sizes(groups):
    """Rows per group, whether of rows or of tables; several groupings under `grouping = group`."""
    if isinstance(groups, np.ndarray):
        names, counts = np.unique(groups, return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))
    if all(isinstance(part, np.ndarray) for part in groups.values()):
        return {f"{by} = {name}": n for by, part in groups.items() for name, n in sizes(part).items()}
    return {name: table.n for name, table in groups.items()}


@pytest.mark.no_cover
def test_percent_missing_rows_and_expressions(path):
    expected = cal.ece([1, 0, 1], [0.5, 0.25, 0.75])
    for options in ({"percent": True}, {"prob": ("p / 100",)}, {"prob": ("p",), "percent": True}):
        for found in both(path, drop_missing=True, **options):
            assert cal.ece(found.data) == pytest.approx(expected)
            assert "Left out 1 of 4 rows with missing values (--truth 'y': 1)." in found.notes


def test_percent_signs_are_read_as_percent(tmp_path):
    (tmp_path / "log.csv").write_text("y,p\n1,50%\n0,25 %\n1,75\n")
    for data in loaded(tmp_path / "log.csv", percent=True):
        assert cal.ece(data) == pytest.approx(cal.ece([1, 0, 1], [0.5, 0.25, 0.75]))


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (("month(day)",), {"1": 1, "2": 2}),
        (("code",), {"1": 1, "2.5": 1, "(missing)": 1}),
        (("country",), {"at": 1, "de": 1, "(missing)": 1}),
        (("a,b",), {"u": 2, "v": 1}),
        (("country,month(day)",), {"at, 1": 1, "(missing), 2": 1, "de, 2": 1}),
        (("a,b", "month(day)"), {"a,b = u": 2, "a,b = v": 1, "month(day) = 1": 1, "month(day) = 2": 2}),
    ],
)
def test_groups_are_columns_expressions_and_crosses(path, by, expected):
    for found in both(path, by=by, percent=True, drop_missing=True):
        assert sizes(found.by) == expected


def test_a_group_may_be_called_anything(tmp_path):
    names = ["(missing)", None, "all rows", "a, b", "\\"]
    frame = pd.DataFrame({"y": [0, 1, 0, 1, 0], "p": [0.5] * 5, "g": names, "h": ["c"] * 5})
    frame.to_parquet(tmp_path / "log.parquet")
    rows, large = both(tmp_path / "log.parquet", by=("g",))
    assert sizes(rows.by) == sizes(large.by)
    assert set(sizes(rows.by)) == {"((missing))", "(missing)", "all rows", "a, b", "\\"}
    rows, large = both(tmp_path / "log.parquet", by=("g,h",))
    assert sizes(rows.by) == sizes(large.by)
    assert {"a\\, b, c", "(missing), c", "\\(missing), c"} < set(sizes(rows.by))


def test_groups_that_double_precision_does_not_tell_apart_are_refused(tmp_path):
    frame = pd.DataFrame({"y": [0, 1], "p": [0.5, 0.5], "id": [2**53 + 1, 2**53 + 2]})
    frame.to_parquet(tmp_path / "log.parquet")
    frame.to_csv(tmp_path / "log.csv", index=False)
    for found in both(tmp_path / "log.parquet", by=("id",)):
        assert set(sizes(found.by)) == {str(2**53 + 1), str(2**53 + 2)}
    with pytest.raises(InvalidPredictions, match="cannot be told from its neighbours"):
        both(tmp_path / "log.csv", by=("id",))


def test_known_positives_among_unlabeled_rows(tmp_path):
    FRAME.assign(code=[1, 0, 1, 0]).to_csv(tmp_path / "log.csv", index=False)
    for truth, value in (("code", "1"), ("day < '2026-02-07'", "true"), ('"a,b"', "u")):
        (data, _) = loaded(tmp_path / "log.csv", truth=truth, labelled=value, prior=0.5, percent=True)
        assert len(data.positive) == 2
    with pytest.raises(InvalidPredictions, match="No row of column 'code' is 'x', the value of --labelled"):
        loaded(tmp_path / "log.csv", truth="code", labelled="x", prior=0.5, percent=True)
