"""Where tactics come from: your function, a completions server, or counts fitted to traces."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass, fields
from typing import Any, Callable, Sequence, Union

from . import _catamount

__all__ = ["NgramPolicy", "OpenAIPolicy", "Policy", "ReplayPolicy", "uniform"]

Path = Union[str, "os.PathLike[str]"]

Question = tuple[str, int, int]
Sample = Union[tuple[str, float], tuple[str, float, int]]
Policy = Callable[[list[Question]], Sequence[Union[Sequence[Sample], Exception]]]
"""Questions `(state, n, seed)` in; for each, n tuples `(tactic, log_p)` or `(tactic, log_p,
tokens)` out, in order.

`log_p` is that of the whole tactic. An answer that depends on `state`, `n` and `seed` alone makes
results independent of batching, and drawing sample i from `(seed, i)` alone makes fewer samples a
prefix of more; see `uniform`. In place of an answer, an exception marks the theorem as an error, to
be tried again on resume. An exception that is raised ends the run.
"""


def uniform(seed: int, n: int) -> float:
    """The n-th uniform number in [0, 1) of the random stream that a question's seed names."""
    return _catamount.uniform(seed, n)


class _Native:
    """Settings of a policy that runs without Python."""

    kind = ""

    def native(self) -> _catamount.NativePolicy:
        """The policy, ready to be opened by a search."""
        own = fields(self)  # type: ignore[arg-type]
        settings = {field.name: getattr(self, field.name) for field in own}
        values = {
            key: os.fspath(value) if isinstance(value, os.PathLike) else value
            for key, value in settings.items()
        }
        return _catamount.NativePolicy(json.dumps({"kind": self.kind, **values}))

    def describe(self) -> str:
        """What the policy says of itself in manifests."""
        return self.native().describe()


@dataclass(frozen=True)
class OpenAIPolicy(_Native):
    """Any OpenAI-compatible completions server: vLLM, SGLang, llama.cpp and others. Requests are
    retried.
    """

    url: str
    """Such as http://127.0.0.1:8000."""
    model: str | None = None
    """The model's name, or that of a LoRA adapter the server has loaded."""
    tokenizer: Path | None = None
    """Send token ids, laid out as in training by the tokenizer of this model's folder or GGUF file:
    a model trained here is then asked exactly as it was trained. vLLM, SGLang and llama.cpp take
    them."""
    prompt: str = "{state}:::"
    """The prompt as text, where there is no tokenizer; {state} stands for the state. A server may
    tokenize it unlike training."""
    chat: bool = False
    """Ask for chats, with the prompt as the user's message."""
    adapter: Path | None = None
    """A LoRA adapter's folder, which the server is to load, under the name `model` or the folder's
    own, and to unload in the end."""
    temperature: float = 0.8
    top_p: float = 1.0
    max_tokens: int = 128
    stop: Sequence[str] = ()
    """Texts that end a tactic beside the model's own end of text; tactics may have several lines.
    """
    key_variable: str = "OPENAI_API_KEY"
    concurrency: int = 8
    timeout: float = 120.0
    retries: int = 4
    grouped: bool = False
    """One request per question rather than one per sample."""

    kind = "openai"

    def __post_init__(self) -> None:
        if self.tokenizer is None and self.prompt == type(self).prompt:
            warnings.warn(
                "the server is asked with text, which it may tokenize unlike training; give "
                "tokenizer for a model trained here, or a prompt of your own for another",
                stacklevel=3,
            )


@dataclass(frozen=True)
class NgramPolicy(_Native):
    """Counts, templates and neighbours fitted to traces: a policy without a language model."""

    traces: Path
    temperature: float = 0.8

    kind = "ngram"


@dataclass(frozen=True)
class ReplayPolicy(_Native):
    """Plays demonstrations back, each step with a given probability of being right; for tests."""

    traces: Path
    probability: float = 0.9

    kind = "replay"


def describe(policy: Any) -> str:
    """A policy's name for manifests: its own words, or its qualified name."""
    own = getattr(policy, "describe", None)
    if callable(own):
        return own()
    name = getattr(policy, "__qualname__", type(policy).__qualname__)
    return f"python {getattr(policy, '__module__', '?')}.{name}"


def identity(policy: Any) -> dict[str, str]:
    """What a policy is, by content where that is known: of a callable, only its own words are."""
    if isinstance(policy, _Native):
        return json.loads(policy.native().identity())
    return {"kind": "python", "description": describe(policy)}


def sampling(policy: Any) -> dict[str, Any]:
    """How a policy samples, as settings of a deployment, where it says so."""
    said = {key: getattr(policy, key, None) for key in ("temperature", "top_p", "max_tokens")}
    return {key: value for key, value in said.items() if isinstance(value, (int, float))}
