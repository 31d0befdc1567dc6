"""The report on stated probabilities: of an event, or of the predicted class being right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.predictions import Binary, Multiclass
from calibrant.estimators.averaged import averaged_error
from calibrant.estimators.binned import ece
from calibrant.estimators.cross_fitting import GRID_ROWS
from calibrant.estimators.cumulative import ks_error
from calibrant.estimators.debiased import debiased_ece
from calibrant.estimators.multiclass import classwise
from calibrant.estimators.proper_scores import brier, log_loss
from calibrant.estimators.smooth import smooth_ece
from calibrant.estimators.sweep import sweep_ece
from calibrant.estimators.variational import calibration_error, overconfidence, underconfidence
from calibrant.reporting.findings import direction, of_probabilities
from calibrant.reporting.model import Group, Measure, Repair, Report
from calibrant.reporting.repairs import repairs
from calibrant.reporting.text import points
from calibrant.reporting.views import STOPS, probability_view
from calibrant.results.estimate import Estimate
from calibrant.table.binning import Distinct, EqualWidth, HybridGrid
from calibrant.table.bintable import BinTable

#: The error the verdict speaks of: mean absolute gap between stated and true probability.
headline_error = partial(averaged_error, norm=1)
#: Groups beyond these, the largest first, are left out of the page and said so.
MOST_GROUPS = 50
#: Simulated samples for the bias at this size, and the largest size they are drawn at.
REPEATS, LARGEST = 100, 20_000


def probability_report(
    data: Binary | BinTable, *, by: ArrayLike | Mapping[Any, BinTable] | None, title: str, seed: int, task: str = ""
) -> Report:
    """Measure the event's probabilities as a whole and by group."""
    from calibrant.inference import calibration_test, interval

    cells = _cells(data)
    over, under = overconfidence(cells, seed=seed), underconfidence(cells, seed=seed)
    headline = interval(headline_error, data)
    measures = _measures(data, cells, headline, over, under, seed)
    test = calibration_test(data)
    # A confidence that is too high is over-confident by definition; an event's probability may be too high or too low.
    gap = 0.0 if task else float((cells.predicted - cells.observed).sum() / cells.total)
    side = direction(over, under, headline=float(headline), gap=gap)
    groups, views = _groups(data, by)
    tried, after = repairs(data, seed=seed)
    lines = {measure.estimate.name: float(measure.estimate) for measure in measures[:4]}
    charts = {
        "kind": "probabilities",
        "stops": list(STOPS),
        "stages": {
            "as stated": {"all rows": probability_view(cells, lines), **views},
            f"after {tried[0].name}": {"all rows": probability_view(after, {"Averaged error": tried[0].error})},
        },
    }
    return Report(
        title=title,
        task=task or "Stated probabilities of an event",
        n=cells.n,
        verdict=verdict(headline, test.p_value, side, tried),
        measures=measures,
        tests=(test,),
        repairs=tried,
        groups=groups,
        findings=of_probabilities(cells, measures, test, tried, groups),
        charts=charts,
    )


def top_label_report(data: Multiclass, *, by: ArrayLike | None, title: str, seed: int) -> Report:
    """Confidence of the predicted class, with the average over classes beside it."""
    from dataclasses import replace

    top = data.top_label()
    k = data.y_prob.shape[1]
    task = f"Confidence of the predicted class, {k} classes"
    found = probability_report(top, by=by, title=title, seed=seed, task=task)
    more = [Measure(classwise(ece, data)), Measure(brier(data)), Measure(log_loss(data))]
    kept = [m for m in found.measures if m.estimate.name not in ("Brier score", "Log loss")]
    return replace(found, measures=(*kept, *more))


def verdict(headline: Estimate, p_value: float, side: str, tried: tuple[Repair, ...]) -> str:
    """One plain sentence."""
    interval = headline.interval
    found = "" if interval is None else f" (95 % interval {points(max(interval.low, 0.0))} to {points(interval.high)})"
    if p_value >= 0.05:
        most = "" if interval is None else f"; the error is at most {points(interval.high)} points"
        return f"No miscalibration can be shown: the estimate is {points(headline)} points{found}{most}."
    sentence = f"{side[0].upper()}{side[1:]} by {points(headline)} points{found}"
    best = tried[0] if tried else None
    if best is None or best.gain <= 0:
        return f"{sentence}."
    return f"{sentence}; {_in_words(best.name)} would bring it to {points(best.error)}."


