/-! ### Contexts: where a command or a proof stands, and how elaborator code is run there -/

/-- A header without what could bend a statement: its own syntax, and its instances for what the library already knows. -/
structure PlainHeader where
  state : Option Command.State   -- none where the rest of the header needs what was left out
  leftSyntax : Bool
  leftInstances : List Name

/-- What commands leave behind: the state, and its innermost scope's environment, options, namespace and opens. -/
structure Ctx where
  cmd : Command.State
  env : Environment
  opts : Options
  ns : Name
  opens : List OpenDecl
  plain : Option PlainHeader := none   -- where it differs from the whole
  signs : List String := []            -- signs that a stranger's header brought with it
  words : List String := []            -- signs of the header's notation that could be taken for names
  leftOut : List Name := []            -- theorems of a stranger's header whose proofs were left out

def ctxOf (st : Command.State) : Ctx :=
  match st.scopes with
  | sc :: _ => { cmd := st, env := st.env, opts := sc.opts, ns := sc.currNamespace, opens := sc.openDecls }
  | [] => { cmd := st, env := st.env, opts := {}, ns := .anonymous, opens := [] }

def exceptionText (e : Exception) : BaseIO String := e.toMessageData.toString

/-- Heartbeats and recursion depth are limits; everything else is the elaborator's refusal. -/
def exceptionKind (e : Exception) : String := if e.isRuntime then "limit" else "elaboration"

def problemOf (e : Exception) : BaseIO Problem := do
  return { kind := exceptionKind e, text := (← exceptionText e) }

def errorTexts : List Message → List String → BaseIO (List String)
  | [], acc => pure (revOnto acc [])
  | m :: ms, acc => do
    match m.severity with
    | .error => do
      let s ← m.data.toString
      errorTexts ms (s :: acc)
    | _ => errorTexts ms acc

def firstError (log : MessageLog) : BaseIO (Option String) := do
  match (← errorTexts log.toList []) with
  | [] => return none
  | s :: _ => return some s

def natOption (opts : Options) (n : Name) (default : Nat) : Nat :=
  match KVMap.findCore opts.entries n with
  | some (.ofNat k) => k
  | _ => default

def coreCtx (c : Ctx) (heartbeats : Nat) : BaseIO Core.Context := do
  let now ← IO.getNumHeartbeats
  return {
    fileName := "<catamount>", fileMap := default
    options := c.opts, currNamespace := c.ns, openDecls := c.opens
    maxHeartbeats := heartbeats * 1000, initHeartbeats := now
    maxRecDepth := natOption c.opts `maxRecDepth 512 }

/-- As Lean's own command elaborator sets it up: term elaboration uses the approximate unifier. -/
def metaCtx : Meta.Context :=
  { keyedConfig := Meta.Config.toConfigWithKey { foApprox := true, ctxApprox := true, quasiPatternApprox := true } }

abbrev TermResult (α : Type) := ((α × Term.State) × Meta.State) × Core.State

/-- Run elaborator code from explicit states, for declaration `n`. -/
def runTerm {α : Type} (c : Ctx) (n : Name) (heartbeats : Nat) (core : Core.State) (ms : Meta.State) (ts : Term.State)
    (x : TermElabM α) : BaseIO (Except Exception (TermResult α)) := do
  let cctx ← coreCtx c heartbeats
  let y : MetaM (α × Term.State) := StateRefT'.run (x { declName? := some n, errToSorry := false }) ts
  let z : CoreM ((α × Term.State) × Meta.State) := StateRefT'.run (y metaCtx) ms
  let w : EIO Exception (TermResult α) := StateRefT'.run (z cctx) core
  w.toBaseIO

/-- A core state to start from, with fresh names under `tag`. -/
def coreState (env : Environment) (tag : Name) : Core.State :=
  { env := env, ngen := { namePrefix := tag }, infoState := { enabled := false } }

/-! ### Parsing and elaborating commands -/

def parserCtx (c : Ctx) : Parser.ParserModuleContext :=
  { env := c.env, options := c.opts, currNamespace := c.ns, openDecls := c.opens }

def commandCtx (s : String) : Command.Context :=
  { fileName := "<catamount>", fileMap := FileMap.ofString s, snap? := none, cancelTk? := none }

def elabCommand (s : String) (stx : Syntax) (st : Command.State) : BaseIO (Except Exception (Unit × Command.State)) :=
  (StateRefT'.run (Command.elabCommandTopLevel stx (commandCtx s)) st).toBaseIO

/-- Elaborate every command of `s`; the first error stops. `allow` is asked before each. -/
partial def runCommands (allow : Syntax → Option String) (s : String) (ictx : Parser.InputContext)
    (ps : Parser.ModuleParserState) (st : Command.State) : BaseIO (Except Problem Command.State) := do
  let c := ctxOf st
  let (stx, ps', log) := Parser.parseCommand ictx (parserCtx c) ps {}
  match (← firstError log) with
  | some e => return .error { kind := "parse", text := e }
  | none =>
    if Parser.isTerminalCommand stx then return .ok st
    else match allow stx with
      | some why => return .error { kind := "policy", text := why }
      | none =>
        match (← elabCommand s stx { st with messages := {} }) with
        | .error e => return .error (← problemOf e)
        | .ok (_, st') =>
          match (← firstError st'.messages) with
          | some e => return .error { kind := "elaboration", text := e }
          | none => runCommands allow s ictx ps' st'

def anything (_ : Syntax) : Option String := none

/-- Run commands that the server itself or a library's own source wrote. -/
def runTrusted (s : String) (st : Command.State) : BaseIO (Except Problem Command.State) :=
  runCommands anything s (inputCtx s) {} st

