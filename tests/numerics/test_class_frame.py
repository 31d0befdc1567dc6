"""What a map of several classes sees of a row."""

import numpy as np
import pytest

from calibrant.numerics.class_frame import Frame
from calibrant.numerics.special import softmax


@pytest.mark.parametrize("k", [5, 80])
def test_rows_prepared_again_are_the_same(k):
    f = np.random.default_rng(0).dirichlet(0.3 * np.ones(k), 300)
    frame, rows = Frame.of(f)
    again = frame.prepare(f[10:20])
    for one, two in (
        (rows.inputs, again.inputs),
        (rows.places, again.places),
        (rows.design.shared, again.design.shared),
    ):
        np.testing.assert_allclose(one[10:20], two, atol=1e-6)
    assert len(rows) == 300
    assert frame.classes == k
    some = rows.take(np.arange(10, 20))
    np.testing.assert_array_equal(some.inputs, rows.inputs[10:20])
    assert [part.shape[1] for part in rows.codes] == ([10, 10] if k == 5 else [])
    for one, two in zip(some.codes, again.codes, strict=True):
        np.testing.assert_array_equal(one, two)


def test_inputs_of_few_classes_are_standardised_logs():
    f = np.random.default_rng(1).dirichlet(np.ones(4), 500)
    frame, rows = Frame.of(f)
    logs = rows.entries.logs
    centred = logs - logs.mean(axis=0)
    np.testing.assert_allclose(rows.inputs, centred / np.sqrt(np.mean(centred**2)), atol=1e-4)
    assert frame.axes.shape == (1, 1)


def test_inputs_of_many_classes_are_principal_scores():
    rng = np.random.default_rng(2)
    f = softmax(rng.normal(size=(400, 3)) @ rng.normal(size=(3, 70)) + 0.1 * rng.normal(size=(400, 70)))
    _, rows = Frame.of(f)
    logs = rows.entries.logs.astype(float)
    centred = logs - logs.mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    values = np.linalg.svd(centred, compute_uv=False)
    scale = np.sqrt(np.mean((logs - logs.mean(axis=0)) ** 2))
    assert rows.inputs.shape == (400, 48)
    np.testing.assert_allclose(np.linalg.norm(rows.inputs[:, :3], axis=0), values[:3] / scale, rtol=1e-2)
