"""The paper's own job, as far as it goes here: official splits, shared beginnings, logs of several
studies.
"""

import shutil

from test_command import run, write_study


def test_the_preset_reads_the_official_split(tmp_path, theorems):
    printed = run("run", "paper-official", "--print")
    assert (
        printed.returncode == 0
        and 'valid = "leandojo_benchmark_4/random/val.json"' in printed.stdout
    )
    planned = run("run", "paper-official", "--dry-run", "--out", "study", cwd=tmp_path)
    # What is missing is said, and the plan is shown all the same.
    assert "leandojo_benchmark_4/random/" in planned.stdout and "branch mcts" in planned.stdout
    assert planned.stdout.count("to do       cell ") == 18


def test_copies_of_a_study_share_their_beginning(tmp_path, database):
    """One warm-up, then a copy for each GPU with objectives of its own; logs of different folders
    compare.
    """
    write_study(tmp_path, database)
    whole = (tmp_path / "study.toml").read_text()
    both = 'objectives = [{ objective = "ce" }, { objective = "bfs" }]'
    assert both in whole
    for objective in ("ce", "bfs"):
        text = whole.replace(both, f'objectives = [{{ objective = "{objective}" }}]')
        (tmp_path / f"{objective}.toml").write_text(text)
    first = run("run", "ce.toml", "--out", "one", "--device", "cpu", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    second = run("run", "bfs.toml", "--out", "two", "--device", "cpu", cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    assert "2 of 5 steps are up to date" in second.stderr + second.stdout
    compared = run(
        "compare", "one/cells/ce-bfs-n8.jsonl", "two/cells/bfs-bfs-n8.jsonl", cwd=tmp_path
    )
    assert compared.returncode == 0, compared.stderr
    assert "exact two-sided p" in compared.stdout
