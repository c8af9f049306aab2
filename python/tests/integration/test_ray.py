"""catamount.ray on a real cluster of several nodes, of which one is killed in the middle."""

import functools
import math
import os
import threading
import time

import pytest
import ray
from ray.cluster_utils import Cluster

import catamount
import catamount.ray


class Slow:
    """Plays the demonstrated tactic half of the time, taking a moment for each batch; keeps a diary
    of where it ran.
    """

    def __init__(self, traces, diary, pause=0.1):
        self.right = {step.state: step.tactic for trace in traces for step in trace.steps}
        self.diary, self.pause = str(diary), pause

    def describe(self):
        return "slow demonstrator"

    def __call__(self, questions):
        if ray.is_initialized():
            node = ray.get_runtime_context().get_node_id()
            with open(os.path.join(self.diary, f"{node}.{os.getpid()}"), "a") as file:
                file.write("x")
            if os.path.exists(os.path.join(self.diary, f"hold.{node}")):
                # The theorems given to this node can only be finished by another.
                time.sleep(3600)
        time.sleep(self.pause)
        return [[self.draw(state, seed, i) for i in range(n)] for state, n, seed in questions]

    def draw(self, state, seed, i):
        right = catamount.uniform(seed, i) < 0.5 and state in self.right
        return (self.right[state], math.log(0.5)) if right else ("noise", math.log(0.5))


@pytest.fixture(scope="module")
def cluster():
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    ray.init(address=cluster.address, logging_level="error")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def case(traces, database, tmp_path):
    diary = tmp_path / "diary"
    diary.mkdir()
    settings = {"database": database, "strategy": "bfs", "budget": 16}
    catamount.search(
        traces, policy=Slow(traces, diary, 0.0), out=tmp_path / "one.jsonl", **settings
    )
    return traces, diary, settings


def test_a_node_is_killed_and_the_log_is_the_same(cluster, case, tmp_path):
    traces, diary, settings = case
    doomed = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    victim = next(n["NodeID"] for n in ray.nodes() if n["Alive"] and n["NodeID"] == doomed.node_id)
    (diary / f"hold.{victim}").touch()
    killed = threading.Event()

    def kill():
        # Once the node works on theorems it has been given: what it holds is lost with it.
        while not any(name.startswith(victim) for name in os.listdir(diary)):
            time.sleep(0.02)
        cluster.remove_node(doomed, allow_graceful=False)
        killed.set()

    seen = []
    killer = threading.Thread(target=kill)
    killer.start()
    policy = Slow(traces, diary)
    result = catamount.ray.search(
        traces,
        policy=policy,
        out=tmp_path / "many.jsonl",
        workers=2,
        chunk=2,
        progress=seen.append,
        **settings,
    )
    killer.join(timeout=60)
    assert killed.is_set()
    assert any(name.startswith(victim) for name in os.listdir(diary))
    assert (tmp_path / "many.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()
    # Exactly once: every theorem was written one time, also before the log was put in order.
    assert sorted(record["theorem"] for record in seen) == sorted(trace.name for trace in traces)
    assert len(catamount.read_times(tmp_path / "many.jsonl")["theorem"]) == len(traces)
    assert len(result.records) == len(traces)
    keys = set(catamount.read_manifest(tmp_path / "one.jsonl"))
    assert set(catamount.read_manifest(tmp_path / "many.jsonl")) == keys


def test_an_interrupted_run_goes_on_where_the_log_ends(cluster, case, tmp_path):
    traces, diary, settings = case
    log = tmp_path / "many.jsonl"
    policy = Slow(traces, diary, 0.0)

    class Enough(Exception):
        pass

    count = 0

    def stop(record):
        nonlocal count
        count += 1
        if count == 3:
            raise Enough

    with pytest.raises(Enough):
        catamount.ray.search(
            traces, policy=policy, out=log, workers=1, chunk=1, progress=stop, **settings
        )
    assert len(log.read_text().splitlines()) == 3
    rest = []
    catamount.ray.search(
        traces, policy=policy, out=log, workers=1, chunk=2, progress=rest.append, **settings
    )
    assert len(rest) == len(traces) - 3
    assert log.read_bytes() == (tmp_path / "one.jsonl").read_bytes()


def broken_policy():
    raise RuntimeError("no such model")


def test_what_a_worker_raises_reaches_the_caller(cluster, case, tmp_path):
    traces, diary, settings = case
    with pytest.raises(ray.exceptions.RayActorError, match="no such model"):
        catamount.ray.search(
            traces,
            policy=Slow(traces, diary),
            policy_factory=broken_policy,
            out=tmp_path / "a.jsonl",
            workers=1,
            **settings,
        )

    def policy(questions):
        raise KeyError("a bug in the policy")

    with pytest.raises(Exception, match="a bug in the policy"):
        catamount.ray.search(traces, policy=policy, out=tmp_path / "b.jsonl", workers=1, **settings)


def test_a_policy_made_in_the_worker_and_trees(cluster, case, tmp_path):
    traces, diary, settings = case
    policy = Slow(traces, diary, 0.0)
    catamount.search(traces, policy=policy, out=tmp_path / "alone.jsonl", trees=True, **settings)
    factory = functools.partial(Slow, traces, diary, 0.0)
    catamount.ray.search(
        traces,
        policy=policy,
        policy_factory=factory,
        out=tmp_path / "many.jsonl",
        workers=1,
        chunk=5,
        trees=True,
        **settings,
    )
    assert (tmp_path / "many.jsonl").read_bytes() == (tmp_path / "alone.jsonl").read_bytes()
    assert catamount.read_trees(tmp_path / "many.jsonl") == catamount.read_trees(
        tmp_path / "alone.jsonl"
    )
