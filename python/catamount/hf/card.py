"""A card beside a model: what it was trained for, in the form that model hubs read."""

from __future__ import annotations

import os
from typing import Any, Mapping

from .._catamount import model_card
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
    """Writes README.md into a model's or an adapter's folder, in place of one that is there, and
    returns its text.

    base: the model it was trained from, by its name on a hub or its folder.
    data: what it was trained on, in a few words.
    metrics: figures to report, such as those of `HeldOut.measure`.
    """
    name = objective if isinstance(objective, str) else type(objective).__name__
    figures = [(key, float(value)) for key, value in (metrics or {}).items()]
    text = model_card(name, budget, kappa, absorption, base, adapter, data, figures)
    part = os.path.join(os.fspath(folder), "README.md.part")
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(part, os.path.join(os.fspath(folder), "README.md"))
    return text
