"""Prover workers of a study on Ray, from its beginning to its end: started where the program says,
asked how busy they are, and replaced when they are lost or hang.
"""

from __future__ import annotations

import time
from typing import Any, Callable

from . import node
from .connection import last_line

START = 300.0
"""Seconds that prover workers may take to start."""
USES = 2.0
"""Seconds between two questions to a prover how busy it has been."""
PLACE = ("node_id", "processes")
"""What a prover says for us alone."""


class Hired:
    """Prover workers, and when each was last heard of."""

    def __init__(self, say: Callable[[str, Any], None], patience: float) -> None:
        self.say, self.patience = say, patience
        self.actors: list[Any] = []
        self.needs: dict[str, Any] = {}
        self.asked: dict[Any, Any] = {}
        """What they were asked about their use, by the references to their answers."""
        self.last = 0.0
        self.heard: dict[Any, float] = {}
        self.failed: set[Any] = set()
        """Those that could not answer when they were last asked."""
        self.places: dict[Any, dict[str, Any]] = {}
        """On which node each is, by which processes."""

    def start(self, program: list[str], here: str, order: dict[str, Any]) -> None:
        """Starts them, and says so once all are there."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        needs = self.needs = order["needs"]
        room = {"num_cpus": needs["cpus"], "memory": needs["memory"]}
        # One that is lost is started again, elsewhere if need be; what it was asked meanwhile
        # waits.
        again = {"max_restarts": -1, "max_task_retries": -1, "max_concurrency": 4}
        actor = ray.remote(node.Prover)
        for place in order["places"]:
            there = NodeAffinitySchedulingStrategy(place, soft=True)
            hired = actor.options(**room, **again, scheduling_strategy=there)
            self.actors.append(hired.remote(program, order["arguments"], here))
        try:
            self.hear(
                dict(
                    zip(
                        self.actors,
                        ray.get([one.use.remote() for one in self.actors], timeout=START),
                    )
                )
            )
        except ray.exceptions.GetTimeoutError:
            reason = (
                f"of {len(self.actors)} prover workers not all have started within {START:g} s; is "
                "there room for them?"
            )
            self.say("refused", {"reason": reason})
        except ray.exceptions.RayError as error:
            self.say(
                "refused", {"reason": f"a prover worker cannot be started: {last_line(error)}"}
            )

    def hear(self, answers: dict[Any, dict[str, Any]]) -> None:
        """Takes what some of them say."""
        uses = []
        for prover, use in answers.items():
            self.heard[prover] = time.monotonic()
            self.failed.discard(prover)
            self.places[prover] = {key: use[key] for key in PLACE}
            uses.append({key: value for key, value in use.items() if key not in PLACE})
        if uses:
            self.say("provers", uses)

    def look(self) -> None:
        """Hears how busy they have been, now and then, and ends those that hang. One that is being
        replaced answers when it is there again.
        """
        import ray

        ready, _ = (
            ray.wait(list(self.asked), num_returns=len(self.asked), timeout=0)
            if self.asked
            else ([], [])
        )
        answers = {}
        for reference in ready:
            prover = self.asked.pop(reference)
            try:
                answers[prover] = ray.get(reference)
            except ray.exceptions.ActorDiedError as error:
                self.actors.remove(prover)
                self.places.pop(prover, None)
                self.say("lost", {"name": "a prover worker", "reason": last_line(error)})
            except (ray.exceptions.RayError, OSError):
                self.failed.add(prover)
        self.hear(answers)
        for prover in self.actors:
            self.end_if_it_hangs(prover)
        if time.monotonic() - self.last > USES:
            self.last = time.monotonic()
            waiting = list(self.asked.values())
            for prover in self.actors:
                if prover not in waiting:
                    self.asked[prover.use.remote()] = prover

    def end_if_it_hangs(self, prover: Any) -> None:
        """Ends the processes of a prover that has not answered for too long; Ray starts it anew."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # One that cannot even say that its service is silent may only be starting.
        patience = self.patience if prover in self.failed else max(self.patience, START)
        if time.monotonic() - self.heard[prover] <= patience:
            return
        self.heard[prover] = time.monotonic()
        self.failed.discard(prover)
        reason = f"its service has not answered for {patience:g} s"
        self.say("lost", {"name": "a prover worker", "reason": reason})
        place = self.places[prover]
        there = NodeAffinitySchedulingStrategy(place["node_id"], soft=False)
        # The service may be stopped, and would outlive the actor.
        end = ray.remote(node.end).options(num_cpus=0, scheduling_strategy=there)
        end.remote(place["processes"])

    def holds(self, node_id: str) -> dict[str, float]:
        """What they take of a node."""
        here = sum(place["node_id"] == node_id for place in self.places.values())
        return {what: here * self.needs.get(what, 0.0) for what in ("cpus", "gpus", "memory")}

    def stop(self) -> None:
        """Sends them home."""
        import ray

        for prover in self.actors:
            ray.kill(prover)
        self.actors = []
