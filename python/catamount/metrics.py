"""The training metrics of a study, while it runs or afterwards, for a tracker of experiments.

import mlflow
from catamount.metrics import report
report("study", mlflow.log_metrics)      # log(metrics, step=...)
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path as _Path
from typing import Any, Callable, Iterator, Union

__all__ = ["Metrics", "follow", "report"]

Path = Union[str, "os.PathLike[str]"]

_SUFFIX = ".metrics.jsonl"


@dataclass(frozen=True)
class Metrics:
    """One line of a run's metrics."""

    run: str
    """The warm-up or the branch, as its file is called; `seed-43/bfs` in a study of several seeds.
    """
    step: int
    """Optimizer steps so far."""
    values: dict[str, float]
    """Every single number of the line by its name; what was measured on held-out traces as
    `valid/NAME`.
    """


def follow(study: Path, *, live: bool = False, every: float = 2.0) -> Iterator[Metrics]:
    """The lines of all of a study's runs, each once, in the order in which they were written.

    With `live`, also those that are still to come: looks again every so many seconds, until the
    study's report is made. A run that was interrupted and goes on from a checkpoint repeats some
    steps; they are the same, and are given once. Raises ValueError for a folder that is none, or is
    no study's.
    """
    folder = _Path(study)
    if not live and not any(folder.glob(f"**/training/*{_SUFFIX}")):
        raise ValueError(
            f"{folder} has no training metrics (training/NAME{_SUFFIX}); is it the folder of a "
            "study that has begun?"
        )
    if every <= 0:
        raise ValueError(f"every is {every}; it is the seconds between two looks, above 0")
    seen: dict[_Path, int] = {}
    while True:
        # Asked before the files are read: what was written by then is read in this very round.
        ended = _ended(folder)
        for path in sorted(folder.glob(f"**/training/*{_SUFFIX}")):
            if "stale" in path.relative_to(folder).parts:
                continue
            for line in _lines(path):
                if line["step"] > seen.get(path, -1):
                    seen[path] = line["step"]
                    yield Metrics(_run(folder, path), line["step"], _numbers(line))
        if ended or not live:
            return
        time.sleep(every)


def report(study: Path, log: Callable[..., Any], *, live: bool = False) -> int:
    """Hands every line to `log(metrics, step=...)`, such as `mlflow.log_metrics`; returns how many
    lines.

    A metric is called `RUN/NAME`, with `_` for the `+` of a run's name, which MLflow refuses. W&B
    wants steps that grow over all runs together: give it `follow`'s lines, with the step as a
    metric (see the guide).
    """
    count = 0
    for line in follow(study, live=live):
        run = line.run.replace("+", "_")
        log({f"{run}/{name}": value for name, value in line.values.items()}, step=line.step)
        count += 1
    return count


def _ended(folder: _Path) -> bool:
    try:
        return json.loads((folder / "steps" / "report.json").read_text(encoding="utf-8"))["done"]
    except (OSError, ValueError, KeyError):
        return False


def _lines(path: _Path) -> Iterator[dict[str, Any]]:
    """Whole lines only: the last may still be in the writing."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def _run(folder: _Path, path: _Path) -> str:
    return (path.parent.parent.relative_to(folder) / path.name[: -len(_SUFFIX)]).as_posix()


def _numbers(line: dict[str, Any]) -> dict[str, float]:
    numbers = {}
    for name, value in line.items():
        if isinstance(value, dict):
            numbers.update({f"{name}/{inner}": number for inner, number in _numbers(value).items()})
        elif (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and name not in ("step", "steps")
        ):
            numbers[name] = float(value)
    return numbers
