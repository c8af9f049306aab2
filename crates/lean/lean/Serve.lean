/-! ### The loop -/

/-- Everything the server holds between requests. -/
structure Store where
  ctxs : Array Ctx
  files : Array (Option FileSoFar)   -- by context: the file that made it
  states : Array (Option Proof)
  reading : Reading                  -- modules that were read
  compiled : List (String × Environment) := []   -- modules that were imported for what their theorems rest on

def findCompiled (m : String) : List (String × Environment) → Option Environment
  | [] => none
  | (n, e) :: r => if n == m then some e else findCompiled m r

def importCompiled (st : Store) (m : String) : IO (Environment × Store) := do
  match findCompiled m st.compiled with
  | some e => return (e, st)
  | none =>
    let (env, reading) ← importing st.reading #[{ module := m.toName }] (loadExts := false)
    return (env, { st with reading := reading, compiled := [(m, env)] })

/-- A file that takes imports of its own, as one that continues a context with these imports. -/
def imported (st : Store) (c : Ctx) (req : FileRequest) : IO (Ctx × FileRequest × Store) := do
  if !req.imports then return (c, req, st)
  else
    let (header, _, log) ← Parser.parseHeader (inputCtx req.text)
    match (← firstError log) with
    | some _ => return (c, req, st)   -- whoever reads the file finds it, too
    | none =>
      let imports := withoutModules req.without (Elab.headerToImports header).toList
      let (env, reading) ← importing st.reading imports.toArray (loadExts := true)
      return (ctxOf (Command.mkState env {} {}), { req with imports := false }, { st with reading := reading })

def getState (st : Store) (i : Nat) : Option Proof :=
  match st.states[i]? with
  | some (some p) => some p
  | _ => none

def dropStates : List Nat → Array (Option Proof) → Array (Option Proof)
  | [], a => a
  | i :: is, a => dropStates is (if i < a.size then a.set! i none else a)

def ok (fields : Fields) : Fields := ("ok", Json.bool true) :: fields

def noSuch (what : String) : Fields := ({ kind := "request", text := String.append "no such " what } : Problem).fields

def answerState (st : Store) (p : Proof) : BaseIO (Fields × Store) := do
  let text ← p.text
  return (ok [("state", num st.states.size), ("goals", Json.str text), ("done", Json.bool p.isDone)],
          { st with states := st.states.push (some p) })

