"""A whole study, or one cell of an evaluation, spread over a Ray cluster.

    import catamount.ray
    catamount.ray.run("experiment.toml", out="study")
    catamount.ray.search("test.jsonl", policy=policy, budget=256, out="cells/bfs.jsonl")

`run` has the program schedule the steps of a study (`catamount run --ray`); each becomes a Ray
    task. `search` is for policies
in Python: its workers are actors, each with a prover and a policy of its own; they are handed a few
    theorems at a time and
return records.
Only the caller writes, and the log is the truth: a theorem is done once its record is in the log,
    and a record that is there
is never written again. When a worker or a node is lost its theorems go to another worker. As a
    search depends on nothing but
its theorem and the seed, the finished log is the one that `catamount.search` writes, byte for byte.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections import deque
from typing import Any, Callable, Sequence, Union

import ray

from . import _catamount
from .command import told
from .environment import Environment
from .evaluation import Run, Theorems, plan
from .node import installed
from .policy import _Native
from .traces import Path

__all__ = ["run", "search"]

FAILED_STARTS = 3
"""Starts that may fail in a row, per worker."""
PATIENCE = 60.0
"""Seconds without a sign of life after which the caller is told."""


def run(
    experiment: Path,
    *,
    out: Path | None = None,
    address: str | None = None,
    device: str = "auto",
    objects: bool = False,
    patience: float = 600.0,
    provers: int | None = None,
    verify: bool = True,
    program: Sequence[str] | None = None,
) -> None:
    """Does a study over a Ray cluster; as `catamount run`, it goes on where it was, and gives the
    same folder.

    experiment: the experiment's file, or a preset's name.
    out: the study's folder, which all nodes must see at this place; if not given, named after the
        experiment.
    address: the cluster's; if not given, the one that Ray is connected to, else a new one on this
        machine.
    device: "cpu" where models are to compute on processors although nodes have GPUs.
    objects: nodes do not see the folder; its files travel through Ray's object store.
    patience: seconds after which a step that shows no sign of life is ended and given to another
        node.
    provers: so many prover workers of their own, which searches on all nodes ask; if not given,
        each search has its own.
    program: how to start the program, on every node; this package's if not given.
    """
    if address is None:
        address = ray.get_runtime_context().gcs_address if ray.is_initialized() else "local"
    if program is None:
        found = installed()
        program = [found] if found is not None else [sys.executable, "-m", "catamount"]
    command = [*program, "run", os.fspath(experiment), "--ray", address, "--device", device]
    command += [] if out is None else ["--out", os.fspath(out)]
    command += ["--ray-patience", str(patience)]
    command += ["--ray-objects"] if objects else []
    command += [] if provers is None else ["--ray-provers", str(provers)]
    command += [] if verify else ["--no-verify"]
    environment = {**os.environ, "CATAMOUNT_PYTHON": sys.executable}
    if len(program) == 1:
        environment["CATAMOUNT_PROGRAM"] = program[0]
    code, last = told(command, environment)
    if code != 0:
        raise RuntimeError(last.strip().rpartition("error: ")[2] or f"exit status {code}")


class Worker:
    """Searches theorems with a prover and a policy that it opens once."""

    def __init__(
        self, environment: Environment, policy: Any, terms: dict[str, Any], factory: bool
    ) -> None:
        self.environment = environment.native()
        policy = policy() if factory else policy
        self.policy = policy.native() if isinstance(policy, _Native) else policy
        self.terms = json.dumps(terms)

    def ready(self) -> str:
        """Answers once the worker can be given theorems: the node it is on."""
        return ray.get_runtime_context().get_node_id()

    def search(self, entries: list[dict[str, Any]]) -> list[str]:
        """Searches theorems and returns their results as JSON."""
        results: list[str] = []
        _catamount.run(
            self.environment, self.policy, json.dumps(entries), self.terms, None, results.append
        )
        return results


def search(
    theorems: Theorems,
    *,
    policy: Any,
    out: Path,
    strategy: str = "bfs",
    budget: int = 256,
    environment: Union[str, Environment] = "metamath",
    database: Path | None = None,
    seed: int = 42,
    steps: str | None = None,
    limit: int | None = None,
    max_depth: int | None = None,
    settings: dict[str, Any] | None = None,
    objective: str | None = None,
    trees: bool = False,
    time_limit: float | None = None,
    threads: int | None = 1,
    batch: int = _catamount.BATCH,
    workers: int | None = None,
    chunk: int = 8,
    actor_options: dict[str, Any] | None = None,
    policy_factory: Callable[[], Any] | None = None,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> Run:
    """As `catamount.search`, over the cluster that Ray is connected to (`ray.init`, else a local
    one).

    policy: what every worker uses. A server's address (`OpenAIPolicy`) is the same for all; any
        other policy is pickled.
    policy_factory: makes the policy inside the worker instead, for what does not pickle, such as a
        model on the worker's GPU; `policy` then only names it in the manifest (an object with
        `describe()`), and must describe itself the same.
    workers: how many; as many as the cluster has CPUs if not given. Workers wait for machines that
        are not there yet.
    chunk: theorems handed to a worker at a time: what is lost with a worker, and searches in flight
        on it.
    actor_options: for Ray, such as {"num_gpus": 1} or {"num_cpus": 4}.

    The databases and files that environment and policy name must be at the same place on every
    node: give absolute paths.
    """
    if not ray.is_initialized():
        ray.init()
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
        concurrency=chunk,
        threads=threads,
        batch=batch,
    )
    started = time.monotonic()
    files = _catamount.Cell(os.fspath(out), json.dumps(cell.manifest), trees)
    try:
        done = set(files.completed())
        left = [entry for entry in cell.entries if entry["theorem"]["name"] not in done]
        chunks = deque(left[first : first + chunk] for first in range(0, len(left), chunk))
        if workers is None:
            workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
        actor = ray.remote(**{"num_cpus": 1, **(actor_options or {})})(Worker)
        arguments = (
            cell.environment,
            policy_factory or policy,
            cell.terms,
            policy_factory is not None,
        )
        team = _Team(actor, arguments, chunks, min(workers, len(chunks)))
        try:
            for text in team.results():
                if files.append(text) and progress is not None:
                    progress(json.loads(text)["record"])
        finally:
            team.dismiss()
        records = json.loads(files.records())
        files.settle(cell.order)
    finally:
        # A traceback that somebody keeps must not keep the files.
        files.close()
    total = time.monotonic() - started
    return Run(
        [records[name] for name in cell.order if name in records], {"total": total}, os.fspath(out)
    )


class _Team:
    """Workers and what each is doing. A chunk is given only to a worker that has shown up."""

    def __init__(
        self, actor: Any, arguments: Sequence[Any], chunks: deque[list[dict[str, Any]]], size: int
    ) -> None:
        self.actor, self.arguments, self.chunks = actor, arguments, chunks
        self.doing: dict[Any, tuple[Any, list[dict[str, Any]] | None]] = {}
        self.failed_starts, self.size = 0, size
        for _ in range(size):
            self.hire()

    def hire(self) -> None:
        """Asks Ray for one more worker."""
        worker = self.actor.remote(*self.arguments)
        self.doing[worker.ready.remote()] = (worker, None)

    def results(self) -> Any:
        """The results of all chunks, as they come."""
        lost = (
            ray.exceptions.RayActorError,
            ray.exceptions.ObjectLostError,
            ray.exceptions.WorkerCrashedError,
        )
        while self.chunks or any(chunk is not None for _, chunk in self.doing.values()):
            ready, _ = ray.wait(list(self.doing), num_returns=1, timeout=PATIENCE)
            if not ready:
                if all(chunk is None for _, chunk in self.doing.values()):
                    warnings.warn(
                        "no worker has started yet; does the cluster have what actor_options ask "
                        "for?",
                        stacklevel=3,
                    )
                continue
            worker, chunk = self.doing.pop(ready[0])
            try:
                answer = ray.get(ready[0])
            except lost as error:
                self.replace(worker, chunk, error)
                continue
            self.failed_starts = 0
            if chunk is not None:
                yield from answer
            if self.chunks:
                chunk = self.chunks.popleft()
                self.doing[worker.search.remote(chunk)] = (worker, chunk)
            else:
                ray.kill(worker)

    def replace(self, worker: Any, chunk: list[dict[str, Any]] | None, error: Exception) -> None:
        """A worker is gone: its theorems are searched again by another."""
        if chunk is not None:
            self.chunks.appendleft(chunk)
        else:
            # What it raised while it opened the prover or the policy, the next one would raise too.
            # A lost machine takes several starting workers with it, but not time and again.
            self.failed_starts += 1
            if (
                getattr(error, "actor_init_failed", False)
                or self.failed_starts > FAILED_STARTS * self.size
            ):
                raise error
        ray.kill(worker)
        if self.chunks:
            self.hire()

    def dismiss(self) -> None:
        """Sends everyone home."""
        for worker, _ in self.doing.values():
            ray.kill(worker)
