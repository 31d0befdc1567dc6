"""One call of everything that needs no extra, for environments with nothing else installed: `python tests/smoke.py`."""

import numpy as np

import calibrant as cal


def main() -> None:
    """Call, and check what must hold."""
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    data = cal.Binary(rng.random(1000) < 0.5 + 0.6 * (p - 0.5), p)
    for estimator in (
        cal.ece,
        cal.debiased_ece,
        cal.sweep_ece,
        cal.smooth_ece,
        cal.averaged_error,
        cal.variational_error,
    ):
        assert 0.03 < estimator(data) < 0.2, estimator
    found = cal.interval(cal.ece, data).interval
    assert found.low < 0.1 < found.high
    assert cal.calibration_test(data).p_value < 0.01
    assert 0.3 < cal.calibration_slope(data) < 0.9
    repaired = cal.recalibrate.Auto().fit(p, data.y_true).predict_proba(p)[:, 1]
    assert cal.log_loss(data.y_true, repaired) < cal.log_loss(data)
    assert cal.by_group(cal.ece, data, by=np.where(p > 0.5, "high", "low")).ranked[0].adjusted < 0.05
    several = cal.Multiclass(rng.integers(3, size=300), rng.dirichlet(np.ones(3), 300))
    assert cal.calibration_test(several).p_value < 0.05
    std = rng.uniform(0.5, 1.5, 500)
    assert cal.calibration_test(cal.Gaussian(std * rng.normal(size=500), np.zeros(500), 0.5 * std)).p_value < 0.01
    unlabeled = cal.PositiveUnlabeled(rng.beta(3, 2, 200), rng.beta(2, 3, 800), prior=0.4)
    assert cal.ece(unlabeled) >= 0
    world = cal.simulate.World(cal.simulate.UniformScores(), cal.simulate.TemperatureCurve(2.0))
    assert len(world.sample(100, seed=0)) == 100
    assert cal.report(data).n == 1000
    print("Everything that needs no extra works.")


if __name__ == "__main__":
    main()
