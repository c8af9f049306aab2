import json

import pytest

import catamount
from catamount import Step, Trace

TRACE = Trace(
    "and_comm",
    [
        Step("⊢ p ∧ q → q ∧ p", "intro h", "h : p ∧ q\n⊢ q ∧ p"),
        Step("h : p ∧ q\n⊢ q ∧ p", "exact ⟨h.2, h.1⟩", ""),
    ],
    statement="p ∧ q → q ∧ p",
    file="Logic.lean",
)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet"])
def test_every_format_keeps_states_and_tactics(tmp_path, name):
    other = Trace("other", [Step("⊢ True", "trivial", "")], statement="True", file="Logic.lean")
    catamount.write_traces(tmp_path / name, [TRACE, other])
    back = catamount.read_traces(tmp_path / name)
    assert [(t.name, [(s.state, s.tactic) for s in t.steps]) for t in back] == [
        (t.name, [(s.state, s.tactic) for s in t.steps]) for t in (TRACE, other)
    ]


def test_our_own_format_keeps_everything(tmp_path):
    catamount.write_traces(tmp_path / "a.jsonl", [TRACE])
    assert catamount.read_traces(tmp_path / "a.jsonl") == [TRACE]
    catamount.write_traces(tmp_path / "b.jsonl", [json.loads((tmp_path / "a.jsonl").read_text())])
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_errors_name_file_and_line(tmp_path):
    (tmp_path / "bad.jsonl").write_text(
        '{"name": "a", "steps": [{"state": "s", "tactic": "t"}]}\n{"name": "b"}\n'
    )
    with pytest.raises(ValueError, match=r"bad.jsonl:2: "):
        catamount.read_traces(tmp_path / "bad.jsonl")
    with pytest.raises(OSError, match="missing.jsonl"):
        catamount.read_traces(tmp_path / "missing.jsonl")
    with pytest.raises(ValueError, match=r"\.jsonl"):
        catamount.write_traces(tmp_path / "a.txt", [TRACE])


def test_a_database_gives_traces_that_its_prover_accepts(database, traces):
    assert {"syl", "id", "mpd"} <= {trace.name for trace in traces}
    prover = catamount.Metamath(database)
    for trace in traces:
        proved, axioms, reason = prover.check(trace, [step.tactic for step in trace.steps])
        assert proved and reason == "" and axioms, trace.name
    refused, _, reason = prover.check("syl", ["a1i"])
    assert not refused and reason


def test_stepping_through_a_proof(database, traces):
    trace = next(trace for trace in traces if len(trace.steps) > 1)
    session = catamount.Metamath(database).open(trace.name)
    assert session.root == trace.steps[0].state
    state = 0
    for step, after in zip(trace.steps, trace.steps[1:]):
        verdict = session.apply(state, step.tactic)
        assert (verdict.kind, verdict.text) == ("open", after.state)
        state = verdict.state
    assert session.apply(state, trace.steps[-1].tactic).kind == "proved"
    assert session.apply(0, "no-such-theorem").kind == "rejected"
    with pytest.raises(RuntimeError, match="nothing-like-it"):
        catamount.Metamath(database).open("nothing-like-it")


def test_where_a_theorem_was_traced_is_kept(tmp_path):
    theorem = {
        "url": "https://example.org/library", "commit": "5a91953",
        "file_path": "Library/Basic.lean", "full_name": "swap",
        "start": [1, 1], "end": [2, 9], "traced_tactics": [{"tactic": "tauto",
        "state_before": "⊢ p", "state_after": "no goals"}],
    }  # fmt: skip
    (tmp_path / "one.json").write_text(json.dumps([theorem]), encoding="utf-8")
    (trace,) = catamount.read_traces(tmp_path / "one.json")
    assert (trace.url, trace.commit) == (theorem["url"], theorem["commit"])
    catamount.write_traces(tmp_path / "two.json", [trace])
    (again,) = json.loads((tmp_path / "two.json").read_text(encoding="utf-8"))
    assert (again["url"], again["commit"]) == (theorem["url"], theorem["commit"])
