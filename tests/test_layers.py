"""Imports point one way: from the report down to the kernels, never back."""

import ast
from pathlib import Path

import calibrant

SOURCE = Path(calibrant.__file__).parent
#: Lowest first. A module may import, at its top level, only from its own layer and those below.
LAYERS = [
    ("_version", "atomic", "kernels", "relative", "sorting"),
    ("validation", "binning", "places"),
    ("bintable", "cutting", "estimate"),
    ("predictions", "predictions_pu", "distributions"),
    ("estimators",),
    ("recalibrate", "inference", "simulate", "scale", "pu"),
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def layer(module: str) -> int:
    return LEVEL.get(module.split(".")[1] if "." in module else module, len(LAYERS))


def top_level_imports(path: Path):
    for node in ast.parse(path.read_text(encoding="utf8")).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("calibrant."):
            yield node.module
        if isinstance(node, ast.ImportFrom) and node.module == "calibrant":
            yield from (f"calibrant.{alias.name}" for alias in node.names)


def test_no_module_imports_from_a_layer_above():
    wrong = [
        f"{path.relative_to(SOURCE)} imports {module}"
        for path in SOURCE.rglob("*.py")
        if path.name != "__init__.py"
        for module in top_level_imports(path)
        if layer(module) > LEVEL.get(path.relative_to(SOURCE).parts[0].removesuffix(".py"), len(LAYERS))
    ]
    assert wrong == []


def test_there_are_modules_to_check():
    assert sum(1 for path in SOURCE.rglob("*.py") for _ in top_level_imports(path)) > 10
