"""Whole studies on a real Ray cluster of several nodes: the same folder as one process makes,
whatever happens on the way.
"""

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import ray
from studies import (
    MANY_CELLS,
    PROGRAM,
    STUDY,
    Nodes,
    freeze,
    held,
    is_done,
    outline,
    place_of,
    results,
    timed,
    under_way,
    unfinished,
    until,
    words,
    wrapped,
)

import catamount.ray
from catamount.cluster import Bridge, Task
from catamount.connection import living, watch

CELL = "cell-bfs+fitted-dfs-n32"
PLAIN: dict[str, str] = {}

# Minutes of waiting for what does not answer, on a cluster of one's own: `make test-cluster` does
# it.
patient = pytest.mark.skipif(
    "CATAMOUNT_CLUSTER_FAULTS" not in os.environ,
    reason="set CATAMOUNT_CLUSTER_FAULTS, or run `make test-cluster`",
)


@pytest.fixture(scope="module")
def place():
    with place_of(STUDY, words()) as folder:
        yield folder


@pytest.fixture(scope="module")
def nodes():
    made = Nodes()
    yield made
    made.shutdown()


def run(name, address, **options):
    options = {"program": [PROGRAM], **options}
    catamount.ray.run("study.toml", out=name, address=address, device="cpu", **options)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_any_number_of_nodes_gives_the_same(place, nodes, count):
    run(f"nodes-{count}", nodes.ready(*[PLAIN] * count))
    assert results(place / f"nodes-{count}") == results(place / "alone")


def test_nodes_that_are_killed_in_a_step_lose_nothing(place, nodes, capfd):
    steps = ["calibration-bfs-n32-t0.8", "branch-bfs+fitted", "tune-dfs-n32", CELL]
    address = nodes.ready(*[PLAIN] * (1 + len(steps)))
    study = place / "killed"
    killers = [
        threading.Thread(target=nodes.kill_the_one_that_does, args=(study, step)) for step in steps
    ]
    for killer in killers:
        killer.start()
    run(study.name, address)
    for killer in killers:
        killer.join()
    assert len(nodes.nodes) == 1
    assert capfd.readouterr().err.count("it is done again elsewhere") >= len(steps)
    assert results(study) == results(place / "alone")


def test_files_travel_where_the_folder_is_not_seen(place, nodes):
    run("objects", nodes.ready(PLAIN, PLAIN), objects=True)
    assert results(place / "objects") == results(place / "alone")


def test_seeds_are_done_side_by_side(place, nodes, capfd):
    few = MANY_CELLS.replace(
        '"pass", "bfs", "dfs", "rdfs", "vdfs", "mcts"', '"bfs", "dfs"'
    ).replace("16, 32, 64, 128", "16")
    (place / "seeds.toml").write_text("seeds = [3, 11]\n" + few)
    alone = [PROGRAM, "run", "seeds.toml", "--out", "seeds-alone", "--device", "cpu"]
    subprocess.run(alone, check=True, capture_output=True)
    address = nodes.ready(PLAIN, PLAIN)
    capfd.readouterr()
    catamount.ray.run("seeds.toml", out="seeds", address=address, device="cpu", program=[PROGRAM])
    said = capfd.readouterr().err
    ended = re.findall(r"\] seed (\d+), (\S+)", said)
    assert ended.index(("11", "warm-up")) < ended.index(("3", "report")), "one waited for the other"
    for seed in ("seed-3", "seed-11"):
        assert results(place / "seeds" / seed) == results(place / "seeds-alone" / seed)
    tables = Path("report", "tables", "sweep.csv")
    assert (place / "seeds" / tables).read_bytes() == (place / "seeds-alone" / tables).read_bytes()


def test_scheduling_takes_less_than_a_twentieth_of_many_small_cells(place, nodes):
    # On one node of one processor nothing waits for anything else. What else the machine does makes
    # tasks longer as well as what is between them; the best of three is not its doing.
    (place / "many.toml").write_text(MANY_CELLS)
    shares = []
    while len(shares) < 3 and min(shares, default=1.0) >= 0.05:
        address = nodes.ready(PLAIN)
        wall, tasks = timed(address, f"many-{len(shares)}", "many.toml")
        shares.append(1 - sum(tasks) / wall)
    assert len(tasks) > 10 and min(shares) < 0.05, shares


@patient
@pytest.mark.parametrize("whom", ["program", "worker"])
def test_a_step_that_hangs_is_given_to_another(place, nodes, whom, capfd):
    address = nodes.ready(PLAIN, PLAIN)
    study = unfinished(place, f"hangs-{whom}", CELL)
    freezer = threading.Thread(target=freeze, args=(study, CELL, whom))
    freezer.start()
    run(study.name, address, patience=3)
    freezer.join()
    said = capfd.readouterr().err
    assert (
        "cell bfs+fitted dfs n32: no sign of life from" in said
        and "for 3 s; it is done again elsewhere" in said
    )
    assert results(study) == results(place / "alone")


