"""Run by the benchmark in an environment that has probmetrics: out-of-fold maps of prepared cases, with CPU time.

usage: python variational_peer.py FOLDER    (FOLDER/*.npz with f, y, fold; writes FOLDER/out/<case>__<method>.npz)
"""

import os
import resource
import signal
import sys
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from probmetrics.calibrators import get_calibrator  # noqa: E402
from probmetrics.classifiers import WS_CatboostClassifier  # noqa: E402

torch.set_num_threads(1)
METHODS = {
    "TS": lambda k: get_calibrator("ts-mix"),
    "isotonic": lambda k: get_calibrator("isotonic", calibrate_with_mixture=True),
    "SMS": lambda k: get_calibrator("logistic", calibrate_with_mixture=True, logistic_binary_type="quadratic"),
    "WS CatBoost": lambda k: WS_CatboostClassifier(),
}


def cpu() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def hung(*_: object) -> None:
    raise TimeoutError("hung")


def main() -> None:
    signal.signal(signal.SIGALRM, hung)
    folder = Path(sys.argv[1])
    (folder / "out").mkdir(exist_ok=True)
    files = sorted(folder.glob("*.npz"))
    for number, file in enumerate(files):
        print(f"\rprobmetrics {number + 1}/{len(files)} {file.stem:50.50}", end="", file=sys.stderr, flush=True)
        case = np.load(file)
        f, y, fold = case["f"], case["y"], case["fold"]
        for method, make in METHODS.items():
            target = folder / "out" / f"{file.stem}__{method}.npz"
            if target.exists():
                continue
            for _ in range(3):
                start, g, failed = cpu(), f.copy(), ""
                signal.alarm(240)  # its process pools hang now and then: a fork while another thread holds a lock
                try:
                    for k in range(fold.max() + 1):
                        own = fold == k
                        g[own] = make(f.shape[1]).fit(f[~own], y[~own]).predict_proba(f[own])
                    break
                except Exception as error:
                    failed = f"{type(error).__name__}: {error}"[:200]
                finally:
                    signal.alarm(0)
            part = target.with_suffix(".part")
            with part.open("wb") as out:
                np.savez(out, g=g, seconds=cpu() - start, failed=failed)
            os.replace(part, target)


if __name__ == "__main__":
    main()
