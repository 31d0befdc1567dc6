"""Tasks run in one process or several, with a cache on disk and a progress bar."""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from calibrant._atomic_write import replacing

Task = TypeVar("Task")
Rows = list[dict[str, Any]]


def run_all(
    run: Callable[[Task], Rows],
    tasks: Sequence[Task],
    keys: Sequence[dict[str, Any]],
    *,
    processes: int = 1,
    cache: str | Path | None = None,
    progress: bool | None = None,
) -> list[Rows]:
    """`run` of every task, in their order. A task that the cache holds under the same key is read, not run."""
    folder = None if cache is None else Path(cache)
    paths = [None if folder is None else folder / f"{_digest(key)}.json" for key in keys]
    results: dict[int, Rows] = {}
    for at, (path, key) in enumerate(zip(paths, keys, strict=True)):
        known = None if path is None else _read(path, key)
        if known is not None:
            results[at] = known
    waiting = [at for at in range(len(tasks)) if at not in results]
    with _progress(len(tasks), len(results), wanted=progress) as advance:
        for at, rows in _completed(run, tasks, waiting, processes):
            results[at] = rows
            if (path := paths[at]) is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                with replacing(path) as place:
                    place.write_text(json.dumps({"key": keys[at], "rows": rows}), encoding="utf8")
            advance()
    return [results[at] for at in range(len(tasks))]


def _completed(
    run: Callable[[Task], Rows], tasks: Sequence[Task], waiting: list[int], processes: int
) -> Iterator[tuple[int, Rows]]:
    if processes == 1 or len(waiting) < 2:
        for at in waiting:
            yield at, run(tasks[at])
        return
    _require_picklable(tasks[waiting[0]])
    with ProcessPoolExecutor(min(processes, len(waiting)), mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(run, tasks[at]): at for at in waiting}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _require_picklable(task: object) -> None:
    try:
        pickle.dumps(task)
    except Exception as error:
        message = (
            f"This table cannot be sent to another process ({error}). Estimators and curves must be functions of a "
            "module or functools.partial of them, not lambdas; or pass processes=1."
        )
        raise ValueError(message) from error


def _digest(key: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]


def _read(path: Path, key: dict[str, Any]) -> Rows | None:
    try:
        stored = json.loads(path.read_text(encoding="utf8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    rows: Rows = stored["rows"]
    return rows if stored["key"] == key else None


@contextmanager
def _progress(total: int, done: int, *, wanted: bool | None) -> Iterator[Callable[[], None]]:
    """A function to call after each task. By default there is a bar on a terminal and nothing elsewhere."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield _plain_line(total, done)
        sys.stderr.write("\n")
        return
    with Progress(console=Console(stderr=True)) as bar:
        job = bar.add_task("simulations", total=total, completed=done)
        yield lambda: bar.advance(job)


def _plain_line(total: int, done: int) -> Callable[[], None]:
    count = done

    def advance() -> None:
        nonlocal count
        count += 1
        sys.stderr.write(f"\r{count}/{total} simulations")
        sys.stderr.flush()

    return advance
