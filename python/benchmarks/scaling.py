"""What spreading a study over a Ray cluster costs and gains, and what the planner said: a study of many small cells on local
nodes of one processor each.

    python scaling.py [NODES ...]      the table of docs/scaling.md; 1, 2 and 4 nodes if none are given

Times are without the start of the cluster. `scheduling` is what is left of a node's time when its tasks are taken away, on
one node, where nothing waits for anything else; `planned` is what `catamount run --ray --dry-run --nodes N --cpus 1` says,
from the times that the steps took on one node.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "integration"))
import conftest  # noqa: E402, F401  Ray's settings for several nodes on one machine.
from studies import MANY_CELLS, PROGRAM, Nodes, outline, timed, words  # noqa: E402


def planned(count: int, startup: float) -> str:
    """What the planner says of the study on so many nodes."""
    asked = [PROGRAM, "run", "study.toml", "--out", "nodes-1", "--ray", "--dry-run", "--nodes", str(count), "--cpus", "1"]
    said = subprocess.run([*asked, "--startup", f"{startup:.3f}"], capture_output=True, text=True, check=True).stdout
    return re.search(r"^(.*) on \d+ nodes", said, re.MULTILINE).group(1)


def main() -> None:
    counts = [int(count) for count in sys.argv[1:]] or [1, 2, 4]
    nodes = Nodes()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("study.toml").write_text(MANY_CELLS)
        Path("words.mm").write_text(words())
        alone = time.monotonic()
        subprocess.run([PROGRAM, "run", "study.toml", "--out", "alone", "--device", "cpu"], check=True, capture_output=True)
        alone = time.monotonic() - alone
        print(f"{len(outline(Path('alone')))} steps; one process without Ray, all processors: {alone:.1f} s\n")
        print("| nodes | seconds | tasks | their seconds together | scheduling | planned |\n|---|---|---|---|---|---|")
        startup = 0.0
        for count in sorted({1, *counts}):
            wall, tasks = timed(nodes.ready(*[{}] * count), f"nodes-{count}")
            if count == 1:
                steps = sum(step["seconds"] for step in outline(Path("nodes-1")))
                startup = max(0.0, sum(tasks) - steps) / len(tasks)
            share = f"{100 * (1 - sum(tasks) / wall):.1f} %" if count == 1 else ""
            print(f"| {count} | {wall:.1f} | {len(tasks)} | {sum(tasks):.1f} | {share} | {planned(count, startup)} |", flush=True)
        os.chdir("/")
    nodes.shutdown()


if __name__ == "__main__":
    main()
