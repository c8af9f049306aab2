
/-! ### Premises: what a step's text names, and where that is declared -/

/-- Where steps were written, and the constants that the source names there. -/
structure Written where
  src : String
  fm : FileMap
  uses : Array Use
  env : Environment         -- after the theorem

/-- Put in its place by position, the longer of two that start together first; a second one at the same place is left out. -/
def placeUse (u : Use) : List Use → List Use
  | [] => [u]
  | v :: vs =>
    if u.pos == v.pos && u.tail == v.tail then v :: vs
    else if u.pos < v.pos || (u.pos == v.pos && u.tail > v.tail) then u :: v :: vs
    else v :: placeUse u vs

/-- Those between two positions, in order. -/
partial def usesWithin (us : Array Use) (b e : Nat) (i : Nat) (acc : List Use) : List Use :=
  match us[i]? with
  | none => acc
  | some u => usesWithin us b e (i + 1) (if b ≤ u.pos && u.tail ≤ e then placeUse u acc else acc)

/-- Those that do not stand inside another. -/
def outermostUses (free : Nat) : List Use → List Use
  | [] => []
  | u :: us => if u.pos < free then outermostUses free us else u :: outermostUses u.tail us

/-- The source between two positions, with marks around the uses there. -/
def marked (src : String) (at_ e : Nat) (acc : String) : List Use → String
  | [] => String.append acc (cut src at_ e)
  | u :: us =>
    let before := String.append acc (cut src at_ u.pos)
    marked src u.tail e (String.append before (join3 "<a>" (cut src u.pos u.tail) "</a>")) us

def positionJson (p : Position) : Json := Json.arr #[num p.line, num (p.column + 1)]

/-- A constant's module, as the environment has it. -/
def moduleOf (env : Environment) (n : Name) : Name :=
  match env.getModuleIdxFor? n with
  | some i => (match env.header.moduleNames[i.toNat]? with | some m => m | none => .anonymous)
  | none => env.mainModule

/-- A module's file, relative to the root that it is found from. -/
def filePath : Name → String
  | .str .anonymous s => String.append s ".lean"
  | .str p s => join3 (folderPath p) s ".lean"
  | _ => ""
where
  folderPath : Name → String
    | .str .anonymous s => String.append s "/"
    | .str p s => join3 (folderPath p) s "/"
    | _ => ""

/-- What a premise is, as LeanDojo says it; columns from 1. -/
def premiseJson (env : Environment) (n : Name) : Json :=
  let shown := match privateToUserName? n with | some u => u | none => n
  let about := [("full_name", Json.str (nameText shown)), ("def_path", Json.str (filePath (moduleOf env n)))]
  match declRangeExt.find? env n with
  | some r => Json.mkObj (appendFields about
      [("def_pos", positionJson r.selectionRange.pos), ("def_end_pos", positionJson r.selectionRange.endPos)])
  | none => Json.mkObj about

def premisesJson (env : Environment) : List Use → Array Json → Array Json
  | [], acc => acc
  | u :: us, acc => premisesJson env us (acc.push (premiseJson env u.name))

/-- LeanDojo's pair: the text with its premises marked, and what each of them is, in order. -/
def Written.annotated (w : Written) (s : Step) : Json :=
  let uses := outermostUses 0 (usesWithin w.uses s.pos s.tail 0 [])
  let text := if s.tail == 0 then s.text
    else trimEnd (dedent (columnOf w.fm s.pos) (marked w.src s.pos s.tail "" uses))
  Json.arr #[Json.str text, Json.arr (premisesJson w.env uses #[])]

