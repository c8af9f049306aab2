/-! ### From info trees to a linear sequence of steps -/

/-- What the elaborator noted about one run of one tactic. -/
structure Run where
  kind : Name
  pos : Nat
  tail : Nat
  before : MetavarContext
  after : MetavarContext
  goalsBefore : List MVarId
  goalsAfter : List MVarId

/-- A constant that the source names. -/
structure Use where
  name : Name
  pos : Nat
  tail : Nat

/-- A `sorry` in the source, and the goal it stands for: of a tactic, or an expected type of a term. -/
structure Gap where
  pos : Nat
  tail : Nat
  mctx : MetavarContext
  goals : List MVarId
  term : Option (LocalContext × Expr)

/-- What the info trees of a command tell. -/
structure Noted where
  runs : Array Run
  uses : Array Use
  gaps : Array Gap

abbrev Holes := List (MVarId × InfoTree)

def lookupHole : Holes → MVarId → Option InfoTree
  | [], _ => none
  | (k, v) :: r, m => if k.name == m.name then some v else lookupHole r m

/-- Where syntax stands that was written, not made by a macro. -/
def spanOf (stx : Syntax) : Option (Nat × Nat) :=
  match stx.getPos? true, stx.getTailPos? true with
  | some p, some q => some (p.byteIdx, q.byteIdx)
  | _, _ => none

def noteTactic (ti : TacticInfo) (acc : Noted) : Noted :=
  match spanOf ti.stx with
  | none => acc
  | some (p, q) =>
    let acc := { acc with runs := acc.runs.push { kind := ti.stx.getKind, pos := p, tail := q, before := ti.mctxBefore,
                                                  after := ti.mctxAfter, goalsBefore := ti.goalsBefore, goalsAfter := ti.goalsAfter } }
    if ti.stx.getKind == `Lean.Parser.Tactic.tacticSorry || ti.stx.getKind == `Lean.Parser.Tactic.tacticAdmit then
      { acc with gaps := acc.gaps.push { pos := p, tail := q, mctx := ti.mctxBefore, goals := ti.goalsBefore, term := none } }
    else acc

