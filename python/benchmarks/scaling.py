"""What spreading a study over a Ray cluster costs and gains, and what the planner said: on local
nodes of one processor each.

    python scaling.py [NODES ...]          a study of many small cells; 1, 2 and 4
                                            nodes if none are given (minutes)
    python scaling.py --demo [NODES ...]   the demo preset, which takes a processor twenty minutes

Times are without the start of the cluster. `overhead` is what is left of the nodes' time when their
tasks are taken away: on one node that is scheduling, on several the waiting of steps for each other
as well. `planned` is what `catamount run --ray --dry-run --nodes N --cpus 1` says, from the times
that the steps took on one node. `cores` is how many processors the machine has for them, `load`
what it had to do beside, before the run. Where every node has a processor of its own, a run that is
a quarter off its plan is a failure; more nodes than processors are `oversubscribed`, and planned
as if there were only as many. Every run must leave the same data, models, logs and tables.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "integration"))
import conftest  # noqa: E402, F401  Ray's settings for several nodes on one machine.
from studies import MANY_CELLS, PROGRAM, Nodes, outline, results, timed, words  # noqa: E402

PROCESSORS = len(os.sched_getaffinity(0))
OFF = 0.25
"""The share by which a run may differ from its plan."""


def planned(experiment: str, count: int, startup: float) -> float:
    """The seconds that the planner gives the study on so many nodes, or on as many of them as have
    a processor of their own.
    """
    machines = [
        "--nodes",
        str(min(count, PROCESSORS)),
        "--cpus",
        "1",
        "--startup",
        f"{startup:.3f}",
    ]
    asked = [
        PROGRAM,
        "run",
        experiment,
        "--out",
        "nodes-1",
        "--ray",
        "--dry-run",
        "--json",
        *machines,
    ]
    return json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)[
        "seconds"
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--demo", action="store_true", help="the demo preset instead of many small cells"
    )
    parser.add_argument("nodes", type=int, nargs="*", default=[1, 2, 4])
    arguments = parser.parse_args()
    experiment = "demo" if arguments.demo else "study.toml"
    nodes = Nodes()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("study.toml").write_text(MANY_CELLS)
        Path("words.mm").write_text(words())
        print(f"{experiment}, {PROCESSORS} processors")
        if not arguments.demo:
            alone = time.monotonic()
            subprocess.run(
                [PROGRAM, "run", experiment, "--out", "alone", "--device", "cpu"],
                check=True,
                capture_output=True,
            )
            print(f"one process without Ray, all processors: {time.monotonic() - alone:.1f} s")
        print(
            "\n| nodes | seconds | planned | tasks | their seconds together | overhead | cores "
            "| load |\n|---|---|---|---|---|---|---|---|"
        )
        startup, off = 0.0, []
        for count in sorted({1, *arguments.nodes}):
            name = f"nodes-{count}"
            address, load = nodes.ready(*[{}] * count), os.getloadavg()[0]
            wall, tasks = timed(address, name, experiment)
            if count == 1:
                steps = sum(step["seconds"] for step in outline(Path(name), experiment))
                startup = max(0.0, sum(tasks) - steps) / len(tasks)
            held = min(count, PROCESSORS) * wall
            share = f"{100 * max(0.0, 1 - sum(tasks) / held):.1f} %"
            plan, which = planned(experiment, count, startup), str(count)
            if count > PROCESSORS:
                # Their tasks share processors, and take as much longer.
                which, share = f"{count} (oversubscribed)", ""
            elif abs(wall - plan) > OFF * plan:
                off.append(f"{count} nodes: {wall:.1f} s, planned were {plan:.1f} s")
            print(
                f"| {which} | {wall:.1f} | {plan:.1f} | {len(tasks)} | {sum(tasks):.1f} | {share} "
                f"| {PROCESSORS} | {load:.1f} |",
                flush=True,
            )
            for other in ("nodes-1", "alone"):
                if Path(other).exists():
                    assert results(Path(name)) == results(Path(other)), f"{name} and {other} differ"
        print("\nThe data, models, logs and tables of all of them are the same.")
        os.chdir("/")
    nodes.shutdown()
    if off:
        sys.exit("not as planned: " + "; ".join(off))


if __name__ == "__main__":
    main()
