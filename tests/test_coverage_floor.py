"""The floor of coverage may only rise."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_floor_is_no_lower_than_it_ever_was():
    command = ["git", "log", "--format=", "-p", "-G^fail_under", "--", "pyproject.toml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a clone with a history")
    past = [float(value) for value in re.findall(r"^[+-]fail_under = ([\d.]+)", done.stdout, re.M)]
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    assert config["tool"]["coverage"]["report"]["fail_under"] >= max(past, default=0)


def test_branches_are_measured():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    assert config["tool"]["coverage"]["run"]["branch"]
