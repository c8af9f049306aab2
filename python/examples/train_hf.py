"""Trains a small model with Hugging Face's Trainer, weighted for the search it will be deployed
with, and samples from it.

    python train_hf.py [--objective bfs] [--budget 16] [--warm-up 60] [--steps 30] [--lora]
        [--bf16] [--out FOLDER]

Everything is made here: a handful of traces of propositional logic, a tokenizer of characters, a
transformer with random parameters. A warm-up with cross-entropy comes first, then the weighted
phase, of an adapter if so wished. The same script runs under `accelerate launch` or `torchrun` on
several processes, and takes the same steps there:

    torchrun --nproc_per_node 2 train_hf.py
"""

import argparse
import json
import tempfile
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    TrainingArguments,
    set_seed,
)

import catamount
from catamount import Step, Trace
from catamount.hf import (
    CatTrainer,
    HFPolicy,
    TraceDataset,
    data_parallel,
    score,
    write_weight_column,
)


def demonstrations(size: int = 6) -> list[Trace]:
    """Proofs of a_1 -> ... -> a_n -> a_k: introduce everything, then use the one that is wanted."""
    traces = []
    for n in range(1, size):
        for k in range(1, n + 1):
            steps, goal = [], " -> ".join([f"a{i}" for i in range(1, n + 1)] + [f"a{k}"])
            for i in range(1, n + 1):
                known = " ".join(f"h{j}:a{j}" for j in range(1, i))
                left = " -> ".join([f"a{j}" for j in range(i, n + 1)] + [f"a{k}"])
                steps.append(Step(f"{known} |- {left}".strip(), f"intro h{i}"))
            known = " ".join(f"h{j}:a{j}" for j in range(1, n + 1))
            steps.append(Step(f"{known} |- a{k}", f"exact h{k}"))
            traces.append(Trace(f"pick_{n}_{k}", steps, statement=goal))
    return traces


def character_tokenizer(traces: list[Trace]) -> PreTrainedTokenizerFast:
    """One token a character, and an end."""
    letters = sorted(
        {c for trace in traces for step in trace.steps for c in step.state + step.tactic} | set(":")
    )
    vocabulary = {"<|endoftext|>": 0, "<unk>": 1} | {c: i + 2 for i, c in enumerate(letters)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
        unk_token="<unk>",
    )


def small_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """A transformer with random parameters."""
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, bos_token_id=None, eos_token_id=0,
        pad_token_id=0,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objective", default="bfs")
    parser.add_argument("--budget", type=int, default=16)
    parser.add_argument(
        "--warm-up", type=int, default=60, help="optimizer steps with cross-entropy"
    )
    parser.add_argument(
        "--steps", type=int, default=30, help="optimizer steps with the objective's weights"
    )
    parser.add_argument(
        "--batch", type=int, default=8, help="traces of an optimizer step, over all processes"
    )
    parser.add_argument(
        "--at-once", type=int, default=4, help="traces that a process holds at a time"
    )
    parser.add_argument(
        "--lora", action="store_true", help="train an adapter in the weighted phase (needs peft)"
    )
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    out = arguments.out or Path(tempfile.mkdtemp(prefix="catamount-"))

    set_seed(0)
    traces = demonstrations()
    tokenizer = character_tokenizer(traces)
    data = TraceDataset(traces, tokenizer)

    def train(model, name, steps, objective, rate):
        # Of a Trainer, no steps would be whole epochs.
        if steps < 1:
            raise SystemExit(f"{name}: at least one step, not {steps}")
        settings = TrainingArguments(
            output_dir=str(out / name),
            **data_parallel(arguments.batch, arguments.at_once),
            max_steps=steps,
            learning_rate=rate,
            bf16=arguments.bf16,
            logging_steps=max(1, min(10, steps)),
            save_strategy="no",
            report_to="none",
            use_cpu=not torch.cuda.is_available(),
            disable_tqdm=True,
            seed=0,
        )
        trainer = CatTrainer(
            model,
            settings,
            train_dataset=data,
            processing_class=tokenizer,
            objective=objective,
            budget=arguments.budget,
        )
        trainer.train()
        return trainer

    def log_j(model):
        logp, lengths = score(model, tokenizer, traces)
        answer = catamount.weigh(
            logp, lengths, objective=arguments.objective, budget=arguments.budget
        )
        return float(answer.log_success.mean())

    model = small_model(tokenizer)
    course = [log_j(model)]
    train(model, "warm-up", arguments.warm_up, "ce", 3e-3)
    course.append(log_j(model))
    if arguments.lora:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(
            model, LoraConfig(r=8, task_type="CAUSAL_LM", target_modules="all-linear")
        )
    trainer = train(model, arguments.objective, arguments.steps, arguments.objective, 3e-3)
    course.append(log_j(model))
    if not trainer.is_world_process_zero():
        return

    rows = write_weight_column(
        out / "weights.jsonl",
        traces,
        model,
        tokenizer,
        objective=arguments.objective,
        budget=arguments.budget,
    )
    sample = HFPolicy(model, tokenizer, max_tokens=16)([(traces[0].steps[0].state, 4, 1)])[0]
    print(
        json.dumps(
            {
                "log_j": dict(zip(("random", "warm", "weighted"), course)),
                "loss_last": [
                    entry["loss"] for entry in trainer.state.log_history if "loss" in entry
                ][-1],
                "metrics": sorted(
                    next(entry for entry in trainer.state.log_history if "loss" in entry)
                ),
                "rows": len(rows),
                "samples": [tactic for tactic, *_ in sample],
            }
        )
    )


if __name__ == "__main__":
    main()
