"""Prover workers of their own on a real Ray cluster of two nodes: whatever becomes of them, the
study is the one that a process with a prover of its own makes.
"""

import json
import os
import signal
import threading
import time

import psutil
import pytest
from studies import PROGRAM, STUDY, Nodes, freeze, place_of, programs, results, words

import catamount.ray

# One branch, and more to search, so that there is time to disturb it.
LONGER = (
    STUDY.replace(', { objective = "bfs", prior = "fitted" }, { objective = "auto" }', "")
    .replace("max_steps = 160", "max_steps = 60")
    .replace("limit = 20", "limit = 33")
    .replace("budgets = [32]", "budgets = [256]")
)


@pytest.fixture(scope="module")
def place():
    with place_of(LONGER, words()) as folder:
        yield folder


@pytest.fixture(scope="module")
def nodes():
    made = Nodes(cpus=2)
    yield made
    made.shutdown()


def services():
    """The services of prover workers that run now, each with Ray's worker that started it."""
    tied = [process for process, arguments in programs("serve") if "--tied" in arguments]
    return [(process, process.parent()) for process in tied]


def advance(process, log, lines):
    """Lets a stopped program go on, a moment at a time, until its log has so many lines."""
    while not log.exists() or len(log.read_bytes().splitlines()) < lines:
        process.send_signal(signal.SIGCONT)
        time.sleep(0.01)
        process.send_signal(signal.SIGSTOP)


def kill(study, killed):
    """Kills a service, and later Ray's worker of another, in the middle of a cell."""
    searching, _ = freeze(study, "cell-ce-bfs-n256")
    try:
        for which, lines in [(0, 3), (1, 8)]:
            advance(searching, study / "cells" / "ce-bfs-n256.jsonl", lines)
            victim = services()[0][which]
            killed.append(victim.pid)
            victim.kill()
            while len(services()) < 2 or any(
                process.pid in killed for pair in services() for process in pair
            ):
                time.sleep(0.05)
    finally:
        # Whatever went wrong here is to fail the test, not to hang it.
        searching.send_signal(signal.SIGCONT)


def test_provers_of_their_own_that_are_killed_lose_nothing(place, nodes):
    address = nodes.ready({}, {})
    study, killed = place / "provers", []
    killer = threading.Thread(target=kill, args=(study, killed), daemon=True)
    killer.start()
    catamount.ray.run(
        "study.toml", out=study.name, address=address, device="cpu", program=[PROGRAM], provers=2
    )
    assert len(killed) == 2, "nothing was disturbed"
    assert results(study) == results(place / "alone")
    uses = json.loads((study / "provers.json").read_text())
    # One that was killed before it was asked for anything has left no use of it.
    assert len({use["place"] for use in uses}) == 2, uses
    assert all(0.0 < use["busy"] < use["seconds"] for use in uses if use["answered"] > 100), uses
    assert "Generators and provers" in (study / "report" / "index.html").read_text()
    # Whoever asked for them takes them along.
    assert not services()


def stop(study, stopped):
    """Stops a service for good, in the middle of a cell."""
    searching, _ = freeze(study, "cell-ce-bfs-n256")
    try:
        advance(searching, study / "cells" / "ce-bfs-n256.jsonl", 3)
        service, _ = services()[0]
        service.send_signal(signal.SIGSTOP)
        stopped.append(service)
    finally:
        searching.send_signal(signal.SIGCONT)


def test_a_prover_that_hangs_is_replaced(place, nodes, capfd):
    address, study, stopped = nodes.ready({}, {}), place / "stopped", []
    stopper = threading.Thread(target=stop, args=(study, stopped), daemon=True)
    stopper.start()
    options = {"address": address, "device": "cpu", "program": [PROGRAM], "provers": 2}
    catamount.ray.run("study.toml", out=study.name, patience=6, **options)
    stopper.join()
    assert "a prover worker: its service has not answered for 6 s" in capfd.readouterr().err
    # It would have outlived its actor. Nobody may have asked yet how it ended.
    assert stopped
    assert not stopped[0].is_running() or stopped[0].status() == psutil.STATUS_ZOMBIE
    assert results(study) == results(place / "alone")


@pytest.mark.skipif(
    "CATAMOUNT_CLUSTER_FAULTS" not in os.environ, reason="`make test-cluster` does it"
)
def test_provers_are_found_where_the_folder_is_not_seen(place, nodes):
    options = {"address": nodes.ready({}, {}), "device": "cpu", "program": [PROGRAM], "provers": 2}
    catamount.ray.run("study.toml", out="objects", objects=True, **options)
    assert results(place / "objects") == results(place / "alone")
    assert "Generators and provers" in (place / "objects" / "report" / "index.html").read_text()


def test_more_provers_than_there_is_room_for_are_refused(place, nodes):
    with pytest.raises(RuntimeError, match="no room for 4 prover workers beside the steps"):
        catamount.ray.run(
            "study.toml",
            out="crowded",
            address=nodes.ready({}, {}),
            device="cpu",
            program=[PROGRAM],
            provers=4,
        )
    assert not (place / "crowded" / "data").exists()
