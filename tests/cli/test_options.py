"""Options that commands share."""

import typer
from typer.testing import CliRunner

from calibrant.cli.columns import Columns
from calibrant.cli.console import in_shell
from calibrant.cli.options import SHARED, TASK, Files, columns_of, in_words, takes


def test_a_command_gets_what_its_shared_options_say():
    got = []
    application = typer.Typer()

    @application.command()
    @takes(*TASK, "by")
    def command(files: Files, columns: Columns, *, last: int = 3):
        got.append((files, columns, last))

    words = ["a.csv", "b.csv", "--members", "m_1", "--members", "m_2", "--by", "g", "--decimal-comma", "--last", "4"]
    assert CliRunner().invoke(application, words).exit_code == 0
    ((files, columns, last),) = got
    assert (files, last) == (["a.csv", "b.csv"], 4)
    assert (columns.members, columns.by, columns.reading.decimal) == (("m_1", "m_2"), ("g",), ",")


def test_options_that_were_not_asked_for_are_unknown():
    application = typer.Typer()

    @application.command()
    @takes("truth", "hive")
    def command(columns: Columns):
        """Nothing."""

    assert CliRunner().invoke(application, ["--prob", "p"]).exit_code == 2


def test_every_shared_option_is_a_field_or_a_way_to_read():
    fields = set(Columns.__dataclass_fields__) | {"hive", "decimal_comma"}
    assert set(SHARED) <= fields
    assert columns_of() == Columns()


def test_examples_of_columns_of() -> None:
    assert columns_of(truth="y", prob=["p"], by=None).prob == ("p",)


def test_options_in_words():
    columns = Columns("paid back", ("score",), where="day > 3", percent=True)
    assert in_words(columns) == "--truth 'paid back' --prob score --where 'day > 3' --percent"
    assert [in_shell(word) for word in ("p_1", "month >= '2026-07'", "paid $")] == [
        "p_1",
        "\"month >= '2026-07'\"",
        "'paid $'",
    ]
