"""Running commands in this process."""

import pytest

from calibrant.cli import commands


@pytest.fixture
def invoke_in(monkeypatch, capfd):
    """Run a command in a folder: its exit code, and what it printed."""

    def invoked(folder, *arguments):
        monkeypatch.chdir(folder)
        monkeypatch.setattr("sys.argv", ["calibrant", *map(str, arguments)])
        capfd.readouterr()
        try:
            commands.run()
            code = 0
        except SystemExit as left:
            code = left.code or 0
        return code, *capfd.readouterr()

    return invoked
