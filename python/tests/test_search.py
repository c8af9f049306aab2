import json
import math
import os
import signal
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from test_command import run as command
from test_command import write_study

import catamount


class Demonstrator:
    """Plays the demonstrated tactic with a given probability, from the question's own stream."""

    def __init__(self, traces, p=0.5):
        self.right = {step.state: step.tactic for trace in traces for step in trace.steps}
        self.p = p
        self.batches = []

    def describe(self):
        return f"demonstrator {self.p}"

    def __call__(self, questions):
        self.batches.append(len(questions))
        return [
            [self.draw(state, seed, index) for index in range(n)] for state, n, seed in questions
        ]

    def draw(self, state, seed, index):
        right = catamount.uniform(seed, index) < self.p and state in self.right
        return (
            (self.right[state], math.log(self.p), 3)
            if right
            else ("noise", math.log(1 - self.p), 1)
        )


def run(theorems, toy, policy, **arguments):
    arguments = {"strategy": "bfs", "budget": 24, "database": toy, **arguments}
    return catamount.search(theorems, policy=policy, **arguments)


@pytest.mark.parametrize("strategy", catamount.STRATEGIES)
def test_a_python_policy_under_every_strategy(theorems, database, traces, strategy):
    result = run(theorems, database, Demonstrator(traces, 0.95), strategy=strategy, budget=64)
    assert len(result.records) == len(traces) and result.proved >= len(traces) - 1
    prover = catamount.Metamath(database)
    for record in result.records:
        assert record["expansions"] <= 64
        if record["outcome"] == "proved":
            assert prover.check(record["theorem"], record["tactics"])[0]


def test_nothing_but_the_seed_changes_a_log(theorems, database, traces, tmp_path):
    first = run(theorems, database, Demonstrator(traces), out=tmp_path / "a.jsonl")
    single = Demonstrator(traces)
    run(theorems, database, single, out=tmp_path / "b.jsonl", concurrency=2, threads=1, batch=1)
    assert set(single.batches) == {1}
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    in_memory = run([trace for trace in traces], database, Demonstrator(traces))
    assert in_memory.records == first.records
    run(theorems, database, Demonstrator(traces), out=tmp_path / "c.jsonl", seed=7)
    assert (tmp_path / "a.jsonl").read_bytes() != (tmp_path / "c.jsonl").read_bytes()


def test_a_log_is_a_table_with_a_manifest(theorems, database, traces, tmp_path):
    log = tmp_path / "cells" / "bfs.jsonl"
    seen = []
    result = run(
        theorems,
        database,
        Demonstrator(traces),
        out=log,
        trees=True,
        objective="ce",
        progress=seen.append,
    )
    columns = catamount.read_log(log)
    assert {len(column) for column in columns.values()} == {len(traces)}
    assert columns["theorem"] == [record["theorem"] for record in result.records]
    assert columns["proved"].sum() == result.proved == result.outcomes["proved"]
    assert sorted(record["theorem"] for record in seen) == sorted(columns["theorem"])
    assert set(columns["demonstrated"]) == {len(trace.steps) for trace in traces}
    manifest = catamount.read_manifest(log)
    assert (manifest["objective"], manifest["policy"]) == ("ce", "demonstrator 0.5")
    assert manifest["identity"]["deployment"]["budget"] == 24
    assert len(catamount.read_times(log)["seconds"]) == len(traces)
    trees = catamount.read_trees(log)
    assert all(len(trees[r["theorem"]]["expansions"]) == r["expansions"] for r in result.records)


def test_distinct_samples_of_a_python_policy(theorems, database, traces, tmp_path):
    policy, log = Demonstrator(traces), tmp_path / "a.jsonl"
    result = run(theorems, database, policy, settings={"distinct": True}, strategy="dfs", out=log)
    assert catamount.read_manifest(log)["identity"]["deployment"]["distinct"] is True
    columns = catamount.read_log(log)
    assert columns["redrawn"].sum() > 0
    assert list(columns["redrawn"]) == result.columns()["redrawn"]


