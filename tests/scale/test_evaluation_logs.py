"""Readers of evaluation logs, on small files written here in the form of each harness, with its traps."""

import json
import math
import struct
import zipfile

import numpy as np
import pytest

import calibrant as cal
from calibrant.scale import evaluation_logs
from calibrant.scale.evaluation_logs import by_model, read_eval


def lines(path, *objects):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in objects), encoding="utf-8")
    return path


def sample(doc_id, lls, *, choices=(" three", " four"), filtered="none", **metrics):
    """A line of lm-evaluation-harness: numbers are text, the target too."""
    asked = {f"gen_args_{k}": {"arg_0": "2 + 2?", "arg_1": choice} for k, choice in enumerate(choices)}
    pairs = [[str(ll), "False"] for ll in lls]
    return {"doc_id": doc_id, "target": "1", "arguments": asked, "filtered_resps": pairs, "filter": filtered,
            "metrics": list(metrics), **metrics}  # fmt: skip


def harness(folder, task="arc_easy", model="my__model"):
    return folder / model / f"samples_{task}_2026-01-02T03-04-05.678901.jsonl"


def test_log_likelihoods_are_text_and_their_softmax_is_the_confidence(tmp_path):
    path = lines(harness(tmp_path), sample(7, [-2.0, -1.0], acc=1.0), sample(8, [-1.0, -1.0], acc=0.0))
    log = read_eval(path)
    assert log.columns["question"].tolist() == ["arc_easy/7", "arc_easy/8"]
    assert set(log.columns["model"]) == {"my__model"}
    np.testing.assert_allclose(log.columns["confidence"], [1 / (1 + math.exp(-1)), 0.5])
    assert log.data().correct.tolist() == [1, 0]
    assert log.data().group is None
    assert "metric 'acc'" in " ".join(log.notes)
    assert repr(log) == "<EvaluationLog, n=2, 1 model>"
    assert len(read_eval(tmp_path)) == 2  # a folder is searched


def test_acc_and_acc_norm_are_of_other_choices_and_have_other_confidences(tmp_path):
    path = lines(harness(tmp_path), sample(1, [-4.0, -6.0], choices=(" abcd", " abcdefgh"), acc=1.0, acc_norm=0.0))
    with pytest.raises(cal.InvalidPredictions, match="Choose one: 'acc', 'acc_norm'"):
        read_eval(path)
    plain, normed = (read_eval(path, correct=name).columns for name in ("acc", "acc_norm"))
    assert plain["confidence"][0] == pytest.approx(1 / (1 + math.exp(-2)))
    assert normed["confidence"][0] == pytest.approx(1 / (1 + math.exp(-0.25)))  # -4 / 4 against -6 / 8
    assert (plain["correct"][0], normed["correct"][0]) == (1, 0)


def test_filters_score_the_same_answer_twice(tmp_path):
    both = [
        {"doc_id": 1, "filtered_resps": ["4"], "filter": name, "metrics": ["exact_match"], "exact_match": value}
        for name, value in (("strict-match", 0.0), ("flexible-extract", 1.0))
    ]
    path = lines(harness(tmp_path, "gsm8k"), *both)
    with pytest.raises(
        cal.InvalidPredictions, match=r"twice.*'exact_match,flexible-extract', 'exact_match,strict-match'"
    ):
        read_eval(path, correct="exact_match")
    log = read_eval(path, correct="exact_match,strict-match")
    assert log.columns["correct"].tolist() == [0]
    assert np.isnan(log.columns["confidence"]).all()
    with pytest.raises(cal.InvalidPredictions, match="generated, not chosen"):
        log.data(drop_missing=True)


def test_mutual_information_doubles_the_list_and_pairs_are_no_outcomes(tmp_path):
    one = sample(1, [-1.0, -2.0, -5.0, -1.0], acc=1.0, acc_mutual_info=0.0, brier_score=[1, [0.2, 0.8]])
    path = lines(harness(tmp_path), one)
    with pytest.raises(cal.InvalidPredictions, match="Choose one: 'acc', 'acc_mutual_info'"):
        read_eval(path, correct="brier_score")
    assert read_eval(path, correct="acc").columns["confidence"][0] == pytest.approx(1 / (1 + math.exp(-1)))
    mutual = read_eval(path, correct="acc_mutual_info").columns["confidence"][0]
    assert mutual == pytest.approx(1 / (1 + math.exp(-5)))  # 4 against -1
    lines(harness(tmp_path), sample(1, [-1.0, -2.0], acc=0.5))
    with pytest.raises(cal.InvalidPredictions, match="Choose one: none"):
        read_eval(path)


