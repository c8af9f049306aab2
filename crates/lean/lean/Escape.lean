import Lean
open Lean Elab Tactic

/-! Tactics that try to get out of the process that runs them. A library's own tactics run code by
right, so no rule about what a tactic may say stands in the way here: what holds them is the
confinement of the process. Each fails: with `escaped` if it got through, else with the reason. -/

elab "write_file" path:str : tactic => do
  IO.FS.writeFile path.getString "written by a tactic"
  throwError "escaped"

elab "read_file" path:str : tactic => do
  let text ← IO.FS.readFile path.getString
  throwError "escaped with {text}"

elab "open_up" path:str : tactic => do
  let all : IO.AccessRight := { read := true, write := true, execution := true }
  IO.setAccessRights path.getString { user := all, group := all, other := all }
  throwError "escaped"

elab "cut_off" path:str : tactic => do
  let file ← IO.FS.Handle.mk path.getString .readWrite
  file.truncate
  throwError "escaped"

elab "remove_file" path:str : tactic => do
  IO.FS.removeFile path.getString
  throwError "escaped"

elab "list_folder" path:str : tactic => do
  let _ ← System.FilePath.readDir path.getString
  throwError "escaped"

elab "make_folder" path:str : tactic => do
  IO.FS.createDir path.getString
  throwError "escaped"

elab "start_program" path:str : tactic => do
  let _ ← IO.Process.output { cmd := path.getString }
  throwError "escaped"

elab "see_environment" name:str : tactic => do
  match (← IO.getEnv name.getString) with
  | some _ => throwError "escaped"
  | none => throwError "it is not set"

elab "print_line" text:str : tactic => do
  IO.println text.getString
  IO.eprintln text.getString

elab "leave" : tactic => do
  IO.Process.exit 0

partial def spin (n : Nat) : Nat := spin (n + 1)

elab "spin" : tactic => do
  if spin 0 == 1 then throwError "it ended"

theorem escape (p : Prop) : p → p := by
  exact id