class Fragile(Demonstrator):
    """Fails at the question number given, by raising or by answering with an exception."""

    def __init__(self, traces, at, polite):
        super().__init__(traces)
        self.at, self.polite, self.count = at, polite, 0

    def __call__(self, questions):
        self.count += 1
        if self.count == self.at:
            if self.polite:
                return [ConnectionError("out of reach") for _ in questions]
            raise ConnectionError("out of reach")
        return super().__call__(questions)


@pytest.mark.parametrize("polite", [False, True])
def test_after_a_failure_the_same_call_goes_on(theorems, database, traces, tmp_path, polite):
    run(theorems, database, Demonstrator(traces), out=tmp_path / "whole.jsonl")
    log = tmp_path / "broken.jsonl"
    fragile = Fragile(traces, 6, polite)
    arguments = {"out": log, "concurrency": 2, "batch": 1}
    if polite:
        assert run(theorems, database, fragile, **arguments).outcomes["error"] == 1
        assert "out of reach" in str([r for r in catamount.read_log(log)["reason"] if r])
    else:
        with pytest.raises(ConnectionError, match="out of reach") as kept:
            run(theorems, database, fragile, **arguments)
        # Whoever holds the traceback does not hold the files.
        assert kept.tb is not None
    before = sum(outcome != "error" for outcome in catamount.read_log(log)["outcome"])
    assert before < len(traces)
    whole = run(theorems, database, Demonstrator(traces), out=tmp_path / "whole.jsonl")
    assert run(theorems, database, Demonstrator(traces), out=log).records == whole.records
    assert log.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_misbehaving_policies_are_told_apart(theorems, database):
    for policy, error, words in [
        (lambda questions: [], ValueError, "gave 0 answers"),
        (
            lambda questions: [[("a", -1.0)] * (n + 1) for _, n, _ in questions],
            ValueError,
            "asked for",
        ),
        (lambda questions: [[("a", 0.5)] * n for _, n, _ in questions], ValueError, "at most 0"),
        (lambda questions: [["a"] * n for _, n, _ in questions], TypeError, "a tuple"),
        (lambda questions: 5, TypeError, "iter"),
    ]:
        with pytest.raises(error, match=words):
            run(theorems, database, policy)
    with pytest.raises(TypeError, match="callable"):
        run(theorems, database, 5)


def test_wrong_arguments_are_named(theorems, database, traces, tmp_path):
    policy = Demonstrator(traces)
    for arguments, words in [
        ({"strategy": "bsf"}, "unknown strategy `bsf`"),
        ({"settings": {"bfs_beem": 2}}, "bfs_beem"),
        ({"settings": {"temperature": -1.0}}, "temperature"),
        ({"environment": "coq"}, "'metamath' and 'lean'"),
        ({"steps": "5-2"}, "steps"),
        ({"steps": "90-"}, "no theorem of 90- steps"),
        ({"database": tmp_path / "no.mm"}, "no.mm"),
    ]:
        with pytest.raises(ValueError, match=words):
            run(theorems, database, policy, **arguments)
    with pytest.raises(
        ValueError, match="temperature is 0.5 in settings, but the policy's own is 0.8"
    ):
        settings = {"temperature": 0.5}
        run(theorems, database, catamount.NgramPolicy(theorems), settings=settings)
    run(theorems, database, policy, out=tmp_path / "a.jsonl")
    with pytest.raises(ValueError, match="seed was 42 and is now 7"):
        run(theorems, database, policy, out=tmp_path / "a.jsonl", seed=7)


def test_the_crates_own_policies_and_a_comparison(theorems, database, traces, tmp_path):
    good = catamount.ReplayPolicy(theorems, 0.9)
    run(theorems, database, good, out=tmp_path / "good.jsonl", objective="good")
    run(
        theorems,
        database,
        catamount.ReplayPolicy(theorems, 0.05),
        out=tmp_path / "bad.jsonl",
        objective="bad",
        budget=24,
    )
    comparison = catamount.compare(tmp_path / "bad.jsonl", tmp_path / "good.jsonl")
    assert comparison.n == len(traces) and comparison.b > comparison.c == 0
    assert comparison.gain_pp == pytest.approx(100 * comparison.b / comparison.n)
    assert "good under bfs" in str(comparison) and len(comparison.only_b) == comparison.b
    with pytest.raises(OSError):
        catamount.compare(tmp_path / "bad.jsonl", tmp_path / "nowhere.jsonl")
    ngram = run(theorems, database, catamount.NgramPolicy(theorems), budget=64)
    assert ngram.proved > 0


