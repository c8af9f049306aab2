"""Ray's end of `catamount run --ray`, which starts it: tasks come in, what became of them goes out,
as lines of JSON.

Which steps can be done, in which order and with which needs is the program's to say. Here they
become Ray tasks, each on a node that has room; a task whose node is lost, hangs or has no room on
its disk is handed to another, where the step goes on from its last checkpoint or log line.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from typing import Any

from . import node
from .connection import (
    PATIENCE,
    connect,
    first_line,
    fits,
    head,
    is_gone,
    last_line,
    living,
    watch,
)
from .hired import Hired
from .node import put, sound
from .objects import Objects

LOST = 20
"""Times that a task may lose its node."""
BEAT = 10.0
"""Seconds between two signs of life of a task, at most."""
ROOM = 5.0
"""Seconds between two looks whether there is a node for what waits, at most."""
WAIT = 60.0
"""Seconds that a task may wait for a node to be there before it is said, at most."""
HEAD = 20.0
"""Seconds that the cluster's head may be gone."""


class Task:
    """A task that Ray has, and where it was last heard of."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.number, self.name = order["number"], order["name"]
        self.losses = 0
        self.failed_on: str | None = None
        self.forget()

    def forget(self) -> None:
        """It begins anew, nobody knows where yet."""
        self.node = self.place = "the cluster"
        self.processes: list[int] = []
        self.alive: float | None = None
        self.ending = False
        self.homeless: float | None = None
        """Since when no node has had room for it."""
        self.told = False

    def hear(self, said: dict[str, Any]) -> None:
        """Takes a sign of life."""
        self.node, self.place, self.processes = said["node_id"], said["node"], said["processes"]
        if said["alive"] or self.alive is None:
            self.alive = time.monotonic()

    def hangs(self, patience: float) -> bool:
        """Whether it has begun, and has not been at work for too long."""
        return (
            self.alive is not None and not self.ending and time.monotonic() - self.alive > patience
        )


class Bridge:
    """Tasks under way."""

    def __init__(self, hello: dict[str, Any], nodes: list[dict[str, Any]], say: Any) -> None:
        import ray

        ray.cloudpickle.register_pickle_by_value(node)
        self.hello, self.say = hello, say
        self.patience = float(hello["patience"])
        self.objects = Objects() if hello["objects"] else None
        self.provers = Hired(say, self.patience)
        self.known: set[str] = {one["id"] for one in nodes}
        """Nodes that the program has looked at; on others nothing is done before it has."""
        self.refused: set[str] = set()
        self.strangers: list[tuple[str, Task]] = []
        """Tasks that came to a node that is not known."""
        self.looked = 0.0
        self.tasks: dict[Any, Task] = {}
        self.work = ray.remote(node.work)
        self.kill = ray.remote(node.end)

    def begin(self, task: Task) -> None:
        """Hands a task to Ray."""
        from ray.util.scheduling_strategies import NodeLabelSchedulingStrategy, NotIn

        order, hello = task.order, self.hello
        needs = order["needs"]
        options = {"num_cpus": needs["cpus"], "num_gpus": needs["gpus"], "memory": needs["memory"]}
        shunned = self.shunned(task)
        if shunned:
            options["scheduling_strategy"] = NodeLabelSchedulingStrategy(
                {"ray.io/node-id": NotIn(*sorted(shunned))}
            )
        task.forget()
        try:
            inputs = order["inputs"]
            files = None if self.objects is None else self.objects.of(order["folder"], inputs)
        except OSError as error:
            self.refuse(f"{error.filename} cannot be read here: {error.strerror}")
            return
        beat = min(BEAT, self.patience / 3)
        asked = self.work.options(**options, num_returns="streaming", max_retries=0, name=task.name)
        stream = asked.remote(
            hello["program"],
            order["arguments"],
            hello["here"],
            order["folder"],
            needs["cpus"],
            files,
            order["outputs"],
            beat,
            self.provers.actors if order["provers"] else [],
            hello["probe"],
            sorted(self.known),
        )
        self.tasks[stream] = task

    def shunned(self, task: Task) -> set[str]:
        """The nodes that are not to do a task."""
        failed = set() if task.failed_on is None else {task.failed_on}
        return {*self.refused, *task.order["without"], *failed}

    def meet(self, task: Task, said: dict[str, Any]) -> None:
        """A task has come to a node that joined later: the program looks at what that has first."""
        for one in living():
            if one["id"] == said["node_id"]:
                self.strangers.append((one["id"], task))
                self.say("node", {**one, "probe": said["stranger"]})
                return
        self.begin(task)

    def admit(self, answer: dict[str, Any]) -> None:
        """What the program says of a node; tasks that came to it begin now, there or elsewhere."""
        (self.known if answer["admitted"] else self.refused).add(answer["id"])
        waiting = [task for one, task in self.strangers if one == answer["id"]]
        self.strangers = [(one, task) for one, task in self.strangers if one != answer["id"]]
        for task in waiting:
            self.begin(task)

    def look(self) -> None:
        """Hears what is said, passes on what has ended, and ends what hangs."""
        import ray

        ready, _ = ray.wait(list(self.tasks), num_returns=1, timeout=0.1)
        for stream in ready:
            task = self.tasks[stream]
            try:
                said = ray.get(next(stream))
            except (ray.exceptions.RayError, StopIteration) as error:
                del self.tasks[stream]
                self.mourn(task, error)
                continue
            if "stranger" in said:
                del self.tasks[stream]
                self.meet(task, said)
            elif "code" in said:
                del self.tasks[stream]
                self.finish(task, said)
            else:
                task.hear(said)
        for task in self.tasks.values():
            if task.hangs(self.patience):
                self.end_the_hanging(task)
        if time.monotonic() - self.looked > min(ROOM, self.patience / 10):
            self.looked = time.monotonic()
            self.look_for_room()
        self.provers.look()

    def rooms(self) -> list[dict[str, Any]]:
        """What the nodes have beside the provers of their own."""
        found = []
        for one in living():
            held = self.provers.holds(one["id"])
            found.append({**one, **{what: one[what] - much for what, much in held.items()}})
        return found

    def look_for_room(self) -> None:
        """Says what waits for a node that is not there, and ends it when it has waited too long:
        Ray itself waits for ever.
        """
        import ray

        try:
            rooms, now = self.rooms(), time.monotonic()
        except ray.exceptions.RayError:
            return  # The head does not answer, which somebody else minds.
        for stream, task in list(self.tasks.items()):
            needs, shunned = task.order["needs"], self.shunned(task)
            left = [one for one in rooms if one["id"] not in shunned]
            if task.alive is not None or any(fits(needs, one) for one in left):
                task.homeless = None
                continue
            task.homeless = now if task.homeless is None else task.homeless
            waited = now - task.homeless
            if waited > self.patience:
                del self.tasks[stream]
                ray.cancel(stream, force=True)
                self.end(task, code=1, said=f"for {self.patience:g} s {lacking(needs, left)}")
            elif waited > min(WAIT, self.patience / 2) and not task.told:
                task.told = True
                self.say("waits", {"name": task.name, "reason": lacking(needs, left)})

    def mourn(self, task: Task, error: Exception) -> None:
        """A task has ended without a last word: why decides who does it now."""
        import ray

        cause = getattr(error, "cause", None)
        if isinstance(error, ray.exceptions.TaskCancelledError):
            self.end(task, code=130, said="stopped")
        elif not isinstance(error, ray.exceptions.RayTaskError):
            self.lose(task, first_line(error))
        elif isinstance(cause, ray.exceptions.ObjectLostError) and self.objects is not None:
            # The files are still here; Ray's copies of them are not.
            self.objects.forget()
            self.lose(task, "Ray lost a file that it needs, which is sent again")
        else:
            self.fail(task, code=1, said=str(cause or error))

    def finish(self, task: Task, ended: dict[str, Any]) -> None:
        """The program has ended."""
        made = ended.pop("made")
        if ended["code"] not in (0, 130, node.UNFINISHED):
            self.fail(task, ended["code"], ended["said"])
            return
        try:
            contents = {
                path: sound(path, content, known) for path, (known, content) in made.items()
            }
        except OSError as error:
            self.lose(task, str(error))
            return
        # The stamp, which says that a step is done, comes after what it made.
        for path in sorted(contents, key=lambda path: path.startswith("steps")):
            try:
                put(task.order["folder"], path, contents[path])
            except OSError as error:
                whole = os.path.join(task.order["folder"], path)
                self.refuse(f"{whole}, which {task.name} made, cannot be written here: {error}")
                return
        ended.pop("node_id")
        self.say("ended", {"number": task.number, **ended})

    def fail(self, task: Task, code: int, said: str) -> None:
        """It may be the node's fault, a full disk say: what fails on two nodes is a failure."""
        if task.failed_on is None and self.has_room_beside(task):
            reason = said.strip().splitlines()[-1][:300] if said.strip() else f"exit status {code}"
            self.say("lost", {"name": task.name, "reason": f"failed on {task.place}: {reason}"})
            task.failed_on = task.node
            if self.objects is not None:
                # It may have been sent something damaged.
                self.objects.forget()
            self.begin(task)
        else:
            self.end(task, code, said)

    def has_room_beside(self, task: Task) -> bool:
        """Whether another node could do a task."""
        shunned = {*self.shunned(task), task.node}
        others = [one for one in self.rooms() if one["id"] not in shunned]
        return any(fits(task.order["needs"], one) for one in others)

    def end_the_hanging(self, task: Task) -> None:
        """Ends the processes of a task that does nothing: that frees its place, and it is lost as
        with its node.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        task.ending = True
        self.say(
            "lost",
            {
                "name": task.name,
                "reason": f"no sign of life from {task.place} for {self.patience:g} s",
            },
        )
        there = NodeAffinitySchedulingStrategy(task.node, soft=False)
        self.kill.options(num_cpus=0, scheduling_strategy=there).remote(task.processes)

    def lose(self, task: Task, reason: str) -> None:
        """A node is gone: the task goes to another, but not for ever."""
        task.losses += 1
        if task.losses > LOST:
            self.end(task, code=1, said=f"it lost its node {LOST} times; the last time: {reason}")
            return
        if not task.ending:
            self.say("lost", {"name": task.name, "reason": reason})
        self.begin(task)

    def end(self, task: Task, code: int, said: str) -> None:
        """Says how a task ended that made nothing."""
        ended = {"number": task.number, "node": task.place, "seconds": 0.0, "printed": ""}
        self.say("ended", {**ended, "code": code, "said": said})

    def stop(self) -> None:
        """Takes the workers away; the programs they started save what they have, and end."""
        import ray

        for stream in list(self.tasks):
            ray.cancel(stream, force=True)
        for _, task in self.strangers:
            self.end(task, code=130, said="stopped")
        self.strangers = []
        self.provers.stop()

    def refuse(self, reason: str) -> None:
        """Something is wrong on this machine, which no node can help."""
        self.say("refused", {"reason": f"{reason}; what is done is kept"})


def lacking(needs: dict[str, Any], rooms: list[dict[str, Any]]) -> str:
    """What no node has, in words."""
    most = {
        what: max((one[what] for one in rooms), default=0.0) for what in ("cpus", "gpus", "memory")
    }

    def words(has: dict[str, Any]) -> str:
        memory = has["memory"] / 1e9
        return f"{has['cpus']:g} processors, {has['gpus']:g} cards and {memory:.1f} GB of memory"

    return (
        f"no node has had room for it: it needs {words(needs)}; the most that a node that is left "
        f"has for it is {words(most)}"
    )


def main() -> None:
    """Serves one scheduler until its input ends."""
    # The protocol has standard output for itself; whatever else prints goes to standard error.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(kind: str, value: Any) -> None:
        out.write(json.dumps({kind: value}) + "\n")
        out.flush()

    # A head that does not come back is missed within this time, unless its cluster is set up to
    # wait longer for it.
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", f"{HEAD:g}")
    lines: queue.Queue[str | None] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put(None)

    hello = json.loads(sys.stdin.readline())["hello"]
    nodes = connect(hello)
    if isinstance(nodes, str):
        say("refused", {"reason": nodes})
        return
    say("nodes", nodes)
    threading.Thread(target=listen, daemon=True).start()
    patience = float(os.environ["RAY_gcs_rpc_server_reconnect_timeout_s"]) + PATIENCE
    watched = (head(), patience, lambda: os._exit(1))
    threading.Thread(target=watch, args=watched, daemon=True).start()
    bridge = Bridge(hello, nodes, say)
    try:
        serve(bridge, lines)
    except Exception as error:
        # That the cluster is gone is what the program says if this ends without a word.
        if is_gone(error):
            raise
        bridge.refuse(f"Ray's end has failed: {type(error).__name__}: {last_line(error)}")


def serve(bridge: Bridge, lines: queue.Queue[str | None]) -> None:
    """Does what the program says, until it says no more."""
    while True:
        try:
            line = lines.get(timeout=0.02 if bridge.tasks else 1.0)
        except queue.Empty:
            line = ""
        if line is None:
            break
        message = json.loads(line) if line else {}
        if "task" in message:
            bridge.begin(Task(message["task"]))
        elif "provers" in message:
            bridge.provers.start(bridge.hello["program"], bridge.hello["here"], message["provers"])
        elif "node" in message:
            bridge.admit(message["node"])
        elif "stop" in message:
            bridge.stop()
        elif bridge.tasks:
            bridge.look()
    bridge.stop()


if __name__ == "__main__":
    main()
