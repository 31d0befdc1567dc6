"""Fitted maps and scores for the tests of SQL, and the engines that apply them."""

import sqlite3
from contextlib import closing

import duckdb
import numpy as np
import pandas as pd
from scipy.special import expit, softmax
from sklearn.base import clone

from calibrant import recalibrate as maps

#: Every map of one event that can be written.
ONE_EVENT = [
    maps.Identity(),
    maps.Temperature(laplace=1.0),
    maps.Platt(),
    maps.Beta(),
    maps.Quadratic(),
    maps.Spline(),
    maps.Isotonic(),
    maps.CentredIsotonic(laplace=2.0),
    maps.Histogram(),
    maps.BayesianBinning(),
    maps.ScalingBinning(),
    maps.VennAbers(),
    maps.Smoothed(),
    maps.EnsembleTemperature(),
    maps.OneVsRest(maps.Isotonic(laplace=1.0)),
    maps.Auto(combine="choose"),
    maps.BayesianAverage(),
    maps.Auto(),
    maps.Auto([maps.Platt(), maps.Isotonic()]),
]
#: Those of several classes.
SEVERAL_CLASSES = [
    maps.Identity(),
    maps.Temperature(laplace=1.0),
    maps.EnsembleTemperature(),
    maps.VectorScaling(),
    maps.MatrixScaling(),
    maps.Dirichlet(),
    maps.StructuredVectorScaling(),
    maps.StructuredMatrixScaling(),
    maps.OneVsRest(maps.Beta()),
    maps.OneVsRest(maps.Isotonic(allow_certainty=True)),
    maps.Auto([maps.Temperature(), maps.OneVsRest(maps.Platt())], combine="stack", cautious=False),
    maps.Auto([maps.Temperature(), maps.OneVsRest(maps.Isotonic(allow_certainty=True))]),
]


def one_event(n, seed=0, spread=2.0):
    """Log odds, their probabilities (some of them rounded, 0 and 1), and outcomes of an overconfident model."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, spread, n)
    y = (rng.random(n) < expit(0.6 * x - 0.4)).astype(int)
    p = expit(x)
    p[:20], p[20:40] = 0.0, 1.0
    return x, np.where(rng.random(n) < 0.3, p.round(2), p), y


def several_classes(n, seed=0, classes=3):
    """Logits, their probabilities (some of them 0), and outcomes of an overconfident model."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, (n, classes))
    y = np.array([rng.choice(classes, p=row) for row in softmax(0.6 * z, axis=1)])
    p = softmax(z, axis=1)
    p[:20] = np.eye(classes)[rng.integers(0, classes, 20)]
    return z, p, y


def fitted(template, x, p, y, *, logits):
    """The map fitted to logits or to probabilities."""
    rows = slice(-20, None) if isinstance(template, maps.Smoothed) else slice(None)  # engines take long to read bins
    made = clone(template).set_params(input="logits" if logits else "probabilities")
    return made.fit((x if logits else p)[rows], y[rows])


def in_duckdb(expressions, frame):
    """One row per row of the frame, one column per expression; NaN for NULL."""
    listed = ", ".join(f"{text} AS q{k}" for k, text in enumerate(expressions))
    with duckdb.connect() as engine:
        engine.register("scores", frame)
        found = engine.sql(f"SELECT {listed} FROM scores").fetchnumpy()
    return np.stack([np.ma.filled(column, np.nan) for column in found.values()], axis=1)


def in_sqlite(expressions, frame):
    """The same of SQLite."""
    with closing(sqlite_table(frame)) as engine:
        return np.array(engine.execute(f"SELECT {', '.join(expressions)} FROM scores").fetchall(), dtype=float)


def sqlite_table(frame):
    """A connection whose table `scores` holds the frame."""
    engine = sqlite3.connect(":memory:")
    names = ", ".join("`" + name.replace("`", "``") + "` REAL" for name in frame)
    engine.execute(f"CREATE TABLE scores ({names})")
    rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    engine.executemany(f"INSERT INTO scores VALUES ({', '.join('?' for _ in frame)})", rows)
    return engine


ENGINES = {"duckdb": in_duckdb, "sqlite": in_sqlite}


def frame_of(columns):
    """A frame with the columns p, or p0, p1, ..."""
    columns = np.asarray(columns)
    return pd.DataFrame({"p": columns} if columns.ndim == 1 else {f"p{k}": c for k, c in enumerate(columns.T)})
