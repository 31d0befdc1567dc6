"""The application: completion for shells, and errors of one sentence."""

import os
import subprocess
import sys

import pytest

from calibrant.cli import files


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_of_completion_is_shown_for_every_shell(shell):
    environment = {**os.environ, "_CALIBRANT_COMPLETE": f"source_{shell}"}
    done = subprocess.run([sys.executable, "-m", "calibrant"], capture_output=True, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    assert b"_CALIBRANT_COMPLETE" in done.stdout
    assert b"calibrant" in done.stdout


def test_options_are_completed():
    environment = {
        **os.environ,
        "_CALIBRANT_COMPLETE": "complete_bash",
        "COMP_WORDS": "calibrant measure --mem",
        "COMP_CWORD": "2",
    }
    done = subprocess.run([sys.executable, "-m", "calibrant"], capture_output=True, env=environment, timeout=60)
    assert done.stdout.decode().split() == ["--members"]


@pytest.mark.parametrize("line", ["--help", "--version", "report --help", "compare --help"])
def test_what_needs_no_data_loads_no_library_for_data(line):
    heavy = ["numpy", "scipy", "sklearn", "pandas", "narwhals", "duckdb", "pyarrow", "matplotlib"]
    program = (
        "import sys; from calibrant.cli import main\n"
        f"sys.argv = ['calibrant', *{line.split()}]\n"
        "try: main()\n"
        f"finally: print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout
    assert done.stderr.strip() == "[]"


def test_an_error_of_our_own_says_so(invoke, monkeypatch):
    def broken(*_, **__):
        {}["no such key"]

    monkeypatch.setattr(files, "load", broken)
    code, _, err = invoke("measure all.parquet --truth y --prob p")
    assert code == 70
    assert "an error of calibrant itself" in " ".join(err.split())
