"""What is said of invalid rows: how many of how many, of which column, and the first of a file."""

import polars as pl
import pytest

import calibrant as cal
from calibrant.scale import bin_table


@pytest.mark.no_cover
@pytest.mark.parametrize(("bad", "words"), [(1, "1 of 5,000 rows is invalid"), (650, "650 of 5,000 rows are invalid")])
def test_the_grammar_of_rows_and_the_name_of_the_column(tmp_path, bad, words):
    frame = pl.DataFrame({"clicked": [0] * 5000, "score": [0.5] * (5000 - bad) + [1.5] * bad})
    frame.write_csv(tmp_path / "log.csv")
    place = rf"; first: row {5001 - bad:,} of '.*log\.csv'"
    for source, first in ((frame, ""), (tmp_path / "log.csv", place)):
        with pytest.raises(cal.InvalidPredictions, match=rf"{words} \(y_prob 'score' outside \[0, 1\]: {bad}{first}\)"):
            bin_table(source, y_true="clicked", y_prob="score")
