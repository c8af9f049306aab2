"""The documentation's Python that needs torch, run with a model of a few thousand parameters."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import catamount

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
from snippets import PREAMBLES, TOY, blocks, environment, pages, run_page  # noqa: E402
from test_command import write_study  # noqa: E402
from test_hf import TOKENIZER, TRACES, model  # noqa: E402

MODEL = """
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainingArguments
name = "model"
model, tokenizer = AutoModelForCausalLM.from_pretrained(name), AutoTokenizer.from_pretrained(name)
args = TrainingArguments("out", max_steps=1, report_to="none", use_cpu=True)
"""


@pytest.mark.parametrize(
    "page", [page for page in pages() if any("torch" in block.marks for block in blocks(page))]
)
def test_what_a_page_says_works(page, tmp_path):
    model().save_pretrained(tmp_path / "model")
    TOKENIZER.save_pretrained(tmp_path / "model")
    for name in (
        "train.jsonl",
        "valid.jsonl",
        "test.jsonl",
        "leandojo_benchmark_4/random/train.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        catamount.write_traces(tmp_path / name, TRACES)
    (tmp_path / "set.mm").write_bytes(TOY.read_bytes())
    # The traces that are searched are of the database; the others are of what the model speaks.
    database = catamount.metamath_traces(TOY)
    catamount.write_traces(tmp_path / "test.jsonl", database)
    for block in run_page(page, tmp_path, PREAMBLES.get(page, "") + MODEL, torch=True):
        print(f"not run here: {block}")


def test_what_is_said_of_ray_works(tmp_path):
    """A study and a search, each over a cluster that the block itself starts."""
    said = [block for block in blocks("python/README.md") if "ray" in block.marks]
    assert len(said) == 2
    shutil.copy(TOY, tmp_path / "set.mm")
    for name in ("train.jsonl", "test.jsonl"):
        catamount.write_traces(tmp_path / name, catamount.metamath_traces(TOY))
    write_study(tmp_path, tmp_path / "set.mm")
    (tmp_path / "study.toml").rename(tmp_path / "experiment.toml")
    for block in said:
        program = PREAMBLES["python/README.md"] + block.text
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{block}:\n{done.stderr[-3000:]}"
    assert (tmp_path / "study/report/index.html").exists() and (
        tmp_path / "cells/bfs.jsonl"
    ).exists()
