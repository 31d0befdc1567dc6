"""A room imports only from the rooms below it: imports inside functions, and names in stubs, included."""

import ast
from functools import cache
from pathlib import Path

import calibrant

SOURCE = Path(calibrant.__file__).parent
#: Lowest first. Modules of no room (`_version`, `_atomic_write`) lie below all of them.
ROOMS = [
    "numerics",
    "data",
    "table",
    "results",
    "estimators",
    "recalibrate",
    "pu",
    "inference",
    "monitor",
    "simulate",
    "scale",
    "plot",
    "reporting",
    "integrations",
    "cli",
]
LEVEL = {name: level for level, name in enumerate(ROOMS)}
#: Rooms of which neither imports the other.
APART = {("simulate", "scale"), ("scale", "simulate")}
#: Methods of results that may reach up, for comfort.
DOORS = {"plot", "save", "load", "report", "to_html", "_repr_html_"}
#: Modules of no room.
GROUND = {"calibrant", "calibrant.__main__", "calibrant._version", "calibrant._atomic_write"}
MODULES = {
    ".".join(("calibrant", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in SOURCE.rglob("*.py")
}


def level(module: str) -> int:
    return LEVEL.get(module.split(".")[1], -1) if "." in module else len(ROOMS)


def absolute(node: ast.ImportFrom, name: str, *, package: bool) -> str:
    """The module an import names, from within module `name`; `package` says that `name` is a package."""
    if not node.level:
        return node.module or ""
    parts = name.split(".") if package else name.split(".")[:-1]
    return ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])


def imports(node: ast.AST, name: str, *, package: bool, in_class: bool = False):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.FunctionDef) and in_class and child.name in DOORS:
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names if alias.name in MODULES)
        elif isinstance(child, ast.ImportFrom):
            base = absolute(child, name, package=package)
            for alias in child.names:
                whole = f"{base}.{alias.name}"
                if whole in MODULES or base in MODULES:
                    yield whole if whole in MODULES else base
        else:
            yield from imports(child, name, package=package, in_class=isinstance(child, ast.ClassDef))


def edges(name: str, path: Path) -> set[str]:
    """What a module imports, and for a package what its stub names."""
    package = path.name == "__init__.py"
    stub = path.with_suffix(".pyi")
    texts = [path, stub] if stub.exists() else [path]
    found = {
        there for text in texts for there in imports(ast.parse(text.read_text(encoding="utf8")), name, package=package)
    }
    return found - {name, "calibrant"}


@cache
def graph() -> dict[str, set[str]]:
    """What every module imports. Made when it is first asked for: every process of the tests imports this file."""
    roomless = {"calibrant", "calibrant.__main__"}
    return {name: edges(name, path) for name, path in MODULES.items() if name not in roomless}


def graph_without_stubs() -> dict[str, set[str]]:
    """A package names its modules, and these may import the package's other modules."""
    return {name: there for name, there in graph().items() if MODULES[name].name != "__init__.py"}


def reachable(start: str, imported: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = [start]
    while todo:
        for there in imported.get(todo.pop(), set()):
            if there not in seen:
                seen.add(there)
                todo.append(there)
    return seen


def test_no_import_goes_up():
    assert {(name, there) for name, found in graph().items() for there in found if level(there) > level(name)} == set()


def test_rooms_side_by_side_do_not_import_each_other():
    rooms = {(name.split(".")[1], there.split(".")[1]) for name, found in graph().items() for there in found}
    assert not rooms & APART


def test_no_modules_import_each_other_in_a_circle():
    imported = graph_without_stubs()
    assert {name for name in imported if name in reachable(name, imported)} == set()


def test_modules_import_modules_not_the_lists_of_names_of_packages():
    packages = {name for name, path in MODULES.items() if path.name == "__init__.py"} - {"calibrant"}
    through = {
        (name, there)
        for name, found in graph_without_stubs().items()
        for there in found & packages
        if name.split(".")[1] not in {"cli", "integrations"}  # they use the package as its users do
    }
    assert through == set()


def test_every_module_has_a_room():
    assert {name for name in MODULES if name not in GROUND and level(name) < 0} == set()
