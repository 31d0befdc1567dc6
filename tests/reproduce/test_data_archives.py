"""Archives, folders and tables of public repositories: small ones of the same form, converted."""

import gzip
import pickle
import zipfile

import numpy as np
import pytest
from reproduce.data_archives import CONVERTERS, array_of, four_classes, frame_of, quantile_forecasts, sampled_forecasts

from reproduce import data


def ragged(*rows):
    """An array of arrays, as detections per image are stored."""
    held = np.empty(len(rows), object)
    held[:] = [np.array(row) for row in rows]
    return held


def test_the_record_of_a_network(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, predictions=np.array([[0.25, 0.75]]), ground_truth=np.array([1]))
    found = CONVERTERS["record"]([path])
    assert found["probs"].dtype == np.float32
    assert found["probs"].tolist() == [[0.25, 0.75]]
    assert found["labels"].tolist() == [1]


def test_detections_know_their_image(tmp_path):
    path = tmp_path / "d.npz"
    np.savez(
        path, scores=ragged([0.5, 0.25], [], [0.75]), matched=ragged([1, 0], [], [1]), classes=ragged([3, 3], [], [7])
    )
    found = CONVERTERS["detections"]([path])
    assert found["conf"].tolist() == [0.5, 0.25, 0.75]
    assert found["correct"].tolist() == [1, 0, 1]
    assert found["category"].tolist() == [3, 3, 7]
    assert found["group"].tolist() == [0, 0, 2]


def test_nothing_but_arrays_is_unpickled(tmp_path):
    path, held = tmp_path / "bad.npz", np.empty(1, object)
    held[0] = print
    np.savez(path, scores=held)
    with pytest.raises(pickle.UnpicklingError, match=r"builtins\.print"):
        array_of(path, "scores")


def test_probabilities_beside_true_and_predicted_classes(tmp_path):
    (tmp_path / "p.csv").write_text("2.5e-01,7.5e-01\n5e-01,5e-01\n", encoding="utf8")
    (tmp_path / "y.csv").write_text("1,1\n0,1\n", encoding="utf8")
    found = CONVERTERS["vectors_and_two_labels"]([tmp_path / "p.csv", tmp_path / "y.csv"])
    assert found["probs"].tolist() == [[0.25, 0.75], [0.5, 0.5]]
    assert found["labels"].tolist() == [1, 0]
    assert found["pred_file"].tolist() == [1, 1]


def test_two_arrays(tmp_path):
    for name, held in (("p.npy", np.array([[0.5, 0.5]])), ("y.npy", np.array([1], np.uint16))):
        np.save(tmp_path / name, held)
    found = CONVERTERS["two_arrays"]([tmp_path / "p.npy", tmp_path / "y.npy"])
    assert (found["probs"].dtype, found["labels"].dtype) == (np.float32, np.int16)


