"""Running commands in this process, also on a file that holds predictions of every task."""

import pytest

from calibrant.cli import commands
from tests.cli.tasks import frame


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


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("tasks")
    frame().to_parquet(place / "all.parquet")
    frame().to_csv(place / "all.csv", index=False)
    return place


@pytest.fixture
def invoke(invoke_in, tmp_path, folder):
    """Run a command in an empty folder, whose words may come in one text; "all.parquet" is the file of every task."""

    def invoked(*arguments):
        words = [word for text in arguments for word in (text.split() if isinstance(text, str) else [text])]
        return invoke_in(tmp_path, *(folder / word if str(word).startswith("all.") else word for word in words))

    return invoked
