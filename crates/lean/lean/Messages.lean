
/-! ### What Lean says of a file: messages, and what its `sorry`s leave to be proved -/

def severityText : MessageSeverity → String
  | .information => "info"
  | .warning => "warning"
  | .error => "error"

/-- A place in a file: lines from 1, columns from 0, as Lean counts them. -/
def placeFields (p q : Position) : Fields :=
  [("line", num p.line), ("column", num p.column), ("end_line", num q.line), ("end_column", num q.column)]

def messagesJson : List Message → Array Json → BaseIO (Array Json)
  | [], acc => pure acc
  | m :: ms, acc => do
    let text ← m.data.toString
    let last := match m.endPos with | some p => p | none => m.pos
    let said := [("severity", Json.str (severityText m.severity)), ("text", Json.str text)]
    if m.isSilent then messagesJson ms acc
    else messagesJson ms (acc.push (Json.mkObj (appendFields said (placeFields m.pos last))))

/-- A goal made of an expected type and the hypotheses that it stands under. -/
def termGoal (lctx : LocalContext) (type : Expr) : MetaM (List String) := do
  let m ← Meta.mkFreshExprMVarAt lctx {} type
  goalTexts [m.mvarId!]

def Gap.goal (g : Gap) (c : Ctx) : BaseIO String := do
  match g.term with
  | none => printGoals c `_gap (coreState c.env `_gap) { mctx := g.mctx } g.goals
  | some (lctx, type) =>
    let act : TermElabM (List String) := fun _ _ => termGoal lctx type
    match (← runTerm c `_gap 400000 (coreState c.env `_gap) { mctx := g.mctx } {} act) with
    | .error e => return String.append "<the goal cannot be printed> " (← exceptionText e)
    | .ok (((a, _), _), _) => return joinBlank a

partial def gapsJson (c : Ctx) (fm : FileMap) (gs : Array Gap) (i : Nat) (acc : Array Json) : BaseIO (Array Json) := do
  match gs[i]? with
  | none => return acc
  | some g =>
    let goal ← g.goal c
    let place := placeFields (fm.toPosition ⟨g.pos⟩) (fm.toPosition ⟨g.tail⟩)
    gapsJson c fm gs (i + 1) (acc.push (Json.mkObj (("goal", Json.str goal) :: place)))

