"""Scores of demonstrated tactics, and weights as a column for trainers that take one an example."""

from __future__ import annotations

import json
import os
from typing import Any, Sequence

import numpy as np
import torch

from ..objective import weigh
from ..traces import Path, Trace
from .collator import TraceCollator
from .data import Layout
from .loss import tactic_logp

__all__ = ["score", "write_weight_column"]


@torch.no_grad()
def score(
    model: Any, tokenizer: Any, traces: Sequence[Trace], batch_tokens: int = 8192
) -> tuple[np.ndarray, np.ndarray]:
    """log p of every tactic under the model, one trace after the other, and the number of tactics
    of every trace.

    Runs without dropout; `batch_tokens` bounds the padded size of a batch. What comes back is what
    `weigh` takes.
    """
    layout, collate = Layout(tokenizer), TraceCollator(tokenizer)
    rows = [
        {"prompts": [layout.prompt(step.state)], "tactics": [layout.tactic(step.tactic)]}
        for trace in traces
        for step in trace.steps
    ]
    sizes = [len(row["prompts"][0]) + len(row["tactics"][0]) for row in rows]
    logp = np.zeros(len(rows))
    device = next(model.parameters()).device
    training = model.training
    model.eval()
    try:
        # Rows of like length together: less padding.
        order = sorted(range(len(rows)), key=sizes.__getitem__, reverse=True)
        while order:
            count = max(1, batch_tokens // sizes[order[0]])
            chosen, order = order[:count], order[count:]
            batch = collate([rows[row] for row in chosen])
            logits = model(
                input_ids=batch["input_ids"].to(device),
                attention_mask=batch["attention_mask"].to(device),
            ).logits
            logp[chosen] = (
                tactic_logp(logits, batch["labels"].to(device))
                .double()
                .clamp(max=0.0)
                .cpu()
                .numpy()
            )
    finally:
        model.train(training)
    return logp, np.array([len(trace.steps) for trace in traces], dtype=np.int64)


def write_weight_column(
    path: Path,
    traces: Sequence[Trace],
    model: Any,
    tokenizer: Any,
    *,
    objective: Any = "bfs",
    budget: int | None = None,
    kappa: float = 1.0,
    absorption: float = 0.0,
    batch_tokens: int = 8192,
) -> list[dict[str, Any]]:
    """Scores the traces with the model as it stands and writes one JSON line per tactic, with its
    weight.

    Columns: name, step, prompt (the state and the separator), completion (the tactic and the end),
    input_ids and completion_mask (the same as tokens, which is what the weights were computed
    from), logp, weight. Trainers that take tokens (TRL's SFTTrainer does) should be given those: a
    prompt and a completion tokenised as text may fall into other tokens at the seams. The weights
    are those of the model given, and grow stale as training goes on. Returns the rows.
    """
    layout = Layout(tokenizer)
    logp, lengths = score(model, tokenizer, traces, batch_tokens)
    weighed = weigh(
        logp, lengths, objective=objective, budget=budget, kappa=kappa, absorption=absorption
    )
    rows, number = [], 0
    for trace in traces:
        for index, step in enumerate(trace.steps):
            prompt, tactic = layout.prompt(step.state), layout.tactic(step.tactic)
            rows.append(
                {
                    "name": trace.name,
                    "step": index,
                    "prompt": step.state + layout.separator_text,
                    "completion": step.tactic + layout.end_text,
                    "input_ids": [*prompt, *tactic],
                    "completion_mask": [0] * len(prompt) + [1] * len(tactic),
                    "logp": float(logp[number]),
                    "weight": float(weighed.weights[number]),
                }
            )
            number += 1
    part = os.fspath(path) + ".part"
    with open(part, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    os.replace(part, path)
    return rows
