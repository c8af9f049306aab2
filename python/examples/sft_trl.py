"""Fine-tunes an adapter with TRL's SFTTrainer, each tactic weighted for the search the model will
be deployed in.

    python sft_trl.py --model FOLDER --train train.jsonl [--valid valid.jsonl] [--objective bfs]
        [--budget 256] --out FOLDER

The weights are computed once, from the model as it stands: start from one that already writes
tactics (a short run with `--objective ce`). The same script runs under `accelerate launch` on
several processes, with DDP or FSDP, and reports to whatever `--report-to` names (wandb, mlflow,
tensorboard).
"""

import argparse
import json
from pathlib import Path

import torch
from accelerate import PartialState
from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

import catamount
from catamount.hf import HeldOut, weighted, write_model_card, write_weight_column


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="a folder, or a name on the hub")
    parser.add_argument("--train", required=True, help="traces: .jsonl, LeanDojo's .json, .parquet")
    parser.add_argument("--valid", help="held-out traces, measured after every epoch")
    parser.add_argument("--objective", default="bfs")
    parser.add_argument("--budget", type=int, default=256)
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--batch", type=int, default=8, help="tactics per process and micro-batch")
    parser.add_argument("--accumulate", type=int, default=8)
    parser.add_argument("--rank", type=int, default=16, help="of the adapter")
    parser.add_argument("--report-to", default="none")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()

    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    model = AutoModelForCausalLM.from_pretrained(arguments.model)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # Unless it is told, each of several processes without an accelerator takes itself for the
    # first.
    state = PartialState(cpu=device == "cpu")
    search = {"objective": arguments.objective, "budget": arguments.budget}

    def rows(traces: str, column: Path):
        with state.main_process_first():
            if state.is_main_process:
                write_weight_column(
                    column, catamount.read_traces(traces), model.to(device), tokenizer, **search
                )
            return load_dataset("json", data_files=str(column), split="train")

    arguments.out.mkdir(parents=True, exist_ok=True)
    data, valid, held_out = rows(arguments.train, arguments.out / "weights.jsonl"), None, None
    if arguments.valid:
        valid = rows(arguments.valid, arguments.out / "valid-weights.jsonl")
        held_out = HeldOut(catamount.read_traces(arguments.valid), tokenizer, **search)

    trainer = weighted(SFTTrainer)(
        model,
        SFTConfig(
            output_dir=str(arguments.out),
            per_device_train_batch_size=arguments.batch,
            per_device_eval_batch_size=arguments.batch,
            gradient_accumulation_steps=arguments.accumulate,
            completion_only_loss=True,
            num_train_epochs=arguments.epochs,
            learning_rate=arguments.rate,
            bf16=torch.cuda.is_available(),
            use_cpu=not torch.cuda.is_available(),
            eval_strategy="epoch" if held_out else "no",
            logging_steps=1,
            save_strategy="no",
            report_to=arguments.report_to,
            disable_tqdm=True,
            seed=42,
        ),
        train_dataset=data,
        eval_dataset=valid,
        processing_class=tokenizer,
        peft_config=LoraConfig(
            r=arguments.rank,
            lora_alpha=2 * arguments.rank,
            task_type="CAUSAL_LM",
            target_modules="all-linear",
        ),
        held_out=held_out,
    )
    trainer.train()
    trainer.save_model()
    if trainer.is_world_process_zero():
        metrics = {
            key: value
            for entry in trainer.state.log_history
            for key, value in entry.items()
            if "held_out" in key
        }
        write_model_card(
            arguments.out, base=arguments.model, data=arguments.train, metrics=metrics, **search
        )
        print(json.dumps({"processes": trainer.accelerator.num_processes, **metrics}))


if __name__ == "__main__":
    main()
