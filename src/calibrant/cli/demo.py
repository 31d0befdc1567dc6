"""The demonstration: real models on data that come with scikit-learn, through the same code as a user's file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.cli.columns import Columns
from calibrant.cli.console import write_table
from calibrant.cli.files import load
from calibrant.numerics.random_draws import generator
from calibrant.reporting import report


def run_demo(folder: Path, *, say: Callable[[str], Any]) -> list[Path]:
    """Train, write predictions as Parquet, report on each; returns the pages."""
    folder.mkdir(parents=True, exist_ok=True)
    even = Columns("label", ("p_even",), labelled="even", prior=0.5)
    jobs = (
        (
            "classifier",
            "Naive Bayes: is this tumour benign?",
            _classifier,
            Columns("benign", ("p_benign",), by=("size",)),
        ),
        ("regressor", "Forest: disease progression with spread", _regressor, Columns("y", mean="mean", std="std")),
        ("positives", "Digits: is it an even one? Few are labelled", _positives, even),
    )
    pages = []
    for name, title, train, columns in jobs:
        predictions, page = folder / f"{name}.parquet", folder / f"{name}.html"
        write_table(predictions, train())
        loaded = load([str(predictions)], columns)
        found = report(loaded.data, by=loaded.by, title=title)
        found.save(page)
        say(f"{title}\n  {found.verdict}\n  {page}\n")
        pages.append(page)
    again = f"calibrant report {folder / 'classifier.parquet'} --truth benign --prob p_benign --by size"
    say(f"Open {pages[0].resolve()} in a browser. The same from your own file:\n  {again} -o report.html")
    return pages


def _classifier() -> dict[str, Any]:
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import cross_val_predict
    from sklearn.naive_bayes import GaussianNB

    bunch = load_breast_cancer()
    p = cross_val_predict(GaussianNB(), bunch.data, bunch.target, cv=5, method="predict_proba")[:, 1]
    radius = bunch.data[:, 0]
    size = np.where(radius < np.median(radius), "small", "large")
    return {"benign": bunch.target, "p_benign": p, "size": size}


def _regressor() -> dict[str, Any]:
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.model_selection import KFold

    features, y = load_diabetes(return_X_y=True)
    mean, std = np.empty(len(y)), np.empty(len(y))
    for train, held in KFold(5, shuffle=True, random_state=0).split(features):
        forest = RandomForestRegressor(100, min_samples_leaf=3, random_state=0).fit(features[train], y[train])
        trees = np.stack([tree.predict(features[held]) for tree in forest.estimators_])
        mean[held], std[held] = trees.mean(axis=0), trees.std(axis=0)
    return {"y": y, "mean": mean, "std": std}


def _positives() -> dict[str, Any]:
    """A classifier of even digits; a fifth of the even ones are labelled, the other rows are not."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    bunch = load_digits()
    even = bunch.target % 2 == 0
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    p = cross_val_predict(model, bunch.data, even, cv=5, method="predict_proba")[:, 1]
    rng = generator(0, "labelled positives of the demo")
    chosen = np.flatnonzero(even)[rng.random(even.sum()) < 0.2]
    label = np.concatenate([np.full(len(chosen), "even"), np.full(len(p), "unlabeled")])
    return {"label": label, "p_even": np.concatenate([p[chosen], p])}
