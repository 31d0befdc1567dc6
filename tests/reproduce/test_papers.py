"""One command for all papers: what it runs, that it goes on where it stopped, and a sample of the quick run."""

import json
import subprocess
import sys

import numpy as np
import pytest
from reproduce.sections import kept

from reproduce import data, drift, papers, variational


def test_every_paper_has_its_command(tmp_path):
    assert list(papers.PAPERS) == ["variational", "bias", "regression", "unlabeled"]
    for paper in papers.PAPERS.values():
        quick = paper.command(tmp_path, tmp_path / "out", quick=True)
        assert quick[2] == f"reproduce.{paper.module}"
        assert "--quick" in quick or quick[quick.index("--effort") + 1] == "quick"
        assert str(tmp_path / "out") in quick
        assert paper.command(tmp_path, tmp_path, quick=False) != quick


def test_every_other_script_is_a_study():
    scripts = {path.stem for path in papers.RESULTS.parent.glob("*.py") if "def main(" in path.read_text()}
    own = {paper.module for paper in papers.PAPERS.values()} | {"papers", "data", "drift"}
    assert scripts - own == set(papers.STUDIES)


class Scripted:
    """Stands for `subprocess.run` of a paper: fails the first time, then succeeds."""

    def __init__(self):
        self.calls = []

    def __call__(self, command, *, check, cwd, env, stdout):
        self.calls.append((command, env))
        if len(self.calls) == 1:
            raise subprocess.CalledProcessError(1, command)


def test_an_interrupted_run_goes_on_and_a_finished_one_starts_anew(tmp_path, monkeypatch):
    script = Scripted()
    monkeypatch.setattr(papers, "commit", lambda: "abc")
    monkeypatch.setattr(papers.subprocess, "run", script)
    with pytest.raises(subprocess.CalledProcessError):
        papers.run("bias", tmp_path, quick=True, work=tmp_path)
    marker = tmp_path / "quick" / "bias" / "finished part"
    marker.write_text("")
    assert papers.run("bias", tmp_path, quick=True, work=tmp_path)["interrupted"] == 1
    assert not marker.exists()
    assert papers.run("bias", tmp_path, quick=True, work=tmp_path)["interrupted"] == 0
    assert script.calls[0][1]["OMP_NUM_THREADS"] == "1"


def test_an_unfinished_run_of_another_commit_is_dropped(tmp_path, monkeypatch, capsys):
    script = Scripted()
    monkeypatch.setattr(papers.subprocess, "run", script)
    monkeypatch.setattr(papers, "commit", lambda: "abc")
    with pytest.raises(subprocess.CalledProcessError):
        papers.run("bias", tmp_path, quick=True, work=tmp_path)
    monkeypatch.setattr(papers, "commit", lambda: "def")
    assert papers.run("bias", tmp_path, quick=True, work=tmp_path)["interrupted"] == 0
    assert "commit abc is dropped" in capsys.readouterr().err


def test_the_summary_says_what_was_not_run_and_what_data_were_missing():
    done = {"finished": "2026-01-01", "commit": "abc", "clock": 120, "processor": 60, "interrupted": 0, "data": False}
    text = papers.summary({"bias": done})
    assert "| 2026-01-01 | abc | 2.0 | 1.0 | 0 | MISSING (classification)" in text
    assert text.count("not yet run") == 3


def test_sections_are_made_once(tmp_path):
    made = []

    def make():
        made.append(1)
        return [["a line"], [{"x": 1.5}]]

    assert kept(tmp_path, "Table 1: a, b", make) == kept(tmp_path, "Table 1: a, b", make)
    assert len(made) == 1
    assert kept(None, "Table 1: a, b", make)
    assert len(made) == 2


def cell(part, **wanted):
    return next((h, c) for h, c in variational.PARTS[part]("quick") if all(h[k] == v for k, v in wanted.items()))


@pytest.mark.parametrize(("part", "wanted"), [("figure1", {"n": 200}), ("figure3", {"n": 200, "classes": 3})])
def test_cells_of_the_quick_run_agree_with_the_stored_results(part, wanted):
    head, measure = cell(part, **wanted)
    stored = {
        (row["method"], row["norm"]): row
        for row in drift.rows_of(papers.RESULTS / "variational.csv")
        if all(row[name] == str(value) for name, value in head.items())
    }
    rows = variational.rows_of(head, measure)
    assert len(rows) == len(stored) >= 4
    numbers = drift._variational_again(head, measure, list(stored.values()))
    assert max(number.distance for number in numbers) < 3
    again = variational.rows_of(head, measure)
    np.testing.assert_array_equal([row["value"] for row in again], [row["value"] for row in rows])