BRANCHES = ("branch-ce", "branch-bfs+fitted", "branch-auto-ua-for-n16-t0.8")


@patient
@pytest.mark.parametrize("objects", [False, True])
def test_a_node_with_a_full_disk_hands_its_steps_on(place, nodes, objects, capfd):
    address = nodes.ready(PLAIN, {"FULL": "1"})
    study = unfinished(place, f"full-{objects}", *BRANCHES)
    # Whatever is written there fails after the first kilobyte, as on a disk that is full.
    full = 'case "$FULL$*" in 1*--only*) trap "" XFSZ; ulimit -f 1;; esac'
    run(study.name, address, objects=objects, program=wrapped(place, "full", full))
    said = capfd.readouterr().err
    assert "failed on" in said and "File too large" in said and "it is done again elsewhere" in said
    assert results(study) == results(place / "alone")


@patient
def test_what_fails_on_two_nodes_is_a_failure(place, nodes):
    address = nodes.ready(PLAIN, PLAIN)
    study = unfinished(place, "fails", "branch-ce")
    said = 'echo "the card has fallen off the bus" >&2; exit 3'
    broken = f'case "$*" in *"--only branch-ce"*) {said};; esac'
    with pytest.raises(
        RuntimeError, match="branch ce on .*exit status 3: the card has fallen off the bus"
    ):
        run(study.name, address, program=wrapped(place, "broken", broken))
    run(study.name, address)
    assert results(study) == results(place / "alone")


def test_a_step_that_no_node_is_left_for_is_named_and_ended(place, nodes, capfd):
    address = nodes.ready(PLAIN)
    study = unfinished(place, "nowhere", "branch-ce")
    killer = threading.Thread(target=nodes.kill_the_one_that_does, args=(study, "branch-ce"))
    killer.start()
    with pytest.raises(RuntimeError, match="for 4 s no node has had room for it: it needs 1"):
        run(study.name, address, patience=4)
    killer.join()
    assert "branch ce waits: no node has had room for it: it needs 1 proc" in capfd.readouterr().err
    run(study.name, nodes.ready(PLAIN))
    assert results(study) == results(place / "alone")


def test_what_cannot_be_written_here_is_said_and_is_not_the_clusters_fault(place, nodes):
    address = nodes.ready(PLAIN)
    study = unfinished(place, "unwritable", "branch-ce")
    model = study / "models" / "ce"
    # A file where a folder is to be, which stops root as well.
    spoil = f'case "$*" in *"--only branch-ce"*) rm -rf {model}; touch {model};; esac'
    with pytest.raises(RuntimeError) as error:
        run(study.name, address, objects=True, program=wrapped(place, "spoil", spoil))
    assert f"{model}/" in str(error.value) and "cannot be written here" in str(error.value)
    assert "head has ended" not in str(error.value)
    model.unlink()
    run(study.name, address, objects=True)
    assert results(study) == results(place / "alone")


def test_a_node_that_joins_later_is_looked_at_first(place, nodes, capfd):
    address = nodes.ready(PLAIN)
    study, asked = unfinished(place, "late", *BRANCHES), place / "asked"
    version = 's/\\"version\\":\\"[^\\"]*\\"/\\"version\\":\\"9.9.9\\"/'
    other = f'[ -n "$OTHER" ] && {{ touch {asked}; "$program" "$@" | sed "{version}"; exit; }}'

    options = {"program": wrapped(place, "late-other", other)}
    runner = threading.Thread(target=run, args=(study.name, address), kwargs=options)
    with contextlib.ExitStack() as locks:
        kept = {step: locks.enter_context(contextlib.ExitStack()) for step in BRANCHES}
        for step, lock in kept.items():
            lock.enter_context(held(study, step))
        runner.start()
        first = under_way(*BRANCHES)[1]
        nodes.add({"OTHER": "1"})
        until(asked.exists)
        nodes.add(PLAIN)
        others = [step for step in BRANCHES if step != first]
        for step in others:
            kept[step].close()
        until(lambda: any(is_done(study, step) for step in others))
    runner.join()
    said = capfd.readouterr().err
    assert said.count("has catamount 9.9.9") == 1 and "it joined later and is left out" in said
    assert results(study) == results(place / "alone")


