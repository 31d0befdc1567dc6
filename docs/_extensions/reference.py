"""A page for every public name of every package, and tables of them by task, made from the docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from reference_tasks import by_task, see_also

#: Packages in reading order. A name is explained once: under the first package that lists it.
PACKAGES = (
    "calibrant",
    "calibrant.estimators",
    "calibrant.inference",
    "calibrant.recalibrate",
    "calibrant.monitor",
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


def summary(package: str, name: str) -> str:
    """What a name is, in a sentence: the first of its docstring, or the comment above a constant."""
    named = thing(package, name)
    text = inspect.getdoc(named) if callable(named) else _comment(package, name)
    return " ".join((text or "").split("\n\n")[0].split())


def _comment(package: str, name: str) -> str:
    """The comment above a constant, where it is defined."""
    homes = [module for key, module in sorted(sys.modules.items()) if key.startswith(f"{package}.")]
    sources = (inspect.getsource(module) for module in homes if name in vars(module) and module.__file__)
    found = (re.search(rf"^#: (.+)\n{name}\b", source, flags=re.M) for source in sources)
    return next((match[1] for match in found if match), "")


def page(package: str, name: str, others: list[tuple[str, str]]) -> str:
    """The page of one name."""
    named = thing(package, name)
    title = f"{package.removeprefix('calibrant.')}.{name}" if package != "calibrant" else name
    lines = [title, "=" * len(title), "", f".. currentmodule:: {package}", ""]
    if inspect.isclass(named):
        lines += [f".. autoclass:: {name}", "   :members:", f"   :inherited-members: {INHERITED}"]
        lines += [f"   :exclude-members: {REQUESTS}"]
    elif callable(named):
        lines += [f".. autofunction:: {name}"]
    else:
        lines += [f".. py:data:: {name}", "", f"   {summary(package, name)}"]
    lines += ["", ".. rubric:: See also", ""]
    for key in others:
        lines += [f":doc:`{_doc(*key)}`", f"   {summary(*key)}"]
    return "\n".join([*lines, ""])


def _doc(package: str, name: str) -> str:
    return f"{name} <{package}.{name}>"


def tables(package: str, names: list[str]) -> str:
    """The list of a package: a table per task."""
    module = importlib.import_module(package)
    lines = [package, "=" * len(package), "", inspect.getdoc(module) or "", ""]
    tasks = by_task(package, {name: getattr(module, name) for name in names})
    for title, some in tasks.items():
        if len(tasks) > 1:
            lines += [title, "-" * len(title), ""]
        lines += [".. list-table::", "   :widths: 30 70", ""]
        for name in some:
            lines += [f"   * - :doc:`{_doc(package, name)}`", f"     - {summary(package, name)}"]
        lines += [""]
    lines += [".. toctree::", "   :hidden:", ""]
    lines += [f"   {_doc(package, name)}" for name in names]
    return "\n".join([*lines, ""])


def write(folder: Path) -> None:
    """Every page of the reference."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    index = ["Reference", "=========", "", "Every public name, package by package.", ""]
    index += [".. list-table::", "   :widths: 30 70", ""]
    others = see_also({key: thing(*key) for key in pages()})
    listed = {package: names for package, names in first_packages().items() if names}
    for package, names in listed.items():
        for name in names:
            text = page(package, name, others[package, name])
            (folder / f"{package}.{name}.rst").write_text(text, encoding="utf8")
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
