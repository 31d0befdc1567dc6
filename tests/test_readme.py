"""The README's examples run and print what it says; its calls and links exist, and it is short."""

import doctest
import re
from pathlib import Path

import calibrant as cal

PAGE = Path(__file__).parents[1] / "README.md"
#: The ten names that users need first.
TEN = {
    *("Binary", "Multiclass", "Gaussian", "calibration_error", "ece", "interval", "calibration_test", "compare"),
    *("report", "recalibrate.Auto"),
}


def section(title):
    return PAGE.read_text(encoding="utf8").partition(f"## {title}\n")[2].partition("\n## ")[0]


def found(name):
    value = cal
    for part in name.split("."):
        value = getattr(value, part)
    return value


def test_the_examples_on_the_page_run():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    results = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert results.attempted > 0
    assert results.failed == 0


def test_ten_names_come_first():
    prose = section("Ten names to begin with").partition("```")[0]
    assert set(re.findall(r"`([\w.]+)`", prose)) == TEN
    assert all(found(name) for name in TEN)


def test_every_call_of_the_table_exists():
    calls = re.findall(r"`([\w.]+)[^`]*`", section("Questions and calls"))
    names = {name for name in calls if not name.startswith(".")}
    assert len(names) > 25
    assert all(found(name) for name in names)


def test_every_link_leads_to_a_file():
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", PAGE.read_text(encoding="utf8"))
    assert len(links) > 15
    assert [link for link in links if not (PAGE.parent / link).exists()] == []


def test_the_page_is_short_and_has_one_picture_and_one_table():
    text = PAGE.read_text(encoding="utf8")
    assert len(text.split()) < 600
    assert text.count("![") == 1
    assert text.count("|---|") == 1
