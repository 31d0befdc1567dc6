"""The conda recipe asks for what pyproject.toml asks for, and its test runs the command."""

import re
import tomllib

import pytest
import yaml
from tools.release import ROOT

#: Names of conda-forge where they differ.
CONDA = {"matplotlib": "matplotlib-base", "duckdb": "python-duckdb", "ibis-framework": "ibis-framework-core"}


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]


@pytest.fixture(scope="module")
def recipe():
    return yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf8"))


def conda(requirements):
    """Requirements of pyproject.toml as conda writes them: without extras, and a space before the bound."""
    found = set()
    for requirement in requirements:
        name, bound = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?(>=[\d.]+)?", requirement).groups()
        found.add(f"{CONDA.get(name, name)} {bound or ''}".strip())
    return found


def test_the_recipe_needs_what_the_package_needs(project, recipe):
    needed = {f"python {project['requires-python']}"} | conda(project["dependencies"])
    assert set(recipe["requirements"]["run"]) == needed
    assert f"python {project['requires-python']}" in recipe["requirements"]["host"]


def test_the_recipe_bounds_every_package_that_an_extra_bounds(project, recipe):
    extras = [one for extra in project["optional-dependencies"].values() for one in extra]
    bounded = [one for one in extras if ">=" in one]  # a constraint without a bound would say nothing
    assert set(recipe["requirements"]["run_constraints"]) == conda(bounded)


def test_the_test_of_the_recipe_imports_the_package_and_runs_the_command(project, recipe):
    imported, command = recipe["tests"]
    assert imported["python"]["imports"] == ["calibrant"]
    assert command["script"] == ["calibrant --version", "calibrant --help"]
    extras = project["optional-dependencies"]
    wanted = [*extras["files"], *(one for one in extras["cli"] if one != "calibrant[files]")]
    assert set(command["requirements"]["run"]) == conda(wanted)


def test_the_recipe_installs_the_command_and_names_the_licence_and_summary(project, recipe):
    scripts = [f"{name} = {target}" for name, target in project["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["summary"] == project["description"]
