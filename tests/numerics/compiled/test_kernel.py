"""How loops are compiled: kept on disk where that is possible, and always without the interpreter's lock."""

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from calibrant.numerics.compiled import kernel as module  # noqa: E402 - needs Numba


def test_a_folder_that_cannot_be_written_to_costs_only_the_copy_on_disk(monkeypatch):
    asked, njit = [], numba.njit

    def without_disk(*functions, **options):
        if functions:  # Numba's own, which it compiles when it is used for the first time
            return njit(*functions, **options)
        asked.append(options)
        if options.get("cache"):
            message = "cannot cache function: no locator available"
            raise RuntimeError(message)
        return njit(**options)

    monkeypatch.setattr(module.numba, "njit", without_disk)
    twice = module.kernel(lambda x: 2 * x)
    assert twice(4) == 8
    assert [options.get("cache") for options in asked] == [True, None]
    assert all(options["nogil"] for options in asked)


def test_no_loop_may_assume_that_there_are_no_nans(monkeypatch):
    asked = []
    monkeypatch.setattr(module.numba, "njit", lambda **options: asked.append(options) or (lambda function: function))
    for compiled in (module.kernel, module.contracting, module.reordering):
        compiled(len)
    assert [sorted(options["fastmath"]) for options in asked] == [[], ["contract"], ["contract", "nsz", "reassoc"]]


def test_sums_move_to_their_totals():
    table, totals = np.arange(6.0), np.ones(6)
    module.to_totals(np.uint64(2), table, totals, 3)
    assert table.tolist() == [0, 1, 0, 0, 0, 5]
    assert totals.tolist() == [1, 1, 3, 4, 5, 1]


def test_polynomials_are_near_their_functions():
    x = np.linspace(0.0, 1 / 9, 50)[1:]
    found = np.polynomial.polynomial.polyval(x, module.polynomial(module.atanh_ratio, 0.0, 1 / 9, 9))
    np.testing.assert_allclose(found, np.arctanh(np.sqrt(x)) / np.sqrt(x), rtol=2e-15)


def test_a_compiled_polynomial_has_the_constant_first():
    assert module.horner((1.0, 0.5, 2.0))(3.0) == 1 + 0.5 * 3 + 2 * 9