@patient
def test_a_file_that_ray_loses_is_sent_again(place, nodes):
    ray.init(address=nodes.ready(PLAIN, PLAIN), logging_level="error")
    try:
        study = unfinished(place, "evicted", "branch-ce")
        step = next(step for step in outline(study) if step["id"] == "branch-ce")
        arguments = [
            "step",
            "study.toml",
            "--out",
            str(study),
            "--device",
            "cpu",
            "--tied",
            "--only",
            step["id"],
        ]
        order = {
            "number": 1,
            "name": step["name"],
            "arguments": arguments,
            "needs": {**step["needs"], "gpus": 0.0},
        }
        order |= {
            "inputs": step["inputs"],
            "outputs": step["outputs"],
            "folder": str(study),
            "provers": False,
            "without": [],
        }
        heard = []
        hello = {"program": [PROGRAM], "here": str(place), "objects": True, "patience": 60.0}
        hello["probe"] = []
        bridge = Bridge(hello, living(), lambda kind, value: heard.append((kind, value)))
        bridge.objects.of(order["folder"], order["inputs"])
        known = bridge.objects.known

        @ray.remote(num_cpus=0)
        class Owner:
            """Has objects of its own, which are lost with it."""

            def keep(self, references):
                return [ray.put(ray.get(reference)) for reference in references]

        owner = Owner.remote()
        for content, reference in known.items():
            known[content] = ray.get(owner.keep.remote([reference]))[0]
        ray.kill(owner)
        bridge.begin(Task(order))
        while bridge.tasks:
            bridge.look()
        assert [kind for kind, _ in heard] == ["lost", "ended"], heard
        assert "Ray lost a file that it needs" in heard[0][1]["reason"] and heard[1][1]["code"] == 0
    finally:
        ray.shutdown()
    assert results(study) == results(place / "alone")


def command(name, address):
    """`catamount run --ray` itself, and its environment."""
    arguments = [PROGRAM, "run", "study.toml", "--out", name, "--device", "cpu", "--ray", address]
    return arguments, {**os.environ, "CATAMOUNT_PYTHON": sys.executable}


@patient
def test_a_study_has_one_driver_and_goes_on_after_it_is_killed(place, nodes):
    address = nodes.ready(PLAIN, PLAIN)
    arguments, environment = command("drivers", address)
    first = subprocess.Popen(arguments, env=environment, stderr=subprocess.DEVNULL)
    while not (place / "drivers" / "steps" / "data.json").exists():
        time.sleep(0.05)
    second = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    assert second.returncode == 2 and f"process {first.pid} on" in second.stderr
    first.kill()
    first.wait()
    run("drivers", address)
    assert results(place / "drivers") == results(place / "alone")


@patient
def test_a_study_goes_on_after_the_head_is_started_anew(place, nodes):
    address = nodes.ready(PLAIN, PLAIN)
    study = unfinished(place, "head", CELL, "branch-bfs+fitted")
    arguments, environment = command(study.name, address)
    # In the middle of a step, which stays there until the head is gone.
    with held(study, "branch-bfs+fitted"):
        driver = subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True)
        program, _ = under_way("branch-bfs+fitted")
        nodes.kill_the_head()
        said = driver.communicate(timeout=60)[1]
        assert (
            driver.returncode == 2
            and "the Ray cluster is gone: its head has ended, or was started anew" in said
        ), said
        program.kill()
        nodes.shutdown()
    run(study.name, nodes.ready(PLAIN, PLAIN))
    assert results(study) == results(place / "alone")


def test_a_head_that_does_not_answer_is_missed_whatever_ray_waits_for():
    with socket.create_server(("127.0.0.1", 0)) as head:
        address = f"127.0.0.1:{head.getsockname()[1]}"
        missed = threading.Event()
        threading.Thread(target=watch, args=(address, 1.0, missed.set), daemon=True).start()
        assert not missed.wait(2.0), "it answers"
    assert missed.wait(10.0)


def test_what_cannot_work_is_refused_before_anything_is_done(place, nodes):
    def refused(address, **options):
        with pytest.raises(RuntimeError) as error:
            options = {"program": [PROGRAM], "device": "cpu", **options}
            catamount.ray.run("study.toml", out="refused", address=address, **options)
        assert not (place / "refused" / "data").exists()
        return str(error.value)

    assert "nothing answers at 127.0.0.1:1" in refused("127.0.0.1:1")
    assert "is not the address of a Ray cluster" in refused("somewhere")
    assert "use the head's HOST:6379 from a node" in refused("ray://127.0.0.1:10001")
    assert "no node has room for data: it needs 1 processors" in refused(nodes.ready())

    address = nodes.ready(PLAIN, {"OTHER": "1"})
    said = refused(address, device="cuda")
    assert "no node has room for warm-up" in said and "0 cards" in said
    node = next(node for node, environment in nodes.nodes if environment)
    version = 's/\\"version\\":\\"[^\\"]*\\"/\\"version\\":\\"9.9.9\\"/'
    other = f'[ -n "$OTHER" ] && {{ "$program" "$@" | sed "{version}"; exit; }}'
    said = refused(address, program=wrapped(place, "other", other))
    assert f"({node.node_id[:8]}) has catamount 9.9.9" in said
    (place / "other-library").mkdir()
    (place / "other-library" / "words.mm").write_text(words(longest=2))
    library = '[ -n "$OTHER" ] && cd other-library'
    said = refused(address, program=wrapped(place, "library", library))
    assert f"({node.node_id[:8]}) has another prover" in said
    elsewhere = '[ -n "$OTHER" ] && { "$program" step study.toml --out /nowhere --probe; exit; }'
    said = refused(address, program=wrapped(place, "elsewhere", elsewhere))
    assert f"({node.node_id[:8]}) does not see {place / 'refused'}" in said
