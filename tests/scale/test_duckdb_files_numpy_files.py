"""Arrays of NumPy's files are columns; nothing is unpickled."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.scale import TopLabelColumns, bin_table, bin_tables
from calibrant.scale.duckdb_files import numpy_table
from tests.cli.loading import both, loaded

Y, P = np.array([0, 1, 1]), np.array([0.25, 0.5, 0.75])


def test_arrays_of_one_file_are_columns_by_name(tmp_path):
    np.savez(tmp_path / "log.npz", y=Y, p=P, g=np.array(["a", "b", "a"]), classes=np.array(["no", "yes"]), n=3)
    assert bin_table(tmp_path / "log.npz", y_true="y", y_prob="p").predicted.tolist() == P.tolist()
    for found in both(tmp_path / "log.npz", by=("g",)):
        assert cal.brier(found.data) == pytest.approx(cal.brier(Y, P))
        assert set(found.by) == {"a", "b"}
    for name, words in (("classes", "has 2 rows, the others have 3"), ("n", "has 0 dimensions")):
        with pytest.raises(cal.InvalidPredictions, match=words):
            bin_tables(tmp_path / "log.npz", y_true="y", y_prob="p", by=name)


def test_matrices_are_columns_by_number(tmp_path):
    several = np.column_stack([1 - P, P])
    np.savez(tmp_path / "log.npz", y=Y, probs=several.astype(np.float16), f=np.asfortranarray(several.astype(">f8")))
    expected = cal.brier(cal.Multiclass(Y, several))
    for prob in ("probs_*", "f_*"):
        assert cal.brier(loaded(tmp_path / "log.npz", prob=(prob,))[0]) == pytest.approx(expected)
    found = bin_table(tmp_path / "log.npz", y_true="y", y_prob=["f_0", "f_1"], task=TopLabelColumns())
    assert found.n == 3
    np.save(tmp_path / "log.npy", np.column_stack([Y, P]))
    assert bin_table(tmp_path / "log.npy", y_true="0", y_prob="1").predicted.tolist() == P.tolist()
    np.save(tmp_path / "log.npy", np.array([(0, 0.5), (1, 0.25)], dtype=[("y", int), ("p", float)]))
    assert bin_table(tmp_path / "log.npy", y_true="y", y_prob="p").predicted.tolist() == [0.25, 0.5]


def test_what_is_no_array_is_refused(tmp_path):
    np.savez(tmp_path / "log.npz", y=Y, p=np.array([0.5, None, {}], dtype=object), q=P)
    assert bin_table(tmp_path / "log.npz", y_true="y", y_prob="q").n == 3
    with pytest.raises(cal.InvalidPredictions, match=r"The array 'p' .*allow_pickle=False"):
        bin_table(tmp_path / "log.npz", y_true="y", y_prob="p")
    (tmp_path / "log.npz").write_bytes((tmp_path / "log.npz").read_bytes()[:100])
    np.savez(tmp_path / "none.npz")
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2)))
    for name, words in (("log.npz", "as arrays of NumPy"), ("none.npz", "no arrays"), ("cube.npy", "3 dimensions")):
        with pytest.raises(cal.InvalidPredictions, match=rf"Cannot read '.*{name}'.*{words}"):
            numpy_table(str(tmp_path / name))
