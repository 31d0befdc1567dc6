"""The hook for pre-commit runs a command that exists, and passes and fails as its limit says."""

import subprocess
import sys
import tomllib

import numpy as np
import pytest
import yaml
from tools.release import ROOT


@pytest.fixture(scope="module")
def hook():
    (only,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf8"))
    return only


def test_the_hook_has_what_pre_commit_asks_for_and_the_extra_that_the_command_needs(hook):
    assert {"id", "name", "entry", "language"} <= set(hook)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    assert hook["entry"].split()[0] in project["scripts"]
    assert hook["language"] == "python"
    assert hook["additional_dependencies"] == [".[cli]"]
    assert "cli" in project["optional-dependencies"]
    assert hook["require_serial"]  # else files would be split between processes, each with a verdict of its own


@pytest.mark.parametrize(("exponent", "code"), [(1, 0), (3, 1)])
def test_the_entry_is_a_gate(hook, tmp_path, exponent, code):
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = rng.random(4000) < p**exponent
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file, rows in zip(files, np.split(np.column_stack([y, p]), 2), strict=True):
        np.savetxt(file, rows, delimiter=",", header="y,p", comments="")
    arguments = [*hook["entry"].split(), "--truth", "y", "--prob", "p", "--fail-above", "0.05", *map(str, files)]
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
