"""`calibrant audit`: where predictions are wrong given features, as text, JSON or a page; and the repair."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

from calibrant.cli.columns import Columns
from calibrant.cli.commands.application import Command, app
from calibrant.cli.console import over_lines, refuse, require_writable, say, stage, title_of, writing
from calibrant.cli.options import TASK, Files, Force, Json, Seed, Several, option, takes, written

_FEATURES = 'Features: columns, also "age,device", or patterns ("*": all other columns).'
_MOST = "Largest number of segments to search for in each half of the rows."


@app.command(cls=Command)
@takes(*(name for name in TASK if name not in ("labelled", "prior", "single_sample", "members")))
def audit(
    files: Files,
    columns: Columns,
    *,
    features: Annotated[Several, option("COLUMN", _FEATURES)] = None,
    alpha: Annotated[float, option("SHARE", "Probability that any segment shown is false.")] = 0.05,
    most: Annotated[int, option("NUMBER", "Largest number of segments to search for in each half of the rows.")] = 8,
    repair: Annotated[Path | None, option("FILE", "Write the map with features, as JSON.")] = None,
    output: Annotated[Path | None, written("Page to write (.html).")] = None,
    force: Force = False,
    as_json: Json = False,
    seed: Seed = 0,
) -> None:
    """Find segments in which the model is wrong, and by how much; fit a repair, a map that `apply` reads."""
    from calibrant.cli.files import load
    from calibrant.data.predictions import Binary
    from calibrant.inference.feature_audit import audit as audited
    from calibrant.reporting.audit_page import save_page, to_json

    for path in (output, repair):
        require_writable(path, force=force, inputs=files)
    with stage("Reading"):
        loaded = load(files, columns, features=features or ["*"], sample=seed)
    say(*loaded.notes)
    rows: Any = loaded.data  # with a seed, never a table
    binary = isinstance(rows, Binary)
    one = """--repair needs binary probabilities; of several classes, audit one: --truth "y = 'cat'" --prob p_cat."""
    refuse(repair is not None and not binary, one)
    with stage("Auditing"):
        found = audited(rows, loaded.features, alpha=alpha, seed=seed, most=most)
        text = to_json(found) if as_json else str(found)
    if repair is not None:
        with stage("Fitting"), writing(repair, force=force):
            found.repair().save(repair)
        say(f"Wrote {repair}")
    if output is not None:
        with stage("Writing"), writing(output, force=force):
            added = ["--repair", "map.json"] if binary and repair is None else []
            call = over_lines(shlex.join(["calibrant", *sys.argv[1:], *added]))
            save_page(found, output, source=title_of(files), call=call, note=" ".join(loaded.notes))
        say(f"Wrote {output}")
    print(text)
