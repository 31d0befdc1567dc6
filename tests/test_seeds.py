"""A seed of the package and the same seed of the user's own generator have nothing in common."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

import calibrant as cal
from calibrant import estimators, inference, pu, recalibrate, simulate

SOURCE = Path(cal.__file__).parent
ROOMS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
#: Public names with a seed that are not called here, and why.
NOT_CALLED = {"TabICL": "needs model weights", "TabPFN": "needs model weights"}
SEED = 3
pytestmark = pytest.mark.no_cover


class Rows:
    """Over-confident predictions of every task, sorted by outcome and brought into the order of a generator."""

    def __init__(self, order: int, n: int = 400):
        rng = np.random.default_rng(99)
        logits = rng.normal(0, 1.5, (n, 3))
        label = (softmax(0.6 * logits, axis=1).cumsum(1) > rng.random((n, 1))).argmax(1)
        mean, std = rng.normal(size=n), np.exp(rng.normal(0, 0.5, n))
        error = 1.3 * rng.normal(size=n)
        score = rng.beta(2, 3, n)
        event, seen = rng.random(n) < score**1.5, rng.random(n) < 0.4
        shuffle = np.random.default_rng(order).permutation(n)
        by_class, by_error = np.argsort(label, kind="stable")[shuffle], np.argsort(error)[shuffle]
        by_event = np.argsort(event & seen, kind="stable")[shuffle]
        vectors = softmax(logits, axis=1)
        self.classes = cal.Multiclass(label[by_class], vectors[by_class])
        self.flat = cal.Multiclass(label[by_class], 0.7 * vectors[by_class] + 0.1)
        by_top = np.argsort(label == 1, kind="stable")[shuffle]
        self.binary = cal.Binary((label == 1)[by_top].astype(int), vectors[by_top, 1])
        self.other = cal.Binary(self.binary.y_true, 0.8 * self.binary.y_prob + 0.1)
        self.features = {"first": vectors[by_top, 0]}
        self.clustered = cal.Binary(self.binary.y_true, self.binary.y_prob, group=np.arange(n) // 2)
        self.forecast = cal.Gaussian((mean + std * error)[by_error], mean[by_error], std[by_error])
        self.wide = cal.Gaussian(self.forecast.y_true, self.forecast.mean, 1.5 * self.forecast.std)
        gold = np.where(seen[by_top], self.binary.y_true, np.nan)
        self.judged = cal.Judged(gold, self.binary.y_prob, judge=vectors[by_top, 2])
        self.unlabeled = cal.PositiveUnlabeled.from_labels(
            (event & seen)[by_event], score[by_event], scenario="single-sample", label_frequency=0.4
        )


def high_end(rows: Any, method: Any, estimator: Any = cal.ece) -> float:
    return cal.interval(estimator, rows, method=method).interval.high


def low_end(rows: Any, method: Any, estimator: Any = cal.ece) -> float:
    return cal.interval(estimator, rows, method=method).interval.low


def difference(a: Any, b: Any, method: Any, estimator: Any = cal.ece) -> float:
    return float(cal.compare(estimator, a, b, method=method).interval.high)


def mapped(map_: Any, data: Any) -> float:
    """The mean log loss of a fitted map on its own rows."""
    return float(
        cal.log_loss(cal.Multiclass(data.y_true, map_.fit(data.y_prob, data.y_true).predict_proba(data.y_prob)))
    )


def mapped_by_features(seed: int, data: Any, features: Any) -> float:
    made = recalibrate.FeatureMap(seed=seed).fit(data, features=features)
    return float(cal.log_loss(data.y_true, made.predict_proba(data.y_prob, features)[:, 1]))


def fitted_spread(seed: int, data: Any) -> float:
    return float(np.mean(recalibrate.AutoForecast(seed=seed).fit(data).transform(data).std))


def p_value(data: Any, method: Any) -> float:
    return cal.calibration_test(data, method=method).p_value


def reported_gain(report: Any) -> float:
    """The gain of the best map on held-out rows."""
    return float(report.recalibration.maps[0].gain.value)


def mixture(seed: int) -> Any:
    return simulate.fit_logit_mixture(Rows(7).binary, components=2, seed=seed)


#: Calls with the seed of every public name that has one, by name: from rows and a seed to a number.
CALLS: dict[str, Callable[[Rows, int], float]] = {
    "Bootstrap": lambda r, s: high_end(r.binary, cal.Bootstrap(99, seed=s), cal.brier),
    "by_class": lambda r, s: float(np.mean([row.p_value for row in cal.by_class(r.classes, draws=99, seed=s).rows])),
    "variational_error": lambda r, s: cal.variational_error(r.classes, seed=s),
    "variational_error of the confidence": lambda r, s: cal.variational_error(r.classes.top_label(), seed=s),
    "variational_error of one probability": lambda r, s: cal.variational_error(r.binary, seed=s),
    "variational_error of positives": lambda r, s: cal.variational_error(r.unlabeled, seed=s),
    "variational_errors": lambda r, s: estimators.variational_errors(r.classes, norms=[1], seed=s)[0],
    "overconfidence": lambda r, s: cal.overconfidence(r.classes, seed=s),
    "underconfidence": lambda r, s: cal.underconfidence(r.classes, seed=s),
    "refinement": lambda r, s: cal.refinement(r.classes, seed=s),
    "reliability_curve": lambda r, s: float(
        np.nanmean(cal.reliability_curve(r.binary, draws=99, seed=s).consistency_low)
    ),
    "over_time": lambda r, s: cal.over_time(r.binary, np.arange(len(r.binary)) // 100, seed=s).change.p_value,
    "report": lambda r, s: reported_gain(cal.report(r.binary, seed=s)),
    "report of classes": lambda r, s: reported_gain(cal.report(r.classes, seed=s)),
    "report of forecasts": lambda r, s: reported_gain(cal.report(r.forecast, seed=s)),
    "Auto": lambda r, s: mapped(recalibrate.Auto(seed=s), r.classes),
    "gain": lambda r, s: float(recalibrate.gain(r.binary, recalibrate.Platt(), seed=s).gain),
    "Auto of one probability": lambda r, s: mapped(recalibrate.Auto(seed=s), r.binary),
    "FeatureMap": lambda r, s: mapped_by_features(s, r.binary, r.features),
    "AutoForecast": lambda r, s: fitted_spread(s, r.forecast),
    "CatBoost": lambda r, s: mapped(recalibrate.CatBoost(seed=s, trees=20), r.binary),
    "LightGBM": lambda r, s: mapped(recalibrate.LightGBM(seed=s), r.binary),
    "PUInversion": lambda r, s: high_end(r.unlabeled, pu.PUInversion(seed=s)),
    "ClasswiseInversion": lambda r, s: high_end(
        r.classes, inference.ClasswiseInversion(seed=s), partial(cal.classwise, cal.ece)
    ),
    "Clustered": lambda r, s: high_end(r.clustered, inference.Clustered(99, seed=s), cal.brier),
    "ForecastTest": lambda r, s: p_value(r.forecast, inference.ForecastTest(99, seed=s)),
    "Inversion": lambda r, s: high_end(r.binary, inference.Inversion(seed=s)),
    "Inversion of clusters": lambda r, s: high_end(r.clustered, inference.Inversion(seed=s)),
    "KernelTest": lambda r, s: p_value(r.binary, inference.KernelTest(99, seed=s)),
    "KolmogorovSmirnov": lambda r, s: p_value(r.binary, inference.KolmogorovSmirnov(99, seed=s)),
    "LearnedTest": lambda r, s: p_value(r.classes, inference.LearnedTest(99, seed=s)),
    "MultiScale": lambda r, s: p_value(r.binary, inference.MultiScale(99, seed=s)),
    "NormBand": lambda r, s: high_end(r.binary, inference.NormBand(seed=s), cal.ks_error),
    "PairedCrossFits": lambda r, s: difference(
        r.classes, r.flat, inference.PairedCrossFits(seed=s), cal.variational_error
    ),
    "PairedFits": lambda r, s: difference(r.forecast, r.wide, inference.PairedFits(seed=s), cal.ence),
    "PairedGaps": lambda r, s: difference(r.binary, r.other, inference.PairedGaps(seed=s)),
    "PitInversion": lambda r, s: high_end(r.forecast, inference.PitInversion(seed=s), cal.pit_error),
    "SequentialBound": lambda r, s: low_end(r.classes, inference.SequentialBound(seed=s), cal.variational_error),
    "SplitLowerBound": lambda r, s: low_end(r.binary, inference.SplitLowerBound(seed=s)),
    "SpreadInversion": lambda r, s: high_end(r.forecast, inference.SpreadInversion(seed=s), cal.ence),
    "VectorTest": lambda r, s: p_value(r.classes, inference.VectorTest(99, seed=s)),
    "audit": lambda r, s: float(cal.audit(r.binary, X=r.features, seed=s).error.l1),
    "without_labels": lambda r, s: cal.without_labels(r.binary, r.other.y_prob, seed=s)["rate"].interval.high,
    "Judged.next_labels": lambda r, s: float(np.mean(r.binary.y_true[r.judged.next_labels(60, seed=s).rows])),
    "miscalibration_cost": lambda r, s: float(
        inference.miscalibration_cost(r.binary, thresholds=[0.3], seed=s).cost[0]
    ),
}
WORLD = simulate.World(simulate.BetaScores(1, 2), simulate.TemperatureCurve(1.5))
#: The same of names that simulate or need no rows in any order.
SIMULATIONS: dict[str, Callable[[int], Any]] = {
    "World.sample": lambda s: WORLD.sample(9, seed=s),
    "PUWorld.sample": lambda s: simulate.PUWorld(WORLD).sample(9, seed=s),
    "MulticlassWorld.sample": lambda s: simulate.MulticlassWorld(
        simulate.DirichletScores([1, 1, 2]), simulate.TemperatureCurve(1.4)
    ).sample(9, seed=s),
    "RegressionWorld.sample": lambda s: simulate.RegressionWorld(
        simulate.LogNormalSpreads(), simulate.Scaled(1.3)
    ).sample(9, seed=s),
    "LogitMixtureWorld.sample": lambda s: mixture(s).sample(9, 9, seed=s),
    "fit_logit_mixture": lambda s: mixture(s),
    "WorldFit.goodness": lambda s: simulate.fit_world(Rows(7).binary).goodness(seed=s),
    "advise": lambda s: simulate.advise(Rows(7).binary, repeats=4, seed=s),
    "bias": lambda s: simulate.bias(cal.ece, WORLD, 50, repeats=4, seed=s),
    "bias_table": lambda s: simulate.bias_table({"ece": cal.ece}, [WORLD], [50], repeats=4, seed=s),
    "estimates": lambda s: simulate.estimates({"ece": cal.ece}, WORLD, 50, repeats=4, seed=s),
    "power": lambda s: simulate.power(cal.ece, WORLD, 50, repeats=4, seed=s),
    "sample_size": lambda s: cal.sample_size(cal.ece, WORLD, width=0.3, seed=s),
}


def public_names_with_a_seed() -> Iterator[str]:
    for room in ("calibrant", *(f"calibrant.{name}" for name in ROOMS)):
        module = importlib.import_module(room)
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing) and has_seed(thing):
                yield name
            if inspect.isclass(thing):
                methods = inspect.getmembers(thing, inspect.isfunction)
                yield from (f"{name}.{one}" for one, method in methods if one[0] != "_" and has_seed(method))


def has_seed(thing: Any) -> bool:
    try:
        return "seed" in inspect.signature(thing).parameters
    except ValueError:
        return False


def test_every_public_name_with_a_seed_is_called_here():
    called = {name.partition(" of ")[0] for name in CALLS} | set(SIMULATIONS)
    assert set(public_names_with_a_seed()) == called | set(NOT_CALLED)


def test_generators_are_made_in_one_place():
    lines = [(path, line.strip()) for path in SOURCE.rglob("*.py") for line in path.read_text("utf-8").splitlines()]
    made = [(path, line) for path, line in lines if "np.random.default_rng(" in line and line[:3] not in {">>>", "..."}]
    assert {path for path, line in made if "``" not in line} == {SOURCE / "numerics/random_draws.py"}


def test_every_use_of_a_seed_has_a_name_of_its_own():
    code = "".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    uses = re.findall(r'\b(?:generator|scikit_learn_seed)\([^"]*?"([^"]+)"', code)
    assert len(uses) > 40
    assert len(set(uses)) == len(uses)


@pytest.mark.parametrize("name", [*CALLS, *SIMULATIONS])
def test_no_numbers_of_a_user_are_drawn(name, monkeypatch):
    rows, states, original = Rows(7), [], np.random.default_rng

    def recording(seed=None):
        made = original(seed)
        states.append(made.bit_generator.state["state"]["state"])
        return made

    users = {original(seed).bit_generator.state["state"]["state"] for seed in (SEED, 0)}
    call = partial(CALLS[name], rows) if name in CALLS else SIMULATIONS[name]
    monkeypatch.setattr(np.random, "default_rng", recording)
    call(SEED)
    monkeypatch.undo()
    assert states
    assert not users & set(states)


@cache
def shuffled(order: int) -> Rows:
    return Rows(order)


@pytest.mark.parametrize("name", CALLS)
def test_the_shuffle_of_a_user_with_the_same_seed_changes_nothing_but_noise(name):
    orders = [101, 102, 103]
    with np.errstate(all="ignore"):
        others = [float(CALLS[name](shuffled(order), SEED)) for order in orders]
        found = float(CALLS[name](shuffled(SEED), SEED))
    spread = max(float(np.std(others)), 0.004 * max(1.0, abs(np.mean(others))))
    assert abs(found - np.mean(others)) <= 6 * spread, (found, others)
