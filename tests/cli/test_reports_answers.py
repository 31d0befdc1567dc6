"""Answers with a confidence and logs of evaluations on the command line: columns, clusters, models, logs."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.scale.test_evaluation_logs import harness, helm, lines, request, sample, stat

ANSWERS = "--correct right --confidence sure"


@pytest.fixture(scope="module")
def answers():
    rng = np.random.default_rng(4)
    difficulty = rng.normal(size=150)
    frames = []
    for model, factor in (("a/b", 3.0), ("c", 1.0)):
        z = 0.5 + difficulty + rng.normal(size=150)
        right = (rng.random(150) < 1 / (1 + np.exp(-z))).astype(int)
        sure = 1 / (1 + np.exp(-factor * z))
        frames.append(pd.DataFrame({"right": right, "sure": sure, "question": np.arange(150), "who": model}))
    return pd.concat(frames).sample(frac=1, random_state=1)


@pytest.fixture
def run(invoke_in, tmp_path, answers):
    answers.to_csv(tmp_path / "answers.csv", index=False)
    return lambda command, *more: invoke_in(tmp_path, *command.split(), *more)


def test_rows_are_answers_and_clusters_are_told(run):
    code, out, err = run(f"report answers.csv {ANSWERS} --cluster question")
    assert code == 0, err
    assert "300 answers · accuracy" in out
    assert "150 groups of dependent rows" in out
    code, out, err = run("measure answers.csv --correct right --confidence sure --json")
    assert code == 0, err


def test_a_report_per_model_and_their_comparison(run, tmp_path):
    code, out, err = run(f"report answers.csv {ANSWERS} --cluster question --model who -o page.html")
    assert code == 0, err
    assert {path.name for path in tmp_path.glob("*.html")} == {"page-a-b.html", "page-c.html"}
    assert "a/b: " in out
    assert "c minus a/b" in out
    assert "groups of dependent rows" not in (tmp_path / "page-c.html").read_text()  # each question once
    code, out, err = run(f"report answers.csv {ANSWERS} --cluster question --model who --json")
    found = json.loads(out)
    assert list(found["reports"]) == ["a/b", "c"]
    assert found["comparisons"][0]["difference"] < 0
    code, out, err = run(f"compare answers.csv {ANSWERS} --cluster question --model who --json")
    assert json.loads(out) == found["comparisons"]


def test_what_a_comparison_of_answers_needs(run, tmp_path, answers):
    for options, message in (
        (f"{ANSWERS} --model who", "--cluster names the column of questions"),
        (f"{ANSWERS} --cluster question", "Name two models"),
        ("--correct right --confidence question", "(--confidence) is outside"),
    ):
        code, _, err = run(f"compare answers.csv {options}")
        assert code == 2
        assert message in " ".join(err.split())
    answers.iloc[1:].to_csv(tmp_path / "answers.csv", index=False)
    code, _, err = run(f"compare answers.csv {ANSWERS} --cluster question --model who")
    assert code == 2
    assert "1 of 150 do not have the same number of answers" in " ".join(err.split())
    code, out, err = run(f"compare answers.csv {ANSWERS} --cluster question --model who --drop-missing")
    assert (code, "Left out 1 answers to questions" in err, "c minus a/b" in out) == (0, True, True)
    code, _, err = run(f"report answers.csv {ANSWERS} --cluster question --model who")
    assert code == 0
    assert "No comparison." in err


def test_logs_need_no_options_and_say_what_was_found(invoke_in, tmp_path, answers):
    for model, part in answers.groupby("who"):
        logit = np.log(part.sure / (1 - part.sure))
        made = [
            sample(int(q), [float(z), 0.0], acc=float(y))
            for q, z, y in zip(part.question, logit, part.right, strict=True)
        ]
        lines(harness(tmp_path / "logs", model=model.replace("/", "__")), *made)
    code, out, err = invoke_in(tmp_path, "compare", "logs")
    assert code == 0, err
    assert "correct: metric 'acc'" in err
    assert "c minus a__b" in out
    code, out, err = invoke_in(tmp_path, "measure", "logs")
    assert code == 0, err
    path = harness(tmp_path / "logs", model="c")
    code, out, err = invoke_in(tmp_path, "report", path)
    assert code == 0, err
    assert "150 answers" in out
    raw = "CASE WHEN doc_id >= 0 THEN 0.4 END"  # columns of the file itself can still be named
    code, out, err = invoke_in(tmp_path, "measure", path, "--truth", "acc", "--prob", raw)
    assert code == 0, err


def test_answers_without_outcome_or_confidence_are_left_out_if_asked(invoke_in, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(60)
    right = (rng.random(60) < p).astype(float)
    right[7] = 0.5  # partly right

    def records(name):
        return [
            {"instance_id": f"id{k}", "stats": [stat("exact_match", y), stat(name, q)]}
            for k, (q, y) in enumerate(zip(p, right, strict=True))
        ]

    helm(tmp_path / "run", *records("max_prob"))
    helm(tmp_path / "none", *records("other"))
    code, _, err = invoke_in(tmp_path, "report", "run")
    assert code == 2
    assert "1 of 60 answers have no outcome or no confidence; leave them out: --drop-missing." in " ".join(err.split())
    code, out, err = invoke_in(tmp_path, "report", "run", "--drop-missing")
    assert code == 0, err
    assert "59 answers" in out
    code, _, err = invoke_in(tmp_path, "report", "none", "--drop-missing")
    assert code == 2
    assert "No answer has the statistic 'max_prob': no confidence." in " ".join(err.split())


def test_a_batch_is_read_with_a_file_of_right_answers(invoke_in, tmp_path):
    rng = np.random.default_rng(0)
    made = []
    for k in range(80):
        p = rng.uniform(0.3, 0.9)
        top = [{"token": "A", "logprob": np.log(p)}, {"token": "B", "logprob": np.log(1 - p)}]
        made.append(request(f"q{k}", {"token": "A", "logprob": np.log(p), "top_logprobs": top}))
    lines(tmp_path / "batch.jsonl", *made)
    code, _, err = invoke_in(tmp_path, "report", "batch.jsonl")
    assert code == 2
    assert "columns custom_id and answer" in " ".join(err.split())
    right = [{"custom_id": f"q{k}", "answer": "AB"[k % 3 == 0]} for k in range(80)]
    pd.DataFrame(right).to_csv(tmp_path / "key.csv", index=False)
    code, out, err = invoke_in(tmp_path, "report", "batch.jsonl", "key.csv")
    assert code == 0, err
    assert "80 answers · accuracy 66" in out
    pd.DataFrame(right).rename(columns={"answer": "letter"}).to_csv(tmp_path / "key.csv", index=False)
    code, _, err = invoke_in(tmp_path, "report", "batch.jsonl", "key.csv")
    assert code == 2
    assert "no column 'answer'" in err


def test_a_map_is_applied_to_a_log(invoke_in, tmp_path, answers):
    part = answers[answers.who == "c"]
    logit = np.log(part.sure / (1 - part.sure))
    made = [sample(k, [float(z), 0.0], acc=float(y)) for k, (z, y) in enumerate(zip(logit, part.right, strict=True))]
    log = harness(tmp_path / "logs", model="c")
    lines(log, *made)
    code, _, err = invoke_in(tmp_path, "recalibrate", log, "-o", "map.json")
    assert code == 0, err
    code, _, err = invoke_in(tmp_path, "apply", "map.json", log, "-o", "new.csv")
    assert code == 0, err
    new = pd.read_csv(tmp_path / "new.csv")
    np.testing.assert_allclose(new.confidence, part.sure.clip(lower=1 - part.sure))
    assert new.confidence_recalibrated.between(0, 1).all()
    assert len(new) == len(part)
