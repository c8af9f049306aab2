"""Ray's end of `catamount run --ray`, which starts it: tasks come in, what became of them goes out, as lines of JSON.

Which steps can be done, in which order and with which needs is the program's to say. Here they become Ray tasks, each on
a node that has room; a task whose node is lost is handed to another, where the step goes on from its last checkpoint or
log line. Run as a module, so that nodes need the program and Ray, but not this package.
"""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

LOST = 20
"""Times that a task may lose its node."""
PATIENCE = 5.0
"""Seconds that an address may take to answer at all."""


def reachable(address: str) -> str | None:
    """What is wrong with an address, if nothing answers there."""
    match = re.fullmatch(r"(?:ray://)?\[?([^\[\]]+)\]?:(\d+)", address)
    if match is None:
        return f"`{address}` is no address of a Ray cluster; give HOST:PORT, ray://HOST:PORT, auto or local"
    try:
        socket.create_connection((match.group(1), int(match.group(2))), timeout=PATIENCE).close()
    except OSError as error:
        return f"nothing answers at {address} ({error}); is the cluster up (`ray status`), and is this its address?"
    return None


def installed() -> str | None:
    """The `catamount` command that came with this package, beside its Python, whether or not that is on the PATH; else one that is."""
    return shutil.which("catamount", path=os.path.dirname(sys.executable)) or shutil.which("catamount")


def program_here(program: list[str]) -> list[str]:
    """The program on this node: where it is on the first one, or the one installed here."""
    if os.access(program[0], os.X_OK):
        return program
    found = installed()
    if found is None:
        raise FileNotFoundError(f"there is no catamount here, neither {program[0]} nor on the PATH; install the same version")
    return [found]


def probe(program: list[str], arguments: list[str], here: str) -> dict[str, Any]:
    """What this node has, in the program's own words."""
    try:
        if not os.path.isdir(here):
            return {"Err": f"there is no folder {here}, which the experiment's paths are relative to"}
        asked = subprocess.run([*program_here(program), *arguments], cwd=here, capture_output=True, text=True)
        if asked.returncode != 0:
            said = asked.stderr.strip()
            return {"Err": f"its catamount does not answer ({said[-500:]}); install the same version"}
        return {"Ok": json.loads(asked.stdout)}
    except (OSError, ValueError) as error:
        return {"Err": str(error)}


def work(
    program: list[str], arguments: list[str], here: str, folder: str, cpus: float, files: list[Any] | None, outputs: list[str]
) -> dict[str, Any]:
    """Does a task on this node: in the study's folder, or with files that came along in one of its own."""
    import ray

    begun = time.monotonic()
    own = None
    if files is not None:
        own = tempfile.mkdtemp(prefix="catamount-")
        for path, content in ray.get(files):
            put(own, path, content)
        arguments = [own if argument == folder else argument for argument in arguments]
    try:
        # Were this process to end, so would the program's input, and it stops.
        process = subprocess.Popen(
            [*program_here(program), *arguments],
            cwd=here,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "RAYON_NUM_THREADS": str(max(1, int(cpus)))},
        )
        said: list[str] = []
        listener = threading.Thread(target=lambda: said.extend(process.stderr), daemon=True)
        listener.start()
        printed = process.stdout.read()
        code = process.wait()
        listener.join()
        process.stdin.close()
        made = below(own, outputs) if own is not None and code == 0 else {}
    finally:
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)
    return {
        "node": socket.gethostname(),
        "node_id": ray.get_runtime_context().get_node_id(),
        "seconds": time.monotonic() - begun,
        "code": code,
        "printed": printed,
        "said": "".join(said)[-2000:],
        "made": made,
    }