def certificateFields (c : Certificate) : Fields :=
  [("axioms", Json.arr (nameArray c.axioms #[])), ("library_axioms_visible", Json.bool (!c.opaqueLibrary)),
   ("declared", Json.arr (nameArray c.declared #[]))]

def handle (st : Store) (j : Json) : BaseIO (Fields × Store) := do
  let heartbeats := natField j "heartbeats" 200000
  match strField j "cmd" with
  | "tac" =>
    match getState st (natField j "state" 0) with
    | none => return (noSuch "state", st)
    | some p =>
      match (← runTactic p (strField j "tactic") heartbeats) with
      | .error e => return (e.fields, st)
      | .ok p' => answerState st p'
  | "start" =>
    match st.ctxs[0]?, st.ctxs[natField j "ctx" 0]? with
    | some imports, some c =>
      let held := if boolField j "strict" then some imports else none
      match (← startProof held c (strField j "statement") heartbeats), held with
      | .error e, _ => return (e.fields, st)
      | .ok p, none => answerState st p
      | .ok p, some base =>
        match (← p.hypotheses base) with
        | .error e => return (e.fields, st)
        | .ok hs =>
          let (fields, st) ← answerState st p
          return (appendFields fields [("hypotheses", Json.arr (hypothesesJson hs #[]))], st)
    | _, _ => return (noSuch "context", st)
  | "open" =>
    let ctx := natField j "ctx" 0
    match st.files[ctx]? with
    | some (some file) =>
      let name := strField j "theorem"
      let line := natField j "line" 0
      let file ← file.reach name line
      let st := { st with files := st.files.set! ctx (some file) }
      match findSnapshot file.result.snapshots name line with
      | none => return (({ kind := "missing", text := join3 "there is no theorem `" name "` in this file" } : Problem).fields, st)
      | some s =>
        match (← s.start heartbeats) with
        | .error e => return (e.fields, st)
        | .ok p => answerState st p
    | _ => return (noSuch "context", st)
  | "finish" =>
    match getState st (natField j "state" 0) with
    | none => return (noSuch "state", st)
    | some p =>
      match (← p.finish) with
      | .error e => return (e.fields, st)
      | .ok c =>
        match (← p.terms) with
        | .error e => return (e.fields, st)
        | .ok terms => return (ok (("terms", Json.str terms) :: certificateFields c), st)
  | "challenge" =>
    match getState st (natField j "state" 0) with
    | none => return (noSuch "state", st)
    | some p =>
      let request : ChallengeRequest :=
        { uses := namesField j "uses", declares := namesField j "declares", proofs := boolField j "proofs", whole := boolField j "whole" }
      let made ← (do
        let kept ← IO.mkRef st
        let module := strField j "module"
        let compiled : IO Environment := do
          let (env, st) ← importCompiled st module
          kept.set st
          return env
        return (← p.challenge compiled request, ← kept.get) : IO (Except Problem Challenge × Store)).toBaseIO
      match made with
      | .error e => return (({ kind := "challenge", text := toString e } : Problem).fields, st)
      | .ok (.error e, st) => return (e.fields, st)
      | .ok (.ok c, st) => return (ok c.fields, st)
  | "drop" => return (ok [], st)
  | "header" =>
    match st.ctxs[natField j "ctx" 0]? with
    | none => return (noSuch "context", st)
    | some c =>
      let text := strField j "text"
      match (← (if boolField j "strict" then runHeader c text (boolField j "proofs") else runOwnHeader c text)) with
      | .error e => return (e.fields, st)
      | .ok h => return (ok [("ctx", num st.ctxs.size)], { st with ctxs := st.ctxs.push h, files := st.files.push none })
  | "file" =>
    match st.ctxs[natField j "ctx" 0]? with
    | none => return (noSuch "context", st)
    | some c =>
      -- Lean forgets it after every import.
      if boolField j "initialise" then let _ ← (unsafe enableInitializersExecution : IO Unit).toBaseIO
      let req : FileRequest :=
        { text := strField j "text", path := strField j "path", module := strField j "module",
          trace := boolField j "trace", messages := boolField j "messages", proofs := boolField j "proofs", imports := boolField j "imports",
          without := stringsField j "without", before := strField j "before", after := strField j "after",
          save := strField j "save", whole := boolField j "whole" }
      match (← (imported st c req).toBaseIO) with
      | .error e => return (({ kind := "elaboration", text := toString e } : Problem).fields, st)
      | .ok (c, req, st) =>
      match (← runFile c req) with
      | .error e => return (e.fields, st)
      | .ok f =>
        -- What is only looked at is not kept: nobody asks for its theorems.
        if boolField j "messages" then return (ok f.result.fields, st)
        else return (ok (("ctx", num st.ctxs.size) :: f.result.fields),
                { st with ctxs := st.ctxs.push (ctxOf f.result.after), files := st.files.push (some f) })
  | "ping" => return (ok [("states", num st.states.size)], st)
  | c => return (({ kind := "request", text := join3 "unknown command `" c "`" } : Problem).fields, st)

/-- Any request may carry the states that will not be used again. -/
def withDrops (st : Store) (j : Json) : Store :=
  match (field j "drop").getArr? with
  | .ok a => { st with states := dropStates (natList a.toList) st.states }
  | .error _ => st

def send (out : IO.FS.Stream) (fields : Fields) : IO Unit := do
  out.putStr (String.append (Json.mkObj fields).compress "\n")
  out.flush

/-- A line, or why there is none: input that is not UTF-8 must not end the server. -/
def readLine (inp : IO.FS.Stream) : IO (Except String String) := do
  try
    return .ok (← inp.getLine)
  catch e => return .error (toString e)

partial def loop (inp out : IO.FS.Stream) (st : Store) : IO Unit := do
  match (← readLine inp) with
  | .error e =>
    send out ({ kind := "request", text := e } : Problem).fields
    loop inp out st
  | .ok line =>
  if line.isEmpty then return ()
  else
    match Json.parse line with
    | .error e =>
      send out ({ kind := "request", text := e } : Problem).fields
      loop inp out st
    | .ok j =>
      if strField j "cmd" == "quit" then return ()
      else
        let (r, st') ← handle (withDrops st j) j
        send out (("id", field j "id") :: r)
        loop inp out st'

def toImports : List String → List Import
  | [] => []
  | m :: ms => { module := m.toName } :: toImports ms

/-- Import the modules named in `args` (default `Init`), then serve requests until end of input or `quit`. -/
def serve (args : List String) : IO UInt32 := do
  let mods := match args with | [] => ["Init"] | _ => args
  unsafe enableInitializersExecution
  let (env, reading) ← importing {} (toImports mods).toArray (loadExts := true)
  let out ← IO.getStdout
  -- Whatever elaborated code prints goes to stderr: stdout belongs to the protocol.
  let _ ← IO.setStdout (← IO.getStderr)
  send out [("protocol", num 2), ("ready", Json.bool true), ("lean", Json.str Lean.versionString)]
  loop (← IO.getStdin) out { ctxs := #[ctxOf (Command.mkState env {} {})], files := #[none], states := #[], reading := reading }
  return 0

end Catamount

-- `main` holds no literals: symbols `l_main___closed__*` of the host binary would shadow ours.
public def main (args : List String) : IO UInt32 := Catamount.serve args
