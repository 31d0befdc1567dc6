"""The help texts, word for word: a change of the command line shows here first."""

import importlib.util
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from calibrant.cli.commands import app

FIRST_LINES = {
    "report": "A full report: verdict, how sure, what to do, groups, time, recalibration; as text, HTML, JSON or "
    "Markdown.",
    "measure": "The calibration error by several estimators, with an interval; a gate for CI with --fail-above or "
    "--limit.",
    "test": "Test whether the predictions are calibrated; for multiclass data, the whole vector, then each class.",
    "recalibrate": "Fit a recalibration map and save it as JSON.",
    "apply": "Recalibrate the predictions of a file; all its columns are kept as they are, new ones end in "
    "`_recalibrated`.",
    "simulate": "How biased is each estimator at my sample size, and how small an error can I detect?",
    "compare": "Which of two models is better calibrated on the same rows?",
    "serve": "Open the report in the browser, served on this machine only.",
    "audit": "Find segments in which the model is wrong, and by how much; fit a repair, a map that `apply` reads.",
    "monitor": "Monitor calibration: add rows with known outcomes.",
    "demo": "Simulate predictions and run the commands that you would run on your own file: report, audit, repair, "
    "monitor.",
}
READING = "--where --percent --logits --drop-missing --hive --decimal-comma"
PREDICTIONS = "--prob --mean --std --quantiles --members"
TASK = f"--truth {PREDICTIONS} --positive --labelled --prior --single-sample --weight {READING}"
OPTIONS = {
    "report": f"{TASK} --by --time --threshold --tolerance --model --event --row --title --audit --output --json",
    "measure": f"{TASK} --by --norm --level --fail-above --limit --gate --per-group --max-missing --json",
    "test": f"{TASK} --alpha --fail --max-missing --json",
    "audit": "--truth --prob --features --alpha --most --repair --cluster --output --force --json --seed",
    "monitor": "--truth --state --time --cluster --by --alpha --arl --tolerance --points --horizon --today --html",
    "recalibrate": f"{TASK} --method --output --force",
    "apply": f"{PREDICTIONS} --percent --logits --output --suffix --force --sql --dialect",
    "simulate": f"--scores --truth --prob --positive {READING} --seed --json",
    "compare": f"{TASK} --json",
    "serve": f"{TASK} --by --port --seed",
    "demo": "--folder",
}


def words(text):
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", re.sub(r"\x1b\[[0-9;]*m", "", text)).split())


@pytest.mark.parametrize("command", FIRST_LINES)
def test_each_command_says_what_it_does_and_what_it_takes(command):
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert shown.exit_code == 0
    assert FIRST_LINES[command] in words(shown.output)
    for option in OPTIONS[command].split():
        assert option in shown.output
    assert "<bool>" not in shown.output


def test_the_version_is_printed():
    from calibrant import __version__

    shown = CliRunner().invoke(app, ["--version"])
    assert shown.output.strip() == __version__


def test_the_reference_lists_every_option_of_every_command(tmp_path):
    source = Path(__file__).parents[2] / "docs" / "_extensions" / "command_line.py"
    spec = importlib.util.spec_from_file_location("command_line", source)
    extension = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(extension)
    extension.write(tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text(encoding="utf8")
    parts = dict(re.findall(r"## calibrant (\w+)\n(.*?)(?=\n## )", page, flags=re.DOTALL))
    commands = typer.main.get_command(app).commands
    assert set(parts) == set(commands) == set(FIRST_LINES)
    for name, command in commands.items():
        assert FIRST_LINES[name] in parts[name]
        for option in (option for parameter in command.params for option in parameter.opts if option != "--help"):
            assert {"MAP_FILE": "MAP"}.get(option.upper(), option.upper()) in parts[name].upper(), (name, option)
        assert not re.search(r"<[a-z]", parts[name])
    assert all(f"`{code}`" in page for code in (0, 1, 2, 70, 130))


def test_help_says_what_each_option_is_in_plain_words():
    private = ("stated", "cut ", "beside", "saved loss", " loss ", "<list")
    for name, command in typer.main.get_command(app).commands.items():
        for parameter in command.params:
            words = getattr(parameter, "help", None)
            assert words or parameter.name == "help", (name, parameter.name)
            assert not [word for word in private if word in f" {words} "], (name, parameter.name)