class Server(BaseHTTPRequestHandler):
    """A completions server that knows the demonstrations."""

    right: dict = {}

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        state = asked["prompt"].removesuffix(" :::")
        text = self.right.get(state, "noise")
        choice = {
            "index": 0,
            "text": text,
            "finish_reason": "stop",
            "logprobs": {"tokens": [text], "token_logprobs": [-0.25]},
        }
        body = json.dumps({"choices": [choice], "usage": {"completion_tokens": 1}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_a_completions_server(theorems, database, traces):
    Server.right = {step.state: step.tactic for trace in traces for step in trace.steps}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        policy = catamount.OpenAIPolicy(url, prompt="{state} :::", temperature=0.8)
        result = run(theorems, database, policy)
        assert result.proved == len(traces)
    finally:
        server.shutdown()
        server.server_close()


def test_a_server_asked_with_the_default_prompt_as_text_is_warned_of():
    with pytest.warns(UserWarning, match="unlike training"):
        catamount.OpenAIPolicy("http://127.0.0.1:8000")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        catamount.OpenAIPolicy("http://127.0.0.1:8000", tokenizer="MODEL")
        catamount.OpenAIPolicy("http://127.0.0.1:8000", prompt="Prove {state}")


def test_a_server_is_asked_in_tokens_or_in_chats(theorems, database, tmp_path):
    asked = []

    class Recorder(Server):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, body))
            choice = {
                "index": 0,
                "text": "ax-1",
                "finish_reason": "stop",
                "logprobs": {"tokens": ["a"], "token_logprobs": [-0.25]},
            }
            if "chat" in self.path:
                content = [{"token": "a", "logprob": -0.25, "bytes": [97]}]
                choice.update(
                    message={"role": "assistant", "content": "ax-1"}, logprobs={"content": content}
                )
            answer = json.dumps({"choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    write_study(tmp_path, database)
    trained = command("train", "study.toml", "--out", "study", "--device", "cpu", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    model, adapter = tmp_path / "study/models/ce", tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_model.safetensors").write_bytes(b"")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        run(
            theorems,
            database,
            catamount.OpenAIPolicy(url, tokenizer=model, adapter=adapter),
            budget=2,
        )
        loaded = [body["lora_name"] for path, body in asked if path == "/v1/load_lora_adapter"]
        completions = [body for path, body in asked if path == "/v1/completions"]
        assert loaded == ["adapter"] and completions
        assert all(isinstance(token, int) for body in completions for token in body["prompt"])
        assert all(body["model"] == "adapter" and body["stop_token_ids"] for body in completions)
        asked.clear()
        run(
            theorems,
            database,
            catamount.OpenAIPolicy(url, chat=True, prompt="Prove {state}"),
            budget=2,
        )
        assert asked and all(
            body["messages"][0]["content"].startswith("Prove ") for _, body in asked
        )
        with pytest.raises(ValueError, match="a chat takes text"):
            run(theorems, database, catamount.OpenAIPolicy(url, chat=True, tokenizer=model))
        with pytest.raises(ValueError, match="tokenizer: cannot read"):
            run(theorems, database, catamount.OpenAIPolicy(url, tokenizer=tmp_path / "none"))
    finally:
        server.shutdown()
        server.server_close()


def test_ctrl_c_ends_a_run_without_python_in_it(theorems, database, tmp_path):
    hopeless = catamount.ReplayPolicy(theorems, 0.0)
    log = tmp_path / "a.jsonl"
    # A process that a shell has put into the background ignores Ctrl-C unless told otherwise.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            run(theorems, database, hopeless, strategy="dfs", budget=1_000_000, out=log)
    finally:
        signal.signal(signal.SIGINT, before)
    assert log.read_bytes() == b""
