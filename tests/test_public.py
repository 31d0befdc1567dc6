"""The public names, and what importing the package costs."""

import ast
import subprocess
import sys
from pathlib import Path

import calibrant

SOURCE = Path(calibrant.__file__).parent


def test_every_public_name_can_be_had():
    for name in calibrant.__all__:
        assert getattr(calibrant, name) is not None
    assert dir(calibrant) == calibrant.__all__


def test_type_checkers_see_the_names_that_users_see():
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf8"))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert imported == set(calibrant.__all__)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(calibrant, "no_such_estimator")


def test_importing_the_package_loads_nothing_heavy():
    heavy = ["scipy.stats", "sklearn", "matplotlib", "pandas", "torch", "duckdb", "polars", "pyarrow"]
    code = (
        "import sys, calibrant as cal; cal.ece([0, 1], [0.2, 0.7]); cal.Binary; cal.sweep_ece([0, 1], [0.2, 0.7]); "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
