"""The action runs the command, says what it printed, and ends as a gate or a monitor should."""

import os
import subprocess
import sys

import numpy as np
import pytest
import yaml
from tools.release import ROOT


@pytest.fixture(scope="module")
def action():
    return yaml.safe_load((ROOT / "packaging" / "action" / "action.yml").read_text(encoding="utf8"))


@pytest.fixture
def run(action, tmp_path):
    """Run the last step of the action as GitHub would, with a command `calibrant` on the path."""
    place = tmp_path / "bin"
    place.mkdir()
    (place / "calibrant").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m calibrant "$@"\n')
    (place / "calibrant").chmod(0o755)
    (place / "python").symlink_to(sys.executable)

    def ran(command):
        summary, output = tmp_path / "summary.md", tmp_path / "output"
        for file in (summary, output):
            file.write_text("")  # every step has files of its own
        environment = os.environ | {
            "COMMAND": command,
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(output),
            "PATH": f"{place}{os.pathsep}{os.environ['PATH']}",
        }
        script = action["runs"]["steps"][-1]["run"]
        flags = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
        done = subprocess.run(flags, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done, summary.read_text(encoding="utf8"), output.read_text(encoding="utf8").strip()

    return ran


def write(path, exponent, n=4000):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    rows = np.column_stack([rng.random(n) < p**exponent, p])
    np.savetxt(path, rows, delimiter=",", header="y,p", comments="")


@pytest.mark.skipif(os.name == "nt", reason="the steps are bash")
@pytest.mark.parametrize(("exponent", "code"), [(1, 0), (3, 1)])
def test_the_gate(run, tmp_path, exponent, code):
    write(tmp_path / "new scores.csv", exponent)
    done, summary, output = run('measure "new scores.csv" --truth y --prob p --fail-above 0.05')
    assert done.returncode == code, done.stdout + done.stderr
    assert output == f"exit-code={code}"
    assert summary.count("```") == 2
    assert "alibration error" in summary


@pytest.mark.skipif(os.name == "nt", reason="the steps are bash")
def test_the_monitor_keeps_its_state_and_raises_an_alarm(run, tmp_path):
    codes = []
    for exponent in (1, 4):
        write(tmp_path / "day.csv", exponent)
        done, summary, output = run("monitor day.csv --state model.json --truth y --prob p")
        codes.append(done.returncode)
        assert output == f"exit-code={done.returncode}", done.stderr
    assert codes == [0, 1]
    assert (tmp_path / "model.json").is_file()
    assert "larm" in summary


@pytest.mark.skipif(os.name == "nt", reason="the steps are bash")
def test_too_few_rows_do_not_fail_the_job_and_bad_input_does(run, tmp_path):
    done, summary, output = run("measure missing.csv --truth y --prob p --fail-above 0.05")
    assert done.returncode == 2
    assert output == "exit-code=2"
    assert "missing.csv" in summary
    (tmp_path / "bin" / "calibrant").write_text("#!/bin/sh\necho too few\nexit 3\n")
    done, summary, output = run("monitor day.csv")
    assert done.returncode == 0
    assert output == "exit-code=3"
    assert "too few" in summary


def test_inputs_and_outputs_are_described_and_used(action):
    first, last = action["runs"]["steps"]
    assert action["runs"]["using"] == "composite"
    assert action["inputs"]["command"]["required"]
    assert "${{ inputs.version }}" in first["run"]
    assert "calibrant[cli]" in first["run"]
    assert last["env"]["COMMAND"] == "${{ inputs.command }}"
    assert action["outputs"]["exit-code"]["value"] == f"${{{{ steps.{last['id']}.outputs.exit-code }}}}"
    assert "inputs." not in last["run"]  # text of others is data, never code
