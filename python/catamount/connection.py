"""The way to a Ray cluster: whether anything answers there, and which nodes it has."""

from __future__ import annotations

import re
import socket
import time
from typing import Any, Callable

from . import node

PATIENCE = 5.0
"""Seconds that an address may take to answer at all."""
PROBE = 300.0
"""Seconds that nodes may take to say what they have: a Lean library is opened for that."""


def reachable(address: str) -> str | None:
    """What is wrong with an address, if nothing answers there."""
    if address.startswith("ray://"):
        return (
            f"{address} is for Ray's client, over which steps cannot say how far they are: use the "
            "head's HOST:6379 from a node of the cluster"
        )
    match = re.fullmatch(r"\[?([^\[\]]+)\]?:(\d+)", address)
    if match is None:
        return f"`{address}` is not the address of a Ray cluster; give HOST:PORT, auto or local"
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


def is_gone(error: Exception) -> bool:
    """Whether an error means that the cluster's head does not answer, or is another one."""
    import ray

    if isinstance(error, (ConnectionError, ray.exceptions.RpcError, ray.exceptions.RaySystemError)):
        return True
    return not ray.is_initialized() or reachable(head()) is not None


def head() -> str:
    """Where the head of the cluster is."""
    import ray

    return ray.get_runtime_context().gcs_address


def described(one: dict[str, Any]) -> dict[str, Any]:
    """A node as Ray knows it, in the words of the program."""
    has = one["Resources"]
    return {
        "id": one["NodeID"],
        "name": f"{one['NodeManagerHostname']} ({one['NodeID'][:8]})",
        "cpus": has.get("CPU", 0.0),
        "gpus": has.get("GPU", 0.0),
        "memory": has.get("memory", 0.0),
    }


def living() -> list[dict[str, Any]]:
    """The nodes that there are now."""
    import ray

    return [described(one) for one in ray.nodes() if one["Alive"]]


def fits(needs: dict[str, Any], room: dict[str, Any]) -> bool:
    """Whether a node has what a task needs."""
    return all(room[what] >= needs[what] for what in ("cpus", "gpus", "memory"))


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
    nodes = living()
    answers = []
    for one in nodes:
        there = NodeAffinitySchedulingStrategy(one["id"], soft=False)
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
        found.append({**one, "probe": said})
    return found


def first_line(error: Exception) -> str:
    """What an error of Ray's says before it goes into details."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def last_line(error: Exception) -> str:
    """What an error of Ray's says after its details: the cause."""
    lines = str(error).strip().splitlines()
    return lines[-1][-500:] if lines else type(error).__name__
