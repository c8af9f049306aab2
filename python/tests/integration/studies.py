"""A study of seconds with every kind of step, a cluster to do it on, and what two studies are
compared by.
"""

import contextlib
import fcntl
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
from ray.cluster_utils import Cluster

from catamount.node import installed

ENDED = re.compile(r"\[\d+/\d+\] .* on .*, ([\d.]+) s$")

PROGRAM = os.environ.get("CATAMOUNT_PROGRAM") or installed()

STUDY = """
name = "small"
probabilities = "training"
model = { hidden = 32, layers = 1, vocab = 100, positions = 64, tokenizer = "symbols" }
objectives = [{ objective = "ce" }, { objective = "bfs", prior = "fitted" }, { objective = "auto" }]

[tune]
objectives = ["ua"]
fitted = false
shares = [0.5]
temperatures = [0.8, 1.2]
theorems = 20
probabilities = "training"

[evaluation]
strategies = ["bfs", "dfs"]
budgets = [32]
steps = "1-5"
limit = 20
max_tokens = 12
trees = 3
cells = "all"

[data]
environment = "metamath"
database = "words.mm"
split = "0.35,0.45,0.2"

[warm_up]
epochs = 16
max_steps = 160
max_tokens = 48
batch = { examples = 16, tokens = 512 }
optimizer = { lr = 2e-2 }
checkpoints = { every = 8 }

[branch]
max_steps = 12
max_tokens = 48
batch = { examples = 8, tokens = 256 }
checkpoints = { every = 4 }
"""

MANY_CELLS = (
    STUDY.replace(
        '{ objective = "bfs", prior = "fitted" }, { objective = "auto" }', '{ objective = "ua" }'
    )
    .replace(
        'strategies = ["bfs", "dfs"]', 'strategies = ["pass", "bfs", "dfs", "rdfs", "vdfs", "mcts"]'
    )
    .replace("budgets = [32]", "budgets = [16, 32, 64, 128]")
    .replace("limit = 20", "limit = 33")
)
"""The same with 48 cells of a second or less, and nothing chosen."""


