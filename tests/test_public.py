"""The public names: listed once, complete, documented, typed, each with an example; and what importing them costs."""

import ast
import importlib
import inspect
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import calibrant

SOURCE = Path(calibrant.__file__).parent
PACKAGES = sorted(
    ".".join(("calibrant", *path.parent.relative_to(SOURCE).parts)) for path in SOURCE.rglob("__init__.pyi")
)


def public(package):
    """The public names of a package that are not its subpackages or modules."""
    module = importlib.import_module(package)
    return {name: getattr(module, name) for name in module.__all__ if not inspect.ismodule(getattr(module, name))}


NAMES = [(package, name) for package in PACKAGES for name in public(package) if name != "__version__"]


def test_every_room_but_numerics_and_the_command_line_is_public():
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    listed = {package.removeprefix("calibrant.") for package in PACKAGES[1:]}
    assert listed == (rooms - {"numerics", "cli"}) | {"integrations.sklearn"}


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_listed_once_sorted_and_can_be_had(package):
    module = importlib.import_module(package)
    stub = (Path(module.__file__).parent / "__init__.pyi").read_text(encoding="utf8")
    listed = [alias.asname for node in ast.parse(stub).body for alias in node.names]
    assert sorted(listed) == module.__all__ == dir(module)
    assert len(set(listed)) == len(listed)
    assert all(getattr(module, name) is not None for name in listed)
    assert not hasattr(module, "no_such_estimator")


@pytest.mark.parametrize("name", ["mlflow", "testing", "torchmetrics"])
def test_modules_that_are_public_list_their_names_with_an_example_each(name):
    module = importlib.import_module(f"calibrant.integrations.{name}")
    assert module.__all__ == sorted(module.__all__)
    own = {key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    assert {key for key in own if key[0] != "_"} == set(module.__all__)
    assert all(">>>" in (inspect.getdoc(getattr(module, key)) or "") for key in module.__all__)


def test_every_package_says_what_is_public():
    for path in SOURCE.rglob("__init__.py"):
        module = importlib.import_module(".".join(("calibrant", *path.parent.relative_to(SOURCE).parts)))
        assert module.__all__ == sorted(module.__all__)


def test_the_top_level_has_at_most_eighty_names():
    assert 50 <= len(public("calibrant")) <= 80


def test_no_function_hides_a_module():
    for package in PACKAGES:
        folder = Path(importlib.import_module(package).__file__).parent
        modules = {path.stem for path in folder.glob("*.py")} | {
            path.parent.name for path in folder.glob("*/__init__.py")
        }
        assert not modules & set(public(package)), package


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_every_name_is_documented_with_an_example(package, name):
    value = public(package)[name]
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return  # a constant; its comment stands where it is defined
    text = inspect.getdoc(value) or ""
    assert text.strip(), "no docstring"
    methods = (
        [inspect.getdoc(part) or "" for key, part in vars(value).items() if key[0] != "_"]
        if isinstance(value, type)
        else []
    )
    assert any(">>>" in part for part in [text, *methods]), "no example that runs"


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_every_function_is_typed(package, name):
    value = public(package)[name]
    if inspect.isfunction(value):
        signature = inspect.signature(value)
        assert signature.return_annotation is not inspect.Signature.empty
        assert all(part.annotation is not inspect.Parameter.empty for part in signature.parameters.values())


def test_what_a_public_function_returns_is_public():
    kinds = {name: value for package in PACKAGES for name, value in public(package).items() if isinstance(value, type)}
    known = set(kinds.values())
    hidden = set()
    for package, name in NAMES:
        value = public(package)[name]
        if not inspect.isfunction(value):
            continue
        returned = typing.get_type_hints(value, vars(sys.modules[value.__module__]), kinds).get("return")
        for kind in typing.get_args(returned) or (returned,):
            if isinstance(kind, type) and kind.__module__.startswith("calibrant") and kind not in known:
                hidden.add(f"{name} -> {kind.__name__}")
    assert not hidden


def test_importing_the_package_loads_nothing_heavy():
    heavy = ["scipy.stats", "sklearn", "matplotlib", "pandas", "torch", "duckdb", "polars", "pyarrow"]
    code = (
        "import sys, calibrant as cal; cal.ece([0, 1], [0.2, 0.7]); cal.Binary; cal.sweep_ece([0, 1], [0.2, 0.7]); "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
