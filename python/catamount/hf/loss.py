"""The loss: cross-entropy of every tactic, times a weight through which no gradient flows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch
import torch.nn.functional as F

from ..objective import weigh

__all__ = ["Tally", "tactic_logp", "trace_lengths", "trace_loss"]


def tactic_logp(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """log p of every row's tactic: the sum over its tokens, end token included, in single precision
    at least.
    """
    targets = labels[:, 1:]
    mask = targets != -100
    # Only the positions that predict a tactic's token: states are most of a batch, and the
    # vocabulary is wide.
    chosen = logits[:, :-1][mask]
    chosen = chosen if chosen.dtype == torch.float64 else chosen.float()
    tokens = -F.cross_entropy(chosen, targets[mask], reduction="none")
    rows = mask.nonzero()[:, 0]
    return torch.zeros(len(labels), dtype=tokens.dtype, device=tokens.device).index_add(
        0, rows, tokens
    )


def trace_lengths(step: torch.Tensor) -> torch.Tensor:
    """Tactics of every trace of a batch, from its rows' places in their traces."""
    step = step.cpu()
    starts = (step == 0).nonzero()[:, 0]
    lengths = torch.diff(starts, append=torch.tensor([len(step)]))
    whole = (
        torch.cat([torch.arange(length) for length in lengths.tolist()])
        if len(starts)
        else step[:0]
    )
    if not torch.equal(whole, step):
        raise ValueError(
            "a batch must hold whole traces, their steps in order; use TraceCollator on a "
            "TraceDataset"
        )
    return lengths


@dataclass
class Tally:
    """What a loss saw; sums over tactics or traces, so that tallies add up."""

    tactics: float = 0.0
    traces: float = 0.0
    ce: float = 0.0
    """Cross-entropy."""
    weighted: float = 0.0
    """Weight times cross-entropy."""
    weights: float = 0.0
    minus_log_j: float = 0.0
    """-log J, over traces; zero where weights were computed beforehand."""
    infeasible: float = 0.0
    """Traces that no search within the budget can find; they are trained with the weights of
    cross-entropy.
    """
    skipped: float = 0.0
    """Traces left out since a log-probability was not finite."""

    def add(self, other: Tally) -> None:
        """Adds another tally to this one."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def means(self) -> dict[str, float]:
        """Metrics for people: means per tactic and per trace, and counts of what was unusual."""
        tactics, traces = max(self.tactics, 1.0), max(self.traces, 1.0)
        return {
            "ce": self.ce / tactics,
            "mean_weight": self.weights / tactics,
            "minus_log_j": self.minus_log_j / traces,
            "infeasible_traces": self.infeasible,
            "skipped_traces": self.skipped,
        }


def trace_loss(
    logp: torch.Tensor,
    step: torch.Tensor,
    *,
    objective: Any = "bfs",
    budget: int | None = None,
    kappa: float = 1.0,
    absorption: float = 0.0,
    min_weight: float = 0.0,
    max_weight: float | None = None,
    weight: torch.Tensor | None = None,
) -> tuple[torch.Tensor, Tally]:
    """The sum over tactics of weight times cross-entropy, and what was seen on the way.

    The weights come from `logp` itself (or are given, as `weight`) and are constants in the
    gradient, which is therefore that of -log J. Divide the sum as you like; `CatTrainer` divides by
    the number of tactics of the optimizer step.
    """
    lengths = trace_lengths(step)
    known = logp.detach().double().clamp(max=0.0)
    finite = torch.isfinite(known).cpu()
    good = torch.tensor(
        [bool(part.all()) for part in finite.split(lengths.tolist())], dtype=torch.bool
    )
    tally = Tally(skipped=float((~good).sum()))
    if not good.all():
        keep = good.repeat_interleave(lengths).to(logp.device)
        logp, known, lengths = logp[keep], known[keep], lengths[good]
        weight = None if weight is None else weight[keep]
    if not len(lengths):
        return logp.sum() * 0.0, tally
    if weight is None:
        weighed = weigh(
            known, lengths, objective=objective, budget=budget, kappa=kappa, absorption=absorption
        )
        weight = weighed.weights
        tally.minus_log_j = -float(weighed.log_success.sum())
        tally.infeasible = float((~weighed.feasible).sum())
    weight = weight.detach().to(logp.dtype).clamp(min=min_weight, max=max_weight)
    loss = -(weight * logp).sum()
    tally.tactics, tally.traces = float(len(logp)), float(len(lengths))
    tally.ce, tally.weights, tally.weighted = (
        -float(known.sum()),
        float(weight.sum()),
        float(loss.detach()),
    )
    return loss, tally
