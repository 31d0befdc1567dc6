"""The reproduction of the regression paper runs, in its quick form, from the command line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reproduce import data

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_quick_reproduction_writes_its_tables_and_figures(tmp_path):
    pytest.importorskip("torch")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "reproduce.regression", "--quick", "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=environment)
    text = (tmp_path / "regression.md").read_text(encoding="utf8")
    random = next(line for line in text.splitlines() if line.startswith("| random | none"))
    scaled = next(line for line in text.splitlines() if line.startswith("| random | StdScaling"))
    assert 0.75 < float(random.split("|")[3]) < 0.9
    assert 0.4 < float(scaled.split("|")[3]) < 0.6
    folder = data.folder("regression")
    kitti = folder is not None and (folder / "kitti_pointrcnn_cars.npz").exists()
    assert text.count("| trained |") == (8 if kitti else 4)
    assert {file.name for file in tmp_path.iterdir()} >= {"regression.csv", "regression_figure_2.png"}
