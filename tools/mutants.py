"""Which small faults in a room would its tests miss?

    python -m tools.mutants numerics                  # every module of a room
    python -m tools.mutants numerics/cells         # one module
    python -m tools.mutants numerics --minutes 10     # as many mutants as fit, drawn at random
    python -m tools.mutants inference numerics estimators --sample 40 --seed 3     # this many of several rooms

Cosmic Ray makes each fault (`<` for `<=`, `+` for `-`, 9 for 8, a condition negated, a decorator removed) in a copy of
the project, and the tests and examples of the module run on it. A mutant that passes them meets the frozen results of
`make golden`, and then other tests that use the module. One that passes these too has survived: a test is missing, or
the fault makes no difference. Survivors are written to `mutants/<room>.md`. Slow tests do not run.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

from tools.affected import LEFT_OUT
from tools.durations import Durations
from tools.project import PACKAGE, ROOT, Project, copy_project

#: One replacement for each operator: the nearest fault is the hardest to see.
OPERATORS = {
    *(f"core/ReplaceBinaryOperator_{pair}" for pair in ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Div")),
    *(f"core/ReplaceBinaryOperator_{pair}" for pair in ("Mod_Mul", "Pow_Mul", "LShift_RShift", "RShift_LShift")),
    *(f"core/ReplaceBinaryOperator_{pair}" for pair in ("BitAnd_BitOr", "BitOr_BitAnd", "BitXor_BitAnd")),
    *(f"core/ReplaceComparisonOperator_{pair}" for pair in ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")),
    *(f"core/ReplaceComparisonOperator_{pair}" for pair in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt")),
    *(f"core/ReplaceUnaryOperator_Delete_{name}" for name in ("Invert", "Not", "USub")),
    *(f"core/Replace{pair}" for pair in ("AndWithOr", "OrWithAnd", "TrueWithFalse", "FalseWithTrue")),
    *(f"core/Replace{pair}" for pair in ("BreakWithContinue", "ContinueWithBreak")),
    *(f"core/{name}" for name in ("AddNot", "NumberReplacer", "RemoveDecorator", "ZeroIterationForLoop")),
}
#: Processor seconds for the other tests that a mutant meets.
ELSEWHERE = 60.0
#: Outcomes of a mutant that tests noticed.
CAUGHT = ("killed", "timeout")
Outcome = Literal["killed", "killed elsewhere", "moved frozen results", "timeout", "survived", "not run"]
#: Compares the frozen results of public calls, as `make golden` does.
GOLDEN = f"{sys.executable} -m tests.golden"


@dataclass(frozen=True)
class Mutant:
    """One fault: where, what, and whether the tests noticed."""

    module: str
    line: int
    operator: str
    outcome: Outcome
    diff: str = ""


def modules_of(project: Project, room: str) -> list[str]:
    """The modules that `numerics` or `numerics/cells` names."""
    name = f"{PACKAGE}.{room.strip('/').removesuffix('.py').replace('/', '.')}"
    plain = [module for module, path in project.modules.items() if not path.stem.startswith("__")]
    return [module for module in plain if module == name or module.startswith(f"{name}.")]


def nearest_tests(project: Project, module: str) -> list[Path]:
    """The tests that mirror a module; if there are none, those that use it; if none, those of its importers."""
    if mirrors := [path for path in project.test_files if project.mirrored(path) == module]:
        return mirrors
    of_importers = (project.mirror(importer) for importer in project.importers(module))
    return project.tests_of(module) or [path for path in of_importers if path in project.test_files]


def other_tests(project: Project, module: str, durations: Durations) -> list[Path]:
    """Further tests that use a module or mirror one that imports it, the quickest first, within a time."""
    of_importers = (project.mirror(importer) for importer in project.importers(module))
    near = nearest_tests(project, module)
    found = {*project.tests_of(module), *(path for path in of_importers if path in project.test_files)} - set(near)
    chosen, spent = [], 0.0
    for path in sorted(found, key=lambda path: (durations.seconds(str(path)), path)):
        spent += durations.seconds(str(path))
        if spent <= ELSEWHERE:
            chosen.append(path)
    return chosen


def mutations(root: Path, module: Path) -> list[Any]:
    """What Cosmic Ray can change in a file, without annotations, which nothing executes, and stars of arguments."""
    from cosmic_ray.ast import ast_nodes, get_ast_from_path
    from cosmic_ray.plugins import get_operator
    from cosmic_ray.work_item import MutationSpec

    nodes = list(ast_nodes(get_ast_from_path(root / module)))
    found = []
    for name in sorted(OPERATORS):
        operator = get_operator(name)()
        places = [place for node in nodes for place in operator.mutation_positions(node)]
        found += [MutationSpec(module, name, number, start, end) for number, (start, end) in enumerate(places)]
    text = (root / module).read_text(encoding="utf8")
    lines, ignored = text.splitlines(), list(_annotations(ast.parse(text)))
    return [
        mutation
        for mutation in found
        if not any(low <= mutation.start_pos < high for low, high in ignored)
        and not _is_star(lines[mutation.start_pos[0] - 1], mutation.start_pos[1])
    ]


def _is_star(line: str, column: int) -> bool:
    """Whether a line has at `column` the star of `f(*args)` or of keyword-only arguments, not a product."""
    before, after = line[:column].rstrip(), line[column:].lstrip("*/")
    return line[column : column + 1] in {"*", "/"} and after[:1] != " " and (not before or before[-1] in "(,[{=:")


def _annotations(tree: ast.Module) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """First and last positions of annotations and of what only type checkers read."""
    for node in ast.walk(tree):
        noted = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            noted += [node.test, *node.body]
        for part in filter(None, noted):
            yield (part.lineno, part.col_offset), (part.end_lineno or 0, part.end_col_offset or 0)


def _enter_copy(root: Path) -> None:
    """Give a worker its own copy of the project, in which it may change files, and stay there."""
    copy = copy_project(root, Path(tempfile.mkdtemp(prefix="mutants-", dir=os.environ["MUTANTS_FOLDER"])))
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy / "src")


def _command(tests: Iterable[Path]) -> str:
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", f"'{LEFT_OUT}'"]
    return " ".join([sys.executable, "-m", "pytest", *options, *map(str, tests)])


def _baseline(command: str) -> float | None:
    """Seconds that a command takes without a fault; None where it fails."""
    from cosmic_ray.testing import run_tests

    start = time.monotonic()
    outcome, _ = run_tests(command, timeout=600)
    return time.monotonic() - start if outcome.value == "survived" else None


@dataclass(frozen=True)
class Task:
    """One mutation, and the command that tests it, with the seconds it takes without it."""

    module: str
    mutation: Any
    command: str
    seconds: float


def _tried(task: Task, *, deadline: float) -> Mutant:
    """Make one mutant and run its tests, unless the time is up."""
    from cosmic_ray.mutating import mutate_and_test

    operator = task.mutation.operator_name.removeprefix("core/")
    found = partial(Mutant, task.module, task.mutation.start_pos[0], operator)
    if time.time() > deadline:
        return found("not run")
    result = mutate_and_test([task.mutation], task.command, 10 + 3 * task.seconds)
    if result.test_outcome is None or result.test_outcome.value == "incompetent":
        return found("not run")
    timed_out = result.output == "timeout"
    return found("timeout" if timed_out else result.test_outcome.value, _changed_lines(result.diff or ""))


def _changed_lines(diff: str) -> str:
    return "\n".join(line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in {"---", "+++"})


def drawn(project: Project, modules: list[str], *, sample: int | None, seed: int) -> list[tuple[str, Any]]:
    """The mutations of the modules in random order, or a sample of them."""
    found = [(module, mutation) for module in modules for mutation in mutations(project.root, project.modules[module])]
    random.Random(seed).shuffle(found)
    return found[:sample]


def run(
    project: Project, modules: list[str], *, minutes: float, seed: int, jobs: int, sample: int | None = None
) -> list[Mutant]:
    """Try the mutants of the modules in random order until the time is up."""
    deadline = time.time() + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="calibrant-") as folder, _environment(MUTANTS_FOLDER=folder, CI="1"):
        project = Project(copy_project(project.root, Path(folder)))  # what is edited meanwhile does not matter
        _freeze(project.root)
        chosen = drawn(project, modules, sample=sample, seed=seed)
        return _run(project, chosen, deadline=deadline, jobs=jobs)


def _freeze(copy: Path) -> None:
    """Freeze the results of a copy as this machine computes them: those of another processor differ by rounding."""
    environment = os.environ | {"PYTHONPATH": str(copy / "src")}
    command = [*GOLDEN.split(), "--update", "as they are without a fault"]
    subprocess.run(command, cwd=copy, env=environment, stdout=subprocess.DEVNULL, check=True)


def _run(project: Project, chosen: list[tuple[str, Any]], *, deadline: float, jobs: int) -> list[Mutant]:
    modules = sorted({module for module, _ in chosen})
    with ProcessPoolExecutor(jobs, get_context("spawn"), _enter_copy, (project.root,)) as pool:
        near = {module: _command([*nearest_tests(project, module), project.modules[module]]) for module in modules}
        seconds = dict(zip(modules, pool.map(_baseline, near.values()), strict=True))
        if failing := [module for module in modules if seconds[module] is None]:
            message = f"These modules' tests fail without any fault: {', '.join(failing)}"
            raise SystemExit(message)
        tasks = [Task(module, mutation, near[module], seconds[module] or 0) for module, mutation in chosen]
        mutants = []
        for mutant in pool.map(partial(_tried, deadline=deadline), tasks):
            print(f"{mutant.outcome:8} {mutant.module}:{mutant.line} {mutant.operator}", flush=True)
            mutants.append(mutant)
        golden = dict.fromkeys(modules, GOLDEN)  # quicker than the other tests
        mutants = _tried_again(pool, tasks, mutants, golden, "moved frozen results", deadline=deadline)
        durations = Durations.load(project.root)
        others = {module: tests for module in modules if (tests := other_tests(project, module, durations))}
        elsewhere = {module: _command(tests) for module, tests in others.items()}
        return _tried_again(pool, tasks, mutants, elsewhere, "killed elsewhere", deadline=deadline)


def _tried_again(
    pool: ProcessPoolExecutor,
    tasks: list[Task],
    mutants: list[Mutant],
    commands: dict[str, str],
    noticed: Outcome,
    *,
    deadline: float,
) -> list[Mutant]:
    """Try the survivors with other commands, by module; those that fail without a fault are not used."""
    wanted = {mutant.module for mutant in mutants if mutant.outcome == "survived"}
    used = list(dict.fromkeys(command for module, command in commands.items() if module in wanted))
    seconds = dict(zip(used, pool.map(_baseline, used), strict=True))
    if failing := [module for module in sorted(wanted) if seconds.get(commands.get(module, ""), 0.0) is None]:
        print(f"Other tests of these modules fail without any fault and were not used: {', '.join(failing)}")
    again = [
        (place, replace(task, command=commands[task.module], seconds=seconds[commands[task.module]] or 0))
        for place, (task, mutant) in enumerate(zip(tasks, mutants, strict=True))
        if mutant.outcome == "survived" and seconds.get(commands.get(task.module, "")) is not None
    ]
    results = pool.map(partial(_tried, deadline=deadline), [task for _, task in again])
    found = {place: result.outcome for (place, _), result in zip(again, results, strict=True)}
    return [
        replace(mutant, outcome=noticed) if found.get(place) in CAUGHT else mutant
        for place, mutant in enumerate(mutants)
    ]


def report(project: Project, room: str, mutants: list[Mutant]) -> str:
    """Kill rates by module and the survivors, as Markdown."""
    tried = [mutant for mutant in mutants if mutant.outcome != "not run"]
    survived = sum(mutant.outcome == "survived" for mutant in tried)
    summary = f"{len(tried)} of {len(mutants)} mutants were tried and {len(tried) - survived} noticed."
    lines = [f"# Mutants of {room}", "", summary, ""]
    columns: tuple[Outcome, ...] = ("killed", "timeout", "killed elsewhere", "moved frozen results", "survived")
    lines += [f"| module | tests | tried | {' | '.join(columns)} | kill rate |", "|---" * 9 + "|"]
    for module in sorted({mutant.module for mutant in tried}):
        outcomes = [mutant.outcome for mutant in tried if mutant.module == module]
        tests = ", ".join(f"`{path}`" for path in nearest_tests(project, module)) or "examples only"
        counts = " | ".join(str(outcomes.count(column)) for column in columns)
        rate = f"{1 - outcomes.count('survived') / len(outcomes):.0%}"
        lines.append(f"| {module} | {tests} | {len(outcomes)} | {counts} | {rate} |")
    lines += ["", "## Survivors", ""]
    survivors = sorted(
        (mutant for mutant in tried if mutant.outcome == "survived"), key=lambda one: (one.module, one.line)
    )
    for mutant in survivors:
        place = f"`{project.modules[mutant.module]}:{mutant.line}`"
        lines += [f"{place} {mutant.operator}", "", "```diff", mutant.diff, "```", ""]
    return "\n".join(lines if survivors else [*lines, "None.", ""])


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Environment variables for the processes started within."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def main(arguments: list[str] | None = None) -> int:
    """Try the mutants of rooms and write the survivors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("room", nargs="+", help="rooms, such as numerics, or modules, such as numerics/equal_mass")
    parser.add_argument("--minutes", type=float, default=30, help="stop after this time")
    parser.add_argument("--sample", type=int, help="try this many, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="which mutants come first")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args(arguments)
    project = Project(ROOT)
    found = {room: modules_of(project, room) for room in options.room}
    if unknown := [room for room in options.room if not found[room]]:
        parser.error(f"no module is called {unknown[0]!r}; try numerics or numerics/equal_mass")
    modules = list(dict.fromkeys(module for modules in found.values() for module in modules))
    limits = {"minutes": options.minutes, "sample": options.sample}
    done = run(project, modules, seed=options.seed, jobs=options.jobs, **limits)
    names = [room.strip("/") for room in options.room]
    text = report(project, ", ".join(names), done)
    path = ROOT / "mutants" / f"{'+'.join(names).replace('/', '-')}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf8")
    print(text.partition("## Survivors")[0])
    print(f"The survivors are in {path.relative_to(ROOT)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
