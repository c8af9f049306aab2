"""Logs as data frames, and the notebook."""

from pathlib import Path

import nbformat
import pandas
from nbclient import NotebookClient

import catamount


def test_a_log_is_a_data_frame(theorems, database, tmp_path):
    policy = catamount.ReplayPolicy(theorems, 0.5)
    run = catamount.search(
        theorems, policy=policy, budget=16, database=database, out=tmp_path / "a.jsonl"
    )
    frame = pandas.DataFrame(catamount.read_log(tmp_path / "a.jsonl"))
    assert len(frame) == len(run.records) and frame["proved"].sum() == run.proved
    assert frame["expansions"].dtype == "int64" and frame["proved"].dtype == "bool"
    assert (frame[frame.proved].tactics.map(len) > 0).all()
    assert pandas.DataFrame(run.columns())["theorem"].tolist() == frame["theorem"].tolist()


def test_the_notebook_runs(tmp_path):
    path = Path(__file__).parents[2] / "examples" / "weights.ipynb"
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = "".join(
        o.get("text", "") for c in notebook.cells if c.cell_type == "code" for o in c.outputs
    )
    assert "gain of B" in printed