/-- `mctx` is what the innermost context around it knows. -/
def noteTerm (mctx : MetavarContext) (ti : TermInfo) (acc : Noted) : Noted :=
  match spanOf ti.stx with
  | none => acc
  | some (p, q) =>
    if ti.stx.getKind == `Lean.Parser.Term.sorry then
      match ti.expectedType? with
      | some type => { acc with gaps := acc.gaps.push { pos := p, tail := q, mctx := mctx, goals := [], term := some (ti.lctx, type) } }
      | none => acc
    else match ti.stx, ti.expr with
      | .ident _ _ _ _, .const n _ => if ti.isBinder then acc else { acc with uses := acc.uses.push { name := n, pos := p, tail := q } }
      | _, _ => acc

mutual
partial def walkTree (holes : Holes) (mctx : MetavarContext) (t : InfoTree) (acc : Noted) : Noted :=
  match t with
  | .context (.commandCtx c) t' => walkTree holes c.mctx t' acc
  | .context _ t' => walkTree holes mctx t' acc
  | .node i cs =>
    let acc := match i with
      | .ofTacticInfo ti => noteTactic ti acc
      | .ofTermInfo ti => noteTerm mctx ti acc
      | _ => acc
    walkArray holes mctx cs.tail 0 (walkNode holes mctx cs.root acc)
  | .hole m => match lookupHole holes m with
    | some t' => walkTree holes mctx t' acc
    | none => acc

partial def walkArray (holes : Holes) (mctx : MetavarContext) (a : Array InfoTree) (i : Nat) (acc : Noted) : Noted :=
  match a[i]? with
  | none => acc
  | some t => walkArray holes mctx a (i + 1) (walkTree holes mctx t acc)

partial def walkNode (holes : Holes) (mctx : MetavarContext) (n : PersistentArrayNode InfoTree) (acc : Noted) : Noted :=
  match n with
  | .leaf cs => walkArray holes mctx cs 0 acc
  | .node cs => walkNodes holes mctx cs 0 acc

partial def walkNodes (holes : Holes) (mctx : MetavarContext) (a : Array (PersistentArrayNode InfoTree)) (i : Nat) (acc : Noted) : Noted :=
  match a[i]? with
  | none => acc
  | some t => walkNodes holes mctx a (i + 1) (walkNode holes mctx t acc)
end

mutual
partial def holesOf (n : PersistentHashMap.Node MVarId InfoTree) (acc : Holes) : Holes :=
  match n with
  | .entries es => holesIn es 0 acc
  | .collision ks vs _ => holesColliding ks vs 0 acc

partial def holesIn (es : Array (PersistentHashMap.Entry MVarId InfoTree (PersistentHashMap.Node MVarId InfoTree))) (i : Nat) (acc : Holes) : Holes :=
  match es[i]? with
  | none => acc
  | some (.entry k v) => holesIn es (i + 1) ((k, v) :: acc)
  | some (.ref n) => holesIn es (i + 1) (holesOf n acc)
  | some .null => holesIn es (i + 1) acc

partial def holesColliding (ks : Array MVarId) (vs : Array InfoTree) (i : Nat) (acc : Holes) : Holes :=
  match ks[i]?, vs[i]? with
  | some k, some v => holesColliding ks vs (i + 1) ((k, v) :: acc)
  | _, _ => acc
end

def notedIn (s : InfoState) : Noted :=
  let holes := holesOf s.assignment.root []
  walkArray holes {} s.trees.tail 0 (walkNode holes {} s.trees.root { runs := #[], uses := #[], gaps := #[] })

partial def findRun (rs : Array Run) (stx : Syntax) (i : Nat) : Option Run :=
  match rs[i]? with
  | none => none
  | some r => if r.pos == startPos stx && r.tail == endPos stx && r.kind == stx.getKind then some r else findRun rs stx (i + 1)

/-! #### Flattening -/

/-- How much of a recorded state a replay can be compared with: a block's record does not show the goals outside it. -/
inductive Known where
  | whole
  | firstGoals
  | nothing

/-- One step: its text, where that stands in the source, and the goals recorded around it. -/
structure Step where
  text : String
  pos : Nat := 0            -- both 0 where the text is not the source's own
  tail : Nat := 0
  before : MetavarContext
  after : MetavarContext
  goalsBefore : List MVarId
  goalsAfter : List MVarId
  known : Known := .whole

def unassigned (m : MetavarContext) : List MVarId → List MVarId
  | [] => []
  | g :: gs =>
    match m.getExprAssignmentCore? g with
    | some _ => unassigned m gs
    | none =>
      match m.getDelayedMVarAssignmentCore? g with
      | some _ => unassigned m gs
      | none => g :: unassigned m gs

def appendGoals : List MVarId → List MVarId → List MVarId
  | [], b => b
  | a :: as, b => a :: appendGoals as b

partial def everySecond (args : Array Syntax) (i : Nat) (acc : Array Syntax) : Array Syntax :=
  match args[i]? with
  | none => acc
  | some t => everySecond args (i + 2) (acc.push t)

/-- The tactics of a `tacticSeq`, in order. -/
def tacticsOf (seq : Syntax) : Array Syntax :=
  let s := if seq.getKind == `Lean.Parser.Tactic.tacticSeq then seq.getArg 0 else seq
  if s.getKind == `Lean.Parser.Tactic.tacticSeq1Indented then everySecond (s.getArg 0).getArgs 0 #[]
  else if s.getKind == `Lean.Parser.Tactic.tacticSeqBracketed then everySecond (s.getArg 1).getArgs 0 #[]
  else #[]

/-- What flattening reads. `level` 2 opens `·`, `case`, `next` and `induction/cases ... with`; 1 only `·`; 0 nothing. -/
structure Flatten where
  src : String
  fm : FileMap
  runs : Array Run
  level : Nat

partial def joinWords (src : String) (a : Array Syntax) (i : Nat) (acc : String) : String :=
  match a[i]? with
  | none => acc
  | some t => joinWords src a (i + 1) (join3 acc " " (cut src (startPos t) (endPos t)))

/-- Whether all alternatives have the plain form `| ctor x y => tactics`. -/
partial def plainAlternatives (alts : Array Syntax) (i : Nat) : Bool :=
  match alts[i]? with
  | none => true
  | some a =>
    let lhs := a.getArg 0
    let rhs := a.getArg 1
    if lhs.getNumArgs == 1 && ((lhs.getArg 0).getArg 1).getKind != `Lean.Parser.Term.hole
       && rhs.getNumArgs == 2 && (rhs.getArg 1).getKind == `Lean.Parser.Tactic.tacticSeq then plainAlternatives alts (i + 1)
    else false

