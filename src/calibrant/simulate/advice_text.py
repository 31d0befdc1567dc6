"""Advice in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibrant.simulate.advice import Advice, EstimatorAdvice


def text(advice: Advice) -> str:
    """The table of estimators and what follows from it; errors in percent."""
    wide = max(len(row.name) for row in advice.rows) + 2
    lines = [
        f"{advice.n:,} rows look like {_short(repr(advice.fit.world.scores))} with a {advice.fit.best.name} curve,",
        f"whose true L{advice.norm:g} error is {100 * advice.true_error:.2f} %.",
    ]
    if advice.simulated_n < advice.n:
        lines.append(f"Simulated with {advice.simulated_n:,} rows; with all of them biases and errors are smaller.")
    header = ("estimate", "bias", "sd", "rmse", "if calibrated", "detects")
    lines += ["", f"{'percent':<{wide}}" + "".join(f"{name:>{max(len(name) + 2, 10)}}" for name in header)]
    for row in advice.rows:
        seen = "-" if row.detectable is None else f"{100 * row.detectable:.2f}"
        numbers = (row.estimate, row.fitted.bias, row.fitted.sd, row.fitted.rmse, row.calibrated.bias)
        signs = ("", "+", "", "", "+")
        cells = [f"{100 * value:{sign}.2f}" for value, sign in zip(numbers, signs, strict=True)] + [seen]
        lines.append(
            f"{row.name:<{wide}}"
            + "".join(f"{cell:>{max(len(name) + 2, 10)}}" for cell, name in zip(cells, header, strict=True))
        )
    return "\n".join([*lines, "", *_conclusions(advice)])


def _conclusions(advice: Advice) -> list[str]:
    bias, rmse, sharp = advice.least_bias, advice.least_rmse, advice.most_sensitive
    unbiased = _others(advice, bias, [abs(row.fitted.bias) for row in advice.rows], 2 * bias.fitted.bias_se)
    exact = _others(advice, rmse, [row.fitted.rmse for row in advice.rows], rmse.fitted.rmse_se)
    lines = [
        f"Least bias: {bias.name} ({100 * bias.fitted.bias:+.2f} ± {100 * bias.fitted.bias_se:.2f}{unbiased}).",
        f"Least error: {rmse.name} (rmse {100 * rmse.fitted.rmse:.2f} ± {100 * rmse.fitted.rmse_se:.2f}{exact}).",
    ]
    if sharp.detectable is None:
        return [*lines, "No estimator tells a miscalibration of any size tried from none at this sample size."]
    odds = f"{advice.power:.0%} of the time, with {advice.level:.0%} false alarms"
    return [*lines, f"Detectable: a true error above {100 * sharp.detectable:.2f} %, by {sharp.name} ({odds})."]


def _others(advice: Advice, best: EstimatorAdvice, sizes: list[float], noise: float) -> str:
    """Those that the simulation cannot tell from the best."""
    names = [
        row.name for row, size in zip(advice.rows, sizes, strict=True) if row is not best and size < min(sizes) + noise
    ]
    return f"; within its noise: {', '.join(names)}" if names else ""


def _short(words: str) -> str:
    """Numbers to three digits."""
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.3g}", words)
