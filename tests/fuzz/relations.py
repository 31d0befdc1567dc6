"""What must not change a result: the order of rows, the unit of weights and outcomes, a table in place of rows."""

from __future__ import annotations

from functools import partial

import numpy as np

import calibrant as cal
from calibrant.estimators import label_binned_ece
from tests.fuzz import random_data

OF_EVENTS = {
    "ece": cal.ece,
    "ece in 4 bins of equal width": partial(cal.ece, bins=cal.EqualWidth(4), norm=2),
    "mce": cal.mce,
    "label_binned_ece": label_binned_ece,
    "debiased_ece": cal.debiased_ece,
    "sweep_ece": cal.sweep_ece,
    "averaged_error": cal.averaged_error,
    "smooth_ece": cal.smooth_ece,
    "ks_error": cal.ks_error,
    "brier": cal.brier,
    "log_loss": cal.log_loss,
    "auc": cal.auc,
    "miscalibration": lambda data: cal.decompose(data).miscalibration,
}
#: Those that need the rows themselves.
OF_ROWS = {"kernel_error": cal.kernel_error, "kde_ece": cal.kde_ece}
OF_CLASSES = {
    "brier": cal.brier,
    "log_loss": cal.log_loss,
    "kernel_error": cal.kernel_error,
    "classwise": partial(cal.classwise, cal.ece),
    "top label": lambda data: cal.ece(data.top_label()),
}
#: With the power of the unit they are measured in.
OF_SPREADS = {
    "ence": (cal.ence, 0),
    "debiased_ence": (cal.debiased_ence, 0),
    "sweep_ence": (cal.sweep_ence, 0),
    "uce": (cal.uce, 2),
    "mean_squared_z": (cal.mean_squared_z, 0),
    "std_dispersion": (cal.std_dispersion, 0),
    "crps": (cal.crps, 1),
    "sharpness": (cal.estimators.sharpness, 1),
    "coverage": (cal.coverage, 0),
    "interval_error": (cal.interval_error, 0),
    "pit_error": (cal.pit_error, 0),
    "pinball": (cal.pinball, 1),
    "interval_score": (cal.interval_score, 1),
}
#: The measures of spreads that a table is enough for.
OF_SPREAD_TABLES = ("ence", "debiased_ence", "sweep_ence", "uce", "mean_squared_z", "std_dispersion")


#: Where a fit ends when its steps are small, not when rounding is all that is left.
TOLERANCES = {"averaged_error": 1e-5}


def outcome(measure, data):
    """A number, or the sentence by which a measure refuses the data."""
    try:
        return float(measure(data))
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


def agree(name, measure, one, other, *, factor=1.0):
    """Raise unless both data give the same result, or are both refused."""
    first, second, tolerance = outcome(measure, one), outcome(measure, other), TOLERANCES.get(name, 1e-7)
    if isinstance(first, str) or isinstance(second, str):
        assert isinstance(first, str) == isinstance(second, str), f"{name}: {first} against {second}"
        return
    assert np.isclose(first * factor, second, rtol=tolerance, atol=tolerance * factor, equal_nan=True), (
        f"{name}: {first!r} times {factor!r} against {second!r} of {one!r}"
    )


def order_of_rows(rng, folder):
    """A permutation of the rows."""
    data = random_data.binary(rng)
    for name, measure in (OF_EVENTS | OF_ROWS).items():
        agree(name, measure, data, data.take(rng.permutation(len(data))))
    several = random_data.multiclass(rng)
    for name, measure in OF_CLASSES.items():
        agree(name, measure, several, several.take(rng.permutation(len(several))))
    forecast = random_data.gaussian(rng)
    for name, (measure, _) in OF_SPREADS.items():
        agree(name, measure, forecast, forecast.take(rng.permutation(len(forecast))))


def unit_of_weights(rng, folder):
    """All weights multiplied by one number, from 1e-200 to 1e200."""
    unit = float(10.0 ** rng.uniform(-200, 200))
    data = random_data.binary(rng)
    weight = np.ones(len(data)) if data.weight is None else data.weight
    other = cal.Binary(data.y_true, data.y_prob, weight=weight * unit)
    for name, measure in (OF_EVENTS | OF_ROWS).items():
        agree(name, measure, data, other)
    forecast = random_data.gaussian(rng)
    weight = np.ones(len(forecast)) if forecast.weight is None else forecast.weight
    scaled = cal.Gaussian(forecast.y_true, forecast.mean, forecast.std, weight=weight * unit)
    for name, (measure, _) in OF_SPREADS.items():
        agree(name, measure, forecast, scaled)


def unit_of_outcomes(rng, folder):
    """Outcomes, means and spreads multiplied by a power of two, and moved."""
    data, unit = random_data.gaussian(rng), 2.0 ** int(rng.integers(-200, 200))
    other = cal.Gaussian(data.y_true * unit, data.mean * unit, data.std * unit, weight=data.weight)
    for name, (measure, power) in OF_SPREADS.items():
        agree(name, measure, data, other, factor=unit**power)


def table_for_rows(rng, folder):
    """The fine table of the rows in their place."""
    data = random_data.binary(rng)
    table = cal.BinTable.of(data, cal.table.Distinct())
    for name, measure in OF_EVENTS.items():
        agree(name, measure, data, table)
    forecast = random_data.gaussian(rng)
    table = cal.BinTable.of(forecast, cal.table.Distinct())
    for name in OF_SPREAD_TABLES:
        agree(name, OF_SPREADS[name][0], forecast, table)


def sum_of_tables(rng, folder):
    """Tables of two halves, added."""
    data = random_data.binary(rng, 40)
    cut = int(rng.integers(1, 40))
    halves = [data.take(np.arange(0, cut)), data.take(np.arange(cut, 40))]
    binning = [cal.table.HybridGrid(), cal.EqualWidth(7), cal.Edges([0, 0.3, 1])][rng.integers(3)]
    whole = cal.BinTable.of(data, binning)
    added = cal.BinTable.of(halves[0], binning) + cal.BinTable.of(halves[1], binning)
    for name in ("ece", "mce", "debiased_ece"):
        agree(name, OF_EVENTS[name], whole, added)


def changed_arrays(rng, folder):
    """The user's arrays, changed after construction."""
    made = random_data.binary(rng)
    y, p = made.y_true.astype(int), made.y_prob.copy()
    data = cal.Binary(y, p)
    before = outcome(cal.ece, data)
    y[:], p[:] = 0, 0.5
    assert outcome(cal.ece, data) == before
