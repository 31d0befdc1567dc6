"""The tests mirror the source: a module's tests are where its name says."""

from tools.project import Project

PROJECT = Project()
#: Modules without tests of their own, and why.
EXEMPT = {
    "calibrant._version": "one constant",
}
#: Files of tests that belong to a room, not to one of its modules, and why.
CROSS_CUTTING = {
    "tests/cli/test_help.py": "the help of every command",
    "tests/estimators/test_kinds_of_tables.py": "every estimator, on every kind of table",
    "tests/estimators/test_large_matrices.py": "memory of every measure of many classes",
    "tests/estimators/test_real_predictions.py": "every estimator, on real predictions",
    "tests/estimators/test_signatures.py": "what every estimator takes",
    "tests/estimators/test_weights.py": "weights, for every estimator, interval and test",
    "tests/inference/test_coverage.py": "coverage of the default interval, in many worlds",
    "tests/pu/test_estimators.py": "binned estimators, on positive-unlabeled data",
    "tests/pu/test_smooth.py": "kernel and variational errors, on positive-unlabeled data",
    "tests/reporting/test_journeys.py": "what users complained of, each as a report",
    "tests/reporting/test_worlds.py": "verdicts in worlds of known truth",
    "tests/scale/test_bad_sources.py": "what every engine refuses",
    "tests/scale/test_clusters.py": "Spark and Dask",
    "tests/scale/test_downstream.py": "every estimator, on tables made from files",
    "tests/scale/test_engines.py": "the same table from every engine",
    "tests/scale/test_same_rows.py": "the same rows from every engine, file and the command line",
}


def expected() -> set[str]:
    """The modules that need a file of tests."""
    names = {name for name, path in PROJECT.modules.items() if path.stem not in {"__init__", "__main__"}}
    return names - set(EXEMPT)


def missing() -> set[str]:
    return {name for name in expected() if PROJECT.mirror(name) not in PROJECT.test_files}


def unplaced() -> set[str]:
    rooms = {path.parent.name for path in PROJECT.modules.values() if path.name == "__init__.py"}
    in_rooms = {path for path in PROJECT.test_files if path.parent.name in rooms}
    return {str(path) for path in in_rooms if not PROJECT.mirrored(path)} - set(CROSS_CUTTING)


def test_every_module_has_a_file_of_tests():
    assert missing() == set()


def test_every_file_of_tests_in_a_room_mirrors_a_module():
    assert unplaced() == set()


def test_exceptions_name_what_exists():
    assert set(EXEMPT) <= set(PROJECT.modules)
    assert set(CROSS_CUTTING) <= {str(path) for path in PROJECT.test_files}
