"""Batches of whole traces: a row per tactic, the rows of a trace together."""

from __future__ import annotations

from typing import Any, Sequence

import torch

from .data import Layout

__all__ = ["TraceCollator"]


class TraceCollator:
    """Makes `input_ids`, `attention_mask`, `labels` (-100 outside the tactic) and `step` of a list
    of traces.

    `step` is a row's place in its trace; a trace begins wherever it is 0. All tensors have one row
    per tactic, so that anything that splits or concatenates batches by rows keeps them in step.
    `pad_to_multiple_of` helps tensor cores.
    """

    def __init__(self, tokenizer: Any, pad_to_multiple_of: int | None = None) -> None:
        self.pad = Layout(tokenizer).pad
        self.multiple = pad_to_multiple_of or 1

    def __call__(self, traces: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        rows = [
            (prompt, tactic, step)
            for trace in traces
            for step, (prompt, tactic) in enumerate(zip(trace["prompts"], trace["tactics"]))
        ]
        width = max(len(prompt) + len(tactic) for prompt, tactic, _ in rows)
        width = -(-width // self.multiple) * self.multiple
        input_ids = torch.full((len(rows), width), self.pad, dtype=torch.long)
        labels = torch.full((len(rows), width), -100, dtype=torch.long)
        mask = torch.zeros((len(rows), width), dtype=torch.long)
        for row, (prompt, tactic, _) in enumerate(rows):
            end = len(prompt) + len(tactic)
            input_ids[row, :end] = torch.tensor([*prompt, *tactic])
            labels[row, len(prompt) : end] = torch.tensor(tactic)
            mask[row, :end] = 1
        batch = {
            "input_ids": input_ids,
            "attention_mask": mask,
            "labels": labels,
            "step": torch.tensor([step for _, _, step in rows]),
        }
        with_weights = [trace for trace in traces if "weights" in trace]
        if with_weights:
            if len(with_weights) < len(traces):
                raise ValueError("some traces of the batch have weights and some do not")
            batch["weight"] = torch.tensor(
                [w for trace in traces for w in trace["weights"]], dtype=torch.float32
            )
        return batch
