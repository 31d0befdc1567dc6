"""Running commands on a file that holds predictions of every task."""

import pytest

from calibrant.cli import commands
from tests.cli.commands.tasks import frame


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("tasks")
    frame().to_parquet(place / "all.parquet")
    frame().to_csv(place / "all.csv", index=False)
    return place


@pytest.fixture
def invoke(monkeypatch, capfd, tmp_path, folder):
    """Run a command in an empty folder: its exit code, and what it printed; "all.parquet" is found by `FILE`."""

    def invoked(*arguments):
        monkeypatch.chdir(tmp_path)
        words = [word for text in arguments for word in (text.split() if isinstance(text, str) else [str(text)])]
        words = [str(folder / word) if word.startswith("all.") else word for word in words]
        monkeypatch.setattr("sys.argv", ["calibrant", *words])
        capfd.readouterr()
        try:
            commands.run()
            code = 0
        except SystemExit as left:
            code = left.code or 0
        return code, *capfd.readouterr()

    return invoked
