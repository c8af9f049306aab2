/- `by_contra` and `exacts`, written without loops and optional pieces that need specialised code. -/
namespace Batteries.Tactic
open Lean Elab Tactic
macro_rules
  | `(tactic| by_contra) => `(tactic| (by_contra_core; rintro this))
macro_rules
  | `(tactic| by_contra $pat:rcasesPatMed) => `(tactic| (by_contra_core; rintro ($pat:rcasesPatMed)))
macro_rules
  | `(tactic| by_contra $pat:rcasesPatMed : $ty:term) => `(tactic| (by_contra_core; rintro ($pat:rcasesPatMed : $ty:term)))
partial def exactEach (args : Array Syntax) (i : Nat) : TacticM Unit := do
  match args[i]? with
  | none => done
  | some t => do
    evalTactic (← `(tactic| exact $(⟨t⟩)))
    exactEach args (i + 2)
@[tactic Batteries.Tactic.exacts] def evalExactEach : Tactic := fun stx => exactEach (stx.getArg 2).getArgs 0
end Batteries.Tactic
