"""The modules of the package, what each file uses of them, and which tests belong to which module."""

from __future__ import annotations

import ast
import compileall
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from py_compile import PycInvalidationMode

PACKAGE = "calibrant"
#: The project that holds this file.
ROOT = Path(__file__).parents[1]
#: Tests of the package as a whole, cheap enough to run after every change.
ALWAYS = ("tests/test_layers.py", "tests/test_mirror.py", "tests/test_public.py")
_NOT_COPIED = (".git", ".venv*", ".*_cache", ".hypothesis", "__pycache__", "artifacts", "mutants", "site")


@dataclass(frozen=True)
class Project:
    """A checkout of the project.

    >>> project = Project()
    >>> project.mirror("calibrant.numerics.equal_mass")
    PosixPath('tests/numerics/test_equal_mass.py')
    """

    root: Path = ROOT

    @property
    def source(self) -> Path:
        """The folder of the package."""
        return self.root / "src" / PACKAGE

    @cached_property
    def modules(self) -> dict[str, Path]:
        """Every module by its dotted name, with its path from the root; packages are named by their folder."""
        found = {}
        for path in sorted(self.source.rglob("*.py")):
            parts = path.relative_to(self.source.parent).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path.relative_to(self.root)
        return found

    @cached_property
    def test_files(self) -> list[Path]:
        """Every file of tests, with its path from the root."""
        return sorted(path.relative_to(self.root) for path in (self.root / "tests").rglob("test_*.py"))

    @cached_property
    def public_names(self) -> dict[str, str]:
        """The module behind each public name, read from the stubs: `calibrant.ece` is `calibrant.estimators.binned`."""
        names: dict[str, str] = {}
        for package, path in self.modules.items():
            stub = (self.root / path).with_suffix(".pyi")
            if path.name == "__init__.py" and stub.exists():
                for node in ast.walk(_parsed(stub)):
                    if isinstance(node, ast.ImportFrom) and node.module:
                        names |= {f"{package}.{alias.name}": f"{package}.{node.module}" for alias in node.names}
        return names

    @cached_property
    def uses(self) -> dict[Path, frozenset[str]]:
        """The modules that each source and test file names: in imports, or as `cal.ece`."""
        paths = [*self.modules.values(), *self.test_files]
        return {path: frozenset(self._used_by(path)) for path in paths}

    def module_of(self, path: Path) -> str | None:
        """The module in a file, by its path from the root; a stub belongs to its package."""
        return {path: name for name, path in self.modules.items()}.get(path.with_suffix(".py"))

    def mirror(self, module: str) -> Path:
        """Where the tests of a module belong, whether or not they exist."""
        *rooms, name = module.split(".")[1:] or [PACKAGE]
        return Path("tests", *rooms, f"test_{name.lstrip('_')}.py")

    def mirrored(self, path: Path) -> str | None:
        """The module that a file of tests mirrors: `test_sums.py`, or `test_sums_weighted.py` for some of them."""
        names = [name for name in self.modules if self.mirror(name).parent == path.parent]
        fitting = [name for name in names if f"{path.stem}_".startswith(f"{self.mirror(name).stem}_")]
        return max(fitting, key=len, default=None)

    def tests_of(self, module: str) -> list[Path]:
        """The files of tests of a module: first those that mirror it, then those that use it."""
        mirrors = [path for path in self.test_files if self.mirrored(path) == module]
        using = [path for path in self.test_files if module in self.uses[path] and path not in mirrors]
        return [*sorted(mirrors, key=lambda path: path != self.mirror(module)), *using]

    def importers(self, module: str) -> list[str]:
        """The modules that import a module directly, imports inside functions included."""
        return [name for name, path in self.modules.items() if name != module and module in self.uses[path]]

    def _used_by(self, path: Path) -> Iterator[str]:
        tree = _parsed(self.root / path)
        aliases = {}
        nodes = list(ast.walk(tree))
        for node in nodes:
            for name, local in _imported(node):
                aliases[local] = name
                yield from self._resolved(name)
        for node in nodes:
            if isinstance(node, ast.Attribute):
                first, *rest = _chain(node)
                if first in aliases:
                    yield from self._resolved(".".join([aliases[first], *rest]))

    def _resolved(self, name: str) -> Iterator[str]:
        """The module behind a dotted name, which may be a module, or a public or private name of one."""
        parent = name.rpartition(".")[0]
        if name in self.modules:
            yield name
        elif name in self.public_names:
            yield self.public_names[name]
        elif parent in self.modules:
            yield parent


def copy_project(root: Path, folder: Path) -> Path:
    """Copy a project into a folder, to change its files and run its tests there with `PYTHONPATH` set to its `src`."""
    copy = folder / "project"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    # Python must notice a change by its content: two changes within a second have the same time.
    compileall.compile_dir(copy / "src", quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return copy


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Full and local names of the package's names that an import statement brings."""
    if isinstance(node, ast.Import):
        pairs = [(alias.name, alias.asname or alias.name.partition(".")[0]) for alias in node.names]
        yield from ((name if local != PACKAGE else PACKAGE, local) for name, local in pairs)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield from ((f"{node.module}.{alias.name}", alias.asname or alias.name) for alias in node.names)


def _chain(node: ast.expr) -> list[str]:
    """The names in `cal.estimators.ece`; the first is empty where the chain begins with an expression."""
    if isinstance(node, ast.Attribute):
        return [*_chain(node.value), node.attr]
    return [node.id if isinstance(node, ast.Name) else ""]


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf8"))
