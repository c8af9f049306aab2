"""Many searches at once: one cell of an evaluation, on this machine."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Union

from . import _catamount
from .environment import Environment, Lean, Metamath
from .policy import _Native, describe, identity, sampling
from .traces import Path, Trace, dump, read_traces

__all__ = ["Run", "search"]

COLUMNS = (
    "theorem", "outcome", "expansions", "tactics", "demonstrated", "valid", "rejected", "refused",
    "distinct", "duplicates", "redrawn", "drawn_out", "depths", "tokens", "reason",
)  # fmt: skip
LEFT_OUT = {"refused": 0, "redrawn": 0, "drawn_out": 0}
"""What a record does not say, where that is a value."""
Theorems = Union[Path, Iterable[Union[Trace, str]]]


@dataclass(frozen=True)
class Run:
    """What came of a pool of theorems."""

    records: list[dict[str, Any]] = field(repr=False)
    """One per theorem in the pool's order, as in the log."""
    seconds: dict[str, float]
    """Where the time went: policy, waiting (for the prover), total."""
    log: str | None = None
    trees: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)

    @property
    def outcomes(self) -> dict[str, int]:
        """How many theorems ended in which way."""
        return dict(Counter(record["outcome"] for record in self.records))

    @property
    def proved(self) -> int:
        """Theorems proved."""
        return self.outcomes.get("proved", 0)

    def columns(self) -> dict[str, list[Any]]:
        """The records as columns, for pandas and polars."""
        return {
            name: [record.get(name, LEFT_OUT.get(name)) for record in self.records]
            for name in COLUMNS
        }


@dataclass
class Cell:
    """A cell before it runs: everything that a worker must know, and the manifest that says it."""

    environment: Environment
    policy: Any
    entries: list[dict[str, Any]]
    terms: dict[str, Any]
    manifest: dict[str, Any]

    @property
    def order(self) -> list[str]:
        """Names of the theorems in the pool's order."""
        return [entry["theorem"]["name"] for entry in self.entries]


