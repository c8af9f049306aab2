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
import re
import socket
import sys
import threading
import time
from typing import Any, Callable

from . import node
from .node import put, sound
from .objects import Objects

LOST = 20
"""Times that a task may lose its node."""
PATIENCE = 5.0
"""Seconds that an address may take to answer at all."""
BEAT = 10.0
"""Seconds between two signs of life of a task, at most."""
START = 300.0
"""Seconds that prover workers may take to start."""
PROBE = 300.0
"""Seconds that nodes may take to say what they have: a Lean library is opened for that."""
HEAD = 20.0
"""Seconds that the cluster's head may be gone."""
USES = 2.0
"""Seconds between two questions to a prover how busy it has been."""


def reachable(address: str) -> str | None:
    """What is wrong with an address, if nothing answers there."""
    match = re.fullmatch(r"(?:ray://)?\[?([^\[\]]+)\]?:(\d+)", address)
    if match is None:
        return (
            f"`{address}` is no address of a Ray cluster; give HOST:PORT, ray://HOST:PORT, auto or "
            "local"
        )
    try:
        socket.create_connection((match.group(1), int(match.group(2))), timeout=PATIENCE).close()
    except OSError as error:
        return (
            f"nothing answers at {address} ({error}); is the cluster up (`ray status`), and is "
            "this its address?"
        )
    return None


def watch(address: str, patience: float, end: Callable[[], Any]) -> None:
    """Calls `end` once nothing has answered at an address for too long: Ray may wait for its head
    for ever.
    """
    answered = time.monotonic()
    while time.monotonic() - answered < patience:
        time.sleep(patience / 10)
        if reachable(address) is None:
            answered = time.monotonic()
    end()


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

    def __init__(self, hello: dict[str, Any], say: Any) -> None:
        import ray

        ray.cloudpickle.register_pickle_by_value(node)
        self.hello, self.say = hello, say
        self.patience = float(hello["patience"])
        self.objects = Objects() if hello["objects"] else None
        self.provers: list[Any] = []
        self.uses: dict[Any, Any] = {}
        """What provers were asked about their use, by the references to their answers."""
        self.asked_uses = 0.0
        self.tasks: dict[Any, Task] = {}
        self.work = ray.remote(node.work)
        self.kill = ray.remote(node.end)

    def begin(self, task: Task) -> None:
        """Hands a task to Ray."""
        from ray.util.scheduling_strategies import NodeLabelSchedulingStrategy, NotIn

        order, hello = task.order, self.hello
        needs = order["needs"]
        options = {"num_cpus": needs["cpus"], "num_gpus": needs["gpus"], "memory": needs["memory"]}
        if task.failed_on is not None:
            options["scheduling_strategy"] = NodeLabelSchedulingStrategy(
                {"ray.io/node-id": NotIn(task.failed_on)}
            )
        files = None if self.objects is None else self.objects.of(order["folder"], order["inputs"])
        beat = min(BEAT, self.patience / 3)
        asked = self.work.options(**options, num_returns="streaming", max_retries=0, name=task.name)
        provers = self.provers if order["provers"] else []
        paths = (hello["here"], order["folder"])
        task.forget()
        stream = asked.remote(
            hello["program"],
            order["arguments"],
            *paths,
            needs["cpus"],
            files,
            order["outputs"],
            beat,
            provers,
        )
        self.tasks[stream] = task

    def hire(self, order: dict[str, Any]) -> None:
        """Starts prover workers, and says so once all are there."""
        import ray

        needs = order["needs"]
        room = {
            "num_cpus": needs["cpus"],
            "memory": needs["memory"],
            "scheduling_strategy": "SPREAD",
        }
        # One that is lost is started again, elsewhere if need be; what it was asked meanwhile
        # waits.
        again = {"max_restarts": -1, "max_task_retries": -1, "max_concurrency": 4}
        actor = ray.remote(node.Prover).options(**room, **again)
        start = (self.hello["program"], order["arguments"], self.hello["here"])
        self.provers = [actor.remote(*start) for _ in range(order["count"])]
        try:
            self.say(
                "provers", ray.get([prover.use.remote() for prover in self.provers], timeout=START)
            )
        except ray.exceptions.GetTimeoutError:
            reason = (
                f"of {order['count']} prover workers not all have started within {START:g} s; is "
                "there room for them?"
            )
            self.say("refused", {"reason": reason})
        except ray.exceptions.RayError as error:
            self.say(
                "refused", {"reason": f"a prover worker cannot be started: {last_line(error)}"}
            )

    def ask_provers(self) -> None:
        """Hears how busy provers have been, now and then. One that is being replaced answers when
        it is there again.
        """
        import ray

        ready, _ = (
            ray.wait(list(self.uses), num_returns=len(self.uses), timeout=0)
            if self.uses
            else ([], [])
        )
        heard = []
        for reference in ready:
            prover = self.uses.pop(reference)
            try:
                heard.append(ray.get(reference))
            except ray.exceptions.ActorDiedError as error:
                self.provers.remove(prover)
                self.say("lost", {"name": "a prover worker", "reason": last_line(error)})
            except (ray.exceptions.RayError, OSError):
                continue
        if heard:
            self.say("provers", heard)
        if time.monotonic() - self.asked_uses > USES:
            self.asked_uses = time.monotonic()
            waiting = list(self.uses.values())
            for prover in self.provers:
                if prover not in waiting:
                    self.uses[prover.use.remote()] = prover

    def look(self) -> None:
        """Hears what is said, passes on what has ended, and ends what hangs."""
        import ray

        ready, _ = ray.wait(list(self.tasks), num_returns=1, timeout=0.1)
        for stream in ready:
            task = self.tasks[stream]
            try:
                said = ray.get(next(stream))
                if "code" not in said:
                    task.hear(said)
                    continue
                del self.tasks[stream]
                self.finish(task, said)
            except (ray.exceptions.RayError, StopIteration) as error:
                del self.tasks[stream]
                self.mourn(task, error)
        for task in self.tasks.values():
            if task.hangs(self.patience):
                self.end_the_hanging(task)
        self.ask_provers()

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
        # The stamp, which says that a step is done, comes after what it made.
        try:
            contents = {
                path: sound(path, content, known) for path, (known, content) in made.items()
            }
        except OSError as error:
            self.lose(task, str(error))
            return
        for path in sorted(contents, key=lambda path: path.startswith("steps")):
            put(task.order["folder"], path, contents[path])
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
        import ray

        needs = task.order["needs"]
        wanted = {"CPU": needs["cpus"], "GPU": needs["gpus"], "memory": needs["memory"]}
        others = [
            one["Resources"] for one in ray.nodes() if one["Alive"] and one["NodeID"] != task.node
        ]
        return any(
            all(has.get(what, 0.0) >= much for what, much in wanted.items()) for has in others
        )

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
        for prover in self.provers:
            ray.kill(prover)
        self.provers = []


