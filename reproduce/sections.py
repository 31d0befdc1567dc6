"""Parts of a report that are kept when they are finished, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from calibrant._atomic_write import replacing


def kept(cache: Path | None, title: str, make: Callable[[], Any]) -> Any:
    """What `make` returns (plain types only), from the cache if an earlier run finished it."""
    path = None if cache is None else cache / "sections" / (_file_name(title) + ".json")
    if path is not None and path.exists():
        return json.loads(path.read_text(encoding="utf8"))
    start = time.process_time()
    made = make()
    sys.stderr.write(f"{title}: {time.process_time() - start:.0f} s of processor time\n")
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as place:
            place.write_text(json.dumps(made), encoding="utf8")
    return made


def _file_name(title: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in title)
