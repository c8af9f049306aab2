"""TRL's SFTTrainer with a weight column: the loss, the recipe, an adapter with its card, two
processes.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from datasets import Dataset
from transformers import set_seed
from trl import SFTConfig, SFTTrainer

import catamount
from catamount.hf import CatTrainer, HeldOut, TraceDataset, weighted, write_weight_column

sys.path.insert(0, str(Path(__file__).parent))
from test_hf import (  # noqa: E402
    EXAMPLES,
    TOKENIZER,
    TRACES,
    arguments,
    gradient,
    model,
    parameters,
)

SEARCH = {"objective": "bfs", "budget": 8}


def settings(folder, **changes):
    return SFTConfig(
        **{
            "output_dir": str(folder), "per_device_train_batch_size": 64, "max_steps": 1,
            "learning_rate": 0.1, "optim": "sgd",
            "max_grad_norm": 0.0, "lr_scheduler_type": "constant", "save_strategy": "no",
            "report_to": "none", "use_cpu": True,
            "disable_tqdm": True, "logging_steps": 1, "seed": 0, "loss_type": "nll",
            "completion_only_loss": True, "bf16": False,
            "gradient_checkpointing": False, **changes,
        }
    )  # fmt: skip


def column(folder, **changes):
    rows = write_weight_column(folder / "weights.jsonl", TRACES, model(), TOKENIZER, **SEARCH)
    return Dataset.from_list([{**row, **changes} for row in rows])


def step(trainer_class, folder, data, **changes):
    set_seed(0)
    net = model()
    before = parameters(net)
    trainer = trainer_class(
        net, settings(folder, **changes), train_dataset=data, processing_class=TOKENIZER
    )
    trainer.train()
    return gradient(before, parameters(trainer.model)), trainer


def test_weights_of_one_are_plain_fine_tuning(tmp_path):
    data = column(tmp_path, weight=1.0)
    plain, _ = step(SFTTrainer, tmp_path, data.select_columns(["input_ids", "completion_mask"]))
    ours, trainer = step(weighted(SFTTrainer), tmp_path, data)
    torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-6)
    assert type(trainer).__name__ == "WeightedSFTTrainer"


@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_weighted_step_is_that_of_our_own_trainer(tmp_path, accumulate):
    rows = column(tmp_path)
    size = -(-len(rows) // accumulate)
    ours, _ = step(
        weighted(SFTTrainer),
        tmp_path,
        rows,
        per_device_train_batch_size=size,
        gradient_accumulation_steps=accumulate,
    )
    weights, at = [], 0
    for trace in TRACES:
        weights.append(rows["weight"][at : at + len(trace.steps)])
        at += len(trace.steps)
    net = model()
    before = parameters(net)
    data = TraceDataset(TRACES, TOKENIZER, weights=weights)
    trainer = CatTrainer(
        net,
        arguments(tmp_path),
        train_dataset=data,
        processing_class=TOKENIZER,
        normalise="tokens",
        **SEARCH,
    )
    trainer.train()
    torch.testing.assert_close(
        ours, gradient(before, parameters(trainer.model)), rtol=1e-3, atol=1e-6
    )


def test_rows_without_weights_and_packed_rows_are_refused(tmp_path):
    rows = column(tmp_path)
    with pytest.raises(ValueError, match="no weight"):
        step(weighted(SFTTrainer), tmp_path, rows.remove_columns("weight"))
    for packed in ({"packing": True}, {"eval_packing": True}):
        with pytest.raises(ValueError, match="packing joins rows"):
            step(weighted(SFTTrainer), tmp_path, rows, **packed)


def test_our_trainer_leaves_a_card(tmp_path):
    trainer = CatTrainer(
        model(),
        arguments(tmp_path),
        train_dataset=TraceDataset(TRACES, TOKENIZER),
        processing_class=TOKENIZER,
        **SEARCH,
    )
    trainer.save_model(str(tmp_path / "kept"))
    card = (tmp_path / "kept/README.md").read_text()
    assert (
        "library_name: transformers" in card
        and "| objective | `bfs` |" in card
        and "budget of 8 expansions" in card
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that writes tactics, and traces in files."""
    folder = tmp_path_factory.mktemp("recipe")
    model().save_pretrained(folder / "model")
    TOKENIZER.save_pretrained(folder / "model")
    catamount.write_traces(folder / "train.jsonl", TRACES)
    return folder


@pytest.mark.parametrize("processes", [1, 2])
def test_the_recipe_trains_an_adapter(folder, processes):
    out = folder / f"adapter-{processes}"
    # On processors the launcher of accelerate starts one process only; its state comes from
    # torchrun.
    launch = (
        []
        if processes == 1
        else ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    )
    command = [
        sys.executable, *launch, str(EXAMPLES / "sft_trl.py"), "--model", folder / "model",
        "--train", folder / "train.jsonl",
        "--valid", folder / "train.jsonl", "--budget", "8", "--epochs", "3", "--rate", "0.01",
        "--accumulate", "1",
        "--rank", "4", "--out", out,
    ]  # fmt: skip
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["processes"] == processes
    # Of so few traces none can be held out: the figures are those of the traces it was trained on.
    before = HeldOut(TRACES, TOKENIZER, **SEARCH).measure(model())
    assert said["eval_held_out_minus_log_j"] < before["minus_log_j"]
    card = (out / "README.md").read_text()
    assert (
        "library_name: peft" in card
        and "budget of 8 expansions" in card
        and "eval_held_out_minus_log_j" in card
    )
    assert (out / "adapter_model.safetensors").exists()
    assert len((out / "valid-weights.jsonl").read_text().splitlines()) == sum(
        len(trace.steps) for trace in TRACES
    )
