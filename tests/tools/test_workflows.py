"""Workflows run commands that exist, on every system and version that is named, and publish without a token."""

import re
import tomllib

import pytest
import yaml
from tools.release import ROOT

FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf8"), flags=re.M))
#: In YAML 1.1 the key `on` is read as true.
ON = True


def parsed(name):
    return yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf8"))


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_command_exists(file, project):
    jobs = yaml.safe_load(file.read_text(encoding="utf8"))["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job.get("steps", []) if "run" in step]
    assert commands
    for command in commands:
        if command.startswith("make"):
            assert command.split()[1] in TARGETS, command
        else:
            assert command.startswith(("python -m pip", "python -m pytest")), command
        asked = set(re.findall(r"\.\[([\w,]+)\]", command))
        extras = {one for several in asked for one in several.split(",")}
        assert extras <= set(project["project"]["optional-dependencies"]), command
        assert set(re.findall(r"--group (\w+)", command)) <= set(project["dependency-groups"]), command


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_jobs_wait_for_jobs_that_exist_and_have_few_rights(file):
    workflow = yaml.safe_load(file.read_text(encoding="utf8"))
    for job in workflow["jobs"].values():
        needed = job.get("needs", [])
        assert set([needed] if isinstance(needed, str) else needed) <= set(workflow["jobs"])
    assert workflow["permissions"]["contents"] == "read"
    assert "secrets." not in file.read_text(encoding="utf8")


def test_tests_run_on_three_systems_and_every_version_that_the_package_names(project):
    jobs = parsed("test")["jobs"]
    named = [line.rpartition(" ")[2] for line in project["project"]["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert len(named) >= 3
    assert jobs["test"]["strategy"]["matrix"]["python"] == named
    matrix = jobs["systems"]["strategy"]["matrix"]
    assert matrix["python"] == named
    assert set(matrix["os"]) == {"macos-latest", "windows-latest"}


def test_a_tag_is_built_and_tested_before_it_is_published_by_trust():
    workflow = parsed("release")
    assert workflow[ON]["push"]["tags"] == ["v*"]
    jobs = workflow["jobs"]
    assert set(jobs["publish"]["needs"]) == {"build", "test"}
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"] == "release"
    *_, last = jobs["publish"]["steps"]
    assert "publish" in last["uses"]
    assert "with" not in last  # no password, no token
    assert [step["run"] for step in jobs["build"]["steps"] if "run" in step] == [
        'make release PYTHON=python TAG="${{ github.ref_name }}"'
    ]
