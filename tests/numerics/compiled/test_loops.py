"""The list of compiled loops: all of them can be made ready, and a Numba that cannot add is noticed."""

import numpy as np
import pytest

pytest.importorskip("numba")

from calibrant.numerics.compiled import loops


def test_every_loop_is_compiled_for_both_precisions_before_it_is_needed():
    loops.compile_all()
    for name in ("hybrid", "gap_cells", "radix_cells", "few_classes", "few_class_sums", "many_class_sums"):
        scores = {str(signature[0].dtype) for signature in getattr(loops, name).signatures}
        assert scores >= {"float32", "float64"}, name
    for name in ("log_grid", "marked_rows", "isotonic_blocks", "largest_rising"):
        assert getattr(loops, name).signatures, name


def test_a_loop_that_does_not_add_up_is_refused(monkeypatch):
    monkeypatch.setattr(loops, "equal_width", lambda *_: np.zeros((2, 2, 2)))
    with pytest.raises(RuntimeError, match="does not add up"):
        loops.try_out()
