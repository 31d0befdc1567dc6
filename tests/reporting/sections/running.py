"""Running the commands that a report names."""

import os
import shlex

from typer.testing import CliRunner

from calibrant.cli.commands import app


def run_commands(text, folder):
    """Run commands, one after another, as a shell would, in this process."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        for line in text.replace("\\\n", " ").splitlines():
            program, *arguments = shlex.split(line)
            assert program == "calibrant"
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, done.output
    finally:
        os.chdir(before)
