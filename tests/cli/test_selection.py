"""Options select the same rows of small and large files, and messages name option, column, row and remedy."""

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.cli.selection import in_options
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


@pytest.mark.no_cover
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
    if by == ("code",) and path.suffix == ".csv":
        expected = {"1.0": 1, "2.5": 1, "(missing)": 1}  # as the file has them
    for found in both(path, by=by, percent=True, drop_missing=True):
        assert sizes(found.by) == expected


def test_groups_of_csv_files_are_their_text(tmp_path):
    (tmp_path / "log.csv").write_text("y,p,g,h\n0,0.1,1.1,01\n1,0.9,1.10,1\n0,0.2,1.1,\n1,0.7,1.10,1\n")
    for found in both(tmp_path / "log.csv", by=("g", "h", "g,h", "g + 1"), where="g < 2 AND h IS NOT NULL"):
        assert sizes(found.by) == {
            "g = 1.1": 1, "g = 1.10": 2, "h = 01": 1, "h = 1": 2, "g,h = 1.1, 01": 1, "g,h = 1.10, 1": 2,
            "g + 1 = 2.1": 3,
        }  # fmt: skip


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
    frame.to_json(tmp_path / "log.jsonl", orient="records", lines=True)
    for name in ("log.parquet", "log.csv"):
        for found in both(tmp_path / name, by=("id",)):
            assert set(sizes(found.by)) == {str(2**53 + 1), str(2**53 + 2)}
    with pytest.raises(InvalidPredictions, match="cannot be distinguished from its neighbours"):
        both(tmp_path / "log.jsonl", by=("id",))


def test_known_positives_among_unlabeled_rows(tmp_path):
    FRAME.assign(code=[1, 0, 1, 0]).to_csv(tmp_path / "log.csv", index=False)
    for truth, value in (("code", "1"), ("day < '2026-02-07'", "true"), ('"a,b"', "u")):
        (data, _) = loaded(tmp_path / "log.csv", truth=truth, labelled=value, prior=0.5, percent=True)
        assert len(data.positive) == 2
    with pytest.raises(InvalidPredictions, match="No row of column 'code' is 'x', the value of --labelled"):
        loaded(tmp_path / "log.csv", truth="code", labelled="x", prior=0.5, percent=True)


