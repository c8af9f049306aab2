open Lean Elab Command

def modules (names : Array Name) (data : Array ModuleData) (as : Array EffectiveImport) (i : Nat) (s : String) : Nat → String
  | 0 => s
  | n + 1 => match names[i]?, data[i]?, as[i]? with
    | some x, some d, some a =>
      let flags := String.append (toString a.importAll) (String.append (toString a.isExported) (toString a.isMeta))
      let line := String.append x.toString (String.append " " (String.append (toString d.constNames.size) flags))
      modules names data as (i + 1) (String.append s (String.append "\n" line)) n
    | _, _, _ => s

elab "account" : command => do
  let env ← getEnv
  let h := env.header
  let kept ← IO.mkRef ({} : IO.FS.Stream.Buffer)
  let out ← IO.setStdout (IO.FS.Stream.ofBuffer kept)
  env.displayStats
  let _ ← IO.setStdout out
  let stats := String.fromUTF8! (← kept.get).data
  throw (.error .missing (.ofFormat (.text (String.append stats (modules h.moduleNames h.moduleData h.modules 0 "" 100000)))))

account
example (a b : Nat) : a + 0 = a ∧ b * 1 = b := by simp?
example (xs : List Nat) : xs ++ [] = xs := by simp?
#synth Inhabited (Option Nat)
