"""A page for every public name of every package, and tables of them by subject, made from the docstrings."""

from __future__ import annotations

import importlib
import inspect
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

#: Packages in reading order. A name is explained once: under the first package that lists it.
PACKAGES = (
    "calibrant",
    "calibrant.estimators",
    "calibrant.inference",
    "calibrant.recalibrate",
    "calibrant.pu",
    "calibrant.simulate",
    "calibrant.scale",
    "calibrant.plot",
    "calibrant.reporting",
    "calibrant.integrations.sklearn",
    "calibrant.integrations.mlflow",
    "calibrant.integrations.torchmetrics",
    "calibrant.integrations.testing",
    "calibrant.data",
    "calibrant.table",
    "calibrant.results",
)
#: Where a name is defined decides the table it is listed in.
SUBJECTS = {
    "data": "Data",
    "table": "Bins and tables",
    "estimators.regression": "Forecasts: spread, coverage and scores",
    "estimators.dispersion": "Forecasts: spread, coverage and scores",
    "estimators": "Errors and scores of probabilities",
    "inference": "Intervals, tests, comparisons, groups and decisions",
    "simulate": "Planning",
    "reporting": "Reports and gates",
    "integrations": "Reports and gates",
    "results": "Results",
}
INHERITED = "BaseEstimator, TransformerMixin, ClassifierMixin, float, dict, tuple, Exception, ValueError, Protocol"

#: Methods that scikit-learn adds to every estimator for the routing of metadata; its own guide explains them.
REQUESTS = ", ".join(
    [
        "get_metadata_routing",
        "set_output",
        *(f"set_{m}_request" for m in ("fit", "predict", "predict_proba", "score", "transform")),
    ]
)


def public_names(package: str) -> list[str]:
    """The names that a package lists, without its own packages and its version."""
    module = importlib.import_module(package)
    names = [name for name in module.__all__ if not name.startswith("_")]
    return [name for name in names if not isinstance(getattr(module, name), ModuleType)]


def first_packages() -> dict[str, list[str]]:
    """The names that each package is the first to list."""
    seen: set[int] = set()
    found: dict[str, list[str]] = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        found[package] = [name for name in public_names(package) if id(getattr(module, name)) not in seen]
        seen.update(id(getattr(module, name)) for name in found[package])
    return found


def thing(package: str, name: str) -> Any:
    """What a name stands for."""
    return getattr(importlib.import_module(package), name)


def pages() -> list[tuple[str, str]]:
    """Package and name of every page."""
    return [(package, name) for package, names in first_packages().items() for name in names]


def summary(thing: Any) -> str:
    """The first sentence of the docstring."""
    text = inspect.getdoc(thing) if callable(thing) else ""
    return " ".join((text or "").split("\n\n")[0].split())


def page(package: str, name: str, family: list[str]) -> str:
    """The page of one name."""
    thing = getattr(importlib.import_module(package), name)
    title = f"{package.removeprefix('calibrant.')}.{name}" if package != "calibrant" else name
    lines = [title, "=" * len(title), "", f".. currentmodule:: {package}", ""]
    if inspect.isclass(thing):
        lines += [f".. autoclass:: {name}", "   :members:", f"   :inherited-members: {INHERITED}"]
        lines += [f"   :exclude-members: {REQUESTS}"]
    elif callable(thing):
        lines += [f".. autofunction:: {name}"]
    else:
        lines += [f".. autodata:: {name}"]
    others = [other for other in family if other != name]
    if others:
        lines += ["", ".. rubric:: In the same family", "", ", ".join(f":doc:`{_doc(package, o)}`" for o in others), ""]
    return "\n".join([*lines, ""])


def _doc(package: str, name: str) -> str:
    return f"{name} <{package}.{name}>"


def _subject(package: str, thing: Any) -> str:
    where = getattr(thing, "__module__", "") or ""
    inner = where.removeprefix("calibrant.")
    return next((title for prefix, title in SUBJECTS.items() if inner.startswith(prefix)), "Other")


def tables(package: str, names: list[str]) -> str:
    """The list of a package: one table per subject at the top level, one in all elsewhere."""
    module = importlib.import_module(package)
    lines = [package, "=" * len(package), "", inspect.getdoc(module) or "", ""]
    subjects: dict[str, list[str]] = {}
    for name in names:
        subject = _subject(package, getattr(module, name)) if package == "calibrant" else ""
        subjects.setdefault(subject, []).append(name)
    for subject, some in subjects.items():
        if subject:
            lines += [subject, "-" * len(subject), ""]
        lines += [".. list-table::", "   :widths: 30 70", ""]
        for name in some:
            lines += [f"   * - :doc:`{_doc(package, name)}`", f"     - {summary(getattr(module, name))}"]
        lines += [""]
    lines += [".. toctree::", "   :hidden:", ""]
    lines += [f"   {_doc(package, name)}" for name in names]
    return "\n".join([*lines, ""])


def _families(package: str, names: list[str]) -> dict[str, list[str]]:
    """Names defined in the same module belong together."""
    module = importlib.import_module(package)
    homes: dict[str, list[str]] = {}
    for name in names:
        homes.setdefault(getattr(getattr(module, name), "__module__", name), []).append(name)
    return {name: family for family in homes.values() for name in family}


def write(folder: Path) -> None:
    """Every page of the reference."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    index = ["Reference", "=========", "", "Every public name, package by package.", ""]
    index += [".. list-table::", "   :widths: 30 70", ""]
    listed = {package: names for package, names in first_packages().items() if names}
    for package, names in listed.items():
        families = _families(package, names)
        for name in names:
            (folder / f"{package}.{name}.rst").write_text(page(package, name, families[name]), encoding="utf8")
        (folder / f"{package}.rst").write_text(tables(package, names), encoding="utf8")
        first = (inspect.getdoc(importlib.import_module(package)) or "").split("\n\n")[0]
        index += [f"   * - :doc:`{package} <{package}>`", f"     - {' '.join(first.split())}"]
    index += ["   * - :doc:`calibrant (command line) <command-line>`", "     - Every command with its options."]
    index += ["", ".. toctree::", "   :hidden:", "", *(f"   {package}" for package in listed), "   command-line", ""]
    (folder / "index.rst").write_text("\n".join(index), encoding="utf8")


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before any is read."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference"), priority=200)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
