"""A small file that holds predictions of every task, and the options that name them."""

import numpy as np
import pandas as pd

N = 900
LEVELS = (0.1, 0.5, 0.9)
NORMAL = (-1.2816, 0.0, 1.2816)


def frame(seed=0):
    """Predictions that are too sure of themselves, of every task; those of the second model are calibrated."""
    rng = np.random.default_rng(seed)
    p, vectors = rng.random(N), rng.dirichlet([1, 1, 1], N)
    sure = vectors**2 / (vectors**2).sum(axis=1, keepdims=True)
    animal = [rng.choice(["cat", "dog", "eel"], p=row) for row in vectors]
    mean = rng.normal(size=N)
    outcome = mean + rng.normal(size=N)
    members = mean[:, None] + rng.normal(size=(N, 6))
    middle = members.mean(axis=1, keepdims=True)
    known = rng.random(N) < 0.3
    return pd.DataFrame(
        {
            "y": (rng.random(N) < 0.5 + 0.6 * (p - 0.5)).astype(int),
            "p": p,
            "q": 0.5 + 0.6 * (p - 0.5),
            "g": np.where(np.arange(N) % 2, "odd", "even"),
            "w": rng.integers(1, 3, N),
            "animal": animal,
            "number": [["cat", "dog", "eel"].index(name) for name in animal],
            **{f"a_{name}": sure[:, k] for k, name in enumerate(["cat", "dog", "eel"])},
            **{f"b_{name}": vectors[:, k] for k, name in enumerate(["cat", "dog", "eel"])},
            **{f"n_{k}": sure[:, k] for k in (2, 0, 1)},
            **{f"o_{k}": vectors[:, k] for k in range(3)},
            "outcome": outcome,
            "mean": mean,
            "std": 0.4 + 0.2 * rng.random(N),
            "wide": 1 + 0.1 * rng.random(N),
            **{f"qa_{level}": mean + 0.5 * z for level, z in zip(LEVELS, NORMAL, strict=True)},
            **{f"qb_{level}": mean + z for level, z in zip(LEVELS, NORMAL, strict=True)},
            **{f"ma_{k}": (middle + 0.4 * (members - middle))[:, k] for k in range(6)},
            **{f"mb_{k}": members[:, k] for k in range(6)},
            "known": np.where(known, "yes", "unknown"),
            "s": np.where(known & (rng.random(N) < p), np.sqrt(p), p),
        }
    )


#: The predictions of every task; those of `compare` are in `MODELS`.
TASKS = {
    "event": "--truth y --prob p",
    "classes by pattern": "--truth animal --prob a_*",
    "classes by name": "--truth number --prob n_2 --prob n_0 --prob n_1",
    "spread": "--truth outcome --mean mean --std std",
    "quantiles": "--truth outcome --quantiles 0.1=qa_0.1 --quantiles 0.5=qa_0.5 --quantiles 0.9=qa_0.9",
    "quantiles by pattern": "--truth outcome --quantiles qa_*",
    "members": "--truth outcome --members ma_*",
    "unlabeled": "--truth known --prob s --labelled yes --prior 0.5",
    "single sample": "--truth known --prob s --labelled yes --prior 0.5 --single-sample",
}
#: Two models of every task, the first too sure of itself.
MODELS = {
    "event": "--truth y --prob p --prob q",
    "classes by pattern": "--truth animal --prob a_* --prob b_*",
    "classes by name": "--truth number --prob n_0,n_1,n_2 --prob o_*",
    "spread": "--truth outcome --mean mean --std std --mean mean --std wide",
    "quantiles": "--truth outcome --quantiles 0.1=qa_0.1,0.5=qa_0.5,0.9=qa_0.9 --quantiles qb_*",
    "members": "--truth outcome --members ma_* --members mb_*",
    "unlabeled": "--truth known --labelled yes --prior 0.5 --prob s --prob q",
}
