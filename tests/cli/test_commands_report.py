"""`calibrant report`, for every task."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.cli.tasks import TASKS

SENTENCES = {
    "event": "Predicted probabilities are too extreme",
    "classes by pattern": "Over-confident",
    "classes by name": "Over-confident",
    "spread": "Predicted spread is too narrow",
    "quantiles": "Predicted intervals are too narrow",
    "quantiles by pattern": "Predicted intervals are too narrow",
    "members": "Predicted spread is too narrow",
    "unlabeled": "positive",
    "single sample": "positive",
}


@pytest.mark.no_cover
@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_verdict_and_a_page(invoke, tmp_path, task):
    code, out, err = invoke("report all.parquet", TASKS[task], "-o report.html")
    assert code == 0, err
    assert SENTENCES[task] in out
    page = (tmp_path / "report.html").read_text(encoding="utf8")
    assert page.startswith("<!doctype html>")


@pytest.mark.no_cover
def test_members_are_reported_by_group_as_json(invoke):
    code, out, err = invoke("report all.parquet", TASKS["members"], "--by g --json")
    assert code == 0, err
    assert json.loads(out)
    assert "even" in out


def test_judged_answers(invoke, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(900)
    right = rng.random(900) < p**2
    known = rng.random(900) < 0.25
    frame = {"q": np.arange(900) // 3, "m": np.arange(900) % 3, "p": p, "w": 1.0, "human": np.where(known, right, None)}
    scores = {f"s{k}": np.where(rng.random(900) < 0.9, right, ~right) * 1.0 for k in (1, 2)}
    pd.DataFrame(frame | scores).to_csv(tmp_path / "answers.csv", index=False)
    options = "--truth human --prob p --judge s1 --judge s2"
    code, out, err = invoke("report answers.csv", options, "--cluster q --by m --label-weight w --json")
    assert code == 0, err
    found = json.loads(out)
    assert found["kind"] == "judged"
    assert found["verdict"]["direction"] == "over-confident"
    labels = found["sections"][-1]
    assert [one["name"] for one in labels["judges"]] == ["s1", "s2"]
    named = 'cal.Judged(table["human"], table["p"], judge=table[["s1", "s2"]], weight=table["w"], group=table["q"]'
    assert named in labels["code"]
    code, out, _ = invoke("measure answers.csv", options, "--fail-above 0.01")
    assert code == 1
    assert "Accuracy" in out
    assert "rejected" in invoke("test answers.csv", options)[1]


def test_groups_of_judged_answers_are_measured(invoke, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(900)
    right, model = rng.random(900) < p**2, np.repeat(["old", "new", "mute"], 300)
    human = np.where((rng.random(900) < 0.3) & (model != "mute"), right, None)
    frame = {"m": model, "p": p, "human": human, "score": np.where(rng.random(900) < 0.9, right, ~right) * 1}
    pd.DataFrame(frame).to_csv(tmp_path / "answers.csv", index=False)
    options = "--truth human --prob p --judge score --by m"
    code, out, err = invoke("measure answers.csv", options, "--json")
    assert code == 0, err
    groups = {one["group"]: one for one in json.loads(out) if "group" in one}
    assert groups["mute"]["value"] is groups["mute"]["interval"] is None
    assert groups["mute"]["method"] == "no gold label"
    assert groups["old"]["interval"]["low"] > 0
    assert "no gold label" in invoke("measure answers.csv", options)[1]
    code, _, err = invoke("measure answers.csv", options, "--per-group --fail-above 0.1")
    assert code == 2
    assert "leave out --per-group" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--truth human --prob p --label-weight w", "--label-weight goes with --judge"),
        ("--truth human --prob p --judge s1 --weight w", "--label-weight says how"),
        ("--truth human --prob p --judge s1 --drop-missing", "leave it out"),
        ("--truth human --mean p --std w --judge s1", "not for multiclass data"),
    ],
)
def test_options_that_do_not_go_with_a_judge(invoke, tmp_path, options, words):
    (tmp_path / "answers.csv").write_text("human,p,w,s1\n1,0.2,1,0\n", encoding="utf8")
    code, _, err = invoke("report answers.csv", options)
    assert code == 2
    assert words in err
