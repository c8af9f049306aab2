"""A Trainer whose loss is weighted by the search that the model will be deployed with."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any, Iterator

import torch
from transformers import Trainer

from .card import write_model_card
from .collator import TraceCollator
from .loss import Tally, tactic_logp, trace_loss

__all__ = ["CatTrainer"]

NORMALISE = ("tactics", "tokens", "sum")


class CatTrainer(Trainer):
    """`transformers.Trainer` on a `TraceDataset`, with compute-aligned weights.

    A batch is a number of whole traces: `per_device_train_batch_size` counts traces, not tactics.
    Everything a Trainer takes is taken as it is; further arguments:

    objective, budget, kappa, absorption: as in `catamount.weigh`; a strategy of your own may stand
        for the objective's name. "ce" is plain fine-tuning. Data with weights of its own ignores
        all of them.
    normalise: what the weighted sum of an optimizer step is divided by, over all of its
        micro-batches and processes: its "tactics" (the default), its target "tokens", or nothing
        ("sum").
    min_weight, max_weight: bounds on the weights ("vdfs" weights may exceed 1).

    Logged beside the loss: `ce` (mean cross-entropy per tactic), `mean_weight`, `minus_log_j` (per
    trace), `infeasible_traces` and `skipped_traces`; with the prefix `eval_` for evaluations.
    """

    # Read by the Trainer: the loss is already divided by the whole accumulated batch.
    loss_is_scaled_for_ga = True

    def __init__(
        self,
        *args: Any,
        objective: Any = "bfs",
        budget: int | None = None,
        kappa: float = 1.0,
        absorption: float = 0.0,
        normalise: str = "tactics",
        min_weight: float = 0.0,
        max_weight: float | None = None,
        **kwargs: Any,
    ) -> None:
        if normalise not in NORMALISE:
            raise ValueError(f"normalise is one of {', '.join(NORMALISE)}, not {normalise!r}")
        if budget is None and objective != "ce":
            raise ValueError(
                "budget is missing: how many expansions will the search be deployed with?"
            )
        if kwargs.get("data_collator") is None and len(args) < 3:
            tokenizer = kwargs.get("processing_class") or kwargs.get("tokenizer")
            if tokenizer is None:
                raise ValueError(
                    "give processing_class (the tokenizer), or a data_collator such as "
                    "TraceCollator"
                )
            kwargs["data_collator"] = TraceCollator(tokenizer)
        super().__init__(*args, **kwargs)
        # The columns are the collator's, not the model's.
        self.args.remove_unused_columns = False
        # Trainers before `loss_is_scaled_for_ga` read this instead.
        self.model_accepts_loss_kwargs = True
        self.weighting = {
            "objective": objective,
            "budget": budget,
            "kappa": kappa,
            "absorption": absorption,
            "min_weight": min_weight,
            "max_weight": max_weight,
        }
        self.normalise = normalise
        self.tallies = {"train": Tally(), "eval": Tally()}

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, device: Any = None
    ) -> tuple[list[Any], torch.Tensor | None]:
        """The micro-batches of an optimizer step, and what their loss is divided by."""
        batches = []
        for _ in range(num_batches):
            try:
                batches.append(next(epoch_iterator))
            except StopIteration:
                break
        return batches, self._get_num_items_in_batch(batches, device)

    def _get_num_items_in_batch(
        self, batches: list[Any], device: Any = None
    ) -> torch.Tensor | None:
        if not batches:
            return None
        labels = [batch["labels"] for batch in batches]
        numbers = [
            int(rows.ne(-100).sum()) if self.normalise == "tokens" else len(rows) for rows in labels
        ]
        count = torch.tensor(sum(numbers), device=self.args.device)
        if torch.is_grad_enabled():
            count = self.accelerator.gather(count.reshape(1)).sum()
        return count

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """The weighted loss of a micro-batch: its share of the optimizer step's."""
        inputs = dict(inputs)
        labels, step, weight = inputs.pop("labels"), inputs.pop("step"), inputs.pop("weight", None)
        outputs = model(**inputs)
        logits = outputs["logits"] if isinstance(outputs, dict) else outputs[0]
        loss, tally = trace_loss(tactic_logp(logits, labels), step, weight=weight, **self.weighting)
        training = model.training
        self.tallies["train" if training else "eval"].add(tally)
        if self.normalise != "sum":
            if training and num_items_in_batch is not None:
                # Processes' gradients are averaged, and the count is over all of them.
                loss = loss * self.accelerator.num_processes / num_items_in_batch
            else:
                loss = loss / (labels.ne(-100).sum() if self.normalise == "tokens" else len(labels))
        elif training:
            loss = loss * self.accelerator.num_processes
        return (loss, {"logits": logits}) if return_outputs else loss

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Saves the model, or the adapter, with a card that says what it was trained for."""
        super().save_model(output_dir, _internal_call)
        if self.args.should_save:
            model = self.accelerator.unwrap_model(self.model)
            config = getattr(model, "config", None)
            kept = {
                name: self.weighting[name]
                for name in ("objective", "budget", "kappa", "absorption")
            }
            write_model_card(
                output_dir or self.args.output_dir,
                base=getattr(config, "_name_or_path", None) or None,
                adapter=hasattr(model, "peft_config"),
                **kept,
            )

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Adds the objective's metrics, over all processes, to what the Trainer logs."""
        kind = "eval" if any(key.startswith("eval_") for key in logs) else "train"
        if kind == "eval" or "loss" in logs:
            sums = torch.tensor(
                [astuple(self.tallies[kind])], dtype=torch.float32, device=self.args.device
            )
            total = Tally(*self.accelerator.gather(sums).double().sum(0).tolist())
            if total.traces or total.skipped:
                prefix = "eval_" if kind == "eval" else ""
                logs.update({prefix + name: value for name, value in total.means().items()})
            self.tallies[kind] = Tally()
        super().log(logs, *args, **kwargs)
