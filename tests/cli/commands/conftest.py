"""Running commands on a file that holds predictions of every task."""

import pytest

from tests.cli.commands.tasks import frame


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
