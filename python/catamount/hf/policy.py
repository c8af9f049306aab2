"""A transformers model as a policy."""

from __future__ import annotations

from typing import Any

import torch

from ..policy import Question, uniform
from .data import Layout

__all__ = ["HFPolicy"]


class HFPolicy:
    """Samples tactics from a causal language model, each from its own random stream.

    A tactic's log-probability is that of the whole tactic, end token included, at temperature 1,
    whatever the sampling temperature. Sample i of a question depends on the state, the question's
    seed and i; the shape of a batch can change it only through the rounding of the model's
    arithmetic. A tactic that has no end after `max_tokens` is cut there.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        temperature: float = 0.8,
        max_tokens: int = 128,
        batch_rows: int = 64,
        name: str | None = None,
    ) -> None:
        if not temperature > 0:
            raise ValueError(f"temperature must be positive, not {temperature}")
        self.model, self.layout = model, Layout(tokenizer)
        self.temperature, self.max_tokens, self.batch_rows = temperature, max_tokens, batch_rows
        config = getattr(model, "config", None)
        self.name = name or getattr(config, "_name_or_path", "") or type(model).__name__

    def describe(self) -> str:
        """For manifests."""
        return (
            f"transformers {self.name} at temperature {self.temperature}, {self.max_tokens} tokens"
        )

    @torch.no_grad()
    def __call__(self, questions: list[Question]) -> list[list[tuple[str, float, int]]]:
        """Answers questions (state, n, seed)."""
        rows = [(number, index) for number, (_, n, _) in enumerate(questions) for index in range(n)]
        prompts = [self.layout.prompt(state) for state, _, _ in questions]
        # Rows of like length together: less padding.
        rows.sort(key=lambda row: len(prompts[row[0]]))
        answers: list[list[Any]] = [[None] * n for _, n, _ in questions]
        training = self.model.training
        self.model.eval()
        try:
            for first in range(0, len(rows), self.batch_rows):
                chosen = rows[first : first + self.batch_rows]
                streams = [(questions[number][2], index) for number, index in chosen]
                samples = self._sample([prompts[number] for number, _ in chosen], streams)
                for (number, index), sample in zip(chosen, samples):
                    answers[number][index] = sample
        finally:
            self.model.train(training)
        return answers

    def _sample(
        self, prompts: list[list[int]], streams: list[tuple[int, int]]
    ) -> list[tuple[str, float, int]]:
        device = next(self.model.parameters()).device
        width = max(map(len, prompts))
        ids = torch.full((len(prompts), width), self.layout.pad, dtype=torch.long)
        mask = torch.zeros((len(prompts), width), dtype=torch.long)
        for row, prompt in enumerate(prompts):
            ids[row, width - len(prompt) :] = torch.tensor(prompt)
            mask[row, width - len(prompt) :] = 1
        ids, mask = ids.to(device), mask.to(device)
        cache = None
        tokens: list[list[int]] = [[] for _ in prompts]
        logp = [0.0] * len(prompts)
        live = set(range(len(prompts)))
        for place in range(self.max_tokens):
            positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            output = self.model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
            )
            cache = output.past_key_values
            scores = output.logits[:, -1].double().cpu()
            plain = scores.log_softmax(-1)
            heights = (scores / self.temperature).softmax(-1).cumsum(-1)
            # Each row draws from a place of its own in its own stream: (seed, sample, token).
            draws = torch.tensor(
                [[uniform(seed, (index << 32) | place)] for seed, index in streams],
                dtype=torch.double,
            )
            chosen = torch.searchsorted(heights, draws * heights[:, -1:], right=True)[:, 0].clamp(
                max=scores.shape[-1] - 1
            )
            for row in list(live):
                token = int(chosen[row])
                tokens[row].append(token)
                logp[row] += float(plain[row, token])
                if token == self.layout.end:
                    live.discard(row)
            if not live:
                break
            ids = chosen[:, None].to(device)
            mask = torch.cat([mask, mask.new_ones(len(prompts), 1)], dim=1)
        return [
            (self.layout.text(row), min(total, 0.0), len(row)) for row, total in zip(tokens, logp)
        ]
