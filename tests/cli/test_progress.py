"""Stages and a bar on a terminal, nothing elsewhere."""

import io

from rich.console import Console

from calibrant.cli.progress import stage


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
