"""Compute-aligned fine-tuning with Hugging Face's Trainer, and a transformers model as a policy.

    from catamount import read_traces
    from catamount.hf import CatTrainer, TraceDataset

    data = TraceDataset(read_traces("train.jsonl"), tokenizer)
    trainer = CatTrainer(model, args, train_dataset=data, processing_class=tokenizer,
                         objective="bfs", budget=256)
    trainer.train()

Needs torch, transformers and accelerate; PEFT models, gradient accumulation, mixed precision and
several processes work as with any Trainer.
"""

from .card import write_model_card
from .collator import TraceCollator
from .data import Layout, TraceDataset
from .loss import Tally, tactic_logp, trace_loss
from .parallel import data_parallel
from .policy import HFPolicy
from .score import score, write_weight_column
from .trainer import CatTrainer
from .weighted import HeldOut, weighted

__all__ = [
    "CatTrainer",
    "HFPolicy",
    "HeldOut",
    "Layout",
    "Tally",
    "TraceCollator",
    "TraceDataset",
    "data_parallel",
    "score",
    "tactic_logp",
    "trace_loss",
    "weighted",
    "write_model_card",
    "write_weight_column",
]
