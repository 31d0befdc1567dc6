"""What is published is complete, can be installed, and is described as an index expects."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import calibrant
from tests import smoke
from tools import release

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    environment = {**os.environ, "GITHUB_REPOSITORY": "Some-One/calibrant"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(folder.iterdir())


def test_an_index_would_accept_both_files(dist):
    pytest.importorskip("twine")
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, dist)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_metadata_name_the_repository_of_the_build(dist):
    wheel = zipfile.ZipFile(next(path for path in dist if path.suffix == ".whl"))
    metadata = next(wheel.read(name).decode() for name in wheel.namelist() if name.endswith("/METADATA"))
    addresses = dict(re.findall(r"^Project-URL: (\w+), (\S+)$", metadata, flags=re.M))
    assert addresses["Source"] == "https://github.com/Some-One/calibrant"
    assert addresses["Documentation"] == "https://some-one.github.io/calibrant/"
    assert set(addresses) == {"Documentation", "Source", "Issues", "Changelog"}


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(dist):
    wheel = next(path for path in dist if path.suffix == ".whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    wanted = {path.relative_to(source).as_posix() for path in (source / "calibrant").rglob("*") if path.is_file()}
    assert held == {name for name in wanted if "__pycache__" not in name}
    assert "calibrant/py.typed" in held


def test_the_source_archive_holds_the_tests_and_no_results_of_builds(dist):
    archive = next(path for path in dist if path.name.endswith(".tar.gz"))
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "tests/smoke.py"} <= names
    assert not [name for name in names if name.startswith((".venv", "site/", "artifacts/", "docs/reference/"))]


def test_the_changelog_has_a_section_for_this_version():
    """A version under development collects its changes; a release names itself, everywhere alike."""
    version = calibrant.__version__
    if ".dev" in version:
        first = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf8"), flags=re.M)
        assert first[1] == "Unreleased"
    else:
        assert list(release.faults(f"v{version}")) == []


def test_the_smoke_test_passes_here(capsys):
    smoke.main()
    assert "works" in capsys.readouterr().out


def test_the_oldest_versions_tested_are_the_oldest_allowed():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    allowed = dict(text.split(">=") for text in project["dependencies"])
    lines = (ROOT / "packaging" / "lowest.txt").read_text(encoding="utf8").splitlines()
    tested = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert {name: _numbers(version) for name, version in tested.items()} == {
        name: _numbers(version) for name, version in allowed.items()
    }


def _numbers(version):
    """Major, minor and patch; what is not written is 0."""
    return tuple(map(int, (version + ".0.0").split(".")[:3]))
