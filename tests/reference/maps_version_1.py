"""Write maps_version_1.json: maps saved in layout version 1, with what they predicted.

Run with a revision of Calibrant whose `recalibrate.persistence.VERSION` is 1.
"""

import json
import tempfile
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant import recalibrate as rc
from calibrant.recalibrate import persistence


def main() -> None:
    assert persistence.VERSION == 1
    rng = np.random.default_rng(0)
    p = rng.random(60).round(3)
    y = (rng.random(60) < p**2).astype(int)
    vectors = rng.dirichlet(np.ones(3), 60)
    classes = np.arange(60) % 3
    std = rng.uniform(0.5, 2, 60).round(3)
    error = (std**2 * rng.normal(size=60)).round(3)
    pu = cal.pu if hasattr(cal.pu, "PUPlatt") else rc
    fits = {
        "Platt": rc.Platt(laplace=1.0).fit(p, y),
        "Histogram": rc.Histogram(bins=cal.EqualMass(4)).fit(p, y),
        "ScalingBinning": rc.ScalingBinning(scaling=rc.Beta(), bins=cal.EqualWidth(4)).fit(p, y),
        "Edges": rc.Histogram(bins=cal.Edges([0, 0.3, 1])).fit(p, np.where(y, "yes", "no")),
        "OneVsRest": rc.OneVsRest(rc.Isotonic()).fit(vectors, classes),
        "Auto": rc.Auto([rc.Platt(), rc.Histogram()], combine="stack", cautious=False).fit(p, y),
        "PUPlatt": pu.PUPlatt().fit(cal.PositiveUnlabeled(p[y == 1], p, prior=0.3)),
        "PUHistogram": pu.PUHistogram(bins=cal.EqualMass(3)).fit(cal.PositiveUnlabeled(p[y == 1], p, prior=0.3)),
        "PerGroup": rc.PerGroup(rc.StdScaling(), least=20).fit(
            cal.Gaussian(error, 0 * std, std, group=np.repeat(["a", "b", "c"], [30, 20, 10]))
        ),
    }
    found = {}
    for name, fitted in fits.items():
        with tempfile.TemporaryDirectory() as folder:
            fitted.save(Path(folder) / "map.json")
            document = json.loads((Path(folder) / "map.json").read_text())
        if name == "PerGroup":
            new = cal.Gaussian([0.0] * 4, [0.0] * 4, [1.0] * 4, group=["a", "b", "c", "d"])
            output = fitted.transform(new).std.tolist()
        else:
            output = fitted.predict_proba(vectors[:4] if name == "OneVsRest" else p[:4]).tolist()
        found[name] = {"document": document, "output": output}
    inputs = {"probabilities": p[:4].tolist(), "vectors": vectors[:4].tolist()}
    target = Path(__file__).with_suffix(".json")
    target.write_text(json.dumps({"inputs": inputs, "maps": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