def test_a_broken_line_is_named(tmp_path):
    path = lines(harness(tmp_path), sample(1, [-1.0, -2.0], acc=1.0))
    path.write_text(path.read_text() + '{"doc_id": 2, ')
    with pytest.raises(cal.InvalidPredictions, match=r"Line 2 of .* is not JSON"):
        read_eval(path)


HEAD = {"version": 2, "status": "success", "eval": {"model": "openai/m", "task": "mmlu"}}
TOP = [{"token": "A", "logprob": -0.1}, {"token": " B", "logprob": -2.4}, {"token": "The", "logprob": -5}]
SURE = math.exp(-0.1) / (math.exp(-0.1) + math.exp(-2.4))


def inspected(name="q/1", epoch=1, value="C", answer="A", **more):
    tokens = [
        {"token": "B", "logprob": -0.2, "top_logprobs": []},  # of the reasoning
        {"token": "A", "logprob": -0.1, "top_logprobs": TOP},
    ]
    return {"id": name, "epoch": epoch, "output": {"choices": [{"logprobs": {"content": tokens}}]},
            "scores": {"choice": {"value": value, "answer": answer}}} | more  # fmt: skip


def zipped(path, members, head=HEAD, start="header.json"):
    with zipfile.ZipFile(path, "w") as archive:
        if head is not None:
            archive.writestr(start, json.dumps(head))
        for name, one in members:
            archive.writestr(name, json.dumps(one))
    return path


def test_inspect_samples_of_several_epochs_are_one_question(tmp_path):
    members = [(f"samples/q/1_epoch_{k}.json", inspected(epoch=k, value=v)) for k, v in ((1, "C"), (2, "I"))]
    log = read_eval(zipped(tmp_path / "x.eval", members))
    assert log.columns["question"].tolist() == ["mmlu/q/1"] * 2
    assert log.columns["model"].tolist() == ["openai/m"] * 2
    np.testing.assert_allclose(log.columns["confidence"], SURE)  # of letters, at the last place of the answer
    data = log.data()
    assert data.correct.tolist() == [1, 0]
    assert data.group is not None
    again = tmp_path / "x.json"
    again.write_text(json.dumps({**HEAD, "samples": [one for _, one in members]}))
    np.testing.assert_array_equal(read_eval(again).columns["correct"], [1, 0])


def test_inspect_grades_errors_and_withdrawn_samples(tmp_path):
    members = [
        ("samples/1_epoch_1.json", inspected(1, value="P")),
        ("samples/2_epoch_1.json", inspected(2, value="N")),
        ("samples/3_epoch_1.json", inspected(3, error={"message": "x"})),
        ("samples/4_epoch_1.json", inspected(4, invalidation={"author": "x"})),
        ("samples/5_epoch_1/sample.json", inspected(5, value=True)),  # a large sample has a folder
        ("samples/5_epoch_1/metadata.json", {}),
        ("samples/6_epoch_1.json", inspected(6, value=float("nan"))),
    ]
    log = read_eval(zipped(tmp_path / "x.eval", members))
    np.testing.assert_array_equal(log.columns["correct"], [np.nan, 0, 1, np.nan])
    notes = " ".join(log.notes)
    assert "Left out 2 samples with an error" in notes
    assert "2 answers are partly right" in notes
    with pytest.raises(cal.InvalidPredictions, match=r"2 of 4 answers have no outcome.*: data\(drop_missing=True\)"):
        log.data()
    assert len(log.data(drop_missing=True)) == 2


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_duplicate_members_the_last_counts_and_running_logs_have_no_header(tmp_path):
    members = [("samples/1_epoch_1.json", inspected(1, value=v)) for v in ("I", "C")]
    log = read_eval(zipped(tmp_path / "x.eval", members, start="_journal/start.json"))
    assert log.columns["correct"].tolist() == [1]
    with pytest.raises(cal.InvalidPredictions, match="has no header"):
        read_eval(zipped(tmp_path / "y.eval", members, head=None))


