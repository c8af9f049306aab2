/-! ### Proofs in progress: starting from a statement, running a tactic, finishing -/

/-- An immutable snapshot, so that any number of tactics can be tried from it. -/
structure Proof where
  ctx : Ctx                 -- where the tactics are read and run
  base : Environment        -- what the kernel starts from
  name : Name
  levels : List Name
  type : Expr
  root : Expr
  core : Core.State
  mst : Meta.State
  term : Term.State
  goals : List MVarId
  stated : List Name := []  -- theorems that are there by their statements alone
  strict : Bool := false    -- a stranger's: theorems of its header are proved again ...
  leftOut : List Name := [] -- ... and here they have no proofs
  statement : Syntax := .missing   -- as it is written, where it is
  arguments : Nat := 0             -- how many it takes before its conclusion

/-! #### Starting -/

partial def lacksAny (env : Environment) (ns : Array Name) (i : Nat) : Bool :=
  match ns[i]? with
  | none => false
  | some n => if hasConst env n then lacksAny env ns (i + 1) else true

/-- The goal with its arguments introduced under the names they were given. -/
def introduce (ty : Expr) (n : Nat) : TermElabM (Expr × MVarId) := do
  let m ← Meta.mkFreshExprSyntheticOpaqueMVar ty
  let (_, g) ← m.mvarId!.introNP n
  return (m, g)

/-- For `theorem A.b` the proof is read inside namespace `A`. -/
def insideName (st : Command.State) (id : Name) : BaseIO Command.State := do
  let np := parentOf id
  if np.isAnonymous || isRooted id then return st
  else match (← runTrusted (String.append "namespace " (nameText np)) st) with
    | .error _ => return st
    | .ok st' => return st'

