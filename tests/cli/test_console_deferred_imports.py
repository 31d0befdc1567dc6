"""Libraries that are loaded when used: they are the real ones, and a report does without them."""

import importlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from calibrant.cli.console import SELDOM_USED, WhenUsed


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Modules that write down when they are executed; imports are as before afterwards."""
    for name in ("slow_library", "other_library"):
        text = f"import executed_modules\nexecuted_modules.NAMES.append({name!r})\nvalue = 7\n"
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "executed_modules.py").write_text("NAMES = []\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [WhenUsed(frozenset({"slow_library", "no_such_library"})), *sys.meta_path])
    yield tmp_path
    for name in ("slow_library", "other_library", "executed_modules"):
        sys.modules.pop(name, None)


def test_a_library_is_executed_when_used(folder):
    executed = importlib.import_module("executed_modules").NAMES
    importlib.import_module("other_library")
    slow = importlib.import_module("slow_library")
    assert executed == ["other_library"]
    assert slow.value == 7
    assert slow is sys.modules["slow_library"]
    assert executed == ["other_library", "slow_library"]


def test_a_library_that_is_not_installed_is_missed_at_once(folder):
    with pytest.raises(ImportError, match="no_such_library"):
        importlib.import_module("no_such_library")


@pytest.mark.parametrize(("ending", "options"), [("csv", ["--prob", "p_0"]), ("parquet", ["--prob", "p_*"])])
def test_a_report_does_without_them(tmp_path, ending, options):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1.0, 1.0, 1.0], 300)
    frame = pd.DataFrame(p, columns=["p_0", "p_1", "p_2"])
    frame["y"] = rng.integers(0, 3 if ending == "parquet" else 2, 300)
    write = {"csv": frame.to_csv, "parquet": frame.to_parquet}[ending]
    write(tmp_path / f"scores.{ending}", index=False)
    within = tuple(f"{name}." for name in SELDOM_USED)
    program = (
        "import sys; from calibrant.cli import main\n"
        f"sys.argv = ['calibrant', 'report', 'scores.{ending}', *{options}, '-o', 'page.html']\n"
        "try: main()\n"
        f"finally: print([name for name in sys.modules if name.startswith({within})])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
    assert (tmp_path / "page.html").exists()
