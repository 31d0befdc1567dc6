"""A room imports only from the rooms below it, imports inside functions included."""

import ast
from pathlib import Path

import calibrant

SOURCE = Path(calibrant.__file__).parent
#: Lowest first. Modules of no room (`_version`, `_atomic_write`) lie below all of them.
ROOMS = (
    "numerics",
    "data",
    "table",
    "results",
    "estimators",
    "recalibrate",
    "pu",
    "inference",
    "simulate",
    "scale",
    "plot",
    "reporting",
    "integrations",
    "cli",
)
LEVEL = {name: level for level, name in enumerate(ROOMS)}
#: Methods of results that may reach up, for comfort.
DOORS = {"plot", "save", "load", "report", "to_html", "_repr_html_"}
#: Edges that still go up. A cut takes its line away; nothing may be added.
UPWARD: set[tuple[str, str]] = set()
#: Circles of modules that are still there.
CIRCLES: list[list[str]] = []
MODULES = {
    ".".join(("calibrant", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in SOURCE.rglob("*.py")
}


def room(module: str) -> int:
    return LEVEL.get(module.split(".")[1], -1) if "." in module else len(ROOMS)


def imports(node: ast.AST, name: str, *, in_class: bool = False):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.FunctionDef) and in_class and child.name in DOORS:
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names if alias.name in MODULES)
        elif isinstance(child, ast.ImportFrom) and (child.module or "").split(".")[0] == "calibrant":
            for alias in child.names:
                whole = f"{child.module}.{alias.name}"
                yield whole if whole in MODULES else child.module
        else:
            yield from imports(child, name, in_class=isinstance(child, ast.ClassDef))


GRAPH = {
    name: {there for there in imports(ast.parse(path.read_text(encoding="utf8")), name) if there != "calibrant"}
    - {name}
    for name, path in MODULES.items()
    if name not in {"calibrant", "calibrant.__main__"}
}


def reachable(start: str) -> set[str]:
    seen: set[str] = set()
    todo = [start]
    while todo:
        for there in GRAPH[todo.pop()]:
            if there not in seen:
                seen.add(there)
                todo.append(there)
    return seen


def test_no_edge_goes_up_that_is_not_listed_and_none_is_listed_that_is_gone():
    assert {(name, there) for name, edges in GRAPH.items() for there in edges if room(there) > room(name)} == UPWARD


def test_no_circle_of_modules_is_new():
    below = {name: reachable(name) for name in GRAPH}
    circles = {
        tuple(sorted({name} | {b for b in below[name] if name in below[b]})) for name in GRAPH if name in below[name]
    }
    assert sorted(map(list, circles)) == CIRCLES


def test_every_module_has_a_room():
    rootless = {"calibrant", "calibrant.__main__", "calibrant._version", "calibrant._atomic_write"}
    assert {name for name in MODULES if name not in rootless and room(name) < 0} == set()