def test_later_years_follow_and_must_be_the_same_rows(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow reads these files")
    from pyarrow import parquet

    first = {"id": [0], "predicted_probability": [0.5], "employed": [1], "year": [2015]}
    later = {"id": [1], "predicted_probability": [0.25], "year": [2016]}
    paths = [tmp_path / f"{number}.pq" for number in range(3)]
    for path, held in zip(paths, (first, later, {"id": [1], "employed": [0]}), strict=True):
        parquet.write_table(pa.table(held), path)
    found = CONVERTERS["employment"](paths)
    assert found["prob"].tolist() == [0.5, 0.25]
    assert found["labels"].tolist() == [1, 0]
    assert found["year"].tolist() == [2015, 2016]
    parquet.write_table(pa.table({"id": [2], "employed": [0]}), paths[2])
    with pytest.raises(ValueError, match="not the same"):
        CONVERTERS["employment"](paths)


def test_answers_are_numbered_through_the_parts(tmp_path):
    parts = {
        "arc_A-q500to501_no_abst_norm_logits_first_prompt.txt": "Wrong 0.5",
        "arc_A-q0to1_no_abst_norm_logits_first_prompt.txt": "Correct 0.75",
        "arc_A-q0to1_no_abst_norm_logits_second_prompt.txt": "Unparseable 0.25",
        "arc_A-q0to1_no_abst_raw_logits_first_prompt.txt": "Correct 9",
    }
    for name, row in parts.items():
        (tmp_path / name).write_text(f"grade confidence_level\n{row}\n", encoding="utf8")
    found = CONVERTERS["answers"]([tmp_path])
    assert found["conf"].tolist() == [0.75, 0.5, 0.25]
    assert found["correct"].tolist() == [1, 0, 255]
    assert found["question"].tolist() == [0, 500, 0]
    assert found["prompt"].tolist() == [0, 0, 1]
    assert found["model_names"].tolist() == ["A"]


def test_tables_of_r():
    pandas = pytest.importorskip("pandas", reason="tables of R are read into pandas")
    frame = pandas.DataFrame(
        {"obs": ["F", "VF"], "VF": [0.5, 1], "F": [0.5, 0], "M": [0, 0], "L": [0, 0], "Resample": ["Fold02", "Fold01"]}
    )
    found = four_classes(frame)
    assert found["labels"].tolist() == [1, 0]
    assert found["fold"].tolist() == [1, 0]
    same = {"location": "DE", "target_end_date": 1.0, "forecast_date": 0.0, "model": "m", "horizon": 1.0}
    rows = [
        {**same, "target_type": "Deaths", "observed": 7.0, "at": 0.5, "predicted": 6},
        {**same, "target_type": "Cases", "observed": 9.0, "at": 0.5, "predicted": 8},
        {**same, "target_type": "Cases", "observed": 9.0, "at": 0.25, "predicted": 5},
        {**same, "target_type": "Deaths", "observed": 7.0, "at": 0.25, "predicted": 4},
        {**same, "target_type": "Cases", "observed": 3.0, "at": None, "predicted": None},
    ]
    by_quantile = quantile_forecasts(pandas.DataFrame(rows).rename(columns={"at": "quantile_level"}))
    assert by_quantile["target"].tolist() == ["Cases", "Deaths"]
    assert by_quantile["quantiles"].tolist() == [[5, 8], [4, 6]]
    assert by_quantile["levels"].tolist() == [0.25, 0.5]
    assert by_quantile["y"].tolist() == [9, 7]
    by_sample = sampled_forecasts(pandas.DataFrame(rows).rename(columns={"at": "sample_id"}))
    assert by_sample["samples"].tolist() == [[5, 8], [4, 6]]


def test_a_file_of_r_without_its_reader_names_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rdata", None)
    with pytest.raises(SystemExit, match="pip install rdata"):
        frame_of(tmp_path / "a.rda")


def test_the_corpus_of_drug_interactions(tmp_path):
    document = """<document><sentence id="DDI-MedLine.d1.s0" text="A&#xd;&#xa;and B">
        <entity id="e0" charOffset="0-0" type="drug" text="A"/><entity id="e1" charOffset="6-6" type="brand" text="B"/>
        <pair e1="e0" e2="e1" ddi="true" type="effect"/></sentence></document>"""
    path = tmp_path / "corpus.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("DDICorpus/Train/MedLine/1.xml", document)
        archive.writestr("DDICorpus/Test/Test for DrugNER task/MedLine/2.xml", document)
    sentences, pairs = (CONVERTERS[name]([path]).decode().splitlines() for name in ("train_sentences", "train_pairs"))
    assert sentences == ["sentence_id\ttext", "DDI-MedLine.d1.s0\tA  and B"]
    assert pairs[1] == "DDI-MedLine.d1.s0\tMedLine\t1\teffect\t0-0\tdrug\tA\t6-6\tbrand\tB"
    assert CONVERTERS["test_pairs"]([path]).count(b"\n") == 1


def test_bytes_are_packed_and_compared(tmp_path):
    path = tmp_path / "labels"
    path.write_bytes(b"abc")
    name = "pu/mnist/t10k-labels-idx1-ubyte.gz"
    assert "DIFFERS" in data.convert(name, [path], tmp_path)
    assert gzip.decompress((tmp_path / name).read_bytes()) == b"abc"
