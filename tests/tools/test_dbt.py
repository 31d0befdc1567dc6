"""The dbt macro gives what the map gives, on DuckDB, from the SQL that the command prints."""

import subprocess
import sys
from types import SimpleNamespace

import duckdb
import jinja2
import numpy as np
import pytest
import yaml
from tools.release import ROOT

from calibrant import recalibrate

DBT = ROOT / "packaging" / "dbt"


class CompilerError(Exception):
    """What dbt raises for `exceptions.raise_compiler_error`."""


def rendered(call, maps):
    """A call of the macro, with the names that dbt gives to macros."""

    def refused(message):
        raise CompilerError(message)

    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(DBT / "macros"), undefined=jinja2.StrictUndefined)
    environment.globals["var"] = lambda name, default=None: {"calibrant_maps": maps}.get(name, default)
    environment.globals["exceptions"] = SimpleNamespace(raise_compiler_error=refused)
    return environment.from_string("{% from 'calibrant.sql' import calibrant %}{{ " + call + " }}").render()


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(3)
    p = rng.random(1500)
    return p, rng.random(1500) < p**2


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", ["Auto", "Isotonic", "Beta"])
def test_the_macro_gives_what_the_map_gives(tmp_path, sample, kind):
    p, y = sample
    fitted = getattr(recalibrate, kind)().fit(p, y)
    fitted.save(tmp_path / "map.json")
    command = ["calibrant", "apply", "map.json", "--prob", "calibrant_score", "--sql"]
    done = subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True, check=True)
    variables = yaml.safe_load(yaml.safe_dump({"calibrant_maps": {"fraud": done.stdout}}))  # as in dbt_project.yml
    sql = rendered("calibrant('fraud', 'percent / 100')", variables["calibrant_maps"])
    new = np.linspace(0, 1, 501)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE scored (row INTEGER, percent DOUBLE)")
    connection.executemany("INSERT INTO scored VALUES (?, ?)", [(k, 100 * score) for k, score in enumerate(new)])
    connection.execute("INSERT INTO scored VALUES (501, NULL)")
    found = connection.execute(f"SELECT 1 - {sql} FROM scored ORDER BY row").fetchall()
    assert found[-1] == (None,)
    given = np.minimum(100 * new / 100, 1)
    np.testing.assert_allclose([1 - one for (one,) in found[:-1]], fitted.predict_proba(given)[:, 1], atol=1e-9, rtol=0)


def test_a_map_that_is_not_there_or_reads_another_column_is_named():
    with pytest.raises(CompilerError, match="no map 'fraud'; it has: churn"):
        rendered("calibrant('fraud', 'score')", {"churn": '"calibrant_score"'})
    with pytest.raises(CompilerError, match="does not read calibrant_score"):
        rendered("calibrant('fraud', 'score')", {"fraud": '"score"'})


def test_backticks_are_replaced_too():
    assert rendered("calibrant('fraud', 'score')", {"fraud": "`calibrant_score` * 1"}) == "((score) * 1)"


def test_the_package_is_one_that_dbt_reads():
    project = yaml.safe_load((DBT / "dbt_project.yml").read_text(encoding="utf8"))
    assert project["name"] == "calibrant"
    assert project["config-version"] == 2
    assert [(DBT / path / "calibrant.sql").is_file() for path in project["macro-paths"]] == [True]
