"""A few cases of every fuzzer; `make fuzz` runs them for as long as one likes."""

import numpy as np
import pytest

import calibrant as cal
from tests.fuzz import __main__ as command
from tests.fuzz.damaged_files import changed_bytes, changed_value
from tests.fuzz.fuzzers import FUZZERS

#: Cases per fuzzer, for about a second each.
CASES = {
    "order of rows": 3,
    "unit of weights": 3,
    "tabular files": 3,
    "map files": 60,
    "table files": 40,
    "hostile texts": 5,
    "rows of tables": 5,
    "pages": 8,
    "any pages": 8,
    "strange pages": 8,
}
OF_FILES = ("map files", "table files")


@pytest.mark.parametrize("name", FUZZERS)
def test_some_cases(name):
    if name in OF_FILES and not hasattr(cal, "InvalidFile"):
        pytest.skip("saved files are not checked before they are used")
    failed = {seed: command.run_case(name, seed) for seed in range(CASES.get(name, 10))}
    assert {seed: error for seed, error in failed.items() if error is not None} == {}


def test_the_command_prints_failing_cases_and_says_how_many(monkeypatch, capsys):
    def fails(rng, folder):
        assert rng.random() < 0.5, "too large"

    monkeypatch.setattr(command, "FUZZERS", {"halves": fails})
    assert command.main(["--cases", "20"]) == 1
    said = capsys.readouterr().out
    assert "FAILED 'halves', seed " in said
    assert "AssertionError: too large" in said
    assert "20 cases of 1 fuzzers, seeds 0 to 19: " in said
    monkeypatch.setattr(command, "FUZZERS", {"fine": lambda rng, folder: None})
    assert command.main(["--cases", "2", "--seed", "5"]) == 0
    assert command.main(["--minutes", "0"]) == 0


def test_changes_are_changes():
    rng, value = np.random.default_rng(0), {"a": [1, 2.5, {"b": None}], "c": "text"}
    assert sum(changed_value(rng, value) != value for _ in range(100)) > 80
    assert sum(changed_bytes(rng, b"some bytes") != b"some bytes" for _ in range(100)) > 80
    assert value == {"a": [1, 2.5, {"b": None}], "c": "text"}
