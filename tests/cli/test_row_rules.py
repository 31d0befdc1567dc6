"""Messages about rows: the option, the user's column, the row of the file, and what to do."""

import pytest

from calibrant.cli.row_rules import in_options
from calibrant.data.validation import InvalidPredictions
from tests.cli.loading import both

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
        "Column 'y' (--truth) is no class in 1 of 2 rows (first: row 2 of 'log.csv').",
    ),
    "sum": ("y,a,b\na,0.5,0.5\nb,0.5,0.7\n", {"prob": ("a", "b")}, "--prob does not sum to 1 in 1 of 2 rows"),
    "std": ("y,m,s\n0,0,1\n0,0,0\n", {"mean": "m", "std": "s"}, "Column 's' (--std) is not positive in 1 of 2 rows"),
    "quantile": (
        "y,a,b\n0,0,1\n0,0,\n",
        {"quantiles": ("0.1=a", "0.9=b")},
        "Column 'b' (--quantiles) is missing in 1 of 2 rows (first: row 2 of 'log.csv').",
    ),
    "text": ("y,p\n0,high\n1,low\n", {}, "--prob must hold numbers, but column 'p' holds String values"),
    "decimal commas": ("y;p\n0;0,5\n1;0,25\n", {}, "A file with decimal commas needs --decimal-comma"),
    "no such column": (
        "y,p\n0,0.5\n",
        {"by": ("month",)},
        "--by names the column 'month', which the source does not have",
    ),
    "no condition": ("y,p\n0,0.5\n", {"where": "q = 1"}, "--where is no condition on the columns, 'q = 1'"),
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
