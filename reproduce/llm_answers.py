"""Language models on multiple-choice questions: how over-confident are they, and which is better calibrated?

``python -m reproduce.llm_answers`` writes reproduce/results/llm_answers.md, the numbers of docs/for/llm-evaluation.md.
It needs the file llm_mcq_msp.npz of real answers (`python -m reproduce.data`) and does nothing without it. The
confidence is the largest probability after a softmax of the choices; answers that could not be parsed are left out.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import calibrant as cal
from calibrant._atomic_write import replacing
from reproduce.data import folder, missing
from reproduce.resumable import Row, made_with, markdown

RESULTS = Path(__file__).with_name("results")
#: The models that are compared on the page, the best one last; questions of a small benchmark.
MODELS, SMALL = ("Mistral", "Llama-70b", "gpt-3.5-turbo", "Llama3-70b"), 200
#: The value of an answer that could not be parsed.
UNKNOWN = 255


def answers(kept: Any, dataset: str, model: str) -> tuple[NDArray[Any], cal.Confidence]:
    """The questions that the model answered at the first prompt, and its answers."""
    names = [list(kept[f"{what}_names"]).index(name) for what, name in (("dataset", dataset), ("model", model))]
    rows = (kept["dataset"] == names[0]) & (kept["model"] == names[1]) & (kept["prompt"] == 0)
    rows &= kept["correct"] != UNKNOWN
    return kept["question"][rows], cal.Confidence(kept["correct"][rows], kept["conf"][rows].astype(np.float64))


def pair(kept: Any, dataset: str, one: str, other: str) -> list[cal.Confidence]:
    """Both models on the questions that both answered."""
    (first, a), (second, b) = (answers(kept, dataset, name) for name in (one, other))
    _, left, right = np.intersect1d(first, second, return_indices=True)
    return [a.take(left), b.take(right)]


def single(kept: Any, dataset: str, model: str) -> Row:
    """What is known of one model."""
    _, data = answers(kept, dataset, model)
    found = cal.interval(cal.calibration_error, data)
    curve = cal.risk_coverage(data)
    kept_half = int(np.searchsorted(curve.coverage, 0.5))
    small = data.take(np.arange(0, len(data), max(len(data) // SMALL, 1))[:SMALL])
    few = cal.interval(cal.calibration_error, small)
    return {
        "set": dataset,
        "model": model,
        "answers": f"{len(data):,}",
        "accuracy, %": f"{100 * data.correct.mean():.1f}",
        "mean confidence, %": f"{100 * data.confidence.mean():.1f}",
        "error, points": f"{100 * found:.1f} ({_ends(found.interval)})",
        f"of {SMALL} answers": f"{100 * few:.1f} ({_ends(few.interval)})",
        "errors if all are answered, %": f"{100 * curve.risk[-1]:.1f}",
        "if the surer half is, %": f"{100 * curve.risk[kept_half]:.1f}",
    }


def compared(kept: Any, dataset: str, one: str, other: str, norm: int) -> Row:
    """The difference of two models on the same questions."""
    found = cal.compare(partial(cal.averaged_error, norm=norm), *pair(kept, dataset, one, other))
    return {
        "set": dataset,
        "models": f"{one} − {other}",
        "norm": norm,
        "difference, points": f"{100 * found.difference:.1f} ({_ends(found.interval)})",
        "p": f"{found.p_value:.2g}",
    }


def _ends(one: Any) -> str:
    return f"{100 * one.low:.1f} to {100 * one.high:.1f}"


def page(kept: Any) -> str:
    """Both tables."""
    sets = kept["dataset_names"].tolist()
    alone = [single(kept, one, model) for one in sets for model in MODELS]
    pairs = [compared(kept, one, model, MODELS[-1], norm) for one in sets for model in MODELS[:-1] for norm in (1, 2)]
    every = [answers(kept, one, model)[1] for one in sets for model in kept["model_names"].tolist()]
    over = sum(float(data.confidence.mean()) > float(data.correct.mean()) for data in every if len(data))
    return (
        "# Language models on multiple-choice questions\n\n"
        f"{made_with()} `python -m reproduce.llm_answers`.\n\n"
        f"Mean confidence is above accuracy in {over} of {len(every)} pairs of "
        "model and set. Largest softmax probability of the choices, first prompt; answers that could not be parsed are "
        "left out; intervals are 95 %.\n\n" + markdown(alone, tuple(alone[0])) + "\n" + markdown(pairs, tuple(pairs[0]))
    )


def main() -> str:
    """Write the page, if the answers are there."""
    place = folder("classification")
    path = None if place is None else place / "llm_mcq_msp.npz"
    if path is None or not path.exists():
        sys.stderr.write(missing("classification") + "\n")
        return ""
    with np.load(path) as kept:
        made = page({name: kept[name] for name in kept.files})
    with replacing(RESULTS / "llm_answers.md") as target:
        target.write_text(made, encoding="utf8")
    return made


if __name__ == "__main__":
    print(main())
