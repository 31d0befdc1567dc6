"""Files of every format are read alike and written whole.

Notes, errors and exit codes.

Stages and a bar on a terminal, nothing elsewhere.
"""

import gzip
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import typer
from rich.console import Console

from calibrant.cli.columns import Columns
from calibrant.cli.console import (
    UsageError,
    complain,
    leave_with,
    named,
    require_writable,
    say,
    stage,
    title_of,
    write_table,
)
from calibrant.cli.files import load
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.gates import Check, Decision

FRAME = pd.DataFrame({"y": [0, 1, 1], "p": [0.25, 0.5, 0.75]})
CSV, LINES = b"y,p\n0,0.25\n1,0.5\n", b'{"y": 0, "p": 0.25}\n{"y": 1, "p": 0.5}\n'


def read(path):
    return load([path], Columns(truth="y", prob=("p",))).data


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
def test_what_is_written_comes_back(tmp_path, suffix):
    path = tmp_path / f"scores{suffix}"
    write_table(path, {name: FRAME[name].to_numpy() for name in FRAME})
    data = read(str(path))
    assert data.y_true.tolist() == FRAME.y.tolist()
    assert data.y_prob.tolist() == FRAME.p.tolist()


def on_standard_input(monkeypatch, content):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    return read("-")


@pytest.mark.parametrize(
    "content",
    [CSV, LINES, b'\n[{"y": 0, "p": 0.25}, {"y": 1, "p": 0.5}]', b"\xef\xbb\xbf" + CSV, gzip.compress(CSV)],
    ids=["CSV", "JSON lines", "JSON array", "byte order mark", "gzip"],
)
def test_standard_input_is_recognised_by_its_content(monkeypatch, content):
    assert on_standard_input(monkeypatch, content).y_prob.tolist() == [0.25, 0.5]


def test_zstandard_parquet_and_arrow_come_through_standard_input_too(monkeypatch, tmp_path):
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, "zstd") as stream:
        stream.write(LINES)
    FRAME.to_parquet(tmp_path / "scores.parquet")
    FRAME.to_feather(tmp_path / "scores.arrow")
    files = [(tmp_path / name).read_bytes() for name in ("scores.parquet", "scores.arrow")]
    for content, n in ((packed.getvalue().to_pybytes(), 2), (files[0], 3), (files[1], 3)):
        assert len(on_standard_input(monkeypatch, content)) == n


@pytest.mark.parametrize("content", [b"", b" \n"])
def test_an_empty_standard_input_is_refused(monkeypatch, content):
    with pytest.raises(InvalidPredictions, match="Standard input is empty"):
        on_standard_input(monkeypatch, content)


def test_other_names_are_passed_on():
    with named(["a.csv", "b.csv"]) as names:
        assert names == ["a.csv", "b.csv"]


def test_an_unknown_ending_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(UsageError, match=r"\.parquet, \.csv or \.jsonl"):
        write_table(tmp_path / "scores.xlsx", {"p": np.array([0.5])})
    assert list(tmp_path.iterdir()) == []


def test_escape_sequences_do_not_reach_the_terminal(capfd):
    say("a\x1b[2Jb")
    complain("[bold]c\x1b[2J")
    out, err = capfd.readouterr()
    assert out == ""
    assert "\x1b[2J" not in err
    assert "[bold]c" in err


@pytest.mark.parametrize(("result", "code"), [("passed", 0), ("failed", 1), ("undecided", 3)])
def test_the_result_of_a_gate_is_said_and_is_the_exit_code(capfd, result, code):
    decision = Decision((Check("error", "all rows", 0.02, "lower", result, "Why."),), ("it is weak.",))
    if code:
        with pytest.raises(typer.Exit) as left:
            leave_with(decision)
        assert left.value.exit_code == code
    else:
        leave_with(decision)
    said = capfd.readouterr().err.splitlines()
    assert said[0].startswith("Gate: ")
    assert said[0].endswith(". Why.")
    assert said[1] == "Warning: it is weak."


def test_files_are_not_overwritten_unasked(tmp_path):
    there = tmp_path / "there.html"
    there.write_text("")
    require_writable(None, force=False)
    require_writable(there, force=True)
    with pytest.raises(UsageError, match="exists already"):
        require_writable(there, force=False)
    with pytest.raises(UsageError, match="There is no folder"):
        require_writable(tmp_path / "none" / "there.html", force=False)


def test_standard_input_has_a_title():
    assert title_of(["-"]) == "Standard input"


def shown(*, terminal):
    text = io.StringIO()
    with stage("Recalibrating", Console(file=text, force_terminal=terminal, width=100)) as working:
        working.part("Reliability")
        working.done(50, 200)
        if working.bar is not None:
            working.bar.refresh()
    return text.getvalue()


def test_a_terminal_shows_the_stage_its_part_and_how_much_is_done():
    text = shown(terminal=True)
    assert "Recalibrating: reliability" in text
    assert "25%" in text


def test_elsewhere_nothing_is_printed():
    assert shown(terminal=False) == ""


def test_names_are_not_taken_for_markup():
    text = io.StringIO()
    with stage("Reading [red]", Console(file=text, force_terminal=True, width=100)) as working:
        working.bar.refresh()
    assert "[red]" in text.getvalue()
