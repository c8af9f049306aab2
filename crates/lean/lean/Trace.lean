/-! ### Replaying recorded steps from the environment before the theorem -/

/-- The state of a file just before one of its theorems. -/
structure Snapshot where
  name : Name               -- in full
  id : Name                 -- as written
  line : Nat
  cmd : Command.State
  before : Array Syntax     -- `open .. in`, `set_option .. in`
  src : String
  statement : String
  stated : List Name        -- theorems of the file before it that are there by their statements alone

/-- The commands before `in`, one after another. -/
partial def runPrefixes (s : String) (pre : Array Syntax) (i : Nat) (st : Command.State) : BaseIO (Except Problem Command.State) := do
  match pre[i]? with
  | none => return .ok st
  | some stx =>
    match (← runTrusted (cut s (startPos stx) (endPos stx)) st) with
    | .error e => return .error e
    | .ok st' => runPrefixes s pre (i + 1) st'

def Snapshot.start (s : Snapshot) (heartbeats : Nat) : BaseIO (Except Problem Proof) := do
  match (← runPrefixes s.src s.before 0 s.cmd) with
  | .error e => return .error e
  | .ok st =>
    match (← startProof none (ctxOf st) s.statement heartbeats) with
    | .error e => return .error e
    | .ok p => return .ok { p with stated := s.stated }

partial def findSnapshotFrom (a : Array Snapshot) (n : String) (line i : Nat) : Option Snapshot :=
  match a[i]? with
  | none => none
  | some s => if nameText s.name == n && (line == 0 || s.line == line) then some s else findSnapshotFrom a n line (i + 1)

/-- By name and line; by name alone where the line says nothing or has moved. -/
def findSnapshot (a : Array Snapshot) (n : String) (line : Nat) : Option Snapshot :=
  match findSnapshotFrom a n line 0 with
  | some s => some s
  | none => findSnapshotFrom a n 0 0

/-! #### Comparing states

Of a recorded state only what is to be proved is compared, up to the numbers of universes and metavariables. Its
hypotheses may be more: section variables stay in view while the original is elaborated, although a replay from the finished
statement can clear them. -/

/-- The targets of a state, with the blank lines between its goals. -/
def targets : List Char → Bool → List Char → List Char
  | [], _, acc => revOnto acc []
  | '\n' :: '\n' :: r, _, acc => targets r false ('\n' :: '\n' :: acc)
  | c :: r, inside, acc => if inside || c == '⊢' then targets r true (c :: acc) else targets r false acc

def dropDigits : List Char → List Char
  | [] => []
  | c :: cs => if c.toNat ≥ 48 && c.toNat ≤ 57 then dropDigits cs else c :: cs

/-- The text backwards, with numbered names made alike. -/
partial def normalOnto (l : List Char) (acc : List Char) : List Char :=
  match l with
  | [] => acc
  | '?' :: 'u' :: '.' :: r => normalOnto (dropDigits r) ('U' :: acc)
  | 'u' :: '_' :: r => normalOnto (dropDigits r) ('U' :: acc)
  | '?' :: 'm' :: '.' :: r => normalOnto (dropDigits r) ('M' :: acc)
  | c :: r => normalOnto r (c :: acc)

def normal (s : String) : List Char := revOnto (normalOnto (targets s.toList false []) []) []

/-- Whether the first list ends where a goal of the second ends. -/
def goalPrefix : List Char → List Char → Bool
  | [], [] => true
  | [], c :: d :: _ => c == '\n' && d == '\n'
  | [], _ => false
  | _, [] => false
  | a :: as, b :: bs => a == b && goalPrefix as bs

def agrees (known : Known) (want got : String) : Bool :=
  match known with
  | .whole => if want == got then true else String.ofList (normal want) == String.ofList (normal got)
  | .firstGoals => if want == "" then true else goalPrefix (normal want) (normal got)
  | .nothing => true

/-! #### Replay -/

