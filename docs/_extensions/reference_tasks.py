"""What each public name is for, and which others belong to it: the tables of the reference and its "See also"."""

from __future__ import annotations

import inspect
import re
from typing import Any

#: Task by the module in which a name is defined; the longest beginning counts, and the order is that of the tables.
TASKS = {
    "data": "Data",
    "estimators": "Errors of probabilities",
    "estimators.validation_study": "Level and direction",
    "estimators.proper_scores": "Scores and ranking",
    "estimators.decomposition": "Scores and ranking",
    "estimators.multiclass": "Several classes",
    "estimators.regression": "Forecasts with a spread",
    "inference": "Intervals",
    "inference.calibration_tests": "Tests",
    "inference.classical_tests": "Tests",
    "inference.clustered_scores": "Tests",
    "inference.comparison": "Comparisons of models",
    "inference.group": "Groups",
    "inference.gates": "Gates for tests of a model",
    "inference.multiclass_tests": "Several classes",
    "inference.inversion.classwise": "Several classes",
    "inference.learned_bounds": "Several classes",
    "inference.forecasts": "Forecasts with a spread",
    "inference.inversion.spread": "Forecasts with a spread",
    "inference.inversion.pit": "Forecasts with a spread",
    "inference.reliability": "Curves",
    "inference.decision": "Decisions",
    "inference.selective_prediction": "Decisions",
    "recalibrate.auto": "Maps that choose by themselves",
    "recalibrate.regression_auto": "Maps that choose by themselves",
    "recalibrate.bayesian_average": "Maps that choose by themselves",
    "recalibrate.logistic": "Smooth maps of a probability",
    "recalibrate.spline": "Smooth maps of a probability",
    "recalibrate.variational_maps": "Smooth maps of a probability",
    "recalibrate.isotonic": "Steps and bins",
    "recalibrate.histogram": "Steps and bins",
    "recalibrate.multiclass_scaling": "Several classes",
    "recalibrate.nonparametric": "Several classes",
    "recalibrate.boosted_trees": "Trees and foundation models",
    "recalibrate.foundation": "Trees and foundation models",
    "recalibrate.regression": "Forecasts with a spread",
    "recalibrate": "Wrappers, base classes and files",
    "pu.prior": "The share of positives",
    "pu.binned_inference": "Intervals, tests and curves",
    "pu.inversion": "Intervals, tests and curves",
    "pu.bounds": "Bounds",
    "pu.recalibration": "Maps",
    "pu": "Training",
    "simulate.advice": "Planning",
    "simulate.sample_sizes": "Planning",
    "simulate.estimation_bias": "Bias of an estimator",
    "simulate": "Worlds of known error",
    "simulate.score_distributions": "Distributions of scores",
    "simulate.calibration_curves": "Calibration curves",
    "simulate.world_fit": "Worlds fitted to data",
    "scale": "Tables of rows that need not fit into memory",
    "scale.columns": "Which columns hold what",
    "table": "Bins and tables",
    "plot": "Figures",
    "reporting": "Reports",
    "integrations": "Gates for tests of a model",
    "integrations.sklearn": "Inside scikit-learn",
    "integrations.mlflow": "Inside MLflow",
    "integrations.torchmetrics": "In training loops",
    "results": "Results",
    "numerics": "This installation",
}
#: So many other names are enough.
MOST = 8


def home(package: str, thing: Any) -> str:
    """The module in which a name is defined, within the package; constants belong to the package that lists them."""
    module = getattr(thing, "__module__", None) or package
    return str(module).removeprefix("calibrant.")


def task(package: str, thing: Any) -> str:
    """The heading under which a name is listed."""
    return TASKS[_prefix(package, thing)]


def _prefix(package: str, thing: Any) -> str:
    inner = home(package, thing)
    return max((prefix for prefix in TASKS if inner.startswith(prefix)), key=len)


def by_task(package: str, things: dict[str, Any]) -> dict[str, list[str]]:
    """The names of a package by task, in the order of the tables."""
    places = {name: _prefix(package, thing) for name, thing in things.items()}
    found: dict[str, list[str]] = {TASKS[prefix]: [] for prefix in TASKS if prefix in places.values()}
    for name, prefix in places.items():
        found[TASKS[prefix]].append(name)
    return found


Key = tuple[str, str]


def see_also(things: dict[Key, Any]) -> dict[Key, list[Key]]:
    """For every name the others that belong to it: those it speaks of, its module, those that speak of it, its task."""
    names = {name: key for key in reversed(list(things)) for name in [key[1]]}
    speaks = {key: [names[word] for word in _words(thing) if word in names] for key, thing in things.items()}
    heard: dict[Key, list[Key]] = {key: [] for key in things}
    for key, others in speaks.items():
        for other in others:
            heard[other].append(key)
    homes = _groups({key: home(key[0], thing) for key, thing in things.items()})
    tasks = _groups({key: task(key[0], thing) for key, thing in things.items()})
    found = {}
    for key in things:
        near = [*speaks[key], *homes[key], *heard[key]]
        others = list(dict.fromkeys(other for other in near if other != key))
        # A name that stands alone in its module has its task for company.
        found[key] = (others or [other for other in tasks[key] if other != key])[:MOST]
    return found


def _words(thing: Any) -> list[str]:
    """The names in backticks in a docstring, of methods `module.name` the last part."""
    text = inspect.getdoc(thing) if callable(thing) else ""
    return [word.rsplit(".", 1)[-1] for word in re.findall(r"(?<!`)`([\w.]+)`(?!`)", text or "")]


def _groups(keys: dict[Key, str]) -> dict[Key, list[Key]]:
    """For every key those with the same value."""
    members: dict[str, list[Key]] = {}
    for key, value in keys.items():
        members.setdefault(value, []).append(key)
    return {key: members[value] for key, value in keys.items()}