@pytest.mark.slow
def test_cells_are_the_same_in_processes_of_their_own(tmp_path, monkeypatch):
    wanted = [number for number, (head, _) in enumerate(variational.cells_of("figure1", "quick")) if head["n"] == 200][
        :2
    ]
    values = []
    for processes in (1, 2):
        store = variational.Store(tmp_path / f"{processes}.csv")
        for at, (head, _) in enumerate(variational.cells_of("figure1", "quick")):
            if at not in wanted:
                store.known[store._key(head)].add("default")
        variational.run(store, "figure1", "quick", processes)
        values.append(sorted((row["repeat"], row["method"], row["value"]) for row in store.rows))
    assert values[0] == values[1]
    assert len(values[0]) == 8


def test_a_method_is_forgotten_and_measured_again_alone(tmp_path, monkeypatch):
    now = {"value": 1.0}

    def part(effort, only=""):
        for repeat in range(3):
            head = {"part": "figure1", "world": "calibrated", "classes": 2, "n": 200, "repeat": repeat}
            methods = [only] if only else ["default", "isotonic"]
            yield head, lambda methods=methods: [(method, "L1", now["value"]) for method in methods]

    monkeypatch.setitem(variational.PARTS, "figure1", part)
    variational.cells_of.cache_clear()
    variational.run(variational.Store(tmp_path / "variational.csv"), "figure1", "full")
    now["value"], store = 2.0, variational.Store(tmp_path / "variational.csv")
    store.forget("figure1", "default")
    variational.run(store, "figure1", "full", only="default", repeats=2)
    variational.cells_of.cache_clear()
    stored = variational.Store(tmp_path / "variational.csv").rows
    found = [[(row["method"], row["value"]) for row in stored if row["repeat"] == repeat] for repeat in "012"]
    assert found == [[("isotonic", 1.0), ("default", 2.0)]] * 2 + [[("isotonic", 1.0)]]


@pytest.mark.parametrize("part", ["figure1", "figure3"])
def test_a_method_alone_is_what_it_is_among_the_others(part):
    for only in ("default", "isotonic"):
        (head, alone), (_, every) = (variational.cells_of(part, "quick", name)[0] for name in (only, ""))
        among = [row for row in variational.rows_of(head, every) if row["method"] == only]
        found = variational.rows_of(head, alone)
        assert [(row["method"], row["norm"]) for row in found] == [(row["method"], row["norm"]) for row in among]
        assert [row["value"] for row in found] == pytest.approx([row["value"] for row in among], rel=1e-9)


def test_table_1_without_data_says_so(monkeypatch):
    from reproduce.variational_report import table1

    monkeypatch.setattr(data, "folder", lambda kind: None)
    assert list(variational.table1("full")) == []

    class Empty:
        rows: tuple = ()

    assert any("Not run" in line for line in table1(Empty()))


def test_the_network_does_not_depend_on_the_number_of_threads():
    torch = pytest.importorskip("torch")
    from reproduce.positive_unlabeled_losses import nnpu_loss

    from reproduce import positive_unlabeled_models as models

    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 80)).astype(np.float32)
    y = x[:, 0] > 0
    found, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            network = models.perceptron(80)
            loss = lambda p, u: nnpu_loss(p, u, prior=0.5)  # noqa: E731
            found.append(models.fitted(network, x, y, x, n_positive=500, loss=loss, steps=5))
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*found)


def test_the_command_line_refuses_unknown_papers():
    command = [sys.executable, "-m", "reproduce", "--paper", "unknown"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=papers.ROOT, check=False)
    assert done.returncode == 2
    assert "invalid choice: 'unknown'" in done.stderr


def test_states_are_plain_json(tmp_path):
    papers.written(tmp_path / "a" / "run.json", json.dumps({"x": 1}))
    assert papers.read(tmp_path / "a" / "run.json") == {"x": 1}
    assert papers.read(tmp_path / "none.json") == {}


def test_progress_in_a_file_has_a_line_for_each_tenth(capsys):
    for done in range(1, 251):
        variational.show_progress("figure1", done, 250)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[-1] == "figure1: 250 of 250"
