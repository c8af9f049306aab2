"""Ray's end of a study, without Ray: what is said of nodes that do not answer."""

import io
import json
import os
import sys
import types

import pytest

from catamount import cluster, connection


@pytest.fixture
def ray(monkeypatch):
    """A cluster of two nodes, of which one answers."""
    ray = types.ModuleType("ray")
    errors = types.SimpleNamespace(RayError=type("RayError", (Exception,), {}))
    errors.GetTimeoutError = type("GetTimeoutError", (errors.RayError,), {})
    ray.exceptions = errors
    ray.cloudpickle = types.SimpleNamespace(register_pickle_by_value=lambda module: None)
    ray.init = lambda **options: None
    asked = types.SimpleNamespace(options=lambda **options: asked, remote=lambda *given: next(refs))
    refs = iter(["quick", "silent"])
    ray.remote = lambda function: asked
    names = [("here", "a" * 16), ("far", "b" * 16)]
    ray.nodes = lambda: [
        {"Alive": True, "NodeID": node, "NodeManagerHostname": name, "Resources": {"CPU": 2.0}}
        for name, node in names
    ]

    def get(reference, timeout=None):
        assert timeout is not None, "a node may be waited for for ever"
        if reference == "silent":
            raise errors.GetTimeoutError("late")
        return {"Ok": {}}

    ray.get = get
    strategies = types.ModuleType("ray.util.scheduling_strategies")
    strategies.NodeAffinitySchedulingStrategy = lambda node, soft: node
    strategies.NodeLabelSchedulingStrategy = strategies.NotIn = None
    modules = {"ray": ray, "ray.util": types.ModuleType("ray.util")}
    for name, module in {**modules, "ray.util.scheduling_strategies": strategies}.items():
        monkeypatch.setitem(sys.modules, name, module)
    return ray


def test_a_node_that_does_not_answer_is_named_and_not_waited_for(ray):
    hello = {"address": "local", "program": ["catamount"], "probe": ["step"], "here": "/"}
    quick, silent = connection.connect(hello)
    assert quick["probe"] == {"Ok": {}}
    assert silent["name"] == "far (bbbbbbbb)"
    assert "has not answered within" in silent["probe"]["Err"]


def test_only_a_node_with_everything_fits():
    room = {"cpus": 2.0, "gpus": 1.0, "memory": 4e9}
    assert connection.fits({"cpus": 2.0, "gpus": 0.5, "memory": 4e9}, room)
    for more in ({"cpus": 3.0}, {"gpus": 2.0}, {"memory": 5e9}):
        assert not connection.fits({"cpus": 1.0, "gpus": 0.0, "memory": 1.0, **more}, room)
    said = cluster.lacking({"cpus": 3.0, "gpus": 0.0, "memory": 1e9, "provers": 2}, [room])
    assert "it needs 3 processors, 0 cards and 1.0 GB" in said
    assert said.endswith("is 2 processors, 1 cards and 4.0 GB of memory")


def test_rays_client_is_refused_with_what_to_use_instead():
    assert "use the head's HOST:6379 from a node" in connection.reachable("ray://127.0.0.1:10001")


def test_a_fault_of_this_end_is_not_said_to_be_the_clusters(ray, monkeypatch, capfd):
    """What is no fault of a connection is said by its last words."""
    ray.is_initialized = lambda: True
    ray.get_runtime_context = lambda: types.SimpleNamespace(gcs_address="here:1")
    ray.exceptions.RpcError = ray.exceptions.RaySystemError = ray.exceptions.RayError
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "20")
    monkeypatch.setattr(cluster, "head", lambda: "here:1")
    monkeypatch.setattr(cluster, "watch", lambda *given: None)
    monkeypatch.setattr(connection, "reachable", lambda address: None)
    monkeypatch.setattr(cluster, "connect", lambda hello: [])
    hello = {"address": "here:1", "objects": True, "patience": 9, "program": [], "here": "/"}
    # A task without its needs.
    said = [json.dumps({"hello": hello}), json.dumps({"task": {"number": 1, "name": "data"}})]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(said) + "\n"))
    monkeypatch.setattr(os, "dup2", lambda old, new: None)
    cluster.main()
    refused = json.loads(capfd.readouterr().out.splitlines()[-1])["refused"]
    assert refused["reason"].startswith("Ray's end has failed: KeyError: 'needs'")