def put(folder: str, path: str, content: bytes) -> None:
    """Writes a file, whole or not at all."""
    target = os.path.join(folder, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    beside = f"{target}.{os.getpid()}.unfinished"
    with open(beside, "wb") as file:
        file.write(content)
    os.replace(beside, target)


def names(folder: str, paths: list[str]) -> list[str]:
    """The files at some paths of a folder, or below them, without locks and unfinished ones."""
    found = []
    for path in paths:
        whole = os.path.join(folder, path)
        if os.path.isfile(whole):
            found.append(path)
        for parent, _, files in os.walk(whole):
            found += [os.path.relpath(os.path.join(parent, file), folder) for file in files if not file.startswith(".")]
    return found


def below(folder: str, paths: list[str]) -> dict[str, bytes]:
    """The files at some paths of a folder, or below them."""
    found = {}
    for path in names(folder, paths):
        with open(os.path.join(folder, path), "rb") as file:
            found[path] = file.read()
    return found


class Objects:
    """Files of the study in Ray's object store, each there once as long as it does not change."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.known: dict[str, tuple[tuple[int, int], Any]] = {}

    def of(self, paths: list[str]) -> list[Any]:
        """References to the files at some paths, or below them."""
        return [self.reference(path) for path in sorted(set(names(self.folder, paths)))]

    def reference(self, path: str) -> Any:
        """A reference to one file as it is now."""
        import ray

        whole = os.path.join(self.folder, path)
        status = os.stat(whole)
        mark = (status.st_mtime_ns, status.st_size)
        if path not in self.known or self.known[path][0] != mark:
            with open(whole, "rb") as file:
                self.known[path] = (mark, ray.put((path, file.read())))
        return self.known[path][1]


class Bridge:
    """Tasks under way."""

    def __init__(self, hello: dict[str, Any], say: Any) -> None:
        import ray

        self.hello, self.say = hello, say
        self.objects = Objects(hello["folder"]) if hello["objects"] else None
        self.tasks: dict[Any, dict[str, Any]] = {}
        self.lost: dict[int, int] = {}
        self.work = ray.remote(work)

    def begin(self, task: dict[str, Any]) -> None:
        """Hands a task to Ray."""
        needs, hello = task["needs"], self.hello
        options = {"num_cpus": needs["cpus"], "num_gpus": needs["gpus"], "memory": needs["memory"]}
        files = None if self.objects is None else self.objects.of(task["inputs"])
        reference = self.work.options(**options, max_retries=0, name=task["name"]).remote(
            hello["program"], task["arguments"], hello["here"], hello["folder"], needs["cpus"], files, task["outputs"]
        )
        self.tasks[reference] = task

    def look(self) -> None:
        """Says what has ended."""
        import ray

        ready, _ = ray.wait(list(self.tasks), num_returns=1, timeout=0.1)
        for reference in ready:
            task = self.tasks.pop(reference)
            try:
                ended = ray.get(reference)
            except ray.exceptions.TaskCancelledError:
                self.end(task, code=130, said="stopped")
            except ray.exceptions.RayTaskError as error:
                self.end(task, code=1, said=str(error.cause))
            except ray.exceptions.RayError as error:
                self.lose(task, error)
            else:
                made = ended.pop("made")
                # The stamp, which says that a step is done, comes after what it made.
                for path in sorted(made, key=lambda path: path.startswith("steps")):
                    put(self.hello["folder"], path, made[path])
                ended["node"] = f"{ended['node']} ({ended.pop('node_id')[:8]})"
                self.say("ended", {"number": task["number"], **ended})

    def lose(self, task: dict[str, Any], error: Exception) -> None:
        """A node is gone: the task goes to another, but not for ever."""
        number = task["number"]
        self.lost[number] = self.lost.get(number, 0) + 1
        reason = str(error).strip().splitlines()[0][:200]
        if self.lost[number] > LOST:
            self.end(task, code=1, said=f"it lost its node {LOST} times; the last time: {reason}")
            return
        self.say("lost", {"name": task["name"], "reason": reason})
        self.begin(task)

    def end(self, task: dict[str, Any], code: int, said: str) -> None:
        """Says that a task ended without a word of its own."""
        ended = {"number": task["number"], "node": "the cluster", "seconds": 0.0, "printed": ""}
        self.say("ended", {**ended, "code": code, "said": said})

    def stop(self) -> None:
        """Takes the workers away; the programs they started save what they have, and end."""
        import ray

        for reference in list(self.tasks):
            ray.cancel(reference, force=True)


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
    ask = ray.remote(probe)
    nodes = [node for node in ray.nodes() if node["Alive"]]
    answers = []
    for node in nodes:
        there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        asked = ask.options(num_cpus=0, max_retries=2, scheduling_strategy=there)
        answers.append(asked.remote(hello["program"], hello["probe"], hello["here"]))
    found = []
    for node, answer in zip(nodes, answers):
        try:
            said = ray.get(answer)
        except ray.exceptions.RayError as error:
            said = {"Err": f"it does not answer ({str(error).strip().splitlines()[0]})"}
        has = node["Resources"]
        name = f"{node['NodeManagerHostname']} ({node['NodeID'][:8]})"
        room = {"cpus": has.get("CPU", 0.0), "gpus": has.get("GPU", 0.0), "memory": has.get("memory", 0.0)}
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
            bridge.begin(message["task"])
        elif "stop" in message:
            bridge.stop()
        elif bridge.tasks:
            bridge.look()
    bridge.stop()


if __name__ == "__main__":
    main()
