"""The report on predicted probabilities: of an event, or of the predicted class being right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data.predictions import Binary, Multiclass
from calibrant.estimators.binned import ece
from calibrant.estimators.cumulative import ks_error
from calibrant.estimators.debiased import debiased_ece
from calibrant.estimators.multiclass import classwise
from calibrant.estimators.proper_scores import brier, log_loss
from calibrant.estimators.smooth import smooth_ece
from calibrant.estimators.sweep import sweep_ece
from calibrant.reporting.findings import direction, of_probabilities
from calibrant.reporting.groups import ALL_ROWS, group_tables
from calibrant.reporting.model import Group, Measure, Repair, Report
from calibrant.reporting.part import Part
from calibrant.reporting.repairs import repairs
from calibrant.reporting.text import points
from calibrant.reporting.views import STOPS, probability_view
from calibrant.results.estimate import Estimate
from calibrant.table.binning import EqualWidth
from calibrant.table.bintable import BinTable

#: Simulated samples for the bias at this size, and the largest size they are drawn at.
REPEATS, LARGEST = 100, 20_000


def probability_report(
    data: Binary | BinTable,
    *,
    by: ArrayLike | Mapping[Any, BinTable | ArrayLike] | None,
    title: str,
    seed: int,
    task: str = "",
) -> Report:
    """Measure the event's probabilities as a whole and by group."""
    whole = Part(data, seed)
    cells, measures = whole.cells, _measures(whole)
    # A confidence that is too high is over-confident by definition; an event's probability may be too high or too low.
    gap = 0.0 if task else float((cells.predicted - cells.observed).sum() / cells.total)
    over, under = (whole.variational.part(1, side) for side in ("over", "under"))
    side = direction(over, under, headline=float(whole.headline), gap=gap)
    parts = {name: Part(part, seed) for name, part in group_tables(data, by).items()}
    groups = tuple(sorted(starmap(_group, parts.items()), key=lambda group: -group.estimate))
    tried, after = repairs(whole)
    return Report(
        title=title,
        task=task or "Stated probabilities of an event",
        n=cells.n,
        verdict=verdict(whole.headline, whole.test.p_value, side, tried),
        measures=measures,
        tests=(whole.test,),
        repairs=tried,
        groups=groups,
        findings=of_probabilities(cells, measures, whole.test, tried, groups),
        charts=_charts(whole, parts, measures, tried[0], after),
    )


def top_label_report(data: Multiclass, *, by: ArrayLike | None, title: str, seed: int) -> Report:
    """Confidence of the predicted class, with the average over classes."""
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


def _measures(whole: Part) -> tuple[Measure, ...]:
    """Every estimator on the same table, each with the bias it has in a world like these data."""
    binned: dict[str, Callable[..., Estimate]] = {
        "ece": partial(ece, bins=EqualWidth(15)),
        "mass": ece,
        "debiased": partial(debiased_ece, norm=1),
        "sweep": sweep_ece,
    }
    cells, variational, biases = whole.cells, whole.variational, _biases(whole, binned)
    found = [Measure(whole.headline, headline=True), Measure(variational.error(1))]
    found += [Measure(whole.with_interval(estimator), bias=biases.get(name)) for name, estimator in binned.items()]
    others = (smooth_ece(cells), ks_error(cells), variational.part(1, "over"), variational.part(1, "under"))
    return (*found, *map(Measure, (*others, whole.brier, whole.log_loss)))


def _biases(whole: Part, estimators: Mapping[str, Callable[..., Estimate]]) -> dict[str, float]:
    """Bias of each estimator at this size, in a world fitted to the data; none where no world can be fitted."""
    from calibrant.simulate.estimation_bias import estimates
    from calibrant.simulate.world_fit import fit_world

    data, n = whole.data, whole.cells.n
    if isinstance(data, BinTable) or n < 20 or data.y_true.min() == data.y_true.max():
        return {}
    rng = np.random.default_rng(whole.seed)
    rows = np.arange(n) if n <= LARGEST else rng.choice(n, LARGEST, replace=False)
    try:
        world = fit_world(Binary(data.y_true[rows], data.y_prob[rows])).world
    except ValueError:  # scores of 0 and 1 only, or all alike
        return {}
    repeats = REPEATS if n <= 2000 else REPEATS // 2
    drawn = estimates(estimators, world, min(n, LARGEST), repeats=repeats, seed=whole.seed)
    truth = world.true_error(1)
    return {name: float(values.mean()) - truth for name, values in drawn.items()}


def _group(name: str, part: Part) -> Group:
    return Group(name, part.cells.n, part.headline, part.test.p_value)


def _charts(
    whole: Part, parts: Mapping[str, Part], measures: tuple[Measure, ...], best: Repair, after: BinTable
) -> dict[str, Any]:
    """The data of the figures: every part before recalibration, and all rows after the best map."""
    lines = {measure.estimate.name: float(measure.estimate) for measure in measures[:4]}
    views = {name: probability_view(p.cells, {"Averaged error": float(p.headline)}) for name, p in parts.items()}
    return {
        "kind": "probabilities",
        "stops": list(STOPS),
        "stages": {
            "as stated": {ALL_ROWS: probability_view(whole.cells, lines), **views},
            f"after {best.name}": {ALL_ROWS: probability_view(after, {"Averaged error": best.error})},
        },
    }
