"""Figures 1 to 3 of the variational paper, from stored results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reproduce import published
from reproduce.variational_worlds import BINARY, TABLE_2, multiclass_truth

PANELS = {
    "figure1": [(2, world) for world in ("calibrated", "over, .4x + .3", "shifted by .02")],
    "figure3": [(k, world) for k in (3, 10) for world in ("calibrated", "under", "over")],
}


def pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def draw_all(store: Any, out: Path) -> list[str]:
    """Draw what the store has the numbers of, and Figure 2, which needs none; the names of the files."""
    names = [draw_curves(out)]
    for part, panels in PANELS.items():
        if any(row["part"] == part for row in store.rows):
            names.append(draw_estimates(store, part, panels, out))
    return names


def draw_curves(out: Path) -> str:
    """Figure 2: true chance against predicted probability in the three worlds of Table 2."""
    plt = pyplot()
    grid = np.linspace(0.0005, 0.9995, 2000)
    figure, axes = plt.subplots(1, len(TABLE_2), figsize=(3 * len(TABLE_2), 3), layout="constrained", sharey=True)
    for ax, world in zip(axes, TABLE_2, strict=True):
        ax.plot([0, 1], [0, 1], color="0.6", linestyle="--", label="calibrated")
        ax.plot(grid, BINARY[world][0](grid), color="#0072B2", label="true chance")
        ax.set(title=world, xlabel="predicted probability", aspect="equal")
    axes[0].set_ylabel("chance of the event")
    axes[0].legend(fontsize=7)
    return _saved(figure, out / "variational_figure2.png")


def draw_estimates(store: Any, part: str, panels: list[tuple[int, str]], out: Path) -> str:
    """Figures 1 and 3: mean estimates with their standard errors against n, the authors' curves, and the truth."""
    plt = pyplot()
    columns = 3
    shape = (-(-len(panels) // columns), columns)
    figure, axes = plt.subplots(*shape, figsize=(3.4 * shape[1], 2.8 * shape[0]), layout="constrained", squeeze=False)
    for ax, (k, world) in zip(axes.flat, panels, strict=True):
        own = [row for row in store.rows if row["part"] == part and row["world"] == world]
        own = [row for row in own if str(row["classes"]) == str(k)]
        sizes = sorted({int(row["n"]) for row in own})
        colours = {}
        for number, method in enumerate(dict.fromkeys(row["method"] for row in own)):
            colours["binned" if method.endswith("15") else method] = f"C{number}"
            found = [store.values(part=part, world=world, classes=k, n=n, method=method) for n in sizes]
            error = [values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0 for values in found]
            means = [values.mean() if len(values) else np.nan for values in found]
            ax.errorbar(sizes, means, yerr=error, label=method, lw=1, color=f"C{number}")
        for name in published.CURVES:
            n, mean, _ = published.curve(k, world, name)
            if len(n):  # in the colour of the same method
                ax.plot(n, mean, ls="--", lw=0.8, color=colours.get(name, "0.4"), label=f"authors: {name}")
        truth = BINARY[world][1][0] if k == 2 else multiclass_truth(world, k, 2)
        ax.axhline(truth, color="black", ls=":", label="truth")
        ax.set(xscale="log", xlabel="n", title=f"{world}, {k} classes")
        _plain_sizes(ax, sizes)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=7)
    return _saved(figure, out / f"variational_{part}.png")


def _plain_sizes(ax: Any, sizes: list[int]) -> None:
    """Label a few of the sizes; the automatic labels of a short logarithmic axis overprint each other."""
    from matplotlib.ticker import NullFormatter

    shown = sizes[:: max(1, -(-len(sizes) // 4))]
    ax.set_xticks(shown, [f"{n:,}" for n in shown])
    ax.xaxis.set_minor_formatter(NullFormatter())


def _saved(figure: Any, path: Path) -> str:
    figure.savefig(path, dpi=90, metadata={"Software": None})
    pyplot().close(figure)
    return path.name