CASES = {
    "out of range": (
        "y,p\n0,0.5\n1,1.5\n0,200\n",
        {},
        "Column 'p' (--prob) is outside [0, 1] in 2 of 3 rows (first: row 2 of 'log.csv').",
    ),
    "percent": (
        "y,p\n0,5\n1,15\n",
        {},
        "in 2 of 2 rows (first: row 1 of 'log.csv'). If they are in percent, say --percent.",
    ),
    "missing": (
        "y,p\n0,0.5\n1,\n,0.5\n",
        {},
        "Column 'p' (--prob) is missing in 1 of 3 rows; column 'y' (--truth) is missing in 1 of 3 rows (first: row 2 "
        "of 'log.csv'). Leave such rows out with --drop-missing.",
    ),
    "under a condition": (
        "y,p,d\n0,0.5,1\n1,0.5,2\n0,0.5,1\n0,7,2\n",
        {"where": "d = 2"},
        "Column 'p' (--prob) is outside [0, 1] in 1 of 2 rows (first: row 4 of 'log.csv').",
    ),
    "words": (
        "y,p\nfraud,0.5\nlegit,0.5\n",
        {},
        "Column 'y' (--truth) is not 0 or 1 in 2 of 2 rows (first: row 1 of 'log.csv'). Its labels are 'fraud', "
        "'legit': say which one is the event, --positive VALUE.",
    ),
    "third label": ("y,p\nfraud,0.5\nlegit,0.5\nfruad,0.5\n", {"positive": "fraud"}, "there are 'fruad', 'legit'"),
    "misspelt label": ("y,p\nfraud,0.5\nlegit,0.5\n", {"positive": "Fraud"}, "No row of column 'y' is 'Fraud'"),
    "label of another type": ("y,p\n0,0.5\n1,0.5\n", {"positive": "fraud"}, "column 'y' holds numbers"),
    "weight": (
        "y,p,w\n0,0.5,1\n1,0.5,-1\n",
        {"weight": "w"},
        "Column 'w' (--weight) is negative or not finite in 1 of 2 rows (first: row 2 of 'log.csv').",
    ),
    "expression": (
        "y,p\n0,0.5\n1,0.7\n",
        {"prob": ("p * 2",)},
        "Column 'p * 2' (--prob) is outside [0, 1] in 1 of 2 rows (first: row 2 of 'log.csv').",
    ),
    "class": (
        "y,a,b\na,0.5,0.5\nc,0.5,0.5\n",
        {"prob": ("a", "b")},
        "Column 'y' (--truth) is not one of the classes in 1 of 2 rows (first: row 2 of 'log.csv').",
    ),
    "sum": ("y,a,b\na,0.5,0.5\nb,0.5,0.7\n", {"prob": ("a", "b")}, "--prob does not sum to 1 in 1 of 2 rows"),
    "std": ("y,m,s\n0,0,1\n0,0,0\n", {"mean": "m", "std": "s"}, "Column 's' (--std) is not positive in 1 of 2 rows"),
    "quantile": (
        "y,a,b\n0,0,1\n0,0,\n",
        {"quantiles": ("0.1=a", "0.9=b")},
        "Column 'b' (--quantiles) is missing in 1 of 2 rows (first: row 2 of 'log.csv').",
    ),
    "text": (
        "y,p\n0,0.5\n0,high\n1,low\n",
        {},
        "--prob must hold numbers, but column 'p' holds 'high' in row 2 of 'log.csv', the first of 2 such rows. Take "
        'text as missing values and leave them out: --prob "TRY_CAST(p AS DOUBLE)" --drop-missing.',
    ),
    "percent signs": (
        "y,p\n0,12.3%\n1,50%\n",
        {},
        "'12.3%' in row 1 of 'log.csv', the first of 2 such rows. If they are in percent, say --percent.",
    ),
    "a second header": (
        "y,p\n0,0.5\ny,p\n1,0.5\n",
        {},
        "--prob must hold numbers, but column 'p' holds 'p' in row 2 of 'log.csv'. The row repeats the header",
    ),
    "marks of missing values": (
        "y,p\n0,0.5\n1,NA\nnull,-\n",
        {},
        "Column 'p' (--prob) is missing in 2 of 3 rows (first: row 2 of 'log.csv'). Leave such rows out with "
        "--drop-missing.",
    ),
    "decimal commas": ("y;p\n0;0,5\n1;0,25\n", {}, "A file with decimal commas needs --decimal-comma"),
    "swapped columns": (
        "y,p\n0,0.5\n1,0.25\n",
        {"truth": "p", "prob": ("y",)},
        "is not 0 or 1 in 2 of 2 rows (first: row 1 of 'log.csv'). Are --truth and --prob swapped?",
    ),
    "swapped columns of words": (
        "y,p\nno,0\nYes,1\n",
        {"truth": "p", "prob": ("y",)},
        "column 'y' holds 'no' in row 1 of 'log.csv', the first of 2 such rows. Are --truth and --prob swapped?",
    ),
    "numbers that are no labels": ("y,p\n1,0.5\n2,0.25\n", {}, "Say which number is the event, --positive VALUE."),
    "labels of two pairs": (
        "y,p\nyes,0.5\nfalse,0.25\n",
        {},
        "Column 'y' mixes the labels 'false', 'yes': use one pair of words, or name the event's label with --positive",
    ),
    "log odds": ("y,p\n1,0.5\n0,-2.5\n", {}, "(first: row 2 of 'log.csv'). If they are log odds, say --logits."),
    "another case": ("y,Score\n0,0.5\n", {"prob": ("score",)}, "Did you mean 'Score'?"),
    "two of one name": ("y,p,p\n0,0.5,0.6\n", {}, "There are 2 columns called 'p' in 'log.csv': rename all but one"),
    "no such column": (
        "y,p\n0,0.5\n",
        {"by": ("month",)},
        "--by names the column 'month', which the source does not have",
    ),
    "no condition": ("y,p\n0,0.5\n", {"where": "q = 1"}, "--where is not a condition on the columns, 'q = 1'"),
    "nothing left": ("y,p\n0,\n", {"drop_missing": True}, "log.csv has no rows that have no missing values"),
}