def test_several_scorers_must_be_told_apart(tmp_path):
    scores = {
        "choice": {"value": "C", "answer": "A", "history": [{"value": "I"}]},  # an edited score: the value counts
        "model_graded_qa": {"value": 0.8},
        "parts": {"value": {"sure": 0.7, "short": 1}},
    }
    path = zipped(tmp_path / "x.eval", [("samples/1_epoch_1.json", inspected(1, scores=scores))])
    with pytest.raises(cal.InvalidPredictions, match=r"scorers \['choice', 'model_graded_qa', 'parts'\]. Say which"):
        read_eval(path)
    found = read_eval(path, correct="choice", judge="model_graded_qa", confidence="parts/sure").columns
    assert (found["correct"][0], found["judge"][0], found["confidence"][0]) == (1, 0.8, 0.7)
    with pytest.raises(cal.InvalidPredictions, match=r"name one, .*parts/sure"):
        read_eval(path, correct="choice", confidence="parts")
    with pytest.raises(cal.InvalidPredictions, match="no scorer 'none'"):
        read_eval(path, correct="none")


def test_zstandard_archives_are_read(tmp_path, monkeypatch):
    """Of several frames, as Inspect writes large samples; the stdlib writes none, so that methods are patched in."""
    pa = pytest.importorskip("pyarrow")
    path, wanted = tmp_path / "x.eval", evaluation_logs.ZSTANDARD
    with zipfile.ZipFile(path, "w") as archive:
        for name, one in (("header.json", HEAD), ("samples/1_epoch_1.json", inspected(1))):
            text = json.dumps(one).encode()
            frames = [bytes(pa.compress(part, codec="zstd", asbytes=True)) for part in (text[:20], text[20:])]
            archive.writestr(name, b"".join(frames))
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = content.find(mark)
        while place >= 0:
            struct.pack_into("<H", content, place + offset, wanted)
            place = content.find(mark, place + 4)
    path.write_bytes(content)
    if hasattr(zipfile, "ZIP_ZSTANDARD"):  # its check of lengths and sums would refuse the patched file
        monkeypatch.delattr(zipfile, "ZIP_ZSTANDARD")
    assert read_eval(path).columns["correct"].tolist() == [1]


def stat(name, value):
    return {"name": {"name": name, "split": "test"}, "count": 1, "sum": value, "mean": value}


def helm(folder, *records):
    folder.mkdir()
    spec = {"name": "mmlu:subject=x,model=m", "adapter_spec": {"model": "a/m", "method": "multiple_choice_joint"}}
    (folder / "run_spec.json").write_text(json.dumps(spec))
    (folder / "per_instance_stats.json").write_text(json.dumps(records))
    return folder


def test_helm_copies_models_without_log_probabilities_and_fractions(tmp_path):
    def record(name, trial=0, perturbation=None, **stats):
        made = {"instance_id": name, "train_trial_index": trial, "stats": [stat(*one) for one in stats.items()]}
        return made if perturbation is None else {**made, "perturbation": {"name": perturbation}}

    folder = helm(
        tmp_path / "run",
        record("id1", exact_match=1.0, max_prob=0.7, logprob=-1.0),
        record("id1", trial=1, exact_match=0.0, max_prob=0.6, logprob=-1.0),
        record("id1", perturbation="misspellings", exact_match=0.0),
        record("id2", exact_match=0.0, max_prob=1.0, logprob=0.0),
        record("id3", exact_match=0.5, max_prob=0.5, logprob=-2.0),
    )
    log = read_eval(folder)
    assert log.columns["question"].tolist() == ["mmlu/id1", "mmlu/id1", "mmlu/id2", "mmlu/id3"]
    np.testing.assert_array_equal(log.columns["correct"], [1, 0, 0, np.nan])
    np.testing.assert_array_equal(log.columns["confidence"], [0.7, 0.6, np.nan, 0.5])
    notes = " ".join(log.notes)
    for said in ("1 perturbed copies", "1 answers have log-probabilities of 0", "1 answers are partly right"):
        assert said in notes
    assert len(np.unique(log.data(drop_missing=True).group)) == 1
    with pytest.raises(cal.InvalidPredictions, match=r"no statistic 'f1'.*exact_match"):
        read_eval(folder, correct="f1")
    alone = read_eval(helm(tmp_path / "alone", record("id1", exact_match=1.0)))
    with pytest.raises(cal.InvalidPredictions, match=r"No answer .*No answer has the statistic 'max_prob'"):
        alone.data(drop_missing=True)


