"""Traces as tokens: one item of the data is one trace, so that no sampler can tear it apart."""

from __future__ import annotations

from typing import Any, Iterable, Sequence

from torch.utils.data import Dataset

from .. import _catamount
from ..traces import Trace

__all__ = ["Layout", "TraceDataset"]

OWN_SEPARATOR, OWN_END, SEPARATOR_TEXT = _catamount.LAYOUT


class Layout:
    """How a state and a tactic become tokens; the same as in Catamount's own trainer and prover.

    A prompt is the state (with whatever special tokens the tokenizer adds) and a separator, a
    target the tactic and the end token. Tokenizers made by Catamount have tokens of their own for
    both; for others the separator is `:::` and the end the tokenizer's end-of-text token.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        vocabulary = tokenizer.get_vocab()
        if OWN_SEPARATOR in vocabulary and OWN_END in vocabulary:
            self.separator, self.end = [vocabulary[OWN_SEPARATOR]], vocabulary[OWN_END]
        elif tokenizer.eos_token_id is None:
            raise ValueError(
                "the tokenizer has no end-of-text token, so that no tactic would end; set "
                "tokenizer.eos_token"
            )
        else:
            self.separator, self.end = self._encode(SEPARATOR_TEXT), tokenizer.eos_token_id
        self.separator_text = OWN_SEPARATOR if OWN_SEPARATOR in vocabulary else SEPARATOR_TEXT
        self.end_text = tokenizer.convert_ids_to_tokens(self.end)
        self.pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.end

    def _encode(self, text: str, special: bool = False) -> list[int]:
        # Text is only text: a state that contains a special token's name must not end the tactic.
        return self.tokenizer(text, add_special_tokens=special, split_special_tokens=True)[
            "input_ids"
        ]

    def prompt(self, state: str) -> list[int]:
        """The question: a state and the separator."""
        return [*self._encode(state, special=True), *self.separator]

    def tactic(self, tactic: str) -> list[int]:
        """The answer: a tactic and the end token."""
        return [*self._encode(tactic), self.end]

    def text(self, tokens: Sequence[int]) -> str:
        """The text of an answer's tokens."""
        return self.tokenizer.decode(tokens, skip_special_tokens=True).strip()


class TraceDataset(Dataset):
    """Traces, tokenised. Each item has `prompts` and `tactics`, lists of token lists, and `weights`
    if given.

    A step of more than `max_tokens` tokens is dropped rather than cut, so that no half-shown state
    or tactic is learned; its trace is then weighed by the steps it has left. `dropped` counts such
    steps and `shortened` their traces.

    weights: one list per trace, for weights computed beforehand; without them the trainer computes
        the weights of every batch from the model's current probabilities.
    """

    def __init__(
        self,
        traces: Iterable[Trace],
        tokenizer: Any,
        max_tokens: int = 512,
        weights: Sequence[Sequence[float]] | None = None,
    ) -> None:
        layout = Layout(tokenizer)
        self.items: list[dict[str, Any]] = []
        self.dropped = self.shortened = longest = 0
        for number, trace in enumerate(traces):
            item: dict[str, Any] = {"name": trace.name, "prompts": [], "tactics": []}
            given = None if weights is None else list(weights[number])
            if given is not None and len(given) != len(trace.steps):
                raise ValueError(
                    f"trace {number} ({trace.name}) has {len(trace.steps)} steps and {len(given)} "
                    "weights"
                )
            kept = []
            for step in range(len(trace.steps)):
                prompt = layout.prompt(trace.steps[step].state)
                tactic = layout.tactic(trace.steps[step].tactic)
                longest = max(longest, len(prompt) + len(tactic))
                if len(prompt) + len(tactic) > max_tokens:
                    self.dropped += 1
                    continue
                item["prompts"].append(prompt)
                item["tactics"].append(tactic)
                kept.append(step)
            self.shortened += len(kept) < len(trace.steps)
            if kept:
                if given is not None:
                    item["weights"] = [float(given[step]) for step in kept]
                self.items.append(item)
        if not self.items:
            if self.dropped:
                raise ValueError(
                    f"all {self.dropped} steps are longer than max_tokens = {max_tokens} (the "
                    f"longest has {longest}); raise it"
                )
            raise ValueError("there is no trace to train on")

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.items[index]
