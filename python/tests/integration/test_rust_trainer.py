"""The Trainer integration against Catamount's own trainer: the same model, the same traces, the
same gradient.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch
from test_hf import TOKENIZER, TRACES, distance, gradient, model, parameters, train
from transformers import AutoModelForCausalLM

import catamount

ROOT = Path(__file__).parents[3]
EPS = 0.5


@pytest.fixture(scope="module")
def rust_trainer():
    """The program that takes one step. With the whole workspace, whose features it then shares, it
    is seldom compiled again.
    """
    build = ["cargo", "build", "--quiet", "--release", "--workspace", "--example", "gradient"]
    done = subprocess.run(build, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return str(target / "release/examples/gradient")


@pytest.mark.parametrize("objective", ["bfs", "vdfs", "ce"])
def test_the_gradient_is_that_of_the_rust_trainer(rust_trainer, tmp_path, objective):
    net = model()
    net.save_pretrained(tmp_path / "model")
    TOKENIZER.save_pretrained(tmp_path / "model")
    catamount.write_traces(tmp_path / "traces.jsonl", TRACES)
    files = [
        str(tmp_path / "model"),
        str(tmp_path / "traces.jsonl"),
        objective,
        "8",
        str(tmp_path / "stepped"),
    ]
    done = subprocess.run([rust_trainer, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.strip().splitlines()[-1])
    assert report["steps"] == 1 and report["tactics"] == sum(len(trace.steps) for trace in TRACES)

    # The first step of AdamW is g / (|g| + eps).
    stepped = parameters(
        AutoModelForCausalLM.from_pretrained(tmp_path / "stepped", dtype=torch.float32)
    )
    moved = {
        name: value.double() - stepped[name].double() for name, value in parameters(net).items()
    }
    rust = {name: EPS * step / (1 - step.abs()) for name, step in moved.items()}

    trainer = train(tmp_path, keywords={"objective": objective})
    assert trainer.state.log_history[0]["loss"] == pytest.approx(report["loss"], rel=1e-4)
    assert distance(gradient(parameters(model()), parameters(trainer.model)), rust) < 1e-4
