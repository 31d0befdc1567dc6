"""What benchmarks share: CPU times, results as pages, and other packages, each asked in an environment of its own."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results")


def peers_python() -> str | None:
    """The interpreter of the peers' environment (`make bench` creates it), or None where there is none."""
    place = Path(os.environ.get("CALIBRANT_PEERS", ROOT / ".venv-peers")) / "bin/python"
    return str(place) if place.exists() else None


def run_peer(code: str, *arguments: str) -> dict[str, object] | None:
    """Run `code` with the peers' interpreter; it prints one JSON object as its last line."""
    python = peers_python()
    if python is None:
        return None
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [python, "-c", code, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        print(done.stderr[-2000:])
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def cpu_seconds(action: Callable[[], object], repeats: int = 5) -> float:
    """The least processor time of several runs: the machine's noise only ever adds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def write_results(topic: str, title: str, command: str, lines: list[str], **versions: str) -> Path:
    """Write benchmarks/results/<topic>.md: title, date, versions, command, and the given lines."""
    RESULTS.mkdir(exist_ok=True)
    known = {"Python": platform.python_version(), "NumPy": np.__version__, **versions}
    head = [
        f"# {title}",
        "",
        f"{date.today().isoformat()}, {', '.join(f'{name} {version}' for name, version in known.items())}. `{command}`",
        "",
    ]
    path = RESULTS / f"{topic}.md"
    path.write_text("\n".join([*head, *lines]) + "\n", encoding="utf8")
    print(path.read_text(encoding="utf8"))
    return path
