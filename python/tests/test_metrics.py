"""A study's training metrics reach whoever follows them."""

import json
import threading

import pytest

from catamount.metrics import follow, report


def write(path, *rows, torn=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows) + torn)


def row(step, **more):
    return {
        "objective": "ce",
        "budget": None,
        "step": step,
        "steps": 4,
        "loss": 1.0 / step,
        "p_quantiles": [0.1],
        **more,
    }


def test_lines_of_every_run_are_handed_over_with_their_numbers(tmp_path):
    write(
        tmp_path / "training/warm-up.metrics.jsonl",
        row(1),
        row(2, valid={"ce": 3.0, "tactics": 7}),
        torn='{"step": 3, "lo',
    )
    write(tmp_path / "seed-43/training/bfs+fitted.metrics.jsonl", row(4))
    write(tmp_path / "stale/0001-branch-bfs/training/bfs.metrics.jsonl", row(4))
    logged = []
    assert report(tmp_path, lambda metrics, step: logged.append((step, metrics))) == 3
    assert logged == [
        (4, {"seed-43/bfs_fitted/loss": 0.25}),
        (1, {"warm-up/loss": 1.0}),
        (2, {"warm-up/loss": 0.5, "warm-up/valid/ce": 3.0, "warm-up/valid/tactics": 7.0}),
    ]


def test_what_a_resumed_run_repeats_is_said_once(tmp_path):
    write(tmp_path / "training/ce.metrics.jsonl", row(1), row(2), row(3), row(2), row(3), row(4))
    assert [line.step for line in follow(tmp_path)] == [1, 2, 3, 4]


def test_a_study_is_followed_from_before_it_began_to_its_report(tmp_path):
    study, taken, begun = tmp_path / "study", [], threading.Event()

    def take():
        for line in follow(study, live=True, every=0.01):
            taken.append((line.run, line.step))
            begun.set()

    follower = threading.Thread(target=take)
    follower.start()
    write(study / "training/warm-up.metrics.jsonl", row(1))
    assert begun.wait(20)
    write(study / "training/ce.metrics.jsonl", row(1), row(2))
    write(study / "steps/report.json", {"key": "0", "done": True})
    follower.join(20)
    assert not follower.is_alive()
    assert taken == [("warm-up", 1), ("ce", 1), ("ce", 2)]


def test_a_folder_without_metrics_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no training metrics"):
        next(follow(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="seconds between two looks"):
        next(follow(tmp_path, live=True, every=0))
