
/-! ### What older Leans call by other names (see names.toml); the WebAssembly package needs none of it -/

open Lean Elab Command in
/-- A definition for a Lean that has no such name yet. -/
elab "unless_there_is " n:ident " then " c:command : command => do
  if !((← getEnv).contains n.getId) then elabCommand c

unless_there_is String.ofList then
  def _root_.String.ofList (cs : List Char) : String := String.mk cs

unless_there_is String.Pos.Raw.extract then
  def _root_.String.Pos.Raw.extract (s : String) (b e : String.Pos) : String := String.extract s b e

/-- What a text is parsed from; its fields are others since 4.24. -/
def inputCtx (s : String) : Parser.InputContext := Parser.mkInputContext s "<catamount>" false

/-- What has been read so far: nothing to keep, where every process maps the same files. -/
structure Reading where
  nothing : Unit := ()

/-- The environment of these imports (see Imports.lean). -/
def importing (before : Reading) (imports : Array Import) (loadExts : Bool) : IO (Environment × Reading) := do
  return (← importModules imports {} 0 (loadExts := loadExts), before)

