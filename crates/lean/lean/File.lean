/-! ### Files: elaborated command by command, with a snapshot before every theorem -/

structure FileRequest where
  text : String
  path : String
  module : String
  trace : Bool
  messages : Bool           -- keep everything that Lean says, with its place
  proofs : Bool             -- elaborate proofs; otherwise the file's theorems are taken by their statements
  imports : Bool            -- take the file's own imports; otherwise it continues the context
  without : List String     -- imports to leave out
  before : String           -- commands to run before its own
  after : String            -- ... and once it is done
  save : String             -- where to write the compiled module; empty: nowhere
  whole : Bool              -- to its end; otherwise as far as theorems are opened

structure FileResult where
  after : Command.State
  snapshots : Array Snapshot
  stated : List Name        -- theorems whose proofs were not elaborated, the last one first
  theorems : Array Json
  errors : Array Json
  messages : Array Json
  gaps : Array Json
  rest : Option Parser.ModuleParserState   -- where the next command begins; none at the end of the file

def FileResult.fields (f : FileResult) : Fields :=
  [("theorems", Json.arr f.theorems), ("errors", Json.arr f.errors), ("messages", Json.arr f.messages), ("sorries", Json.arr f.gaps)]

/-- Commands before `in`, and the command they are about. -/
partial def peelIn (stx : Syntax) (acc : Array Syntax) : Array Syntax × Syntax :=
  if stx.getKind == `Lean.Parser.Command.in then peelIn (stx.getArg 2) (acc.push (stx.getArg 0))
  else (acc, stx)

/-- The command with its theorem's proof left out, if it is one `theorem .. := proof`. A proof by equations, or with hints
for termination, is elaborated with the statement. -/
partial def withoutProof (stx : Syntax) : Option Syntax :=
  if stx.getKind == `Lean.Parser.Command.in then
    match withoutProof (stx.getArg 2) with
    | some inner => some (stx.setArg 2 inner)
    | none => none
  else match theoremNode stx with
    | none => none
    | some thm =>
      let val := thm.getArg 3
      if val.getKind == `Lean.Parser.Command.declValSimple && endPos val == endPos (val.getArg 1) then
        let hole := Syntax.node .none `Lean.Parser.Term.sorry #[Syntax.atom .none "sorry"]
        some (stx.setArg 1 (thm.setArg 3 (val.setArg 1 hole)))
      else none

def lossFields (l : Loss) : Fields := [("lost", Json.str l.why), ("detail", Json.str l.detail)]

