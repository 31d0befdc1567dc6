"""What a reader is told to run does run, and does what the section measured."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.sections.how_to_apply import binary_code, commands
from tests.reporting.sections.running import run_commands
from tests.reporting.sections.worlds import binary

MAPS = ["Temperature", "Platt", "Beta", "Quadratic", "Spline", "Isotonic"]


@pytest.mark.no_cover
@pytest.mark.parametrize("name", MAPS)
def test_commands_and_code_recalibrate_alike(name, tmp_path):
    data, new = binary(400, slope=0.6), np.linspace(0.01, 0.99, 30)
    rows = "\n".join(f"{int(y)},{p!r}" for y, p in zip(data.y_true, data.y_prob.tolist(), strict=True))
    (tmp_path / "labelled.csv").write_text("y,p\n" + rows + "\n")
    (tmp_path / "new.csv").write_text("p\n" + "\n".join(map(repr, new.tolist())) + "\n")
    run_commands(commands(name, "--prob p"), tmp_path)
    found = np.genfromtxt(tmp_path / "recalibrated.csv", delimiter=",", names=True)
    space = {"y": data.y_true, "p": data.y_prob, "p_new": new}
    exec(binary_code(name), space)
    np.testing.assert_allclose(found["p_recalibrated"], space["recalibrated"], rtol=1e-12)
    expected = getattr(cal.recalibrate, name)().fit(data).predict_proba(new)[:, 1]
    np.testing.assert_allclose(space["recalibrated"], expected, rtol=1e-12)
