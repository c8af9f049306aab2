"""Weights computed beforehand, in any Trainer: one column of the data, one factor of the loss."""

from __future__ import annotations

from typing import Any, Sequence

import torch

from ..objective import weigh
from ..traces import Trace
from .loss import tactic_logp
from .score import score

__all__ = ["HeldOut", "weighted"]

COLUMN = "weight"


class HeldOut:
    """Held-out traces and the search a model is meant for: what it comes to on theorems it was not
    trained on.

    Measured with the model as it stands, whatever it is trained with: `ce` (mean cross-entropy per
    tactic) and `minus_log_j` (per trace), both lower is better.
    """

    def __init__(
        self,
        traces: Sequence[Trace],
        tokenizer: Any,
        *,
        objective: Any = "bfs",
        budget: int | None = None,
    ) -> None:
        self.traces, self.tokenizer = list(traces), tokenizer
        self.search = {"objective": objective, "budget": budget}

    def measure(self, model: Any) -> dict[str, float]:
        """The two figures of a model."""
        logp, lengths = score(model, self.tokenizer, self.traces)
        weighed = weigh(logp, lengths, **self.search)
        return {"ce": -float(logp.mean()), "minus_log_j": -float(weighed.log_success.mean())}


class _Collator:
    """A collator of rows that also carries their weights."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        if any(COLUMN not in example for example in examples):
            raise ValueError(
                "a row has no weight; make the data with catamount.hf.write_weight_column"
            )
        # Of the other columns (names, texts) a collator knows nothing, and cannot make tensors.
        known = ("input_ids", "labels", "completion_mask", "attention_mask")
        batch = self.rows([{key: row[key] for key in known if key in row} for row in examples])
        if len(batch["labels"]) != len(examples):
            raise ValueError(
                "a batch must have a row per example: turn packing and padding-free batches off"
            )
        batch[COLUMN] = torch.tensor([float(example[COLUMN]) for example in examples])
        return batch


def weighted(trainer: type) -> type:
    """A Trainer's class whose loss counts each row as often as its column `weight` says.

    For TRL's `SFTTrainer`, `transformers.Trainer` and others that have `compute_loss`; the data are
    what `write_weight_column` writes. The loss is the sum over rows of weight times cross-entropy,
    divided by the target tokens of the optimizer step, over its micro-batches and processes. With
    every weight 1 that is the loss of the trainer itself.

        trainer = weighted(SFTTrainer)(
            model, SFTConfig(...), train_dataset=data, peft_config=LoraConfig(...)
        )

    held_out: a `HeldOut`, measured at every evaluation and logged as `eval_held_out_ce` and
        `eval_held_out_minus_log_j`, by whatever the trainer reports to.
    """

    class Weighted(trainer):  # type: ignore[valid-type, misc]
        # Read by the Trainer: the loss is already divided by the whole accumulated batch.
        loss_is_scaled_for_ga = True

        def __init__(self, *arguments: Any, held_out: HeldOut | None = None, **named: Any) -> None:
            settings = named.get("args") or next(
                (one for one in arguments if hasattr(one, "remove_unused_columns")), None
            )
            if getattr(settings, "packing", False) or getattr(settings, "eval_packing", False):
                raise ValueError(
                    "packing joins rows, and each row has a weight of its own: leave packing out"
                )
            if settings is not None:
                # The column is the loss's, not the model's.
                settings.remove_unused_columns = False
            super().__init__(*arguments, **named)
            self.data_collator = _Collator(self.data_collator)
            self.model_accepts_loss_kwargs = True
            self.held_out = held_out

        def compute_loss(
            self,
            model: Any,
            inputs: dict[str, Any],
            return_outputs: bool = False,
            num_items_in_batch: Any = None,
        ) -> Any:
            inputs = dict(inputs)
            labels, weight = inputs.pop("labels"), inputs.pop(COLUMN)
            outputs = model(**inputs)
            logits = outputs["logits"] if isinstance(outputs, dict) else outputs[0]
            logp = tactic_logp(logits, labels)
            loss = -(weight.to(logp) * logp).sum()
            if model.training and num_items_in_batch is not None:
                # Processes' gradients are averaged, and the count is over all of them.
                loss = loss * self.accelerator.num_processes / num_items_in_batch
            else:
                loss = loss / labels[:, 1:].ne(-100).sum()
            return (loss, {"logits": logits}) if return_outputs else loss

        def evaluate(self, *arguments: Any, **named: Any) -> dict[str, float]:
            metrics = super().evaluate(*arguments, **named)
            if self.held_out is not None:
                model = self.accelerator.unwrap_model(self.model)
                found = {
                    f"eval_held_out_{name}": value
                    for name, value in self.held_out.measure(model).items()
                }
                self.log(found)
                metrics.update(found)
            return metrics

    Weighted.__name__ = Weighted.__qualname__ = f"Weighted{trainer.__name__}"
    return Weighted
