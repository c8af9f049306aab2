"""Whole studies on a real Ray cluster of several nodes: the same folder as one process makes, whatever happens on the way."""

import json
import os
import subprocess
import sys
import threading
import time

import psutil
import pytest
from ray.cluster_utils import Cluster

import catamount.ray
from catamount.cluster import installed

PROGRAM = os.environ.get("CATAMOUNT_PROGRAM") or installed()

STUDY = """
name = "small"
model = { hidden = 32, layers = 1, vocab = 400, positions = 128, tokenizer = "symbols" }
objectives = [
    { objective = "ce" },
    { objective = "ua" },
    { objective = "bfs", prior = { kappa = 3 } },
    { objective = "auto" },
]

[tune]
objectives = ["ua"]
fitted = false
shares = [0.5]
temperatures = [0.8, 1.2]
theorems = 20

[evaluation]
strategies = ["bfs", "dfs"]
budgets = [8]
limit = 20
max_tokens = 12
trees = 3
cells = "all"

[data]
environment = "metamath"
database = "ql.mm"
steps = "1-4"
split = "0.6,0.2,0.2"

[warm_up]
max_steps = 40
max_tokens = 96
batch = { examples = 8, tokens = 256 }
optimizer = { lr = 3e-3 }
checkpoints = { every = 8 }

[branch]
max_steps = 20
max_tokens = 96
batch = { examples = 8, tokens = 256 }
checkpoints = { every = 4 }
"""


def results(study):
    """Everything that clocks and machines have no part in."""
    found = {}
    for part in ("data", "models", "cells", "tune"):
        for parent, _, names in os.walk(study / part):
            for name in names:
                if name.startswith(".") or name.endswith(("times.jsonl", "timing.json", "manifest.json")):
                    continue
                path = os.path.join(parent, name)
                with open(path, "rb") as file:
                    lines = file.readlines()
                # Trees are kept in the order in which searches ended.
                found[os.path.relpath(path, study)] = sorted(set(lines)) if name.endswith("trees.jsonl") else lines
    tables = study / "report" / "tables"
    for name in os.listdir(tables):
        found[f"tables/{name}"] = (tables / name).read_bytes()
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    (folder / "study.toml").write_text(STUDY)
    before = os.getcwd()
    os.chdir(folder)
    run = [PROGRAM, "run", "study.toml", "--out", "alone", "--device", "cpu"]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    yield folder
    os.chdir(before)


class Nodes:
    """A cluster whose head has no room for work, and nodes of one processor each."""

    def __init__(self, count, **options):
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        self.nodes = [self.cluster.add_node(num_cpus=1, memory=2 << 30, **options) for _ in range(count)]
        self.cluster.wait_for_nodes()

    @property
    def address(self):
        return self.cluster.address

    def kill_the_one_that_does(self, study, step):
        """Waits for a step to be under way, and kills the node that does it."""
        while True:
            try:
                held = json.loads((study / "steps" / f".{step}.lock").read_text())
                process = psutil.Process(held["process"])
                above = {parent.pid for parent in process.parents()}
                break
            except (OSError, ValueError, psutil.NoSuchProcess):
                time.sleep(0.02)
        for node in self.nodes:
            if node.all_processes["raylet"][0].process.pid in above:
                self.nodes.remove(node)
                self.cluster.remove_node(node, allow_graceful=False)
                return
        raise AssertionError(f"no node does {step}")


@pytest.fixture
def nodes(request):
    clusters = []

    def make(count, **options):
        clusters.append(Nodes(count, **options))
        return clusters[-1]

    yield make
    for made in clusters:
        made.cluster.shutdown()


def run(name, address, **options):
    catamount.ray.run("study.toml", out=name, address=address, device="cpu", program=[PROGRAM], **options)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_any_number_of_nodes_gives_the_same(place, nodes, count):
    run(f"nodes-{count}", nodes(count).address)
    assert results(place / f"nodes-{count}") == results(place / "alone")


@pytest.mark.parametrize("step", ["branch-ua", "cell-ce-dfs-n8", "tune-bfs-n8"])
def test_a_node_that_is_killed_in_a_step_loses_nothing(place, nodes, step, capfd):
    cluster = nodes(3)
    study = place / f"killed-{step}"
    killer = threading.Thread(target=cluster.kill_the_one_that_does, args=(study, step))
    killer.start()
    run(study.name, cluster.address)
    killer.join()
    assert len(cluster.nodes) == 2
    assert "it is done again elsewhere" in capfd.readouterr().err
    assert results(study) == results(place / "alone")


def test_files_travel_where_the_folder_is_not_seen(place, nodes):
    run("objects", nodes(2).address, objects=True)
    assert results(place / "objects") == results(place / "alone")


def test_a_study_has_one_driver_and_goes_on_after_it_is_killed(place, nodes):
    address = nodes(2).address
    command = [PROGRAM, "run", "study.toml", "--out", "drivers", "--device", "cpu", "--ray", address]
    environment = {**os.environ, "CATAMOUNT_PYTHON": sys.executable}
    first = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    while not (place / "drivers" / "steps" / "data.json").exists():
        time.sleep(0.05)
    second = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert second.returncode == 2 and f"process {first.pid} on" in second.stderr
    first.kill()
    first.wait()
    run("drivers", address)
    assert results(place / "drivers") == results(place / "alone")


def wrapped(place, name, script):
    """The program behind a script that knows on which node it runs."""
    path = place / name
    path.write_text(f"#!/bin/sh\nprogram={PROGRAM}\n{script}\nexec \"$program\" \"$@\"\n")
    path.chmod(0o755)
    return [str(path)]


def test_what_cannot_work_is_refused_before_anything_is_done(place, nodes):
    def refused(address, **options):
        with pytest.raises(RuntimeError) as error:
            options = {"program": [PROGRAM], "device": "cpu", **options}
            catamount.ray.run("study.toml", out="refused", address=address, **options)
        assert not (place / "refused" / "data").exists()
        return str(error.value)

    assert "nothing answers at 127.0.0.1:1" in refused("127.0.0.1:1")
    assert "is no address of a Ray cluster" in refused("somewhere")

    empty = nodes(0)
    said = refused(empty.address)
    assert "no node has room for data: it needs 1 processors" in said

    cluster = nodes(1)
    said = refused(cluster.address, device="cuda")
    assert "no node has room for warm-up" in said and "0 cards" in said
    node = cluster.cluster.add_node(num_cpus=1, env_vars={"OTHER": "1"})
    cluster.cluster.wait_for_nodes()
    other = '[ -n "$OTHER" ] && { "$program" "$@" | sed "s/\\"version\\":\\"[^\\"]*\\"/\\"version\\":\\"9.9.9\\"/"; exit; }'
    said = refused(cluster.address, program=wrapped(place, "other", other))
    assert f"({node.node_id[:8]}) has catamount 9.9.9" in said
    elsewhere = '[ -n "$OTHER" ] && { "$program" step study.toml --out /nowhere --probe; exit; }'
    said = refused(cluster.address, program=wrapped(place, "elsewhere", elsewhere))
    assert f"({node.node_id[:8]}) does not see {place / 'refused'}" in said
