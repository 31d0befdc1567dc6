"""Public predictions: where they come from, how they are converted, and what is said when they are missing."""

import gzip
import pickle

import numpy as np
import pytest
from reproduce.data_conversion import CONVERTERS, columns, digest, pickled_arrays

from reproduce import data


def written(folder, name, text):
    (folder / name).write_text(text, encoding="utf8")
    return folder / name


def test_top_labels(tmp_path):
    path = written(tmp_path, "a.csv", "true_label,pred_label,confidence\n3,3,0.75\n1,2,0.5\n")
    found = CONVERTERS["top_labels"]([path])
    assert found["conf"].tolist() == [0.75, 0.5]
    assert found["pred"].tolist() == [3, 2]
    assert found["labels"].tolist() == [3, 1]


def test_vectors_and_labels_count_from_0(tmp_path):
    paths = [written(tmp_path, "p.csv", "0.25,0.75\n0.5,0.5\n"), written(tmp_path, "y.csv", "2\n1\n")]
    found = CONVERTERS["vectors_and_labels"](paths)
    assert found["probs"].tolist() == [[0.25, 0.75], [0.5, 0.5]]
    assert found["labels"].tolist() == [1, 0]


def test_a_drawn_game_is_not_won(tmp_path):
    path = written(tmp_path, "g.csv", "season,prob1,prob1_outcome\n2020,0.5,1\n2021,0.25,0.5\n2021,0.75,0\n")
    found = CONVERTERS["games"]([path])
    assert found["labels"].tolist() == [1, 0, 0]
    assert found["prob"].tolist() == [0.5, 0.25, 0.75]


@pytest.mark.parametrize(("name", "dtype"), [("features_and_target", np.float32), ("features_in_double", np.float64)])
def test_features_and_target(tmp_path, name, dtype):
    texts = {"data.txt": "1 2 3\n4 5 6\n", "x.txt": "0\n2\n", "y.txt": "1\n"}
    found = CONVERTERS[name]([written(tmp_path, *each) for each in texts.items()])
    assert found["X"].tolist() == [[1, 3], [4, 6]]
    assert found["X"].dtype == dtype
    assert found["target"].tolist() == [2, 5]


def test_errors_whose_uncertainty_is_nothing_are_dropped(tmp_path):
    path = written(tmp_path, "e.csv", '"E","uE","X"\n1,0.5,7\n-1,0.25,8\n2,1e-9,9\n')
    found = CONVERTERS["errors_and_uncertainty"]([path])
    assert found["y"].tolist() == [1, -1]
    assert found["sigma"].tolist() == [0.5, 0.25]
    assert found["x"].tolist() == [7, 8]


def test_predicted_variances_become_standard_deviations(tmp_path):
    names = "index,formula,E_,prediction,uncertainty_aleatoric,uncertainty_epistemic,uncertainty_total"
    path = written(tmp_path, "q.csv", f"{names}\n1,CH4,-7,-6,3,1,4\n")
    assert CONVERTERS["ensemble_variances"]([path])["sigma"].tolist() == [2]


def test_partition_coefficients(tmp_path):
    path = written(tmp_path, "l.csv", ",smiles,logP,uq,y_pred,error\n0,CC,1.5,0.25,1,-0.5\n")
    found = CONVERTERS["log_p"]([path])
    assert [found[name].tolist() for name in ("y", "mu", "sigma")] == [[1.5], [1.0], [0.25]]
    path = written(tmp_path, "s.csv", ",smiles,logP,uq_100,uq_500,y_pred_100,y_pred_500\n0,CC,1.5,0.5,0.25,1,2\n")
    found = CONVERTERS["log_p_by_size"]([path])
    assert found["sigma"].tolist() == [[0.5, 0.25]]
    assert found["mu"].tolist() == [[1, 2]]
    assert found["train_size"].tolist() == [100, 500]


def test_pickles_of_arrays_are_read(tmp_path):
    pair = (np.array([[1.0, 2.0]], np.float32), np.array([[1]]))
    one, two = tmp_path / "one.p", tmp_path / "two.p"
    one.write_bytes(pickle.dumps(pair))
    two.write_bytes(pickle.dumps((pair, pair)))
    assert CONVERTERS["pickled_logits"]([one])["labels"].tolist() == [1]
    assert CONVERTERS["pickled_folds"]([two])["logits_test"].tolist() == [[1, 2]]


def test_pickles_of_anything_else_are_refused(tmp_path):
    path = tmp_path / "bad.p"
    path.write_bytes(pickle.dumps(print))
    with pytest.raises(pickle.UnpicklingError, match=r"builtins\.print"):
        pickled_arrays(path)


def test_the_digest_is_of_the_content_alone(tmp_path):
    arrays = {"b": np.arange(3), "a": np.ones(2, np.float32)}
    for save, name in ((np.savez, "plain.npz"), (np.savez_compressed, "small.npz")):
        save(tmp_path / name, **arrays)
        assert data.sha256_of(tmp_path / name) == digest(dict(reversed(arrays.items())))
    assert digest({**arrays, "b": np.array([0, 1, 3])}) != digest(arrays)
    (tmp_path / "c.gz").write_bytes(gzip.compress(b"abc"))
    assert data.sha256_of(tmp_path / "c.gz").startswith("ba7816bf")


def test_every_source_is_named(tmp_path):
    known = data.sources()
    assert len({source.file for source in known}) == len(known) > 70
    for source in known:
        assert source.repository
        assert source.paths
        assert len(source.sha256) == 64
        assert len(source.commit) == 40 or source.repository.startswith("npm ") or not source.converter
        assert source.converter in {"", *data.CONVERTERS}
        assert source.file in source.how or not source.converter
    # Features of pictures, computed once: their code was not kept, and other features would give other numbers.
    assert [source.file for source in known if not source.converter] == ["pu/cifar10/cifar10_hog_pca80.npz"]


def test_what_is_missing_is_said_with_its_source_and_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    assert data.main([]) == 1
    text = capsys.readouterr().out
    assert "MISSING classification/toplabel_snacks.npz" in text
    assert "git clone https://github.com/hollance/reliability-diagrams" in text
    assert "--convert classification/toplabel_snacks.npz reliability-diagrams/results/other/snacks.csv" in text
    assert data.folder("pu") is None
    assert "Not run" in data.missing("pu")


def test_a_conversion_that_is_not_the_stored_file_says_so(tmp_path, capsys):
    path = written(tmp_path, "a.csv", "true_label,pred_label,confidence\n3,3,0.75\n")
    name = "classification/toplabel_snacks.npz"
    assert data.main(["--convert", name, str(path), "--to", str(tmp_path)]) == 1
    assert "DIFFERS" in capsys.readouterr().out
    assert np.load(tmp_path / name)["conf"].tolist() == [0.75]
    with pytest.raises(SystemExit, match="no converter"):
        data.convert("pu/unknown.npz", [path], tmp_path)


def test_shared_files_are_what_the_results_were_made_from(shared_data):
    for source in data.sources()[::9]:
        path = shared_data / source.file
        if path.exists():
            assert data.sha256_of(path) == source.sha256, source.file


def test_columns_of_a_file_without_rows(tmp_path):
    assert columns(written(tmp_path, "e.csv", "a,b\n")) == {"a": [], "b": []}