def _in_words(name: str) -> str:
    words = {
        "Temperature": "temperature scaling",
        "Platt": "Platt scaling",
        "Beta": "beta calibration",
        "Quadratic": "quadratic scaling",
        "Spline": "a spline",
        "Isotonic": "isotonic regression",
    }
    return words.get(name, name)


def _cells(data: Binary | BinTable) -> BinTable:
    if isinstance(data, BinTable):
        return data.filled()
    return BinTable.of(data, Distinct() if len(data) <= GRID_ROWS else HybridGrid()).filled()


def _measures(
    data: Binary | BinTable, cells: BinTable, headline: Estimate, over: Estimate, under: Estimate, seed: int
) -> tuple[Measure, ...]:
    """Every estimator on the same table, each with the bias it has in a world like these data."""
    from calibrant.inference import interval

    binned: dict[str, Callable[..., Estimate]] = {
        "ece": partial(ece, bins=EqualWidth(15)),
        "mass": ece,
        "debiased": partial(debiased_ece, norm=1),
        "sweep": sweep_ece,
    }
    biases = _biases(data, cells.n, binned, seed)
    found = [Measure(headline, headline=True), Measure(calibration_error(cells, norm=1, seed=seed))]
    found += [Measure(interval(estimator, cells), bias=biases.get(name)) for name, estimator in binned.items()]
    found += [Measure(smooth_ece(cells)), Measure(ks_error(cells)), Measure(over), Measure(under)]
    return (*found, Measure(brier(cells)), Measure(log_loss(cells)))


def _biases(
    data: Binary | BinTable, n: int, estimators: Mapping[str, Callable[..., Estimate]], seed: int
) -> dict[str, float]:
    """Bias of each estimator at this size, in a world fitted to the data; none where no world can be fitted."""
    from calibrant.simulate import bias, fit_world

    if isinstance(data, BinTable) or n < 20 or data.y_true.min() == data.y_true.max():
        return {}
    rng = np.random.default_rng(seed)
    rows = np.arange(n) if n <= LARGEST else rng.choice(n, LARGEST, replace=False)
    world = fit_world(Binary(data.y_true[rows], data.y_prob[rows])).world
    repeats = REPEATS if n <= 2000 else REPEATS // 2
    drawn = min(n, LARGEST)
    return {name: bias(f, world, drawn, repeats=repeats, seed=seed, norm=1).bias for name, f in estimators.items()}


def _groups(
    data: Binary | BinTable, by: ArrayLike | Mapping[Any, BinTable] | None
) -> tuple[tuple[Group, ...], dict[str, Any]]:
    """One line and one view per group, worst first."""
    from calibrant.inference import calibration_test, interval

    parts = group_tables(data, by)
    found, views = [], {}
    for name, part in parts.items():
        cells = _cells(part)
        estimate = interval(headline_error, part)
        found.append(Group(name, cells.n, estimate, calibration_test(part).p_value))
        views[name] = probability_view(cells, {"Averaged error": float(estimate)})
    return tuple(sorted(found, key=lambda group: -group.estimate)), views


def group_tables(
    data: Binary | BinTable, by: ArrayLike | Mapping[Any, BinTable] | None
) -> dict[str, Binary | BinTable]:
    """The rows, or the table, of each group; the largest come first and at most `MOST_GROUPS`."""
    if by is None:
        return {}
    if isinstance(by, Mapping):
        parts: dict[str, Binary | BinTable] = {str(name): table for name, table in by.items()}
        return dict(sorted(parts.items(), key=lambda pair: -_size(pair[1]))[:MOST_GROUPS])
    if isinstance(data, BinTable):
        message = "A table has no rows to group; give one table per group, e.g. from scale.bin_table(..., by=...)."
        raise ValueError(message)
    labels = np.asarray(validation.groups("by", by, length=len(data)))
    names, index, count = np.unique(labels, return_inverse=True, return_counts=True)
    chosen = np.argsort(-count, kind="stable")[:MOST_GROUPS]
    return {str(names[k]): data.take(index.reshape(-1) == k) for k in chosen}


def _size(part: Binary | BinTable) -> int:
    return part.n if isinstance(part, BinTable) else len(part)
