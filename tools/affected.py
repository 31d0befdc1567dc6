"""Run the tests that a change can have broken, the nearest first, as far as a time budget allows.

    python -m tools.affected [--since REF] [--seconds S] [--list]

Changed are the files that differ from the merge base with the main branch, in commits or in the working tree; if there
are none, those of the last commit. Their own tests and examples come first, then tests that use a changed module, then
those of the modules that import it. When nothing of the package changed, the quickest files of the whole suite run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.durations import Durations
from tools.project import ALWAYS, ROOT, Project

#: Processor seconds; two processes spend them in half the time.
BUDGET = 45.0
LEFT_OUT = "not slow and not browser and not spark"


def changed_files(root: Path, *, since: str | None = None) -> list[Path]:
    """Files changed since a commit, by default the merge base with the main branch, or else in the last commit."""
    bases = [_git(root, "merge-base", "HEAD", ref) for ref in ("@{upstream}", "origin/main", "main")]
    base = since or next((found[0] for found in bases if found), "HEAD")
    new = _git(root, "ls-files", "--others", "--exclude-standard")
    found = [*_git(root, "diff", "--name-only", base), *new]
    return [Path(name) for name in found or ([] if since else _git(root, "diff", "--name-only", "HEAD~1"))]


def candidates(project: Project, changed: Iterable[Path]) -> Iterator[str]:
    """Files and tests that a change may have broken, the nearest first; a file may occur more than once."""
    changed = list(changed)
    modules = [name for path in changed if (name := project.module_of(path)) and (project.root / path).exists()]
    yield from (str(path) for path in changed if path in project.test_files)
    for module in modules:
        yield from _own_tests(project, module)
    yield from _pages(project, changed)
    for module in modules:
        yield from map(str, project.tests_of(module))
    for module in modules:
        for importer in project.importers(module):
            yield from _own_tests(project, importer)


def selection(tests: Iterable[str], durations: Durations, *, seconds: float) -> tuple[list[str], list[str]]:
    """The tests that fit in the time, those of `ALWAYS` first, and the others."""
    chosen = list(ALWAYS)
    spent = sum(map(durations.seconds, chosen))
    left_out = []
    for test in dict.fromkeys(tests):
        if test in chosen:
            continue
        if spent + durations.seconds(test) <= seconds:
            chosen.append(test)
            spent += durations.seconds(test)
        else:
            left_out.append(test)
    return chosen, left_out


def quickest(project: Project, durations: Durations) -> list[str]:
    """Every file with tests or examples, the quickest first: as many rooms as possible in little time."""
    known = {*map(str, project.test_files), *map(str, project.modules.values())}
    return sorted(known & set(durations.files), key=durations.seconds)


def _own_tests(project: Project, module: str) -> Iterator[str]:
    """The examples of a module and the tests that mirror it."""
    path, mirror = project.modules[module], project.mirror(module)
    if ">>>" in (project.root / path).read_text(encoding="utf8"):
        yield str(path)
    if mirror in project.test_files:
        yield str(mirror)


def _pages(project: Project, changed: list[Path]) -> Iterator[str]:
    """Tests of changed pages of the documentation."""
    for path in changed:
        if path == Path("README.md"):
            yield "tests/test_readme.py"
        elif path.parts[0] == "docs" and path.suffix == ".md" and (project.root / path).exists():
            text = (project.root / path).read_text(encoding="utf8")
            if text.count("\n```python\n") > text.count("<!-- notest -->\n```python\n"):
                yield f"tests/test_docs.py::test_the_code_on_the_page_runs[{path.name}]"


def _git(root: Path, *arguments: str) -> list[str]:
    """Lines that git prints; none where it fails, as in a clone without history."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def main(arguments: list[str] | None = None) -> int:
    """Run the selected tests, or list them; the exit status is that of pytest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--since", help="a commit or branch to compare with")
    parser.add_argument("--seconds", type=float, default=BUDGET, help="processor seconds to spend")
    parser.add_argument("--list", action="store_true", help="print the selection, run nothing")
    options = parser.parse_args(arguments)
    project, durations = Project(ROOT), Durations.load(ROOT)
    changed = changed_files(ROOT, since=options.since or None)
    near = list(candidates(project, changed))
    chosen, left_out = selection(near or quickest(project, durations), durations, seconds=options.seconds)
    if options.list:
        print(*chosen, sep="\n")
        return 0
    reason = f"{len(changed)} changed files" if near else "no changed module, so the quickest of the suite"
    print(f"Tests of {len(chosen)} files ({reason}); {len(left_out) if near else 0} left out for time.", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-m", LEFT_OUT, *chosen]
    return subprocess.run(command, cwd=ROOT, env=os.environ | {"CI": "1"}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
