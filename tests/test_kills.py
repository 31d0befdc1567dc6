"""A kill at any moment leaves the old file or the new one: the short version of `python -m benchmarks.kills`."""

import sys

import numpy as np
import pytest
from benchmarks.kills import COPIES, killed


@pytest.mark.no_cover
@pytest.mark.skipif(sys.platform == "win32", reason="the script forks")
@pytest.mark.parametrize("kind", ["save", "save_tables", "apply"])
def test_killed_writers_leave_whole_files(kind, tmp_path):
    found = killed(kind, tmp_path, 4, np.random.default_rng(1))
    assert found["whole"] == 4, found
    assert found["parts after the next write"] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="the script forks")
def test_a_command_that_is_told_to_end_leaves_no_copy_of_standard_input(tmp_path):
    found = killed("apply to standard input", tmp_path, 12, np.random.default_rng(2))
    assert found["whole"] == 12, found
    assert found[COPIES] == found["parts after the next write"] == 0
