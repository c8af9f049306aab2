"""The same optimizer steps on any number of processes: a preset for `accelerate launch` and
`torchrun`.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["data_parallel"]


def data_parallel(batch: int, at_once: int | None = None) -> dict[str, Any]:
    """Arguments of `TrainingArguments` for data-parallel training of one model, whose course does
    not depend on how many processes there are: every optimizer step sees the same traces.

        TrainingArguments(
            output_dir="branch", **data_parallel(batch=64, at_once=4), max_steps=500, bf16=True
        )

    batch: traces of an optimizer step, over all processes.
    at_once: traces that one device holds at a time; the rest of its share is accumulated. All of it
        if not given.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if batch < 1 or batch % processes:
        near = max(1, round(batch / processes)) * processes
        raise ValueError(
            f"a batch of {batch} traces cannot be shared by {processes} processes; {near} can"
        )
    share = batch // processes
    at_once = share if at_once is None else min(at_once, share)
    if at_once < 1 or share % at_once:
        raise ValueError(
            f"a process's share of {share} traces cannot be taken {at_once} at a time; give a "
            "divisor"
        )
    return {
        "per_device_train_batch_size": at_once,
        "gradient_accumulation_steps": share // at_once,
        # Every parameter has a gradient in every step: there are none to look for.
        "ddp_find_unused_parameters": False,
    }
