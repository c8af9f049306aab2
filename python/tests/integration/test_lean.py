"""A search on Lean with a Python policy. Needs node; the first run ever fetches Lean as
WebAssembly.
"""

import shutil

import pytest

import catamount
from catamount import Trace

SWAP = Trace("swap", statement="theorem swap (p q : Prop) : p ∧ q → q ∧ p")
BOTH = Trace("both", statement="theorem both (p q : Prop) (hp : p) (hq : q) : p ∧ q")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_python_policy_proves_theorems_of_lean(tmp_path):
    lean = catamount.Lean(workers=1)
    session = lean.open(SWAP)
    assert session.root == "p q : Prop\n⊢ p ∧ q → q ∧ p"
    verdict = session.apply(0, "intro h")
    assert (
        verdict.kind == "open" and session.apply(verdict.state, "exact ⟨h.2, h.1⟩").kind == "proved"
    )
    assert session.apply(0, "exact nonsense").kind == "rejected"

    def policy(questions):
        known = {"⊢ q ∧ p": "exact ⟨h.2, h.1⟩", "⊢ p ∧ q": "constructor <;> assumption"}
        return [
            [(next((t for goal, t in known.items() if state.endswith(goal)), "intro h"), -0.5)] * n
            for state, n, _ in questions
        ]

    run = catamount.search(
        [SWAP, BOTH],
        policy=policy,
        environment=lean,
        strategy="dfs",
        budget=8,
        out=tmp_path / "a.jsonl",
    )
    assert {record["theorem"]: record["outcome"] for record in run.records} == {
        "swap": "proved",
        "both": "proved",
    }
    proved, axioms, _ = lean.check(SWAP, ["intro h", "exact ⟨h.2, h.1⟩"])
    assert proved and axioms == []
