import numpy as np
import pytest

from calibrant.numerics.small_products import product


@pytest.mark.parametrize("shape", [(1, 1, 1), (300, 154, 630), (5, 300_000, 2), (97, 4, 3), (0, 3, 2)])
def test_pieces_make_up_the_product(shape):
    lines, inner, columns = shape
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((lines, inner)), rng.standard_normal((inner, columns))
    np.testing.assert_allclose(product(left, right), left @ right, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(product(left, right.T.copy().T), left @ right, rtol=1e-9, atol=1e-9)