/-- What there is to say of one theorem of the file. -/
def traceTheorem (req : FileRequest) (fm : FileMap) (snap : Snapshot) (thm : Syntax) (st1 : Command.State) (errs : List String) : BaseIO Fields := do
  let val := thm.getArg 3
  if val.getKind != `Lean.Parser.Command.declValSimple then return [("proof", Json.str "other")]
  else
    let body := val.getArg 1
    if body.getKind != `Lean.Parser.Term.byTactic then return [("proof", Json.str "term")]
    else
      let tactics := ("proof", Json.str "tactics")
      match errs with
      | e :: _ => return tactics :: lossFields { why := "it does not elaborate", detail := e }
      | [] =>
        if !req.trace then return [tactics]
        else
          let inside ← insideName snap.cmd snap.id
          let shown := { (ctxOf inside) with env := st1.env }
          let noted := notedIn st1.infoState
          let c : Flatten := { src := req.text, fm := fm, runs := noted.runs, level := 2 }
          match (← replayBest snap shown c (body.getArg 1)) with
          | .error l => return tactics :: lossFields l
          | .ok (ss, r) =>
            let w : Written := { src := req.text, fm := fm, uses := noted.uses, env := st1.env }
            return [tactics, ("steps", Json.arr (stepsJson w ss r.states 0 #[])), ("level", num r.level),
                    ("axioms", Json.arr (nameArray r.axioms #[]))]

def errorJson (line : Nat) (e : String) : Json := Json.mkObj [("line", num line), ("error", Json.str e)]

def errorJsons (line : Nat) : List String → Array Json → Array Json
  | [], acc => acc
  | e :: es, acc => errorJsons line es (acc.push (errorJson line e))

/-- Adds what Lean said of a command, if that is asked for. -/
def said (req : FileRequest) (c : Ctx) (fm : FileMap) (log : MessageLog) (infos : InfoState) (r : FileResult) : BaseIO FileResult := do
  if !req.messages then return r
  else
    let messages ← messagesJson log.toList r.messages
    let gaps ← gapsJson c fm (notedIn infos).gaps 0 r.gaps
    return { r with messages := messages, gaps := gaps }

/-- Whether a theorem that begins in `line` is as far as is asked for. -/
def farEnough (line : Nat) : Option Nat → Bool
  | none => false
  | some last => line ≥ last

/-- Elaborates on, to the first theorem that begins in line `last` or after it, or to the end. -/
partial def fileLoop (req : FileRequest) (ictx : Parser.InputContext) (cctx : Command.Context) (last : Option Nat)
    (ps : Parser.ModuleParserState) (r : FileResult) : BaseIO FileResult := do
  let c := ctxOf r.after
  let (stx, ps', log) := Parser.parseCommand ictx (parserCtx c) ps {}
  let fm := ictx.fileMap
  let line := lineOf fm (startPos stx)
  let r ← (do match (← firstError log) with
    | some e => return { r with errors := r.errors.push (errorJson (lineOf fm ps'.pos.byteIdx) e) }
    | none => return r : BaseIO FileResult)
  let r ← said req c fm log {} r
  if Parser.isTerminalCommand stx then return { r with rest := none }
  else
    let st0 := { r.after with messages := {}, infoState := { enabled := req.trace || req.messages } }
    let shortened := if req.proofs then none else withoutProof stx
    let toElaborate := match shortened with | some s => s | none => stx
    match (← (StateRefT'.run (Command.elabCommandTopLevel toElaborate cctx) st0).toBaseIO) with
    | .error e =>
      let text ← exceptionText e
      let place := placeFields (fm.toPosition ⟨startPos stx⟩) (fm.toPosition ⟨endPos stx⟩)
      let message := Json.mkObj (("severity", Json.str "error") :: ("text", Json.str text) :: place)
      fileLoop req ictx cctx last ps' { r with errors := r.errors.push (errorJson line text),
                                               messages := if req.messages then r.messages.push message else r.messages }
    | .ok (_, st1) =>
      let errs ← errorTexts st1.messages.toList []
      let r := { r with errors := errorJsons line errs r.errors }
      let r ← said req (ctxOf st1) fm st1.messages st1.infoState r
      let (pre, inner) := peelIn stx #[]
      let r ← (do match theoremNode inner with
        | none => return r
        | some thm =>
          let id := ((thm.getArg 1).getArg 0).getId
          let snap : Snapshot :=
            { name := fullName c.ns id, id := id, line := lineOf fm (startPos thm),
              cmd := { st0 with infoState := { enabled := false }, snapshotTasks := #[] }, before := pre, src := req.text,
              statement := textBetween req.text fm (startPos thm) (startPos (thm.getArg 3)), stated := r.stated }
          let traced ← traceTheorem req fm snap thm st1 errs
          let about := [("name", Json.str (nameText snap.name)), ("line", num snap.line), ("statement", Json.str snap.statement)]
          let stated := match shortened with | some _ => declaredName st1.env snap.name :: r.stated | none => r.stated
          return { r with snapshots := r.snapshots.push snap, stated := stated,
                          theorems := r.theorems.push (Json.mkObj (appendFields about traced)) } : BaseIO FileResult)
      let r := { r with after := { st1 with messages := {}, infoState := { enabled := false }, snapshotTasks := #[] } }
      let here := match theoremNode inner with | some thm => farEnough (lineOf fm (startPos thm)) last | none => false
      if here then return { r with rest := some ps' } else fileLoop req ictx cctx last ps' r

/-- Close what the file left open, so that the next one starts at the top. -/
partial def closeScopes (st : Command.State) : BaseIO Command.State := do
  match st.scopes with
  | [] => return st
  | [_] => return st
  | sc :: _ =>
    let quoted := if sc.header == "" then "end" else join3 "end «" sc.header "»"
    match (← runTrusted quoted st) with
    | .ok st' => closeScopes st'
    | .error _ =>
      match (← runTrusted (String.append "end " sc.header) st) with
      | .ok st' => closeScopes st'
      | .error _ => return { st with scopes := outermost st.scopes }
where
  outermost : List Command.Scope → List Command.Scope
    | [] => []
    | [s] => [s]
    | _ :: ss => outermost ss

def withoutModules (left : List String) : List Import → List Import
  | [] => []
  | m :: ms => if memberStr (nameText m.module) left then withoutModules left ms else m :: withoutModules left ms

/-- The state that the file's commands start in. -/
def fileStart (c : Ctx) (req : FileRequest) (named : Array Import) : IO (Except Problem Command.State) := do
  let st ← (do
    if req.imports then
      let imports := withoutModules req.without named.toList
      let env ← importModules imports.toArray {} 0 (loadExts := true)
      return Command.mkState (env.setMainModule req.module.toName) {} {}
    else return { c.cmd with env := c.cmd.env.setMainModule req.module.toName } : IO Command.State)
  if req.before == "" then return .ok st else (runTrusted req.before st : BaseIO _)

/-- A file, elaborated as far as anybody asked. -/
structure FileSoFar where
  req : FileRequest
  ictx : Parser.InputContext
  cctx : Command.Context
  result : FileResult

/-- Elaborates on, to the first theorem that begins in line `last` or after it, or to the end. -/
def FileSoFar.upTo (f : FileSoFar) (last : Option Nat) : BaseIO FileSoFar := do
  match f.result.rest with
  | none => return f
  | some ps =>
    let r ← fileLoop f.req f.ictx f.cctx last ps f.result
    return { f with result := r }

/-- Elaborates on to the theorem that stands in `line`; to the end where it is not there, or no line is given. -/
def FileSoFar.reach (f : FileSoFar) (name : String) (line : Nat) : BaseIO FileSoFar := do
  match findSnapshotFrom f.result.snapshots name line 0 with
  | some _ => return f
  | none =>
    let f ← f.upTo (if line == 0 then none else some line)
    match findSnapshotFrom f.result.snapshots name line 0 with
    | some _ => return f
    | none => f.upTo none

/-- What has to be done once all of a file is elaborated. -/
def FileSoFar.close (f : FileSoFar) : IO (Except Problem FileSoFar) := do
  let done ← closeScopes { f.result.after with messages := {} }
  let patched ← (do
    if f.req.after == "" then return .ok done
    else match (← runTrusted f.req.after done) with
      | .ok st => return .ok { st with messages := {} }
      | .error e => return .error e : BaseIO (Except Problem Command.State))
  match patched with
  | .error e => return .error e
  | .ok st =>
    if f.req.save != "" then writeModule st.env f.req.save
    return .ok { f with result := { f.result with after := st } }

/-- Begin a file, and elaborate it to its end if the whole of it is wanted. Errors of single commands are listed and the rest
goes on, as Lean itself does. -/
def runFile (c : Ctx) (req : FileRequest) : BaseIO (Except Problem FileSoFar) := do
  let act : IO (Except Problem FileSoFar) := do
    let ictx := inputCtx req.text
    let (header, ps, log) ← Parser.parseHeader ictx
    match (← firstError log) with
    | some e => return .error { kind := "parse", text := e }
    | none =>
    match (← fileStart c req (Elab.headerToImports header)) with
    | .error e => return .error e
    | .ok st =>
      let cctx : Command.Context := { fileName := req.path, fileMap := ictx.fileMap, snap? := none, cancelTk? := none }
      let r : FileResult :=
        { after := st, snapshots := #[], stated := [], theorems := #[], errors := #[], messages := #[], gaps := #[], rest := some ps }
      let f : FileSoFar := { req := req, ictx := ictx, cctx := cctx, result := r }
      if req.whole then
        let f ← f.upTo none
        f.close
      else return .ok f
  match (← act.toBaseIO) with
  | .ok r => return r
  | .error e => return .error { kind := "elaboration", text := (toString e) }