def first_line(error: Exception) -> str:
    """What an error of Ray's says before it goes into details."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def last_line(error: Exception) -> str:
    """What an error of Ray's says after its details: the cause."""
    lines = str(error).strip().splitlines()
    return lines[-1][-500:] if lines else type(error).__name__


def connect(hello: dict[str, Any]) -> list[dict[str, Any]] | str:
    """The cluster's nodes and what each has, or why there are none."""
    try:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
    except ImportError as error:
        return f"this Python has no Ray ({error}): pip install 'catamount[ray]'"
    address = hello["address"]
    if address not in ("auto", "local"):
        wrong = reachable(address)
        if wrong is not None:
            return wrong
    try:
        if address == "local":
            ray.init(address="local", log_to_driver=False, include_dashboard=False)
        else:
            ray.init(address=address, log_to_driver=False)
    except Exception as error:  # Ray raises whatever it meets: connections, versions, time-outs.
        return f"the Ray cluster at {address} cannot be used: {error}"
    ray.cloudpickle.register_pickle_by_value(node)
    ask = ray.remote(node.probe)
    nodes = [one for one in ray.nodes() if one["Alive"]]
    answers = []
    for one in nodes:
        there = NodeAffinitySchedulingStrategy(one["NodeID"], soft=False)
        asked = ask.options(num_cpus=0, max_retries=2, scheduling_strategy=there)
        answers.append(asked.remote(hello["program"], hello["probe"], hello["here"]))
    found = []
    late = time.monotonic() + PROBE
    for one, answer in zip(nodes, answers):
        try:
            # All were asked at once, and all have the same time.
            said = ray.get(answer, timeout=max(0.0, late - time.monotonic()))
        except ray.exceptions.GetTimeoutError:
            said = {
                "Err": (
                    f"it has not answered within {PROBE:g} s; take it out of the cluster, or look "
                    "at what it does"
                )
            }
        except ray.exceptions.RayError as error:
            said = {"Err": f"it does not answer ({first_line(error)})"}
        has = one["Resources"]
        name = f"{one['NodeManagerHostname']} ({one['NodeID'][:8]})"
        room = {
            "cpus": has.get("CPU", 0.0),
            "gpus": has.get("GPU", 0.0),
            "memory": has.get("memory", 0.0),
        }
        found.append({"name": name, **room, "probe": said})
    return found


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
    if not hello["address"].startswith("ray://"):
        import ray

        patience = float(os.environ["RAY_gcs_rpc_server_reconnect_timeout_s"]) + PATIENCE
        head = (ray.get_runtime_context().gcs_address, patience, lambda: os._exit(1))
        threading.Thread(target=watch, args=head, daemon=True).start()
    bridge = Bridge(hello, say)
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
            bridge.hire(message["provers"])
        elif "stop" in message:
            bridge.stop()
        elif bridge.tasks:
            bridge.look()
    bridge.stop()


if __name__ == "__main__":
    main()
