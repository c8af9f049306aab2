"""The `catamount` command that the package installs: the same answers, exit codes and Ctrl-C as the
program Cargo builds.
"""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import catamount
from catamount.command import told

COMMAND = Path(sys.executable).parent / "catamount"

STUDY = """
name = "tiny"
data = {{ environment = "metamath", database = {database}, steps = "1-9", split = "0.5,0.2,0.3" }}
model = {{ hidden = 32, layers = 1, vocab = 200, positions = 128, tokenizer = "symbols" }}
objectives = [{{ objective = "ce" }}, {{ objective = "bfs" }}]
evaluation = {{ strategies = ["bfs"], budgets = [8], steps = "1-9", max_tokens = 16, trees = 2 }}
warm_up = {{ max_steps = {steps}, max_tokens = 96 }}
branch = {{ max_steps = 2, max_tokens = 96 }}
"""


def run(*arguments, **options):
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, **options)


def write_study(folder, database, steps=4):
    text = STUDY.format(database=json.dumps(str(database)), steps=steps)
    (folder / "study.toml").write_text(text)


def test_it_is_installed_beside_python():
    assert run("--version").stdout == f"catamount {catamount.__version__}\n"
    module = subprocess.run(
        [sys.executable, "-m", "catamount", "--version"], capture_output=True, text=True
    )
    assert module.stdout == run("--version").stdout
    presets = run("run", "demo", "--print")
    assert presets.returncode == 0 and 'database = "set.mm"' in presets.stdout


def test_it_weighs_what_the_package_weighs():
    trace = {"name": "t", "logp": [-0.1, -4.6, -0.7]}
    answer = run("weights", "--objective", "bfs", "--budget", "256", input=json.dumps(trace))
    expected = catamount.weights(trace["logp"], [3], objective="bfs", budget=256)
    assert json.loads(answer.stdout)["weights"] == pytest.approx(list(expected), rel=1e-12)


def test_defaults_are_those_of_the_package():
    said = re.search(
        r"--temperature <.*?\[default: ([\d.]+)\]", run("eval", "--help").stdout, re.DOTALL
    )
    defaults = {catamount.NgramPolicy("x").temperature, catamount.OpenAIPolicy("x").temperature}
    assert defaults == {float(said[1])}
    said = re.search(r"--batch <.*?\[default: (\d+)\]", run("eval", "--help").stdout, re.DOTALL)
    assert inspect.signature(catamount.search).parameters["batch"].default == int(said[1])


def test_what_a_program_says_is_passed_on_as_it_is_said(monkeypatch):
    """A study over a cluster takes hours, and says how it goes."""
    heard = []

    class Errors:
        """Notes when something was written."""

        def write(self, text):
            heard.append((text, time.monotonic()))

        def flush(self):
            pass

    script = (
        "import sys, time; print('first', file=sys.stderr, flush=True); time.sleep(1); "
        "sys.exit('error: last')"
    )
    monkeypatch.setattr(sys, "stderr", Errors())
    code, last = told([sys.executable, "-c", script], dict(os.environ))
    ended = time.monotonic()
    assert code == 1 and last == "first\nerror: last\n"
    assert [text for text, _ in heard] == ["first\n", "error: last\n"]
    assert ended - heard[0][1] > 0.8, "the first line came only when all was over"


def test_exit_codes_are_those_of_the_program(tmp_path):
    refused = run("weights", "--objective", "nonsense")
    assert refused.returncode == 2 and "nonsense" in refused.stderr
    absent = run("report", tmp_path / "absent")
    assert (
        absent.returncode == 2
        and absent.stderr.startswith("error: ")
        and "Traceback" not in absent.stderr
    )
    # A reader that has seen enough ends the command quietly.
    many = tmp_path / "many.jsonl"
    many.write_text('{"name": "t", "logp": [-0.1]}\n' * 20_000)
    piped = subprocess.run(
        f"{COMMAND} weights --objective ce {many} | head -1",
        shell=True,
        capture_output=True,
        text=True,
    )
    assert piped.stdout.count("\n") == 1 and piped.stderr == ""


def test_a_whole_study(tmp_path, database):
    write_study(tmp_path, database)
    planned = run("run", "study.toml", "--out", "study", "--dry-run", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    done = run("run", "study.toml", "--out", "study", "--device", "cpu", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "<h1>tiny" in (tmp_path / "study/report/index.html").read_text()
    # The manifest names the command as it was typed, without the interpreter.
    manifest = next((tmp_path / "study/cells").glob("*.manifest.json"))
    assert catamount.read_manifest(str(manifest).replace(".manifest.json", ".jsonl"))[
        "command"
    ].startswith("catamount run study.toml")


def test_ctrl_c_saves_and_says_so(tmp_path, database):
    write_study(tmp_path, database, steps=100_000)
    arguments = [COMMAND, "run", "study.toml", "--out", "study", "--device", "cpu"]
    process = subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    metrics = tmp_path / "study/training/warm-up.metrics.jsonl"
    wait(lambda: metrics.exists() and metrics.stat().st_size > 0, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "interrupted" in said and "Traceback" not in said


def test_view_serves_a_study_until_ctrl_c(tmp_path):
    process = subprocess.Popen(
        [COMMAND, "view", tmp_path, "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    address = process.stdout.readline().split()[0]
    with urllib.request.urlopen(address, timeout=30) as page:
        assert "nothing to report on yet" in page.read().decode()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == -signal.SIGINT


def wait(condition, process, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