def request(name, *tokens, status=200, error=None, model="m"):
    body = {"model": model, "choices": [{"finish_reason": "stop", "logprobs": {"content": list(tokens)}}]}
    response = None if error else {"status_code": status, "body": body}
    return {"id": "b", "custom_id": name, "response": response, "error": error}


def test_batch_outputs_need_the_right_answers(tmp_path):
    top = [{"token": " B", "logprob": -0.3}, {"token": "B", "logprob": -3.0}, {"token": " A", "logprob": -1.8}]
    said = [{"token": "A", "logprob": -0.1, "top_logprobs": []}, {"token": " B", "logprob": -0.3, "top_logprobs": top}]
    path = lines(
        tmp_path / "b.jsonl",
        request("q2", *said),
        request("q1", *said),
        request("q3", error={"code": "x"}),
        request("q4", status=500),
        request("q5"),
    )
    with pytest.raises(cal.InvalidPredictions, match="does not hold the right answers"):
        read_eval(path)
    log = read_eval(path, answers={"q1": "B", "q2": "A", "q5": "A"})
    b, a = math.exp(-0.3) + math.exp(-3), math.exp(-1.8)
    np.testing.assert_array_equal(log.columns["correct"], [0, 1, np.nan])  # the last letter is the answer
    np.testing.assert_allclose(log.columns["confidence"], [b / (a + b)] * 2 + [np.nan])
    assert "Left out 2 requests that failed" in " ".join(log.notes)
    assert f"at least {a + b:.0%} of the probability" in " ".join(log.notes)


def test_models_are_paired_by_question(tmp_path):
    for model, order in (("a", (1, 2, 3)), ("b", (3, 1, 2))):
        answers = [sample(k, [-1.0 * k, -2.0], acc=float(k == 2)) for k in order]
        lines(harness(tmp_path, model=model), *answers)
    models = read_eval(tmp_path).models()
    assert list(models) == ["a", "b"]
    np.testing.assert_array_equal(models["a"].correct, models["b"].correct)
    np.testing.assert_allclose(models["a"].confidence, models["b"].confidence)
    assert models["a"].group is None
    lines(harness(tmp_path, model="b"), sample(3, [-1.0, -2.0], acc=1.0))
    with pytest.raises(cal.InvalidPredictions, match=r"but 2 of 3 do not .*first: 'arc_easy/1', a: 1, b: 0"):
        read_eval(tmp_path).models()
    models = read_eval(tmp_path).models(drop_missing=True)
    assert [len(one) for one in models.values()] == [1, 1]


def test_answers_of_one_question_are_one_cluster():
    data = cal.Confidence([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6], weight=[1, 2, 3, 4])
    found = by_model(data, model=np.array(["a", "b", "a", "b"]), question=np.array([1, 1, 1, 1]))
    np.testing.assert_array_equal(found["b"].confidence, [0.8, 0.6])
    np.testing.assert_array_equal(found["b"].weight, [2, 4])
    assert found["a"].group.tolist() == [0, 0]


def test_other_files_are_no_logs(tmp_path):
    lines(tmp_path / "rows.jsonl", {"y": 1, "p": 0.4})
    (tmp_path / "broken.jsonl").write_text("{")
    (tmp_path / "other.json").write_text("[1, 2]")
    for name in ("rows.jsonl", "broken.jsonl", "other.json", ""):
        with pytest.raises(cal.InvalidPredictions, match="holds no log of"):
            read_eval(tmp_path / name)