/-- Why a theorem gives no trace. -/
structure Loss where
  why : String
  detail : String

/-- A trace that replays. -/
structure Replayed where
  states : Array String     -- the root first
  level : Nat
  axioms : List Name

def replayHeartbeats : Nat := 1000000

/-- Prints goals that the elaborator recorded, in the environment after the theorem (which has what they mention). -/
def printRecorded (c : Ctx) (m : MetavarContext) (gs : List MVarId) : BaseIO String :=
  printGoals c `_recorded (coreState c.env `_recorded) { mctx := m } gs

partial def replaySteps (shown : Ctx) (p : Proof) (ss : Array Step) (i : Nat) (states : Array String) : BaseIO (Except Loss (Array String × Proof)) := do
  match ss[i]? with
  | none => return .ok (states, p)
  | some s =>
    match (← runTactic p s.text replayHeartbeats) with
    | .error e => return .error (failed e s.text)
    | .ok p' =>
      let got ← p'.text
      let want ← printRecorded shown s.after s.goalsAfter
      if agrees s.known want got then replaySteps shown p' ss (i + 1) (states.push got)
      else return .error { why := "a state differs on replay", detail := s.text }
where
  failed (e : Problem) (text : String) : Loss :=
    { why := (if e.kind == "parse" then "a tactic's text does not parse alone" else if e.kind == "limit" then "limit"
              else if e.kind == "policy" then "refused by policy" else "a tactic fails on replay"),
      detail := join3 text "\n" e.text }

/-- Flatten at one level, replay, compare, check. -/
def replay (snap : Snapshot) (shown : Ctx) (c : Flatten) (seq : Syntax) : BaseIO (Except Loss (Array Step × Replayed)) := do
  match flattenAll c (tacticsOf seq) 0 [] .whole #[] with
  | .error e => return .error { why := "a tactic left no record", detail := e }
  | .ok ss =>
  match (← snap.start replayHeartbeats) with
  | .error e => return .error { why := "the statement does not elaborate alone", detail := e.text }
  | .ok p =>
    let root ← p.text
    let want ← (do match ss[0]? with
      | some s => printRecorded shown s.before s.goalsBefore
      | none => return root : BaseIO String)
    if !(agrees .whole want root) then return .error { why := "the root state differs", detail := root }
    else match (← replaySteps shown p ss 0 #[root]) with
      | .error e => return .error e
      | .ok (states, last) =>
        if !last.isDone then return .error { why := "goals are left after replay", detail := "" }
        else match (← last.finish) with
          | .error e => return .error { why := "the replayed proof is refused", detail := e.text }
          | .ok cert =>
            if memberName ``sorryAx cert.axioms then return .error { why := "it rests on a lemma that is not proved", detail := "" }
            else return .ok (ss, { states := states, level := c.level, axioms := cert.axioms })

/-- Try the finest flattening first, then coarser ones; the finest one's failure is the one reported. -/
def replayBest (snap : Snapshot) (shown : Ctx) (c : Flatten) (seq : Syntax) : BaseIO (Except Loss (Array Step × Replayed)) := do
  match (← replay snap shown { c with level := 2 } seq) with
  | .ok r => return .ok r
  | .error e =>
    if hasBlock (tacticsOf seq) 0 then
      match (← replay snap shown { c with level := 1 } seq) with
      | .ok r => return .ok r
      | .error _ => match (← replay snap shown { c with level := 0 } seq) with
        | .ok r => return .ok r
        | .error _ => return .error e
    else return .error e

partial def stepsJson (w : Written) (ss : Array Step) (states : Array String) (i : Nat) (acc : Array Json) : Array Json :=
  match ss[i]?, states[i]?, states[i + 1]? with
  | some s, some b, some a =>
    let step := [("state", Json.str b), ("tactic", Json.str s.text), ("next", Json.str a), ("annotated_tactic", w.annotated s)]
    stepsJson w ss states (i + 1) (acc.push (Json.mkObj step))
  | _, _, _ => acc
