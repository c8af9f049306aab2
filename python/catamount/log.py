"""Logs of evaluations as tables, and their comparison."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path as _Path
from typing import Any, Sequence, Union

from . import _catamount

__all__ = ["Comparison", "compare", "read_log", "read_manifest", "read_times", "read_trees"]

Path = Union[str, "os.PathLike[str]"]


def read_log(path: Path) -> dict[str, Any]:
    """A cell's log as a dictionary of columns of equal length, one row per theorem.

    `pandas.DataFrame(read_log(path))` and `polars.DataFrame(read_log(path))` both work. Columns:
    theorem, outcome (proved, exhausted, budget, time, error), proved, expansions, valid, rejected,
    refused (of the rejected: claims that the final check did not accept), distinct, duplicates,
    redrawn and drawn_out (draws repeated and nodes with nothing left to draw, where samples are
    distinct), tokens, demonstrated (steps of the demonstrated proof, None where unknown), tactics
    (the proof), depths (expansions at each depth), reason (of an error). Of a theorem that was
    tried again after an error, the last result counts.
    """
    return _catamount.read_log(os.fspath(path))


def read_manifest(path: Path) -> dict[str, Any]:
    """What the cell of a log is a function of (`identity`), and what it is called: objective,
    policy, environment, pool.
    """
    return json.loads(_Path(path).with_suffix(".manifest.json").read_text(encoding="utf-8"))


def read_times(path: Path) -> dict[str, list[Any]]:
    """Wall-clock seconds per theorem, as columns: theorem, seconds, prover_seconds."""
    return _columns(
        _lines(_Path(path).with_suffix(".times.jsonl")), ("theorem", "seconds", "prover_seconds")
    )


def read_trees(path: Path) -> dict[str, dict[str, Any]]:
    """The search trees that were kept, by theorem."""
    return {tree["theorem"]: tree for tree in _lines(_Path(path).with_suffix(".trees.jsonl"))}


@dataclass(frozen=True)
class Comparison:
    """Log B against log A on the theorems that both completed; `str()` prints it."""

    n: int
    """Theorems in the paired set."""
    b: int
    """Solved by B only."""
    c: int
    """Solved by A only."""
    gain_pp: float
    """B's gain, in percentage points."""
    ci_low: float
    ci_high: float
    """The gain's 95 % interval."""
    p: float
    """Exact and two-sided."""
    seeds: int
    first: dict[str, Any]
    """What A is, and its rate with Wilson's interval."""
    second: dict[str, Any]
    """The same of B."""
    bootstrap: dict[str, Any] | None
    only_a: list[str]
    only_b: list[str]
    unpaired: list[str]
    """Theorems missing or errored in a log."""
    notes: list[str]
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text


def compare(a: Union[Path, Sequence[Path]], b: Union[Path, Sequence[Path]]) -> Comparison:
    """Compares log B with log A, or several seeds of B with those of A: the gain is B's."""
    values, text = _catamount.compare(_paths(a), _paths(b))
    fields = json.loads(values)
    known = {name: fields.get(name) for name in Comparison.__dataclass_fields__ if name != "text"}
    return Comparison(text=text, **known)


def _paths(paths: Union[Path, Sequence[Path]]) -> list[str]:
    return (
        [os.fspath(paths)]
        if isinstance(paths, (str, os.PathLike))
        else [os.fspath(path) for path in paths]
    )


def _lines(path: _Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    # A half-written last line is what an interrupted run leaves.
    return [
        json.loads(line)
        for line in text.splitlines(keepends=True)
        if line.endswith("\n") and line.strip()
    ]


def _columns(rows: list[dict[str, Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [row.get(name) for row in rows] for name in names}
