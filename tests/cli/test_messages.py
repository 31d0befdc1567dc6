"""Notes, errors and exit codes."""

import pytest
import typer

from calibrant.cli.formats import UsageError
from calibrant.cli.messages import complain, leave_if_failed, require_writable, say, title_of


def test_escape_sequences_do_not_reach_the_terminal(capfd):
    say("a\x1b[2Jb")
    complain("[bold]c\x1b[2J")
    out, err = capfd.readouterr()
    assert out == ""
    assert "\x1b[2J" not in err
    assert "[bold]c" in err


def test_a_failed_gate_leaves_with_one(capfd):
    leave_if_failed([])
    with pytest.raises(typer.Exit) as left:
        leave_if_failed(["too high"])
    assert left.value.exit_code == 1
    assert capfd.readouterr().err == "Gate failed: too high.\n"


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
