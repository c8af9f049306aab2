"""The wheel as a user gets it: a clean environment, one line, and studies run."""

import json
import os
import re
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest
from test_command import write_study

WHEEL = os.environ.get("CATAMOUNT_WHEEL")
SET_MM = Path("/usr/share/metamath/databases/set.mm")
# The demo made small: the same rows and searches, but nothing fitted, since a model this small
# proves too little to fit to.
SMALL = {
    "first": "300",
    "hidden": "16",
    "layers": "1",
    "vocab": "512",
    "epochs": "1",
    "budgets": "[8]",
    "limit": "6",
    "trials": "40",
    "concurrency": "6",
    "batch": "6",
    "trees": "2",
}

pytestmark = pytest.mark.skipif(
    not WHEEL, reason="CATAMOUNT_WHEEL names no wheel; run_tests.sh builds one"
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A clean environment with the wheel in it: runs `catamount` there."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "env", with_pip=True)
    programs = folder / "env/bin"
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    line = [programs / "pip", "install", "--quiet", "--disable-pip-version-check", WHEEL]
    started = time.monotonic()
    done = subprocess.run(line, capture_output=True, text=True, env=clean)
    seconds = time.monotonic() - started
    assert done.returncode == 0, done.stderr
    print(f"one line installed the wheel in {seconds:.1f} s")
    # Seconds where nothing else runs; what is told apart here is a wheel from a compilation.
    assert seconds < 60

    def catamount(*arguments, cwd):
        command = [programs / "catamount", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=clean)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return catamount


def test_one_file_serves_every_python_and_linux():
    if sys.platform == "linux":
        # From Python 3.9 on, and wherever glibc is as new as that of the tag.
        assert re.fullmatch(
            r"catamount-[0-9.]+-cp39-abi3-manylinux_2_[0-9]+_[a-z0-9_]+\.whl", Path(WHEEL).name
        )


def test_a_clean_environment_runs_a_study(installed, tmp_path, database):
    write_study(tmp_path, database)
    said = installed("run", "study.toml", "--out", "study", "--device", "cpu", cwd=tmp_path)
    assert (tmp_path / "study/report/index.html").exists() and "report: " in said


def test_a_clean_environment_plans_the_demo(installed, tmp_path):
    plan = json.loads(installed("run", "demo", "--dry-run", "--json", cwd=tmp_path))
    kinds = {step["kind"] for step in plan["steps"]}
    assert {"data", "warm-up", "branch", "report"} <= kinds, kinds


@pytest.mark.skipif(not SET_MM.exists(), reason="Debian's metamath-databases are not installed")
def test_a_clean_environment_runs_a_small_demo(installed, tmp_path):
    text = installed("run", "demo", "--print", cwd=tmp_path)
    for key, value in SMALL.items():
        text, found = re.subn(rf"(?m)^{key} = \S+$", f"{key} = {value}", text)
        assert found, key
    fitted = 'prior = "fitted"\nprobabilities = "mapped"\n'
    assert fitted in text
    (tmp_path / "demo.toml").write_text(text.replace(fitted, ""))
    said = installed("run", "demo.toml", "--out", "demo", "--device", "cpu", cwd=tmp_path)
    assert (tmp_path / "demo/report/index.html").exists() and "report: " in said


@pytest.mark.skipif(not os.environ.get("CATAMOUNT_DEMO"), reason="CATAMOUNT_DEMO is not set")
def test_a_clean_environment_runs_the_whole_demo(installed, tmp_path):
    installed("run", "demo", "--out", "demo", "--device", "cpu", cwd=tmp_path)
    assert (tmp_path / "demo/report/index.html").exists()
