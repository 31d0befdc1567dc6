import subprocess
from pathlib import Path

import pytest
from tools.affected import candidates, changed_files, quickest, selection
from tools.durations import Durations
from tools.project import ALWAYS


def git(root, *arguments):
    who = ["-c", "user.name=x", "-c", "user.email=x"]
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def history(tmp_path):
    """Two commits on main, and one on a branch."""
    git(tmp_path, "init", "-b", "main")
    for name in ("one", "two", "three"):
        if name == "three":
            git(tmp_path, "checkout", "-b", "branch")
        (tmp_path / f"{name}.py").write_text(name)
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-m", name)
    return tmp_path


def changed(root, **options):
    return {path.stem for path in changed_files(root, **options)}


def test_a_branch_is_compared_with_where_it_left_main(history):
    assert changed(history) == {"three"}


def test_the_working_tree_and_new_files_count(history):
    (history / "one.py").write_text("changed")
    (history / "four.py").write_text("new")
    assert changed(history) == {"one", "three", "four"}


def test_on_a_clean_main_the_last_commit_counts(history):
    git(history, "checkout", "main")
    assert changed(history) == {"two"}


def test_any_commit_can_be_compared_with(history):
    assert changed(history, since="main~1") == {"two", "three"}
    assert changed(history, since="HEAD") == set()


def test_without_a_history_nothing_has_changed(tmp_path):
    assert changed(tmp_path) == set()


def test_own_tests_come_first_then_users_then_those_of_importers(project):
    assert list(dict.fromkeys(candidates(project, [project.modules["calibrant.table.bins"]]))) == [
        "src/calibrant/table/bins.py",
        "tests/table/test_bins.py",
        "tests/table/test_every.py",
        "tests/table/test_top.py",
        "tests/table/test_rows.py",
    ]


def test_changed_tests_run_before_those_of_changed_modules(project):
    changed = [project.modules["calibrant.table.rows"], Path("tests/table/test_other.py")]
    assert list(dict.fromkeys(candidates(project, changed))) == [
        "tests/table/test_other.py",
        "tests/table/test_rows.py",
    ]


def test_pages_with_code_are_tested(project):
    (project.root / "docs").mkdir()
    (project.root / "docs/code.md").write_text("# Code\n\n```python\n1\n```\n")
    (project.root / "docs/words.md").write_text("# Words\n\n<!-- notest -->\n```python\n1\n```\n")
    pages = [Path("docs/code.md"), Path("docs/words.md"), Path("docs/gone.md"), Path("README.md")]
    assert list(candidates(project, pages)) == [
        "tests/test_docs.py::test_the_code_on_the_page_runs[code.md]",
        "tests/test_readme.py",
    ]


def test_what_does_not_fit_in_the_time_is_left_out_and_something_quicker_taken():
    durations = Durations(files=dict.fromkeys(ALWAYS, 1.0) | {"a": 10.0, "b": 100.0, "c": 5.0})
    chosen, left_out = selection(["a", "b", "a", "c"], durations, seconds=len(ALWAYS) + 15.0)
    assert chosen == [*ALWAYS, "a", "c"]
    assert left_out == ["b"]


def test_the_quickest_files_come_first_and_must_exist(project):
    durations = Durations(files={"tests/table/test_bins.py": 2.0, "src/calibrant/table/bins.py": 1.0, "gone.py": 0.1})
    assert quickest(project, durations) == ["src/calibrant/table/bins.py", "tests/table/test_bins.py"]
