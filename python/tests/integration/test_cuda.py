"""The same answers for tensors on a GPU, and training there; skipped where there is none."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import TrainingArguments, set_seed

import catamount
from catamount.hf import CatTrainer, TraceDataset

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from train_hf import character_tokenizer, demonstrations, small_model  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("objective", ["ua", "pass", "bfs", "rdfs", "vdfs", "mcts"])
def test_weights_of_cuda_tensors(objective, dtype):
    logp = torch.log(torch.linspace(0.05, 0.95, 11)).to("cuda", dtype)
    lengths = torch.tensor([3, 1, 5, 2], device="cuda")
    answer = catamount.weigh(logp, lengths, objective=objective, budget=32)
    assert (
        answer.weights.device == logp.device
        and answer.weights.dtype == dtype
        and not answer.weights.requires_grad
    )
    expected = catamount.weigh(
        logp.cpu().double().numpy(), [3, 1, 5, 2], objective=objective, budget=32
    )
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-6, torch.bfloat16: 1e-2}[dtype]
    np.testing.assert_allclose(
        answer.weights.cpu().double().numpy(), expected.weights, rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("precision", [{}, {"bf16": True}])
def test_training_on_the_gpu_follows_the_cpu(tmp_path, precision):
    traces, tokenizer = demonstrations()[:8], character_tokenizer(demonstrations())

    def losses(**changes):
        set_seed(3)
        arguments = TrainingArguments(
            output_dir=str(tmp_path), per_device_train_batch_size=8, max_steps=30,
            learning_rate=3e-3, logging_steps=1,
            lr_scheduler_type="constant", save_strategy="no", report_to="none", disable_tqdm=True,
            seed=0, **changes,
        )  # fmt: skip
        trainer = CatTrainer(
            small_model(tokenizer), arguments, train_dataset=TraceDataset(traces, tokenizer),
            processing_class=tokenizer,
            objective="bfs", budget=16,
        )  # fmt: skip
        trainer.train()
        return np.array([entry["loss"] for entry in trainer.state.log_history if "loss" in entry])

    here, there = losses(use_cpu=True), losses(**precision)
    assert len(here) == 30 and there[-1] < 0.7 * there[0]
    gap = np.abs(here - there) / here
    print(f"largest gap between the curves {gap.max():.1e}")
    # With bf16 the paths part in time, as they would with another seed; the first steps must still
    # agree.
    assert (gap[:6].max() < 0.05) if precision else (gap.max() < 0.02)
