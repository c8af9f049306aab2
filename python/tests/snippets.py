"""The commands and the Python of the documentation, taken out of its pages and run.

A fenced block begins with its language. `sh` is run by a shell that stops at the first failure;
`console` is a session, in which a line after `$ ` is a command and what follows is what it prints
(`...` stands for anything); `python` blocks of a page are one program. All blocks of a page run in
one folder. A mark after the language, as in `sh,gpu`, says what a block needs that a test does not
have: those are listed, not run. `torch` and `ray` blocks, and a guide's `rehearsal`, are run by the
integration tests, the guide for servers by test_server_snippets.py with a fake, that for provers
behind HTTP by test_service_snippets.py with the provers themselves. `rust` blocks are doctests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOY = Path(__file__).parent / "toy.mm"
RUN = ("sh", "console", "python")
OTHER = ("rust", "json", "toml", "text", "yaml")
MARKS = ("gpu", "server", "slow", "install", "cargo", "ray", "torch", "rehearsal")

# What a page takes for given before its first block.
PREAMBLES = {
    "docs/guides/report.md": """import os, pathlib
os.environ.update(MLFLOW_TRACKING_URI="file:tracked", MLFLOW_ALLOW_FILE_STORE="true")
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true")
for folder in ("study/training", "study/steps"):
    pathlib.Path(folder).mkdir(parents=True)
pathlib.Path("study/steps/report.json").write_text('{"done": true}')
pathlib.Path("study/training/ce.metrics.jsonl").write_text('{"step": 1, "loss": 2.5}\\n')
""",
    "python/README.md": "import catamount\npolicy = catamount.NgramPolicy('train.jsonl')\n",
    "python/docs/from-leandojo.md": """import catamount
for name in ("ce", "bfs"):
    policy = catamount.NgramPolicy("train.jsonl", temperature={"ce": 1.0, "bfs": 0.8}[name])
    cell = {"database": "set.mm", "strategy": "bfs", "budget": 8, "out": f"cells/{name}.jsonl"}
    catamount.search("test.jsonl", policy=policy, **cell)
""",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    marks: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line} ({','.join((self.language, *self.marks))})"


def pages() -> list[str]:
    """Every page that people read, relative to the repository."""
    found = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("crates/*/README.md"),
        *ROOT.glob("python/**/*.md"),
    ]
    # Results are records of what was run, most of it on a GPU.
    left = ROOT / "docs/results.md"
    return sorted(
        str(page.relative_to(ROOT))
        for page in found
        if page != left and "node_modules" not in page.parts
    )


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    found, inside, start, info = [], None, 0, ""
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        if inside is None and line.startswith("```"):
            inside, start, info = [], number, line[3:].strip()
        elif inside is not None and line.startswith("```"):
            language, *marks = info.split(",")
            found.append(Block(page, start, language, tuple(marks), "\n".join(inside) + "\n"))
            inside = None
        elif inside is not None:
            inside.append(line)
    return found


def run_page(page: str, folder: Path, preamble: str = "", torch: bool = False) -> list[Block]:
    """Runs the blocks of a page, in order, in a folder; returns those that were left out."""
    program, left = preamble, []
    for block in blocks(page):
        if block.language not in RUN:
            continue
        needs = [mark for mark in block.marks if not (torch and mark == "torch")]
        if needs:
            left.append(block)
        elif block.language == "python":
            program += f"\n# {block}\n{block.text}"
        elif block.language == "console":
            session(block, folder)
        else:
            check(block, shell(block.text, folder))
    if program != preamble:
        script = folder / "page.py"
        script.write_text(program, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(script)],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{page}:\n{done.stderr[-3000:]}"
    return left


def session(block: Block, folder: Path) -> None:
    """Runs the commands of a session and compares what they print."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    for part in parts:
        command, expected = part.split("\n", 1)
        done = shell(command, folder)
        check(block, done)
        pattern = re.escape(expected.rstrip("\n")).replace(re.escape("..."), ".*")
        assert re.fullmatch(pattern, done.stdout.rstrip("\n"), re.DOTALL), (
            f"{block}: `{command}` prints\n{done.stdout}\nand not\n{expected}"
        )


def shell(command: str, folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )


def environment() -> dict[str, str]:
    """With the installed `catamount` in front."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def check(block: Block, done: subprocess.CompletedProcess) -> None:
    assert done.returncode == 0, (
        f"{block}: exit code {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
    )