/-- Starts a proof of `stmt` in `c`. With `imports`, the header between them and `c` is held to the policy and the kernel
starts from the imports; without, the kernel starts from `c`. When the statement makes auxiliary constants
(`foo.match_1`, `foo._proof_1`) it is elaborated once more under another name and the proof runs where they exist. -/
def startProof (imports : Option Ctx) (c : Ctx) (stmt : String) (heartbeats : Nat) : BaseIO (Except Problem Proof) := do
  let strict := match imports with | some _ => true | none => false
  match (← parseStatement c stmt strict) with
  | .error e => return .error e
  | .ok s =>
  match (← elabStatement c s.text s.stx s.id) with
  | .error e => return .error e
  | .ok (ci, env1) =>
  let bent ← (do
    match imports with
    | none => return none
    | some base => headerBends base c env1 s stmt ci : BaseIO (Option String))
  match bent with
  | some why => return .error { kind := "policy", text := why }
  | none =>
    let n := match ci.value? (allowOpaque := true) with
      | some v => lambdas v
      | none => 0
    let where_ ← (do
      if lacksAny c.env ci.type.getUsedConstants 0 then
        let id := asStatement s.id
        match (← elabStatement c s.text (renamed s.stx id) id) with
        | .error e => return .error e
        | .ok (ci2, env2) => return .ok (ci2.type, env2)
      else return .ok (ci.type, c.env) : BaseIO (Except Problem (Expr × Environment)))
    match where_ with
    | .error e => return .error e
    | .ok (type, env) =>
      let inside ← insideName c.cmd s.id
      let pctx := { (ctxOf inside) with env := env }
      match (← runTerm pctx ci.name heartbeats (coreState env `_catamount) {} { levelNames := ci.levelParams } (introduce type n)) with
      | .error e => return .error (← problemOf e)
      | .ok ((((root, g), ts), ms), cs) =>
        return .ok { ctx := pctx, base := (match imports with | some b => b.env | none => c.env), name := ci.name, levels := ci.levelParams,
                     type := type, root := root, core := cs, mst := ms, term := ts, goals := [g], statement := s.stx, arguments := n,
                     strict := strict, leftOut := c.leftOut }
where
  -- The same theorem under another name, which no text can write.
  renamed (stx : Syntax) (id : Name) : Syntax :=
    let thm := stx.getArg 1
    let declId := thm.getArg 1
    stx.setArg 1 (thm.setArg 1 (declId.setArg 0 (mkIdentFrom (declId.getArg 0) id)))

/-! #### Tactics -/

def parseTactics (c : Ctx) (s : String) : Except Problem Syntax :=
  let ictx := inputCtx s
  let fn : Parser.ParserFn := Parser.andthenFn Parser.whitespace Parser.Tactic.tacticSeq.fn
  let st := Parser.ParserFn.run fn ictx (parserCtx c) (Parser.getTokenTable c.env) (Parser.mkParserState s)
  if st.hasError then .error { kind := "parse", text := st.toErrorMsg ictx }
  else if ictx.atEnd st.pos then .ok st.stxStack.back
  else .error { kind := "parse", text := (st.mkError "end of input").toErrorMsg ictx }

def tacticBody (stx : Syntax) : Tactic.TacticM Unit := do
  Tactic.evalTactic stx
  Term.synthesizeSyntheticMVarsNoPostponing
  Tactic.pruneSolvedGoals

/-- Ordinary failures come back as a value, so that logged messages are kept; limits are runtime exceptions, which `try`
lets through. -/
def tacticRun (stx : Syntax) (goals : List MVarId) : TermElabM (Except Exception Tactic.State) := do
  try
    let r ← StateRefT'.run (tacticBody stx { elaborator := .anonymous, recover := false }) { goals := goals }
    return .ok r.2
  catch e => return .error e

/-- Tactics that have been read, at a proof state. -/
def runSyntax (p : Proof) (stx : Syntax) (heartbeats : Nat) : BaseIO (Except Problem Proof) := do
  match forbidden stx with
  | some why => return .error { kind := "policy", text := why }
  | none =>
    match (← runTerm p.ctx p.name heartbeats { p.core with messages := {} } p.mst p.term (tacticRun stx p.goals)) with
    | .error e => return .error (← problemOf e)
    | .ok (((r, ts), ms), cs) =>
      match (← firstError cs.messages), r with
      | some e, _ => return .error { kind := "elaboration", text := e }
      | none, .error e => return .error (← problemOf e)
      | none, .ok t => return .ok { p with core := cs, mst := ms, term := ts, goals := t.goals }

/-- One tactic (or several, separated as in a tactic block) at a proof state. -/
def runTactic (p : Proof) (text : String) (heartbeats : Nat) : BaseIO (Except Problem Proof) := do
  match parseTactics p.ctx text with
  | .error e => return .error e
  | .ok stx => runSyntax p stx heartbeats

/-! #### Printing and finishing -/

def goalTexts : List MVarId → MetaM (List String)
  | [] => pure []
  | g :: gs => do
    let f ← Meta.ppGoal g
    let r ← goalTexts gs
    return f.pretty :: r

def joinBlank : List String → String
  | [] => ""
  | [s] => s
  | s :: ss => join3 s "\n\n" (joinBlank ss)

/-- The goals as Lean prints them, a blank line between two. -/
def printGoals (c : Ctx) (n : Name) (core : Core.State) (ms : Meta.State) (gs : List MVarId) : BaseIO String := do
  let act : TermElabM (List String) := fun _ _ => goalTexts gs
  match (← runTerm c n 400000 core ms {} act) with
  | .error e => return String.append "<the goal cannot be printed> " (← exceptionText e)
  | .ok (((a, _), _), _) => return joinBlank a

def Proof.text (p : Proof) : BaseIO String := printGoals p.ctx p.name p.core p.mst p.goals

def Proof.isDone (p : Proof) : Bool := match p.goals with | [] => true | _ => false

def Proof.finish (p : Proof) : BaseIO (Except Problem Certificate) := do
  if p.isDone then
    let (e, _) := instantiateMVarsCore p.mst.mctx p.root
    certify p.base p.core.env p.stated p.name p.levels p.type e
  else return .error { kind := "unsound", text := "goals are left" }

/-- The finished proof as data: the theorem, after the constants that its tactics made. The theorems of a stranger's header
are handed over with it: whoever judges has them from nowhere else. -/
def Proof.terms (p : Proof) : BaseIO (Except Problem String) := do
  let (e, _) := instantiateMVarsCore p.mst.mctx p.root
  let start := p.ctx.env
  let x ← newExport p.core.env (fun n => hasConst start n && !(p.strict && ofTheorem start n)) true
  x.uses p.type
  x.uses e
  x.writeTheorem { name := p.name, levelParams := p.levels, type := p.type } e
  x.text

