"""What all figures share."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("unchanged_settings")


@pytest.mark.parametrize("module", ["validation", "reliability_diagrams"])
def test_every_module_can_be_the_first_to_be_imported(module):
    code = f"import calibrant.plot.{module} as first; print(first.__name__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.stdout.strip(), run.stderr) == (f"calibrant.plot.{module}", "")
