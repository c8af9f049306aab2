"""Ray's end of a study, without Ray: what is said of nodes that do not answer."""

import sys
import types

import pytest

from catamount import cluster


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
    modules = {"ray": ray, "ray.util": types.ModuleType("ray.util")}
    for name, module in {**modules, "ray.util.scheduling_strategies": strategies}.items():
        monkeypatch.setitem(sys.modules, name, module)
    return ray


def test_a_node_that_does_not_answer_is_named_and_not_waited_for(ray):
    hello = {"address": "local", "program": ["catamount"], "probe": ["step"], "here": "/"}
    quick, silent = cluster.connect(hello)
    assert quick["probe"] == {"Ok": {}}
    assert silent["name"] == "far (bbbbbbbb)"
    assert "has not answered within" in silent["probe"]["Err"]