/-- The alternatives of `induction` or `cases`, if they are all plain. -/
def alternativesOf (t : Syntax) : Option Syntax :=
  let o := if t.getKind == `Lean.Parser.Tactic.induction then t.getArg 4
    else if t.getKind == `Lean.Parser.Tactic.cases then t.getArg 3 else Syntax.missing
  if o.getNumArgs == 1 then
    let a := o.getArg 0
    if (a.getArg 1).getNumArgs == 0 && plainAlternatives (a.getArg 2).getArgs 0 then some a else none
  else none

def noRun (t : Syntax) : String := String.append "no record of the tactic " (nameText t.getKind)

mutual
partial def flattenAll (c : Flatten) (ts : Array Syntax) (i : Nat) (rest : List MVarId) (known : Known) (acc : Array Step) : Except String (Array Step) :=
  match ts[i]? with
  | none => .ok acc
  | some t =>
    match flattenOne c t rest known acc with
    | .error e => .error e
    | .ok acc => flattenAll c ts (i + 1) rest known acc

/-- `rename_i xs`, then the tactics of `seq`, on the first goal; what follows it is not known. -/
partial def flattenBlock (c : Flatten) (vars : Array Syntax) (seq : Syntax) (acc : Array Step) : Except String (Array Step) :=
  let ts := tacticsOf seq
  if vars.size == 0 then flattenAll c ts 0 [] .firstGoals acc
  else
    match ts[0]? with
    | none => .error "an empty block"
    | some t =>
      match findRun c.runs t 0 with
      | none => .error (noRun t)
      | some r => flattenAll c ts 0 [] .firstGoals (acc.push
          { text := joinWords c.src vars 0 "rename_i", before := r.before, after := r.before, goalsBefore := r.goalsBefore,
            goalsAfter := unassigned r.before r.goalsBefore, known := .firstGoals })

partial def flattenAlternatives (c : Flatten) (alts : Array Syntax) (i : Nat) (acc : Array Step) : Except String (Array Step) :=
  match alts[i]? with
  | none => .ok acc
  | some a =>
    match flattenBlock c (((a.getArg 0).getArg 0).getArg 2).getArgs ((a.getArg 1).getArg 1) acc with
    | .error e => .error e
    | .ok acc => flattenAlternatives c alts (i + 1) acc

partial def flattenOne (c : Flatten) (t : Syntax) (rest : List MVarId) (known : Known) (acc : Array Step) : Except String (Array Step) :=
  match findRun c.runs t 0 with
  | none => .error (noRun t)
  | some r =>
    let one := acc.push { text := textOf c.src c.fm t, pos := startPos t, tail := endPos t, before := r.before, after := r.after,
                          goalsBefore := unassigned r.before (appendGoals r.goalsBefore rest),
                          goalsAfter := unassigned r.after (appendGoals r.goalsAfter rest), known := known }
    if c.level == 0 then .ok one
    else if t.getKind == `Lean.cdot then
      match r.goalsBefore with
      | [] => .error "a focus dot without goals"
      | _ :: gs => flattenAll c (tacticsOf (t.getArg 1)) 0 (appendGoals gs rest) known acc
    else if c.level == 1 then .ok one
    else if t.getKind == `Lean.Parser.Tactic.case && (t.getArg 1).getNumArgs == 1 then
      flattenBlock c (((t.getArg 1).getArg 0).getArg 1).getArgs (t.getArg 3) acc
    else if t.getKind == `Lean.Parser.Tactic.«tacticNext_=>_» then
      flattenBlock c (t.getArg 1).getArgs (t.getArg 3) acc
    else match alternativesOf t with
      | none => .ok one
      | some alts =>
        flattenAlternatives c (alts.getArg 2).getArgs 0
          (acc.push { text := textBetween c.src c.fm (startPos t) (startPos alts), pos := startPos t, tail := startPos alts,
                      before := r.before, after := r.before,
                      goalsBefore := unassigned r.before (appendGoals r.goalsBefore rest), goalsAfter := [], known := .nothing })
end

/-- Whether flattening could make a difference. -/
partial def hasBlock (ts : Array Syntax) (i : Nat) : Bool :=
  match ts[i]? with
  | none => false
  | some t =>
    if memberName t.getKind [`Lean.cdot, `Lean.Parser.Tactic.case, `Lean.Parser.Tactic.«tacticNext_=>_», `Lean.Parser.Tactic.induction,
        `Lean.Parser.Tactic.cases] then true else hasBlock ts (i + 1)

