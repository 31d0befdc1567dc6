import ast
from pathlib import Path

import pytest
from tools.constants import PAGE, changed_values, constants, is_numeric, main, page, unknown_tests, unnoticed
from tools.project import ROOT, Project

SOURCE = '''"""Bins."""
import math

#: Most bins. More take time. Speed: equal results, measured.
MOST = 100

#: Bounds of a
#: width. Derived: a width is a share. Test: tests/table/test_bins.py::test_low,
#: tests/table/test_bins.py::test_high.
LOW, HIGH = 0.0, 2 * math.sqrt(0.25)
_STEP: float = -0.5

#: A name.
NAME, TIMES = "bins", {"a": 1, "b": 2}
FLAG = True
lower = 3
EVEN = MOST / 2
'''
TESTS = """from calibrant.table.bins import HIGH, LOW, MOST

def test_low():
    assert LOW == 0

def test_high():
    assert HIGH < 1.5

def test_nothing():
    assert MOST
"""


@pytest.fixture
def with_constants(project):
    (project.root / "src/calibrant/table/bins.py").write_text(SOURCE)
    (project.root / "tests/table/test_bins.py").write_text(TESTS)
    return project


def by_name(project):
    return {constant.name: constant for constant in constants(project)}


def test_names_in_capitals_with_numbers_are_constants(with_constants):
    found = by_name(with_constants)
    assert {name: one.value for name, one in found.items()} == {
        "MOST": "100",
        "LOW": "0.0",
        "HIGH": "2 * math.sqrt(0.25)",
        "_STEP": "-0.5",
        "TIMES": "{'a': 1, 'b': 2}",
        "EVEN": "MOST / 2",
    }
    assert {(one.module, one.room) for one in found.values()} == {("table/bins", "table")}


@pytest.mark.parametrize("value", ["1", "(1, 2.5)", "np.array([1, 2])", "np.r_[1, 2]", "[*A, 3]", "1 << 4", "int(2e3)"])
def test_values_made_of_numbers_are_numeric(value):
    assert is_numeric(ast.parse(value, mode="eval").body)


@pytest.mark.parametrize("value", ["'a'", "True", "('a', 1)", "A", "np.pi", "Grid(8)", "A[0] + 1", "lambda: 1"])
def test_other_values_are_not(value):
    assert not is_numeric(ast.parse(value, mode="eval").body)


def test_a_comment_serves_the_block_below_it_and_names_sources(with_constants):
    found = by_name(with_constants)
    assert found["MOST"].what == "Most bins."
    assert found["MOST"].sources == [("Speed", "equal results, measured.")]
    assert found["LOW"].what == found["HIGH"].what == found["_STEP"].what == "Bounds of a width."
    assert [kind for kind, _ in found["_STEP"].sources] == ["Derived", "Test"]
    assert found["HIGH"].tests == ["tests/table/test_bins.py::test_low", "tests/table/test_bins.py::test_high"]
    assert found["TIMES"].what == found["EVEN"].what == "A name."
    assert [name for name, one in found.items() if not one.sourced] == ["TIMES", "EVEN"]


def test_a_test_that_does_not_exist_is_named(with_constants):
    assert unknown_tests(with_constants.root, constants(with_constants)) == []
    path = with_constants.root / "tests/table/test_bins.py"
    path.rename(path.with_name("test_other_bins.py"))
    wrong = unknown_tests(with_constants.root, constants(with_constants))
    assert len(wrong) == 6
    assert wrong[0] == "src/calibrant/table/bins.py: LOW: tests/table/test_bins.py::test_low does not exist"


def test_a_source_that_names_no_test_is_none(with_constants):
    path = with_constants.root / "src/calibrant/table/bins.py"
    path.write_text("#: One. Test: see elsewhere.\nONE = 1\n")
    assert not by_name(with_constants)["ONE"].sourced


def test_the_page_counts_by_room_and_lists_each_constant(with_constants):
    text = page(constants(with_constants))
    assert "| table | 6 | 3 | 0 | 3 | 1 | 2 |" in text
    assert "| `table/bins.MOST` | `100` | Most bins. | speed: equal results, measured |" in text
    tests = "`tests/table/test_bins.py::test_low`, `tests/table/test_bins.py::test_high`"
    low = f"| `table/bins.LOW` | `0.0` | Bounds of a width. | derived and test: a width is a share; {tests} |"
    assert low in text


def test_the_check_wants_a_page_that_is_up_to_date_and_no_more_constants_without_a_source(with_constants, capsys):
    root = with_constants.root
    (root / "docs").mkdir()
    assert main(["--check"], root=root, allowed=2)
    assert "out of date: run `make constants`" in capsys.readouterr().out
    assert main([], root=root, allowed=2) == 0
    assert "6 constants, 2 without a source (2 allowed)" in capsys.readouterr().out
    assert main(["--check"], root=root, allowed=2) == 0
    assert main(["--check"], root=root, allowed=1)
    assert "src/calibrant/table/bins.py: TIMES has no source" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "doubled", "halved"),
    [
        ("1", "2", "0"),
        ("0", "1", "-1"),
        ("101", "202", "50"),
        ("0.5", "1.0", "0.25"),
        ("0.0", "1.0", "-0.5"),
        ("2.0**-2", "0.5", "0.125"),
        ("(1, 4.0)", "(2, 8.0, )", "(0, 2.0, )"),
        ("{'a': 3}", "{'a': 6}", "{'a': 2}"),
        ("np.array([2.0])", "np.array([4.0])", "np.array([1.0])"),
        ("math.pi / 2", "(math.pi / 2) * 2.0", "(math.pi / 2) * 0.5"),
    ],
)
def test_numbers_are_doubled_and_halved(value, doubled, halved):
    assert changed_values(ast.parse(value, mode="eval").body) == (doubled, halved)


def test_a_change_that_no_named_test_notices_is_found(with_constants):
    path = with_constants.root / "src/calibrant/table/bins.py"
    path.write_text(path.read_text().replace("measured.", "measured. Test: tests/table/test_bins.py::test_nothing."))
    found = [constant for constant in constants(with_constants) if constant.name in {"MOST", "HIGH"}]
    passed = {constant.name: passed for constant, passed in unnoticed(with_constants, found)}
    assert passed == {"MOST": ["200", "50"], "HIGH": ["(2 * math.sqrt(0.25)) * 0.5"]}
    assert "MOST = 100" in path.read_text()


def test_every_named_test_of_the_package_exists():
    assert unknown_tests(ROOT, constants(Project(ROOT))) == []


def test_the_page_is_where_the_site_looks_for_it():
    assert (ROOT / PAGE).exists()
    assert Path("docs") in PAGE.parents
