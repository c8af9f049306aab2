"""catamount.hf: the collator, the gradient, accumulation, processes, precision, adapters, the
example.
"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import TrainingArguments, set_seed

import catamount
from catamount.hf import (
    CatTrainer,
    HFPolicy,
    TraceCollator,
    TraceDataset,
    data_parallel,
    score,
    tactic_logp,
    trace_loss,
    write_weight_column,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
from train_hf import character_tokenizer, demonstrations, small_model  # noqa: E402

torch.set_num_threads(1)
TRACES = demonstrations()[:8]
TOKENIZER = character_tokenizer(demonstrations())

METRICS = ("loss", "ce", "mean_weight", "minus_log_j")
COURSE = {"max_steps": 12, "learning_rate": 3e-3, "optim": "adamw_torch"}


@functools.cache
def warm():
    """Parameters after a short warm-up: of a random model every tactic is so unlikely that all
    weights are 1.
    """
    given = os.environ.get("CATAMOUNT_WARM_MODEL")
    if given:
        return torch.load(given)
    set_seed(3)
    net = small_model(TOKENIZER)
    batch = TraceCollator(TOKENIZER)(TraceDataset(TRACES, TOKENIZER).items)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    for _ in range(40):
        optimizer.zero_grad()
        net(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            labels=batch["labels"],
        ).loss.backward()
        optimizer.step()
    return net.state_dict()


def model():
    net = small_model(TOKENIZER)
    net.load_state_dict(warm())
    return net


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One optimizer step on all traces at once: its gradient and its log."""
    trainer = train(tmp_path_factory.mktemp("whole"))
    return gradient(parameters(model()), parameters(trainer.model)), trainer.state.log_history[0]


def arguments(folder, **changes):
    settings = {
        "per_device_train_batch_size": 8, "max_steps": 1, "learning_rate": 0.1, "optim": "sgd",
        "max_grad_norm": 0.0,
        "lr_scheduler_type": "constant", "save_strategy": "no", "report_to": "none",
        "use_cpu": True, "disable_tqdm": True,
        "logging_steps": 1, "seed": 0, **changes,
    }  # fmt: skip
    return TrainingArguments(output_dir=str(folder), **settings)


def train(folder, net=None, data=None, keywords=None, **changes):
    net = net or model()
    trainer = CatTrainer(
        net,
        arguments(folder, **changes),
        train_dataset=data or TraceDataset(TRACES, TOKENIZER),
        processing_class=TOKENIZER,
        **{"objective": "bfs", "budget": 8, **(keywords or {})},
    )
    trainer.train()
    return trainer


def test_the_trainers_own_reporter_writes_to_mlflow(tmp_path, monkeypatch):
    """Every number of the log arrives in MLflow: loss, cross-entropy, weights, -log J."""
    import mlflow

    store = (tmp_path / "mlflow").as_uri()
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    mlflow.set_tracking_uri(store)
    trainer = train(tmp_path / "out", report_to="mlflow", max_steps=2)
    mlflow.end_run()
    (run,) = mlflow.MlflowClient(store).search_runs(["0"])
    for name in METRICS:
        written = mlflow.MlflowClient(store).get_metric_history(run.info.run_id, name)
        assert [metric.value for metric in sorted(written, key=lambda m: m.step)] == pytest.approx(
            [entry[name] for entry in losses(trainer)]
        )


def test_the_trainers_own_reporter_writes_to_wandb(tmp_path, monkeypatch):
    """The same for W&B, without its servers: what its own process says was written last."""
    import wandb

    for name, value in {"MODE": "offline", "SILENT": "true", "DIR": str(tmp_path)}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    trainer = train(tmp_path / "out", report_to="wandb", max_steps=2)
    written = {name: wandb.run.summary[f"train/{name}"] for name in METRICS}
    wandb.finish()
    assert written == pytest.approx({name: losses(trainer)[-1][name] for name in METRICS})
    assert list(tmp_path.glob("wandb/offline-run-*/run-*.wandb"))


def losses(trainer):
    """What was logged of each step."""
    return [entry for entry in trainer.state.log_history if "loss" in entry]


def parameters(net):
    return {name: p.detach().clone() for name, p in net.named_parameters()}


def gradient(start, end, rate=0.1):
    """What one step of plain gradient descent followed."""
    return {name: (start[name] - end[name]) / rate for name in start}


