"""The wheel as a user gets it: a clean environment, one line, and a study runs."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from test_command import write_study

WHEEL = os.environ.get("CATAMOUNT_WHEEL")


@pytest.mark.skipif(not WHEEL, reason="CATAMOUNT_WHEEL names no wheel; run_tests.sh builds one")
def test_a_clean_environment_runs_a_study(tmp_path, database):
    if sys.platform == "linux":
        # One file for every Python from 3.9 on, and for every Linux whose glibc is as new as that
        # of the tag.
        assert re.fullmatch(
            r"catamount-[0-9.]+-cp39-abi3-manylinux_2_[0-9]+_[a-z0-9_]+\.whl", Path(WHEEL).name
        )
    venv.create(tmp_path / "env", with_pip=True)
    programs = tmp_path / "env/bin"
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    install = [
        programs / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        WHEEL,
    ]
    installed = subprocess.run(install, capture_output=True, text=True, env=clean)
    assert installed.returncode == 0, installed.stderr
    write_study(tmp_path, database)
    command = [programs / "catamount", "run", "study.toml", "--out", "study", "--device", "cpu"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=clean)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "study/report/index.html").exists() and "report: " in done.stdout
