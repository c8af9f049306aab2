/- `t <;> [a; b]`, with loops of its own. -/
namespace Batteries.Tactic
open Lean Elab Tactic
def joinGoals : List MVarId → List MVarId → List MVarId
  | [], b => b
  | a :: as, b => a :: joinGoals as b
def goalsAfter (t : Syntax) (g : MVarId) : TacticM (List MVarId) := fun ctx _ => do
  let body : TacticM (List MVarId) := do
    evalTactic t
    getUnsolvedGoals
  let r ← StateRefT'.run (body ctx) { goals := [g] }
  return r.1
partial def runEach (args : Array Syntax) (i : Nat) (goals acc : List MVarId) : TacticM (List MVarId) := do
  match goals with
  | [] => match args[i]? with
    | none => return acc
    | some _ => throwError "too many tactics"
  | g :: gs => match args[i]? with
    | none => throwError "not enough tactics"
    | some t => do
      let new ← goalsAfter t g
      runEach args (i + 2) gs (joinGoals acc new)
@[tactic Batteries.Tactic.seq_focus] def evalEachOnItsGoal : Tactic := fun stx => do
  match (← getUnsolvedGoals) with
  | [] => throwError "no goals"
  | g :: gs =>
    let new ← goalsAfter (stx.getArg 0) g
    let left ← runEach (stx.getArg 3).getArgs 0 new []
    set ({ goals := joinGoals left gs } : Tactic.State)
end Batteries.Tactic