def distance(a, b):
    """The largest difference relative to the largest entry, over all parameters."""
    scale = max(float(value.abs().max()) for value in b.values())
    return max(float((a[name] - b[name]).abs().max()) for name in b) / scale


def log_j(logp, budget):
    """log P(sum of geometric waits <= N), differentiable: weights are its derivative."""
    p = logp.exp()
    live = [torch.ones((), dtype=logp.dtype)] + [torch.zeros((), dtype=logp.dtype)] * len(p)
    for _ in range(budget):
        live = [
            (live[t] * (1 - p[t]) if t < len(p) else live[t])
            + (live[t - 1] * p[t - 1] if t else 0.0)
            for t in range(len(p) + 1)
        ]
    return live[-1].log()


def by_hand(net, budget):
    """The gradient of the mean over tactics of -log J, from autograd through the dynamic program
    itself.
    """
    net = net.double()
    net.zero_grad()
    total, tactics = 0.0, 0
    for trace in TraceDataset(TRACES, TOKENIZER):
        logp = []
        for prompt, tactic in zip(trace["prompts"], trace["tactics"]):
            ids = torch.tensor([prompt + tactic])
            tokens = (
                net(input_ids=ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
            )
            logp.append(tokens[len(prompt) - 1 :].sum())
        total = total - log_j(torch.stack(logp), budget)
        tactics += len(logp)
    (total / tactics).backward()
    return {name: p.grad.clone() for name, p in net.named_parameters()}


def test_the_collator_keeps_traces_together_and_hides_prompts():
    data = TraceDataset(TRACES, TOKENIZER)
    batch = TraceCollator(TOKENIZER, pad_to_multiple_of=8)([data[0], data[5]])
    rows = len(data[0]["tactics"]) + len(data[5]["tactics"])
    assert {len(value) for value in batch.values()} == {rows} and batch["input_ids"].shape[
        1
    ] % 8 == 0
    assert batch["step"].tolist() == [
        *range(len(data[0]["tactics"])),
        *range(len(data[5]["tactics"])),
    ]
    for row, tactic in zip(batch["labels"], data[0]["tactics"] + data[5]["tactics"]):
        assert row[row != -100].tolist() == tactic and tactic[-1] == TOKENIZER.eos_token_id
    torn = batch["step"][1:]
    with pytest.raises(ValueError, match="whole traces"):
        trace_loss(torch.full((len(torn),), -1.0), torn, budget=8)


def test_long_steps_are_dropped_and_counted():
    full = TraceDataset(TRACES, TOKENIZER)
    longest = max(
        len(p) + len(t) for item in full for p, t in zip(item["prompts"], item["tactics"])
    )
    cut = TraceDataset(TRACES, TOKENIZER, max_tokens=longest - 1)
    assert cut.dropped >= 1 and cut.shortened >= 1
    with pytest.raises(ValueError, match="longer than max_tokens"):
        TraceDataset(TRACES, TOKENIZER, max_tokens=3)


def test_the_gradient_is_that_of_minus_log_j(tmp_path, whole):
    expected = by_hand(model(), 8)
    assert distance(whole[0], expected) < 1e-4
    assert whole[1]["mean_weight"] < 0.9
    plain = train(tmp_path, keywords={"objective": "ce"})
    assert distance(gradient(parameters(model()), parameters(plain.model)), expected) > 0.1


def test_torch_weights_are_constants_of_the_tensors_kind():
    logp = torch.tensor([-0.5, -2.0, -1.0], requires_grad=True)
    weights = catamount.weights(logp, torch.tensor([2, 1]), budget=8)
    assert weights.dtype == torch.float32 and not weights.requires_grad
    np.testing.assert_allclose(
        weights.numpy(), catamount.weights([-0.5, -2.0, -1.0], [2, 1], budget=8), rtol=1e-6
    )
    assert catamount.weigh(logp.bfloat16(), [2, 1], budget=8).weights.dtype == torch.bfloat16
    assert catamount.weigh(logp, [2, 1], budget=8).feasible.dtype == torch.bool


def test_accumulation_does_not_change_the_step(tmp_path, whole):
    parts = train(tmp_path, per_device_train_batch_size=2, gradient_accumulation_steps=4)
    assert distance(gradient(parameters(model()), parameters(parts.model)), whole[0]) < 1e-4
    assert parts.state.log_history[0]["loss"] == pytest.approx(whole[1]["loss"], rel=1e-4)


def processes(script, folder):
    """What a script leaves that two processes run."""
    torch.save(warm(), folder / "warm.pt")
    path = Path(__file__).with_name(script)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node=2",
        str(path),
    ]
    environment = {
        **os.environ,
        "CATAMOUNT_WARM_MODEL": str(folder / "warm.pt"),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [*command, str(folder / "two.pt")],
        capture_output=True,
        text=True,
        timeout=500,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    saved = torch.load(folder / "two.pt")
    assert saved["processes"] == 2
    return saved


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    return processes("two_processes.py", tmp_path_factory.mktemp("two"))


def same_step(two, whole):
    assert distance(gradient(parameters(model()), two["parameters"]), whole[0]) < 1e-4
    for name in METRICS:
        assert two["step"][0][name] == pytest.approx(whole[1][name], rel=1e-4)


def test_two_processes_take_the_same_step(two, whole):
    same_step(two, whole)


def test_two_processes_that_share_the_parameters_take_the_same_step(tmp_path, whole):
    sharded = processes("sharded.py", tmp_path)
    assert sharded["held"] < 0.6 * sum(p.numel() for p in model().parameters())
    same_step(sharded, whole)


def test_the_data_parallel_preset_takes_the_same_course_on_two_processes_as_on_one(tmp_path, two):
    one = losses(train(tmp_path, **COURSE, **data_parallel(batch=4, at_once=2)))
    assert len(one) == COURSE["max_steps"]
    for name in METRICS:
        course = [entry[name] for entry in one]
        assert max(course) > 1.2 * min(course), "nothing happens on the way"
        assert [entry[name] for entry in two["course"]] == pytest.approx(course, rel=1e-3)


def test_the_data_parallel_preset_shares_a_batch_or_says_why_not(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    settings = data_parallel(batch=64, at_once=4)
    assert (
        settings["per_device_train_batch_size"] == 4
        and settings["gradient_accumulation_steps"] == 4
    )
    with pytest.raises(ValueError, match="30 traces cannot be shared by 4 processes; 32 can"):
        data_parallel(batch=30)
    with pytest.raises(ValueError, match="share of 16 traces cannot be taken 3 at a time"):
        data_parallel(batch=64, at_once=3)


def test_mixed_precision_stays_near(tmp_path, whole):
    mixed = gradient(parameters(model()), parameters(train(tmp_path, bf16=True).model))
    assert 0 < distance(mixed, whole[0]) < 0.1


def test_an_adapter_is_trained_and_the_base_is_not(tmp_path):
    from peft import LoraConfig, get_peft_model

    net = get_peft_model(
        model(), LoraConfig(r=4, task_type="CAUSAL_LM", target_modules="all-linear")
    )
    before = parameters(net)
    after = parameters(train(tmp_path, net, max_steps=3).model)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed and all("lora_" in name for name in changed)


def test_metrics_evaluation_and_weights_computed_beforehand(tmp_path):
    net = model()
    rows = write_weight_column(
        tmp_path / "w.jsonl", TRACES, net, TOKENIZER, objective="bfs", budget=8
    )
    assert [json.loads(line) for line in (tmp_path / "w.jsonl").read_text().splitlines()] == rows
    items = TraceDataset(TRACES, TOKENIZER).items
    seen = [
        [*prompt, *tactic]
        for item in items
        for prompt, tactic in zip(item["prompts"], item["tactics"])
    ]
    assert [row["input_ids"] for row in rows] == seen
    assert [sum(row["completion_mask"]) for row in rows] == [
        len(t) for item in items for t in item["tactics"]
    ]
    assert all(
        row["prompt"].endswith(":::") and row["completion"].endswith("<|endoftext|>")
        for row in rows
    )
    weights = [[row["weight"] for row in rows if row["name"] == trace.name] for trace in TRACES]
    start = parameters(net)
    online = train(tmp_path)
    assert 0 < min(row["weight"] for row in rows) < 0.9
    frozen = train(
        tmp_path,
        data=TraceDataset(TRACES, TOKENIZER, weights=weights),
        keywords={"objective": "ce", "budget": None},
    )
    assert (
        distance(
            gradient(start, parameters(frozen.model)), gradient(start, parameters(online.model))
        )
        < 1e-4
    )
    entry = online.state.log_history[0]
    logp, lengths = score(model(), TOKENIZER, TRACES)
    answer = catamount.weigh(logp, lengths, budget=8)
    assert entry["ce"] == pytest.approx(-logp.mean(), rel=1e-4)
    assert entry["minus_log_j"] == pytest.approx(-answer.log_success.mean(), rel=1e-4)
    assert entry["mean_weight"] == pytest.approx(answer.weights.mean(), rel=1e-4)
    assert entry["infeasible_traces"] == 0
    metrics = online.evaluate(TraceDataset(TRACES, TOKENIZER))
    logp, _ = score(online.model, TOKENIZER, TRACES)
    assert metrics["eval_ce"] == pytest.approx(-logp.mean(), rel=1e-4)


def test_traces_that_are_not_finite_are_left_out():
    logp = torch.tensor([-1.0, float("-inf"), -2.0], requires_grad=True)
    loss, tally = trace_loss(logp, torch.tensor([0, 1, 0]), objective="ce")
    assert float(loss.detach()) == 2.0 and (tally.skipped, tally.traces) == (1, 1)


def test_scores_are_those_of_the_model():
    net, step = model(), TRACES[3].steps[1]
    logp, lengths = score(net, TOKENIZER, TRACES, batch_tokens=200)
    assert lengths.tolist() == [len(trace.steps) for trace in TRACES]
    item = TraceDataset([TRACES[3]], TOKENIZER)[0]
    ids = torch.tensor([item["prompts"][1] + item["tactics"][1]])
    labels = ids.clone()
    labels[:, : len(item["prompts"][1])] = -100
    alone = float(tactic_logp(net.eval()(ids).logits, labels).detach())
    assert logp[sum(lengths[:3]) + 1] == pytest.approx(alone, rel=1e-5) and step.tactic


def test_a_transformers_model_samples_by_seed_and_says_its_probability():
    net = model()
    policy = HFPolicy(net, TOKENIZER, max_tokens=9, temperature=1.5)
    state = TRACES[0].steps[0].state
    four = policy([(state, 4, 11)])[0]
    two = policy([(state, 2, 11)])[0]
    assert [tactic for tactic, *_ in two] == [tactic for tactic, *_ in four[:2]] and len(
        {tactic for tactic, *_ in four}
    ) > 1
    assert [logp for _, logp, _ in two] == pytest.approx(
        [logp for _, logp, _ in four[:2]], rel=1e-5
    )
    together = policy([("h1:a1 |- a1 and a longer one", 3, 5), (state, 4, 11)])[1]
    assert [tactic for tactic, *_ in together] == [tactic for tactic, *_ in four]
    data = TraceDataset(
        [catamount.Trace("t", [catamount.Step(state, tactic) for tactic, *_ in four])], TOKENIZER
    )
    checked = 0
    for (_, logp, tokens), tactic in zip(four, data[0]["tactics"]):
        if tokens == len(tactic):
            checked += 1
            ids = data[0]["prompts"][0] + tactic
            scores = net(torch.tensor([ids])).logits[0].detach().double().log_softmax(-1)
            start = len(data[0]["prompts"][0])
            assert logp == pytest.approx(
                sum(float(scores[i - 1, ids[i]]) for i in range(start, len(ids))), rel=1e-4
            )
    assert checked


def test_the_example_takes_a_single_step(tmp_path):
    """Fewer steps than a line of the log used to end in an IndexError, and none at all in whole
    epochs.
    """
    command = [
        sys.executable,
        str(EXAMPLES / "train_hf.py"),
        "--warm-up",
        "1",
        "--out",
        str(tmp_path),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    one = subprocess.run(
        [*command, "--steps", "1"], capture_output=True, text=True, timeout=500, env=environment
    )
    assert one.returncode == 0, one.stderr[-3000:]
    assert json.loads(one.stdout.strip().splitlines()[-1])["loss_last"] > 0
    none = subprocess.run(
        [*command, "--steps", "0"], capture_output=True, text=True, timeout=500, env=environment
    )
    assert none.returncode != 0 and "at least one step, not 0" in none.stderr


@pytest.mark.parametrize("flags", [[], ["--lora", "--bf16", "--objective", "vdfs"]])
def test_the_example_trains(flags, tmp_path):
    command = [sys.executable, str(EXAMPLES / "train_hf.py"), "--out", str(tmp_path), *flags]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.strip().splitlines()[-1])
    assert report["log_j"]["random"] < report["log_j"]["warm"] < report["log_j"]["weighted"]
    assert report["log_j"]["weighted"] > report["log_j"]["random"] / 10
    assert {"ce", "minus_log_j", "mean_weight"} <= set(report["metrics"])
    assert report["rows"] == sum(len(trace.steps) for trace in demonstrations())
