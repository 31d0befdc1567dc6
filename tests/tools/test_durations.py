import gc

import pytest
from tools.cpu_time import TOGETHER, longest_first
from tools.durations import SLOW, UNKNOWN, Durations
from tools.project import ALWAYS, ROOT

CASE = '<testcase file="{}" name="{}"><properties><property name="cpu_seconds" value="{}"/></properties></testcase>'


@pytest.fixture
def junit(tmp_path):
    cases = [
        ("tests/a.py", "test_quick", 0.5),
        ("tests/a.py", "test_cases[1]", SLOW * 0.6),
        ("tests/a.py", "test_cases[2]", SLOW * 1.2),
        ("tests/a.py", "test_many[1]", SLOW * 0.6),
        ("tests/a.py", "test_many[2]", SLOW * 0.6),
        ("tests/b.py", "test_slow", SLOW * 2),
        (ALWAYS[0], "test_all", SLOW * 2),
    ]
    path = tmp_path / "tests.xml"
    path.write_text(f"<testsuite>{''.join(CASE.format(*case) for case in cases)}</testsuite>")
    return path


def test_a_slow_case_makes_its_function_slow_and_it_does_not_count_for_the_file(junit):
    found = Durations.of_junit(junit)
    assert found.slow == pytest.approx({"tests/a.py::test_cases": SLOW * 1.2, "tests/b.py::test_slow": SLOW * 2})
    assert found.files == pytest.approx({"tests/a.py": 0.5 + 1.2 * SLOW, ALWAYS[0]: SLOW * 2})


def test_every_case_of_a_slow_function_is_slow(junit):
    found = Durations.of_junit(junit)
    assert found.is_slow("tests/a.py::test_cases[3]")
    assert not found.is_slow("tests/a.py::test_quick")


def test_files_without_a_record_and_single_tests_have_a_usual_time(junit):
    found = Durations.of_junit(junit)
    assert found.seconds("tests/a.py") > UNKNOWN
    assert found.seconds("tests/a.py::test_quick") == found.seconds("tests/new.py") == UNKNOWN


def test_what_is_recorded_can_be_read_again(junit, tmp_path):
    assert Durations.load(tmp_path) == Durations()
    (tmp_path / "tests").mkdir()
    Durations.of_junit(junit).save(tmp_path)
    assert Durations.load(tmp_path) == Durations.of_junit(junit)


def test_slow_tests_are_marked_and_not_traced(request):
    durations = Durations.load()
    slow = [item for item in request.session.items if durations.is_slow(item.nodeid)]
    assert all(item.get_closest_marker("slow") and item.get_closest_marker("no_cover") for item in slow)


def test_tests_that_are_not_traced_exist():
    assert all((ROOT / path).exists() for path in TOGETHER)


def test_what_is_collected_is_not_searched_for_garbage(request):
    assert gc.isenabled()
    assert gc.get_freeze_count() > len(request.session.items)


class Item:
    """What is asked of a test."""

    def __init__(self, nodeid, *keywords):
        self.nodeid, self.keywords = nodeid, keywords


def test_files_that_take_longest_come_first(junit):
    durations = Durations.of_junit(junit)
    assert durations.total("tests/b.py") == pytest.approx(UNKNOWN + 2 * SLOW)
    names = ["tests/a.py::one", "tests/new.py::one", "tests/b.py::one", "tests/a.py::two"]
    found = longest_first([*map(Item, names), Item("tests/c.py::one", "browser")], durations)
    assert [item.nodeid for item in found] == ["tests/c.py::one", names[2], names[0], names[3], names[1]]
