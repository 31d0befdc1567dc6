"""The snippets of a page carry the user's own file, columns and options, and run as they stand."""

import html
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import calibrant as cal
from calibrant.cli.columns import Columns
from calibrant.cli.commands import app
from calibrant.cli.reports import commands, of_model, with_own_commands
from tests.reporting.sections.running import run_commands

RNG = np.random.default_rng(0)
N = 600


def _binary():
    p = RNG.random(N)
    lost = np.where(RNG.random(N) < p**2, "lost", "kept")
    return {"churn state": lost, "score": 100 * p, "year": np.repeat([2025, 2026], N // 2), "w": np.ones(N)}


def _classes():
    p = RNG.dirichlet([1, 1, 1], N)
    sharp = p**2.5 / (p**2.5).sum(axis=1, keepdims=True)
    label = [["cat", "dog", "owl"][RNG.choice(3, p=row)] for row in p]
    return {"label": label, **{f"p_{name}": sharp[:, k] for k, name in enumerate(("cat", "dog", "owl"))}}


def _normal():
    std = np.exp(0.3 * RNG.normal(size=N))
    return {"load": 2 * std * RNG.normal(size=N), "mu": np.zeros(N), "sigma": std}


def _quantiles():
    return {
        "sales": 2 * RNG.normal(size=N),
        "q_0.1": -1.28 * np.ones(N),
        "q_0.5": np.zeros(N),
        "q_0.9": 1.28 * np.ones(N),
    }


def _members():
    return {"rain": 3 * RNG.normal(size=N), **{f"m_{k}": RNG.normal(size=N) for k in range(9)}}


def _answers():
    p = RNG.uniform(0.5, 1, N)
    return {"right": (RNG.random(N) < p - 0.2).astype(int), "sure": p, "question": np.arange(N) // 2}


CASES = {
    "binary": (
        _binary, ".csv",
        ["--truth", "churn state", "--prob", "score", "--positive", "lost", "--percent", "--where", "year = 2026"],
    ),
    "classes": (_classes, ".parquet", ["--truth", "label", "--prob", "p_*"]),
    "spread": (_normal, ".csv", ["--truth", "load", "--mean", "mu", "--std", "sigma"]),
    "quantiles": (_quantiles, ".csv", ["--truth", "sales", "--quantiles", "q_*"]),
    "members": (_members, ".csv", ["--truth", "rain", "--members", "m_*"]),
    "answers": (_answers, ".csv", ["--correct", "right", "--confidence", "sure", "--cluster", "question"]),
}  # fmt: skip


@pytest.mark.parametrize("task", CASES)
def test_the_snippets_of_a_page_run_as_they_stand(task, tmp_path, monkeypatch):
    made, suffix, options = CASES[task]
    frame, file = pd.DataFrame(made()), tmp_path / f"my data{suffix}"
    for path in (file, tmp_path / f"new{suffix}"):
        frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["report", file.name, *options, "-o", "page.html"])
    assert done.exit_code == 0, done.output
    snippets = [
        html.unescape(text) for text in re.findall(r"<pre[^>]*>(.*?)</pre>", (tmp_path / "page.html").read_text(), re.S)
    ]
    shell = snippets[0]
    assert f"calibrant recalibrate 'my data{suffix}'" in shell
    for option in options:
        assert option in shell
    run_commands(shell, tmp_path)
    read = pd.read_csv if suffix == ".csv" else pd.read_parquet
    found = read(tmp_path / f"recalibrated{suffix}")
    added = [name for name in found.columns if name.endswith("_recalibrated")]
    assert added
    assert len(found) == N
    assert not np.allclose(found[added[-1]], found[added[-1].removesuffix("_recalibrated")])
    if len(snippets) > 1:
        space = {"new": frame, "p_new": frame.filter(like="p_").to_numpy()}
        exec(snippets[1], space)
        last = np.asarray(space["recalibrated"]).reshape(N, -1)[:, -1]
        scale = 100 if "--percent" in options else 1
        np.testing.assert_allclose(scale * last, found[added[-1]], rtol=1e-9)


def test_a_change_over_time_and_a_condition_are_both_in_the_command():
    month, p = np.repeat(np.arange(1, 13), 500), RNG.uniform(0.1, 0.6, 6000)
    y = RNG.random(6000) < np.where(month < 8, p, 0.5 * p)
    found = cal.report(cal.Binary(y, p), time={"month": month})
    assert found.recalibration.command == ""
    own = with_own_commands(found, ["a.csv"], Columns("y", ("p",), where="kept or new"))
    assert "--where '(kept or new) and month >= 8'" in own.recalibration.command
    assert "--where 'month >= 8'" in with_own_commands(found, ["a.csv"], Columns("y", ("p",))).recalibration.command


def test_what_cannot_be_named_in_the_second_command_is_left_out():
    assert "apply" not in commands("Platt", ["a.csv"], Columns("y", ("score / 100",)))
    assert commands("Platt", ["a.tsv"], Columns("y", ("p",))).endswith(
        "new.tsv --prob p \\\n    -o recalibrated.parquet"
    )


@pytest.mark.no_cover
@pytest.mark.parametrize(("number", "named"), [(12, True), (13, False)])
def test_up_to_twelve_columns_are_named_in_python(number, named):
    p = RNG.dirichlet(np.ones(number), 400)
    found = cal.report(cal.Multiclass(RNG.integers(number, size=400), p))
    columns = Columns("y", tuple(f"p_{k}" for k in range(number)))
    assert ("new[[" in with_own_commands(found, ["a.csv"], columns).recalibration.code) is named


def test_the_rows_of_one_model_are_a_condition():
    assert of_model(Columns(model="who"), "it's").where == "who = 'it''s'"
    assert of_model(Columns(model="who", where="a or b"), "x").where == "(a or b) and who = 'x'"


def test_reports_without_maps_stay_as_they_are():
    few = cal.report([0, 1], [0.2, 0.7])
    assert with_own_commands(few, ["a.csv"], Columns()) is few


def test_commands_for_a_file():
    assert commands("Platt", ["paid.csv"], Columns("fraud", ("score",))).splitlines() == [
        "calibrant recalibrate paid.csv --truth fraud \\",
        "    --prob score --method platt -o map.json",
        "calibrant apply map.json new.csv --prob score \\",
        "    -o recalibrated.csv",
    ]
