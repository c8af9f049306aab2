"""Demonstrated proofs, and the files they live in."""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from dataclasses import dataclass, field
from typing import Any, Iterable, Union

from . import _catamount

__all__ = ["Step", "Trace", "metamath_traces", "read_traces", "write_traces"]

Path = Union[str, "os.PathLike[str]"]


@dataclass
class Step:
    """One demonstrated step: a tactic at a state."""

    state: str
    tactic: str
    next: str | None = None
    """The state after the tactic, where known; empty once nothing is left to prove."""


@dataclass
class Trace:
    """A theorem and the linear steps that prove it; without steps, a theorem to prove."""

    name: str
    steps: list[Step] = field(default_factory=list)
    statement: str = ""
    header: str | None = None
    """Lean commands that precede the statement, where there is no file."""
    file: str | None = None
    line: int | None = None
    """Where it begins in the file; its first column, and the line and column after its end, where
    they are known."""
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    url: str | None = None
    """The repository that the theorem was traced in, and its commit."""
    commit: str | None = None

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Trace:
        """From the fields of the JSON lines format."""
        steps = [
            Step(step["state"], step["tactic"], step.get("next"))
            for step in values.get("steps", [])
        ]
        known = [
            each.name for each in dataclasses.fields(cls) if each.name not in ("name", "steps")
        ]
        rest = {key: values[key] for key in known if key in values}
        return cls(values["name"], steps, **rest)

    def to_dict(self) -> dict[str, Any]:
        """The fields of the JSON lines format, without those that are unknown."""
        values = {
            key: value for key, value in dataclasses.asdict(self).items() if value is not None
        }
        values["steps"] = [
            {key: value for key, value in step.items() if value is not None}
            for step in values["steps"]
        ]
        return values


def read_traces(path: Path) -> list[Trace]:
    """Reads a file of traces: our JSON lines, LeanDojo's JSON, or Parquet.

    In files of other projects, theorems without tactics and repeated names are left out with a
    warning.
    """
    text, skipped = _catamount.read_traces(os.fspath(path))
    if skipped:
        name, reason = skipped[0]
        warnings.warn(
            f"{path}: {len(skipped)} theorems left out; the first is {name}: {reason}", stacklevel=2
        )
    return [Trace.from_dict(values) for values in json.loads(text)]


def write_traces(path: Path, traces: Iterable[Union[Trace, dict[str, Any]]]) -> None:
    """Writes traces in the format that the file's ending names: .jsonl, .json (LeanDojo's) or
    .parquet.
    """
    _catamount.write_traces(os.fspath(path), dump(traces))


def metamath_traces(database: Path) -> list[Trace]:
    """The traces of every proof of a Metamath database, each checked."""
    return [
        Trace.from_dict(values)
        for values in json.loads(_catamount.metamath_traces(os.fspath(database)))
    ]


def dump(traces: Iterable[Union[Trace, dict[str, Any]]]) -> str:
    """Traces as one JSON list."""
    return json.dumps([trace.to_dict() if isinstance(trace, Trace) else trace for trace in traces])
