"""Files of every format are read alike; output files, notes, errors, exit codes and progress."""

import gzip
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
import typer
from rich.console import Console

from calibrant._atomic_write import replacing
from calibrant.cli.columns import Columns
from calibrant.cli.console import (
    UsageError,
    complain,
    leave_with,
    require_writable,
    say,
    stage,
    temporary_folder,
    title_of,
    writing,
)
from calibrant.cli.files import load
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.gates import Check, Decision

FRAME = pd.DataFrame({"y": [0, 1, 1], "p": [0.25, 0.5, 0.75]})
CSV, LINES = b"y,p\n0,0.25\n1,0.5\n", b'{"y": 0, "p": 0.25}\n{"y": 1, "p": 0.5}\n'


def read(path):
    return load([path], Columns(truth="y", prob=("p",))).data


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


def test_a_file_that_is_read_is_not_overwritten_even_if_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    read = tmp_path / "logs" / "scores.csv"
    read.write_bytes(CSV)
    (tmp_path / "link.csv").symlink_to(read)
    (tmp_path / "hard.csv").hardlink_to(read)
    others = [tmp_path / "other.csv", tmp_path / "logs" / "report.html"]
    for other in others:
        other.write_bytes(CSV)
    for name in ("logs/scores.csv", str(read), "logs", "logs/*.csv", "link.csv", "hard.csv", "link.*"):
        for output in (read, Path("logs/../logs/scores.csv"), Path("link.csv"), Path("hard.csv")):
            with pytest.raises(UsageError, match=r"is also read \(as .*destroyed: give another name"):
                require_writable(output, force=True, inputs=["other.csv", name])
        for other in others:
            require_writable(other, force=True, inputs=[name, "-", "s3://bucket/x.csv", "none.csv", "empty"])


def test_a_file_that_another_process_makes_meanwhile_is_kept(tmp_path):
    path = tmp_path / "table.csv"

    def written(*, force):
        with writing(path, force=force):
            path.write_text("of another process")
            with replacing(path) as place:
                place.write_text("ours")

    with pytest.raises(UsageError, match=r"table\.csv exists already; give another name or --force"):
        written(force=False)
    assert path.read_text() == "of another process"
    written(force=True)
    assert path.read_text() == "ours"


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, getattr(signal, "SIGHUP", None)])
def test_a_process_that_is_told_to_end_removes_its_folder(number):
    code = (
        "import os, signal, sys, time\nfrom calibrant.cli.console import temporary_folder\n"
        f"signal.signal({number}, signal.SIG_DFL)\n"  # `nohup` ignores hang-ups
        "with temporary_folder() as folder:\n    (folder / 'copy').touch()\n    print(folder, flush=True)\n"
        f"    os.kill(os.getpid(), {number})\n    time.sleep(60)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert process.returncode == -number
    assert process.stdout
    assert not os.path.exists(process.stdout.strip())


def test_a_folder_is_removed_and_signals_are_as_before():
    with temporary_folder() as folder:
        (folder / "copy").touch()
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert not folder.exists()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


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


def test_examples_of_title_of() -> None:
    assert title_of(["scores/2025.csv", "scores/2026.csv"]) == "2025.csv, 2026.csv"
