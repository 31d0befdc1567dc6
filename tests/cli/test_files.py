"""Files become predictions: each is read once, small ones as rows, large ones as tables."""

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.cli import files
from calibrant.cli.columns import Columns
from calibrant.cli.console import UsageError
from calibrant.cli.files import TRUTH, load, load_models, task_from
from calibrant.data.validation import InvalidPredictions

rng = np.random.default_rng(0)
P = rng.random(500)
FRAME = pd.DataFrame({"y": (rng.random(500) < P).astype(int), "p": P, "q": P**2, "g": np.arange(500) % 2})


@pytest.fixture
def scores(tmp_path):
    FRAME.to_parquet(tmp_path / "scores.parquet")
    FRAME.to_feather(tmp_path / "scores.arrow")
    return tmp_path


@pytest.fixture
def reads(monkeypatch):
    """The columns of every read of rows."""
    seen = []
    original = files._arrays

    def counted(selection, columns, *rest):
        seen.append([columns.truth, *columns.probabilities])
        return original(selection, columns, *rest)

    monkeypatch.setattr(files, "_arrays", counted)
    return seen


def test_models_are_compared_on_one_read(scores, reads):
    (first, second), notes = load_models(
        [str(scores / "scores.parquet")], Columns(prob=("p",), others=(Columns(prob=("q",)),))
    )
    assert reads == [["y", "p", "q"]]
    np.testing.assert_array_equal(first.y_true, second.y_true)
    np.testing.assert_allclose(np.sort(second.y_prob), np.sort(P**2))
    assert notes == ("Taking column 'y' as --truth.",)


def test_a_report_reads_its_file_once(scores, reads):
    found = load([str(scores / "scores.parquet")], Columns(by=("g",)))
    assert len(reads) == 1
    assert cal.ece(found.data) == pytest.approx(cal.ece(FRAME.y, FRAME.p))
    assert sorted(set(found.by)) == ["0", "1"]


@pytest.mark.parametrize("name", ["scores.parquet", "scores.arrow"])
@pytest.mark.parametrize("where", [None, "p < 0.5"])
def test_many_rows_come_as_tables_of_all_and_of_each_group(scores, monkeypatch, name, where):
    monkeypatch.setattr(files, "TABLE_ROWS", 100)
    found = load([str(scores / name)], Columns(by=("g",), where=where))
    chosen = FRAME if where is None else FRAME[FRAME.p < 0.5]
    assert found.data.n == len(chosen)
    assert {group: table.n for group, table in found.by.items()} == {
        str(g): n for g, n in chosen.groupby("g").size().items()
    }
    with pytest.raises(UsageError, match="take a sample"):
        load_models([str(scores / name)], Columns(prob=("p",), others=(Columns(prob=("q",)),)))


def test_arrow_and_parquet_files_are_read_together(scores):
    found = load([str(scores / "scores.parquet"), str(scores / "scores.arrow")], Columns())
    assert len(found.data) == 1000


def test_what_no_row_fits_and_what_no_file_has_are_refused(scores):
    path = str(scores / "scores.arrow")
    with pytest.raises(InvalidPredictions, match="has no rows that fit --where"):
        load([path], Columns(where="p > 2"))
    with pytest.raises(InvalidPredictions, match="--prob names the column 'r', which the source does not have"):
        load([path], Columns(prob=("r",)))


NUMBERS = {TRUTH: np.array([0.5, 1.5]), "a": np.array([0.0, 1.0]), "b": np.array([1.0, 2.0])}


def test_every_task_is_made_of_its_columns():
    made = task_from(NUMBERS, Columns("y", members=("a", "b")))
    np.testing.assert_array_equal(made.draws, [[0, 1], [1, 2]])
    made = task_from(NUMBERS, Columns("y", quantiles=("0.9=b", "0.1=a")))
    np.testing.assert_array_equal(made.levels, [0.1, 0.9])
    np.testing.assert_array_equal(made.values, [[0, 1], [1, 2]])


def test_classes_are_the_numbers_in_the_names_of_columns():
    found = {TRUTH: np.array([0, 1]), "p1": np.array([0.3, 0.6]), "p0": np.array([0.7, 0.4])}
    made = task_from(found, Columns("y", ("p1", "p0")))
    np.testing.assert_allclose(made.one_vs_rest()[1].y_prob, [0.3, 0.6])
    np.testing.assert_array_equal(made.one_vs_rest()[1].y_true, [0, 1])


def test_known_positives_come_first_with_their_weights():
    found = {TRUTH: np.array(["u", "k", "u"], dtype=object), "p": np.array([0.1, 0.8, 0.3]), "w": np.array([1, 2, 3])}
    columns = Columns("y", ("p",), labelled="k", prior=0.4, weight="w")
    made = task_from(found, columns)
    np.testing.assert_allclose(made.positive, [0.8])
    np.testing.assert_allclose(made.unlabeled, [0.1, 0.3])
    np.testing.assert_allclose(made.positive_weight, [2])
    with pytest.raises(InvalidPredictions, match="No row of column 'y' is 'k'"):
        task_from({**found, TRUTH: np.array(["u", "u", "u"])}, columns)
    with pytest.raises(InvalidPredictions, match="no unlabeled rows"):
        task_from({**found, TRUTH: np.array(["k", "k", "k"])}, columns)
