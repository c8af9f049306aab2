"""The documentation's Python that needs torch, run with a model of a few thousand parameters."""

import sys
from pathlib import Path

import pytest

import catamount

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
from snippets import PREAMBLES, TOY, blocks, pages, run_page  # noqa: E402
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
