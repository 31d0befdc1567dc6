"""All four papers by one command, from nothing, into reproduce/RESULTS.md.

    python -m reproduce                          # all four, hours: `make reproduce`
    python -m reproduce --paper bias             # one of them: `make reproduce PAPER=bias`
    python -m reproduce --quick                  # few repeats, at most ten minutes of processor time, into artifacts/
    python -m reproduce --study coverage         # one of the studies of coverage, which belong to no paper

A run keeps what is finished in artifacts/reproduce/. If it is interrupted, the same command goes on where it stopped;
once a paper is finished the next run starts it from nothing again, and so does a run at another commit. Every cell is
seeded and every process computes in one thread, so the numbers do not depend on the machine's number of cores.
A quick run writes to a folder of its own and is compared with the stored results (see `reproduce.drift`). Both end in
the table of the papers' numbers and ours (see `reproduce.final_table`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from calibrant._atomic_write import replacing
from reproduce import data, final_table

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results")
WORK = ROOT / "artifacts" / "reproduce"
#: Libraries that would otherwise start as many threads as there are cores.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


@dataclass(frozen=True)
class Paper:
    """A paper: its title, the module that reproduces it, and the data that parts of it need."""

    title: str
    module: str
    needs: str

    def command(self, work: Path, out: Path, *, quick: bool) -> list[str]:
        """What to run; finished parts are kept in `work`, results are written to `out`."""
        call = [sys.executable, "-m", f"reproduce.{self.module}"]
        if self.module == "variational":
            effort = "quick" if quick else "full"
            kept = ["--store", str(work / "variational.csv"), "--out", str(out)]
            return [*call, "--effort", effort, *kept, "--processes", "1" if quick else "2"]
        kept = ["--cache", str(work), "--folder" if self.module == "positive_unlabeled" else "--out", str(out)]
        processes = ["--processes", "1" if quick else "2"] if self.module == "bias" else []
        return [*call, *(["--quick"] if quick else []), *kept, *processes]


PAPERS = {
    "variational": Paper("A Variational Estimator for Calibration Errors", "variational", "classification"),
    "bias": Paper("Mitigating Bias in Calibration Error Estimation", "bias", "classification"),
    "regression": Paper("Evaluating and Calibrating Uncertainty Prediction in Regression", "regression", "regression"),
    "unlabeled": Paper("Expected Calibration Error for Positive-Unlabeled Learning", "positive_unlabeled", "pu"),
}
STUDIES = (
    "audit",
    "auto_candidates",
    "averaged",
    "bands_and_scores",
    "bias_draws",
    "choose",
    "clustered_tests",
    "coherence",
    "confidence_pairs",
    "coverage",
    "decisions_coverage",
    "engine",
    "forecast_repairs",
    "forecast_tests",
    "groups_coverage",
    "labels",
    "llm_answers",
    "monitoring",
    "multiclass_coverage",
    "order_of_rows",
    "regression_coverage",
    "report_gains",
    "sentences",
    "slices",
    "tabular",
    "tabular_variants",
    "unlabeled_coverage",
)


def commit() -> str:
    """The commit of this clone, with a digest of changes to the code if there are any; "unknown" outside of one."""

    def said(*words: str) -> str:
        command = ["git", "-C", str(ROOT), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    try:
        head = said("rev-parse", "--short=12", "HEAD").strip()
        changed = said("diff", "HEAD", "--", "src", "benchmarks", "reproduce/*.py")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + (f" and changes {hashlib.sha256(changed.encode()).hexdigest()[:8]}" if changed else "")


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf8")) if path.exists() else {}


def written(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as place:
        place.write_text(content, encoding="utf8")


def run(name: str, out: Path, *, quick: bool, work: Path = WORK) -> dict[str, Any]:
    """Reproduce one paper, going on with an interrupted run of the same commit; what is to be said of the run."""
    folder = work / ("quick" if quick else "full") / name
    state_path, here = folder / "run.json", commit()
    state = read(state_path)
    if state.get("commit") != here:
        if state:
            sys.stderr.write(f"{name}: an unfinished run of commit {state['commit']} is dropped.\n")
        shutil.rmtree(folder, ignore_errors=True)
        state = {"commit": here, "started": date.today().isoformat(), "clock": 0.0, "processor": 0.0, "interrupted": 0}
    else:
        state["interrupted"] += 1
        sys.stderr.write(f"{name}: goes on with the run of {state['started']}.\n")
    written(state_path, json.dumps(state))
    clock, processor = time.perf_counter(), cpu_of_children()
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    try:
        command = PAPERS[name].command(folder, out, quick=quick)
        subprocess.run(command, check=True, cwd=ROOT, env=environment, stdout=2)  # only the last table is printed
    finally:
        state["clock"] += time.perf_counter() - clock
        state["processor"] += cpu_of_children() - processor
        written(state_path, json.dumps(state))
    shutil.rmtree(folder)
    return {**state, "finished": date.today().isoformat(), "data": data.folder(PAPERS[name].needs) is not None}


def summary(runs: dict[str, dict[str, Any]]) -> str:
    """The table of runs, for papers.md."""
    lines = [
        "# The four papers: the runs behind the results",
        "",
        "`make reproduce` runs all four from nothing; `docs/evidence/papers.md` lists what is reproduced, "
        "replaced or impossible here.",
        "",
        "| paper | finished | commit | minutes by the clock | minutes of processor time | interruptions | real data |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, paper in PAPERS.items():
        if name not in runs:
            lines.append(f"| {paper.title} | not yet run by this command | | | | | |")
            continue
        each = runs[name]
        real = "here" if each["data"] else f"MISSING ({paper.needs}): its sections were not run"
        lines.append(
            f"| {paper.title} | {each['finished']} | {each['commit']} | {each['clock'] / 60:.1f} | "
            f"{each['processor'] / 60:.1f} | {each['interrupted']} | {real} |"
        )
    return "\n".join(lines) + "\n"


def reproduce(names: list[str], out: Path, *, quick: bool) -> None:
    """Reproduce these papers, one after the other, and gather all results."""
    out.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        sys.stderr.write(f"[{number + 1}/{len(names)}] {name}: {PAPERS[name].title}\n")
        finished = run(name, out, quick=quick)
        runs = {**read(out / "runs.json"), name: finished}
        written(out / "runs.json", json.dumps(runs, indent=1) + "\n")
        written(out / "papers.md", summary(runs))
        written(out.parent / "RESULTS.md", final_table.results_page(out.parent))


def main(arguments: list[str] | None = None) -> int:
    """0 unless a quick run contradicts the stored results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paper", choices=PAPERS, action="append", help="may be given more than once")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--study", choices=STUDIES, help="run one of the studies instead")
    options = parser.parse_args(arguments)
    if options.study:
        environment = {**os.environ, **ONE_THREAD}
        subprocess.run([sys.executable, "-m", f"reproduce.{options.study}"], check=True, cwd=ROOT, env=environment)
        written(RESULTS.parent / "RESULTS.md", final_table.results_page(RESULTS.parent))
        return 0
    out = WORK / "quick-run" / "results" if options.quick else RESULTS
    reproduce(options.paper or list(PAPERS), out, quick=options.quick)
    print("\n".join(final_table.lines(out)))
    if not options.quick:
        return 0
    from reproduce import drift

    return drift.judged(drift.shared(out, RESULTS))


if __name__ == "__main__":
    sys.exit(main())