@pytest.mark.parametrize(("content", "options", "message"), CASES.values(), ids=CASES)
def test_a_message_says_option_column_row_and_remedy(tmp_path, monkeypatch, content, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(content)
    with pytest.raises(InvalidPredictions) as caught:
        both("log.csv", **options)
    assert message in str(caught.value)


def test_the_words_of_the_library_become_options_and_names_of_columns_stay():
    said = in_options("y_prob must hold numbers, but column 'y_prob' does not; see decimal=','.")
    assert said == "--prob must hold numbers, but column 'y_prob' does not; see --decimal-comma."


def test_arguments_that_are_words_of_english_too_stay_words_within_sentences():
    said = in_options(
        "mean must hold numbers, weight is missing. Did you mean 'score'? Divide by their mean where it is."
    )
    assert (
        said == "--mean must hold numbers, --weight is missing. Did you mean 'score'? Divide by their mean where it is."
    )


@pytest.mark.parametrize(("yes", "no"), [("Y", "n"), ("yes", "NO"), ("True", "False"), ("t", "F")])
def test_pairs_of_words_are_labels(tmp_path, yes, no):
    (tmp_path / "log.csv").write_text(f"y,p\n{yes},0.75\n{no},0.5\n{yes.upper()},0.25\n")
    for data in loaded(tmp_path / "log.csv"):
        assert cal.brier(data) == pytest.approx(cal.brier([1, 0, 1], [0.75, 0.5, 0.25]))


def test_classes_that_are_texts_of_numbers_are_those_of_the_columns(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"y": "1", "r": [0.25, 0.75]}\n{"y": "0", "r": [0.5, 0.5]}\n')
    (data, _) = loaded(tmp_path / "log.jsonl", truth="y", prob=("r[1] + 0", "r[2] + 0"))
    assert cal.brier(data) == pytest.approx(cal.brier(cal.Multiclass(["1", "0"], [[0.25, 0.75], [0.5, 0.5]])))
    (tmp_path / "log.jsonl").write_text('{"y": "1", "p": 0.75}\n{"y": "0", "p": 0.25}\n')
    for data in loaded(tmp_path / "log.jsonl"):
        assert cal.brier(data) == pytest.approx(0.0625)


def test_log_odds_and_logits_of_classes_are_read_as_the_probabilities_they_stand_for(tmp_path):
    from scipy.special import expit, softmax

    z = np.array([[0.3, -1.0, 2.0], [-800.0, 1.0, 700.0], [800.0, 0.5, -3.0]])
    frame = pd.DataFrame(z, columns=["z_0", "z_1", "z_2"]).assign(y=[1, 0, 1], c=[2, 1, 0])
    frame.to_csv(tmp_path / "log.csv", index=False)
    for data in loaded(tmp_path / "log.csv", prob=("z_0",), logits=True):
        assert cal.brier(data) == pytest.approx(cal.brier([1, 0, 1], expit(z[:, 0])), abs=1e-6)
    (data, _) = loaded(tmp_path / "log.csv", truth="c", prob=("z_*",), logits=True)
    np.testing.assert_allclose(data.y_prob, softmax(z, axis=1), atol=1e-12)
    with pytest.raises(InvalidPredictions, match="If they are log odds, say --logits"):
        loaded(tmp_path / "log.csv", truth="c", prob=("z_*",))
