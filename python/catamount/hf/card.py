"""A card beside a model: what it was trained for, in the form that model hubs read."""

from __future__ import annotations

import os
from typing import Any, Mapping

from .._catamount import __version__
from ..traces import Path

__all__ = ["write_model_card"]


def write_model_card(
    folder: Path,
    *,
    objective: Any,
    budget: int | None,
    base: str | None = None,
    adapter: bool = True,
    data: str | None = None,
    kappa: float = 1.0,
    absorption: float = 0.0,
    metrics: Mapping[str, float] | None = None,
) -> str:
    """Writes README.md into a model's or an adapter's folder, in place of one that is there, and returns its text.

    base: the model it was trained from, by its name on a hub or its folder.
    data: what it was trained on, in a few words.
    metrics: figures to report, such as those of `HeldOut.measure`.
    """
    name = objective if isinstance(objective, str) else type(objective).__name__
    front = ["tags:", "- theorem-proving", "- catamount"]
    front += [f"base_model: {base}"] if base else []
    front += ["library_name: peft"] if adapter else ["library_name: transformers"]
    search = "one attempt at every step (plain fine-tuning)"
    if name != "ce":
        search = f"a search of kind `{name}` with a budget of {budget} expansions"
    said = [
        f"Proposes tactics for proof states. Trained with Catamount {__version__}, whose weights fit the model to the search it is",
        f"deployed in: {search}.",
        "",
        "| | |",
        "|---|---|",
        f"| objective | `{name}` |",
        f"| budget it was trained for | {budget if budget is not None else 'none'} |",
    ]
    if kappa != 1.0 or absorption != 0.0:
        said.append(f"| off-trace prior | kappa = {kappa}, q = {absorption} |")
    said += [f"| base model | {base} |"] if base else []
    said += [f"| trained on | {data} |"] if data else []
    said += [f"| {key} | {value:.4g} |" for key, value in (metrics or {}).items()]
    said += [
        "",
        "A prompt is the state and the separator `:::`, the answer a tactic and the end-of-text token; sample it at the",
        "temperature of your search. A tactic is a proposal: only a prover's check makes it a step of a proof.",
    ]
    text = "\n".join(["---", *front, "---", "", f"# Tactics for {name} search", "", *said]) + "\n"
    part = os.path.join(os.fspath(folder), "README.md.part")
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(part, os.path.join(os.fspath(folder), "README.md"))
    return text