def words(letters="ABC", longest=4):
    """A Metamath database whose theorems are words, proved letter by letter: what a small model
    learns in seconds.
    """

    def formula(word):
        return " ".join(["wT", *(f"w{letter}" for letter in reversed(word))])

    def proof(word):
        return f"{formula(word[1:])} {proof(word[1:])} step{word[0]}" if word else "top"

    lines = [
        f"$c |- wff T {' '.join(letters)} $.",
        "$v p $.",
        "wp $f wff p $.",
        "wT $a wff T $.",
        "top $a |- T $.",
    ]
    for letter in letters:
        lines += [
            f"w{letter} $a wff {letter} p $.",
            f"${{ e{letter} $e |- p $. step{letter} $a |- {letter} p $. $}}",
        ]
    for length in range(1, longest + 1):
        for word in map("".join, itertools.product(letters, repeat=length)):
            lines.append(f"t{word} $p |- {' '.join(word)} T $= {proof(word)} $.")
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def place_of(study, database):
    """A folder with a study that one process has done in `alone`; the current one meanwhile."""
    # In memory, where there is such a place: nobody waits for a disk in the middle of a step.
    folder = Path(
        tempfile.mkdtemp(prefix="studies-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    )
    (folder / "study.toml").write_text(study)
    (folder / "words.mm").write_text(database)
    before = os.getcwd()
    os.chdir(folder)
    done = subprocess.run(
        [PROGRAM, "run", "study.toml", "--out", "alone", "--device", "cpu"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    yield folder
    os.chdir(before)
    shutil.rmtree(folder)


def results(study):
    """Everything that clocks and machines have no part in."""
    found = {}
    for part in ("data", "models", "calibration", "cells", "tune"):
        for parent, _, names in os.walk(study / part):
            for name in names:
                if name.startswith(".") or name.endswith(
                    ("times.jsonl", "timing.json", "manifest.json")
                ):
                    continue
                path = os.path.join(parent, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, study)] = file.readlines()
    tables = study / "report" / "tables"
    for name in os.listdir(tables):
        found[f"tables/{name}"] = (tables / name).read_bytes()
    return found


def outline(study, experiment="study.toml"):
    """The plan of a study, as data."""
    asked = [PROGRAM, "run", experiment, "--out", str(study), "--dry-run", "--json"]
    return json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)[
        "steps"
    ]


def timed(address, name, experiment="study.toml"):
    """Runs the study; the seconds from its first task's beginning to its last one's end, and those
    of each task.
    """
    arguments = [PROGRAM, "run", experiment, "--out", name, "--device", "cpu", "--ray", address]
    environment = {**os.environ, "CATAMOUNT_PYTHON": sys.executable}
    run = subprocess.Popen(
        arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    tasks, said, begun, ended = [], [], 0.0, 0.0
    for line in run.stderr:
        said.append(line)
        found = ENDED.match(line.strip())
        if found:
            tasks.append(float(found.group(1)))
            ended = time.monotonic()
            begun = begun or ended - tasks[0]
    assert run.wait() == 0, f"the study failed on {name}: {''.join(said[-20:])}"
    return ended - begun, tasks


def unfinished(place, name, *steps):
    """A copy of the finished study in which some steps are still to be done."""
    study = place / name
    shutil.copytree(place / "alone", study)
    for step in outline(study):
        if step["id"] in steps:
            for path in step["outputs"]:
                whole = study / path
                shutil.rmtree(whole) if whole.is_dir() else whole.unlink(missing_ok=True)
    return study


def wrapped(place, name, script):
    """The program behind a script that knows on which node it runs."""
    path = place / name
    path.write_text(f'#!/bin/sh\nprogram={PROGRAM}\n{script}\nexec "$program" "$@"\n')
    path.chmod(0o755)
    return [str(path)]


def is_done(study, step):
    """Whether the stamp of a step says so."""
    try:
        return json.loads((study / "steps" / f"{step}.json").read_text())["done"]
    except (OSError, ValueError):
        return False


def freeze(study, step, whom="program"):
    """Waits for a step to be under way, and stops the program that does it, or Ray's worker that
    started the program.
    """
    with contextlib.suppress(PermissionError):
        # A step lasts a tenth of a second: on a busy machine it would be over before this thread
        # had its turn.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -20)
    deadline = time.monotonic() + 60
    while True:
        try:
            held = json.loads((study / "steps" / f".{step}.lock").read_text())
            process = psutil.Process(held["process"])
            above = process.parents()
            for frozen in [process] if whom == "program" else [process, above[0]]:
                frozen.send_signal(signal.SIGSTOP)
            return process, {parent.pid for parent in above}
        except (OSError, ValueError, psutil.NoSuchProcess):
            assert time.monotonic() < deadline and not is_done(study, step), (
                f"{step} was over before it was caught"
            )
            time.sleep(0.001)


@contextlib.contextmanager
def held(study, step):
    """Keeps a step from going on as long as this lasts: whoever does it waits for a lock, however
    quick it would have been.
    """
    with open(study / "steps" / f".{step}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def programs(command):
    """The processes that do a command of the program now, each with its arguments."""
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        # The program of the package is a script: its first word is then Python.
        for first in (0, 1):
            if line[first : first + 2] == [PROGRAM, command]:
                yield process, line[first + 2 :]


def until(condition, seconds=120):
    """Waits for something."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.05)


def under_way(*steps):
    """The program that does one of these steps, waited for, and which."""
    found = []

    def one():
        for process, arguments in programs("step"):
            if "--only" in arguments:
                found.extend((process, step) for step in steps if step in arguments)
        return found

    until(one)
    return found[0]


class Nodes:
    """A cluster whose head has no room for work, and nodes of one processor each. Starting is what
    takes time: it is kept.
    """

    def __init__(self, cpus=1):
        self.cluster, self.nodes, self.cpus = None, [], cpus

    def ready(self, *environments):
        """The address, with a node for each of these environments and no others."""
        if self.cluster is None:
            head = {"num_cpus": 0, "include_dashboard": False, "include_log_monitor": False}
            self.cluster = Cluster(initialize_head=True, head_node_args=head)
        wanted = list(environments)
        for node, environment in list(self.nodes):
            if environment in wanted:
                wanted.remove(environment)
            else:
                self.nodes.remove((node, environment))
                self.cluster.remove_node(node)
        for environment in wanted:
            self.add(environment)
        self.cluster.wait_for_nodes()
        return self.cluster.address

    def add(self, environment):
        node = self.cluster.add_node(
            num_cpus=self.cpus, memory=2 << 30, include_log_monitor=False, env_vars=environment
        )
        self.nodes.append((node, environment))
        return node

    def kill_the_one_that_does(self, study, step):
        """Kills the node that does a step, in the middle of it."""
        program, above = freeze(study, step)
        for node, environment in list(self.nodes):
            if node.all_processes["raylet"][0].process.pid in above:
                self.nodes.remove((node, environment))
                self.cluster.worker_nodes.discard(node)
                node.kill_all_processes(check_alive=False, allow_graceful=False)
                program.kill()
                return
        raise AssertionError(f"no node does {step}")

    def kill_the_head(self):
        """Kills the head; the nodes that are left go down with the cluster."""
        self.cluster.head_node.kill_all_processes(check_alive=False, allow_graceful=False)

    def shutdown(self):
        if self.cluster is not None:
            self.cluster.shutdown()
        self.cluster, self.nodes = None, []
