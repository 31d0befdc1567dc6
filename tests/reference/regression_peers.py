"""Make regression_peers.json: what uncertainty-toolbox, netcal and scoringrules say of 200 seeded rows.

Run in an environment of its own: pip install torch==2.13.0 uncertainty-toolbox netcal scoringrules, then
python tests/reference/regression_peers.py.
"""

import json
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

warnings.filterwarnings("ignore")

import scoringrules  # noqa: E402
import uncertainty_toolbox as uct  # noqa: E402
from netcal.metrics.regression import ENCE, UCE  # noqa: E402


def rows():
    rng = np.random.default_rng(7)
    mean, std = rng.normal(size=200), rng.lognormal(0, 0.5, 200)
    y = mean + 0.2 + 1.3 * std * rng.normal(size=200)
    return mean, std, y, mean[:, None] + std[:, None] * rng.normal(size=(200, 12))


def main():
    mean, std, y, draws = rows()
    arrays = (mean, std, y)
    made = {
        "ma_cal": uct.mean_absolute_calibration_error(*arrays),
        "rms_cal": uct.root_mean_squared_calibration_error(*arrays),
        "miscal_area": uct.miscalibration_area(*arrays),
        "quantile_mode": np.stack(
            uct.get_proportion_lists_vectorized(mean, std, y + std, prop_type="quantile")
        ).tolist(),
        "interval_mode": np.stack(uct.get_proportion_lists_vectorized(*arrays, prop_type="interval")).tolist(),
        "nll": uct.nll_gaussian(*arrays),
        "crps": uct.crps_gaussian(*arrays),
        "check": uct.check_score(*arrays),
        "interval_score": uct.interval_score(*arrays),
        "sharpness": uct.sharpness(std),
        "fair_crps": float(np.mean(scoringrules.crps_ensemble(y, draws, estimator="fair"))),
        "t5_crps": float(np.mean(scoringrules.crps_t(y, 5, mean, std))),
        "netcal_uce": float(np.squeeze(UCE(10).measure((mean, std), y))),
        "netcal_ence": float(np.squeeze(ENCE(10).measure((mean, std), y))),
    }
    versions = {name: version(name) for name in ("uncertainty-toolbox", "netcal", "scoringrules", "numpy")}
    target = Path(__file__).with_suffix(".json")
    target.write_text(json.dumps({"versions": versions, "made": made}, default=float), encoding="utf8")


if __name__ == "__main__":
    main()
