"""Stored results that no longer come out are found; noise is not."""

import numpy as np
import pytest

from reproduce import drift

HEAD = "estimator,world,n,repeats,bias,bias_se,sd"


def number(new, stored=1.0, error=0.1):
    return drift.Number("a cell", new, stored, error)


def test_distances_are_in_standard_errors_and_rounding_is_none():
    assert number(1.25).distance == pytest.approx(2.5)
    assert number(1.000001).distance == 0
    assert number(1.1, error=0.0).distance == np.inf


def test_one_number_that_moved_is_found(capsys):
    steady = [number(1 + 0.1 * z) for z in np.linspace(-2.5, 2.5, 50)]
    assert drift.judged(steady) == 0
    assert drift.judged([*steady, number(1.6)]) == 1
    assert "DRIFT a cell: 1.6, stored 1, 6.0 errors" in capsys.readouterr().out


def test_nothing_to_compare_is_said(capsys):
    assert drift.judged([]) == 0
    assert "no stored numbers" in capsys.readouterr().out


def folder(path, bias, repeats):
    (path / "bias").mkdir(parents=True)
    (path / "bias" / "figure4.csv").write_text(f"{HEAD}\new_bin,w,200,{repeats},{bias},0.001,0.02\n")
    return path


def test_shared_biases_are_compared_with_the_spread_of_the_stored_run(tmp_path):
    new, stored = folder(tmp_path / "new", 0.01, 100), folder(tmp_path / "stored", 0.02, 1000)
    (found,) = drift.shared(new, stored)
    assert found.error == pytest.approx(0.02 * np.sqrt(1 / 100 + 1 / 1000))
    assert found.distance == pytest.approx(0.01 / found.error)


def test_shared_means_of_repeats(tmp_path):
    head = "part,world,classes,n,method,norm,repeat,value,error,seconds"
    rows = {
        "new": ["figure1,w,2,200,TS,L1,0,0.5,nan,nan", "figure1,w,2,200,TS,L1,1,0.7,nan,nan"],
        "stored": [f"figure1,w,2,200,TS,L1,{k},{v},nan,nan" for k, v in enumerate((0.5, 0.6, 0.4))],
    }
    for name, lines in rows.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "variational.csv").write_text("\n".join([head, *lines]) + "\n")
    (found,) = drift.shared(tmp_path / "new", tmp_path / "stored")
    assert found.new == pytest.approx(0.6)
    assert found.stored == pytest.approx(0.55)
    assert found.error == pytest.approx(0.1 / np.sqrt(2))


def test_a_cell_of_every_paper_with_cheap_cells_runs_again():
    pytest.importorskip("torch")
    known = drift.cells()
    assert len(known) > 1000
    kinds = {
        "variational": "variational figure1, calibrated, 2, 200, 0",
        "bias": "bias figure4, em_bin, resnet110_c10, 200",
        "unlabeled": "unlabeled less, ECE, n=N, 10",
    }
    for wanted in kinds.values():
        again = dict(known)[wanted]
        numbers = again()
        assert numbers
        assert max(each.distance for each in numbers) < 4, numbers
