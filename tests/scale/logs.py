"""One log of predictions with every column the tasks need."""

import numpy as np
import pandas as pd


def make_log(n: int = 4_000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    p = rng.beta(2.77, 0.048, n)
    p[:40], p[40:50], p[50:60] = 0.0, 0.5, 1 / 15
    shares = rng.dirichlet([0.5, 0.7, 1.0], n)
    shares[:20] = 1 / 3, 1 / 3, 1 - 2 / 3
    return pd.DataFrame(
        {
            "p": p,
            "y": (rng.random(n) < p).astype(np.int8),
            "w": rng.gamma(2, 1, n),
            "day": rng.integers(0, 3, n),
            "country": rng.choice(["at", "de"], n),
            "cat": shares[:, 0],
            "cow": shares[:, 1],
            "dog": shares[:, 2],
            "animal": rng.choice(["cat", "cow", "dog"], n),
            "mu": rng.normal(size=n),
            "sigma": np.exp(rng.normal(size=n)),
            "z": rng.normal(size=n),
        }
    )


def as_file(log, folder, ending):
    """The path of the log, written in the format of the ending."""
    path = folder / f"log.{ending}"
    if ending == "parquet":
        log.to_parquet(path, index=False)
    elif ending == "csv":
        log.to_csv(path, index=False)
    else:
        log.to_json(path, orient="records", lines=True, double_precision=15)
    return str(path)


def assert_same_table(found, expected, *, rtol=1e-12):
    np.testing.assert_array_equal(found.key, expected.key)
    np.testing.assert_array_equal(found.low, expected.low)
    np.testing.assert_array_equal(found.high, expected.high)
    np.testing.assert_allclose(found.sums, expected.sums, rtol=rtol, atol=1e-12)
    assert found.cut == expected.cut
    assert found.task == expected.task