def search(
    theorems: Theorems,
    *,
    policy: Any,
    strategy: str = "bfs",
    budget: int = 256,
    environment: Union[str, Environment] = "metamath",
    database: Path | None = None,
    seed: int = 42,
    out: Path | None = None,
    steps: str | None = None,
    limit: int | None = None,
    max_depth: int | None = None,
    settings: dict[str, Any] | None = None,
    objective: str | None = None,
    trees: bool = False,
    time_limit: float | None = None,
    concurrency: int = _catamount.CONCURRENCY,
    threads: int | None = None,
    batch: int = _catamount.BATCH,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> Run:
    """Searches theorems with any strategy and any policy.

    theorems: a file of traces, or an iterable of `Trace`s or of names.
    policy: a callable (see `catamount.Policy`), or `OpenAIPolicy`, `NgramPolicy`, `ReplayPolicy`,
        `catamount.hf.HFPolicy`.
    strategy, budget, settings, max_depth: one of `catamount.STRATEGIES`, expansions per theorem,
        and parameters such as {"bfs_beam": 2}.
    environment: "metamath" (with `database`), "lean", or a `Metamath` or `Lean` object.
    out: the log, such as "cells/bfs.jsonl", written with its manifest and times as the command line
        writes them. A log that is there is resumed: what it has is not searched again. Without it,
        nothing is written.
    steps, limit: the pool: only theorems with so many demonstrated steps ("2-5"), and at most so
        many.
    objective: what the policy was trained with, for tables.
    trees: keep whole search trees.
    concurrency, threads, batch: searches in flight, threads that talk to the prover, and the most
        questions in one call of a callable. None of them changes a result.
    progress: called with every finished record.

    The same arguments give the same log, byte for byte, as long as the policy answers by state and
    seed.
    """
    cell = plan(
        theorems,
        policy=policy,
        strategy=strategy,
        budget=budget,
        environment=environment,
        database=database,
        seed=seed,
        steps=steps,
        limit=limit,
        max_depth=max_depth,
        settings=settings,
        objective=objective,
        trees=trees,
        time_limit=time_limit,
        concurrency=concurrency,
        threads=threads,
        batch=batch,
    )
    native = policy.native() if isinstance(policy, _Native) else policy
    files = None
    left = cell.entries
    if out is not None:
        files = _catamount.Cell(os.fspath(out), json.dumps(cell.manifest), trees)
        done = set(files.completed())
        left = [entry for entry in cell.entries if entry["theorem"]["name"] not in done]

    results: dict[str, dict[str, Any]] = {}
    kept: dict[str, dict[str, Any]] = {}

    def finished(text: str) -> None:
        result = json.loads(text)
        results[result["record"]["theorem"]] = result["record"]
        if result["tree"] is not None:
            kept[result["record"]["theorem"]] = result["tree"]
        if progress is not None:
            progress(result["record"])

    listen = finished if files is None or progress is not None else None
    theorems_left, terms = json.dumps(left), json.dumps(cell.terms)
    try:
        spent = _catamount.run(
            cell.environment.native(), native, theorems_left, terms, files, listen
        )
        if files is not None:
            results = json.loads(files.records())
            files.settle(cell.order)
    finally:
        # A traceback that somebody keeps must not keep the files.
        if files is not None:
            files.close()
    records = [results[name] for name in cell.order if name in results]
    seconds = dict(zip(("policy", "waiting", "total"), spent))
    return Run(records, seconds, None if out is None else os.fspath(out), {} if files else kept)


def plan(
    theorems: Theorems,
    *,
    policy: Any,
    strategy: str,
    budget: int,
    environment: Union[str, Environment],
    database: Path | None,
    seed: int,
    steps: str | None,
    limit: int | None,
    max_depth: int | None,
    settings: dict[str, Any] | None,
    objective: str | None,
    trees: bool,
    time_limit: float | None,
    concurrency: int,
    threads: int | None,
    batch: int,
) -> Cell:
    """Checks everything that can be checked before a search begins."""
    if not (callable(policy) or isinstance(policy, _Native)):
        raise TypeError(
            f"policy must be callable or one of Catamount's, not {type(policy).__name__}"
        )
    prover = _environment(environment, database)
    changes = sampling(policy)
    for key, value in (settings or {}).items():
        if changes.setdefault(key, value) != value:
            raise ValueError(
                f"{key} is {value} in settings, but the policy's own is {changes[key]}"
            )
    if max_depth is not None:
        changes["max_depth"] = max_depth
    deployment = json.loads(_catamount.deployment(strategy, budget, json.dumps(changes)))
    entries, pool, content = _pool(theorems, steps, limit)
    terms = {
        "deployment": deployment,
        "seed": seed,
        "time_limit": time_limit,
        "concurrency": concurrency,
        "threads": threads,
        "trees": trees,
        "batch": batch,
        "policy": describe(policy),
    }
    kind = policy.kind if isinstance(policy, _Native) else "python"
    manifest = {
        "identity": {
            "format": _catamount.FORMAT,
            "policy": identity(policy),
            "environment": json.loads(prover.native().identity()),
            "pool": content,
            "deployment": deployment,
            "seed": seed,
            "limits": {"search": time_limit, "theorem": None},
        },
        "objective": objective or kind,
        "policy": terms["policy"],
        "environment": prover.describe(),
        "pool": pool,
        "version": _catamount.__version__,
        "commit": None,
        "command": shlex.join(["python", *sys.argv]),
    }
    return Cell(prover, policy, entries, terms, manifest)


def _environment(environment: Union[str, Environment], database: Path | None) -> Environment:
    if isinstance(environment, Environment):
        if database is not None:
            raise ValueError(
                "database goes with environment='metamath'; an environment object has its own"
            )
        return environment
    if environment == "metamath":
        return Metamath("set.mm" if database is None else database)
    if environment == "lean":
        return Lean()
    raise ValueError(
        f"unknown environment {environment!r}; the known ones are 'metamath' and 'lean'"
    )


def _pool(
    theorems: Theorems, steps: str | None, limit: int | None
) -> tuple[list[dict[str, Any]], dict[str, Any], str]:
    if isinstance(theorems, (str, os.PathLike)):
        traces, file = read_traces(theorems), os.fspath(theorems)
    else:
        traces, file = (
            [Trace(item) if isinstance(item, str) else item for item in theorems],
            "memory",
        )
    entries, pool, content = _catamount.pool(dump(traces), file, steps, limit)
    return json.loads(entries), json.loads(pool), content
