from pathlib import Path

import pytest
from tools.durations import Durations
from tools.mutants import ELSEWHERE, Mutant, drawn, main, modules_of, mutations, nearest_tests, other_tests, report
from tools.project import Project

SOURCE = '''"""Some mathematics."""

def power(base: float | None, *, exponent: int = 2) -> float | None:
    if base is None:
        return max(*[1, 2])
    return (
        base
        * 1.0
    ) ** exponent
'''


def test_a_room_or_a_module_can_be_named(project):
    assert modules_of(project, "table") == [f"calibrant.table.{name}" for name in ("bins", "rows", "sums")]
    assert modules_of(project, "table/bins") == modules_of(project, "table/bins.py") == ["calibrant.table.bins"]
    assert modules_of(project, "bins") == []


def test_the_nearest_tests_run(project):
    assert [path.name for path in nearest_tests(project, "calibrant.table.bins")] == ["test_bins.py"]
    assert nearest_tests(project, "calibrant.table.sums") == []
    (project.root / "tests/table/test_bins.py").unlink()
    names = [path.name for path in nearest_tests(Project(project.root), "calibrant.table.bins")]
    assert names == ["test_every.py", "test_top.py"]
    (project.root / "tests/table/test_rows.py").unlink()
    (project.root / "tests/table/test_sums.py").touch()
    assert [path.name for path in nearest_tests(Project(project.root), "calibrant.table.rows")] == ["test_sums.py"]


def test_survivors_meet_the_quickest_other_tests_first(project):
    durations = Durations(files={"tests/table/test_top.py": 1.0, "tests/table/test_every.py": 2 * ELSEWHERE})
    names = [path.name for path in other_tests(project, "calibrant.table.bins", durations)]
    assert names == ["test_top.py", "test_rows.py"]


def test_annotations_and_stars_of_arguments_are_not_mutated(tmp_path):
    pytest.importorskip("cosmic_ray", reason="make mutants installs it")
    path = Path("power.py")
    (tmp_path / path).write_text(SOURCE)
    mutants = mutations(tmp_path, path)
    assert {one.module_path for one in mutants} == {path}
    found = sorted((one.start_pos[0], one.operator_name.removeprefix("core/")) for one in mutants)
    assert [one for one in found if one[1] != "NumberReplacer"] == [
        (4, "AddNot"),
        (4, "ReplaceComparisonOperator_Is_IsNot"),
        (8, "ReplaceBinaryOperator_Mul_Div"),
        (9, "ReplaceBinaryOperator_Pow_Mul"),
    ]
    assert {line for line, name in found if name == "NumberReplacer"} == {3, 5, 8}


def test_a_sample_is_drawn_from_all_modules_and_repeats_with_its_seed(project):
    pytest.importorskip("cosmic_ray", reason="make mutants installs it")
    modules = modules_of(project, "table")[:2]
    for module in modules:
        (project.root / project.modules[module]).write_text(SOURCE)
    everything = drawn(project, modules, sample=None, seed=1)
    assert {module for module, _ in everything} == set(modules)
    assert drawn(project, modules, sample=3, seed=1) == everything[:3]
    assert drawn(project, modules, sample=3, seed=2) != everything[:3]


def test_an_unknown_room_raises_an_error_that_names_it(capsys):
    with pytest.raises(SystemExit):
        main(["numerics", "nowhere"])
    assert "no module is called 'nowhere'" in capsys.readouterr().err


def test_the_report_counts_what_was_tried_and_shows_survivors(project):
    module = "calibrant.table.bins"
    mutants = [
        Mutant(module, 7, "AddNot", "killed"),
        Mutant(module, 8, "AddNot", "timeout"),
        Mutant(module, 8, "NumberReplacer", "killed elsewhere"),
        Mutant(module, 8, "NumberReplacer", "moved frozen results"),
        Mutant(module, 9, "NumberReplacer", "survived", "-x = 1\n+x = 2"),
        Mutant(module, 10, "NumberReplacer", "not run"),
    ]
    text = report(project, "table", mutants)
    assert "5 of 6 mutants were tried and 4 noticed." in text
    assert "| calibrant.table.bins | `tests/table/test_bins.py` | 5 | 1 | 1 | 1 | 1 | 1 | 80% |" in text
    assert "`src/calibrant/table/bins.py:9` NumberReplacer\n\n```diff\n-x = 1\n+x = 2\n```" in text
    assert report(project, "table", mutants[:2]).endswith("None.\n")
