
/-! ### Terms as data: declarations in the format of lean4export (NDJSON 3.1)

A prover's word counts for nothing, so it hands over what a kernel can judge: declarations, each after everything it
uses, one JSON object a line. Names, universe levels and expressions come once each, numbered in order, and refer only
backwards. `mdata` is left out and `nondep` is always false, as other kernels expect. -/

inductive NameBucket where
  | nil
  | cons (key : Name) (number : Nat) (rest : NameBucket)

inductive LevelBucket where
  | nil
  | cons (key : Level) (number : Nat) (rest : LevelBucket)

inductive ExprBucket where
  | nil
  | cons (key : Expr) (number : Nat) (rest : ExprBucket)

inductive TextBucket where
  | nil
  | cons (key : String) (number : Nat) (rest : TextBucket)

def NameBucket.find (n : Name) : NameBucket → Option Nat
  | .nil => none
  | .cons k i r => if k == n then some i else r.find n

def LevelBucket.find (l : Level) : LevelBucket → Option Nat
  | .nil => none
  | .cons k i r => if k == l then some i else r.find l

def ExprBucket.find (e : Expr) : ExprBucket → Option Nat
  | .nil => none
  | .cons k i r => if k == e then some i else r.find e

def TextBucket.find (s : String) : TextBucket → Option Nat
  | .nil => none
  | .cons k i r => if k == s then some i else r.find s

/-- How many buckets a table has, less one: hashes are cut by it. -/
def bucketMask : UInt64 := 16383

def bucketOf (h : UInt64) : Nat := (UInt64.land h bucketMask).toNat

/-- A file being written. The tables hold what has a number already. -/
structure Export where
  src : Environment                      -- where constants are looked up
  known : Name → Bool                    -- constants that need not be written
  proofs : Bool                          -- whether theorems come with their proofs, or as axioms
  leftOut : List Name                    -- theorems that have no proofs here
  names : IO.Ref (Array NameBucket)
  levels : IO.Ref (Array LevelBucket)
  exprs : IO.Ref (Array ExprBucket)
  texts : IO.Ref (Array TextBucket)      -- expressions by what is written of them: without `mdata` two can be one
  seen : IO.Ref (Array NameBucket)       -- constants written or being written
  nameCount : IO.Ref Nat
  levelCount : IO.Ref Nat
  exprCount : IO.Ref Nat
  out : IO.Ref String
  stated : IO.Ref (List Name)            -- theorems written as axioms, because their proofs are absent or not wanted
  failed : IO.Ref (Option Problem)

/-- More numbered expressions than this are not written: no kernel would be done with them in time. -/
def mostExprs : Nat := 2000000

def newExport (src : Environment) (known : Name → Bool) (proofs : Bool) (leftOut : List Name := []) : BaseIO Export := do
  return {
    src := src, known := known, proofs := proofs, leftOut := leftOut
    names := (← IO.mkRef (Array.replicate 16384 NameBucket.nil)), levels := (← IO.mkRef (Array.replicate 16384 LevelBucket.nil))
    exprs := (← IO.mkRef (Array.replicate 16384 ExprBucket.nil)), texts := (← IO.mkRef (Array.replicate 16384 TextBucket.nil))
    seen := (← IO.mkRef (Array.replicate 16384 NameBucket.nil))
    nameCount := (← IO.mkRef 1), levelCount := (← IO.mkRef 1), exprCount := (← IO.mkRef 0)
    out := (← IO.mkRef ""), stated := (← IO.mkRef []), failed := (← IO.mkRef none) }

def Export.fail (x : Export) (kind text : String) : BaseIO Unit := do
  match (← x.failed.get) with
  | some _ => return ()
  | none => x.failed.set (some { kind := kind, text := text })

def Export.hasFailed (x : Export) : BaseIO Bool := do
  match (← x.failed.get) with
  | some _ => return true
  | none => return false

/-- Text goes to the end of what is there. Swapped out first it is not shared, and so not copied; the tables likewise. -/
def Export.write (x : Export) (s : String) : BaseIO Unit := do
  let t ← x.out.swap ""
  x.out.set (String.append t s)

def nextNumber (r : IO.Ref Nat) : BaseIO Nat := do
  let n ← r.get
  r.set (n + 1)
  return n

def quoted (s : String) : String := (Json.str s).compress

def nat (n : Nat) : String := Nat.repr n

/-! #### Names, levels, expressions -/

partial def Export.name (x : Export) (n : Name) : BaseIO Nat := do
  if n.isAnonymous then return 0
  else
    let b := bucketOf n.hash
    let t ← x.names.get
    match (t[b]?.getD .nil).find n with
    | some i => return i
    | none =>
      let text ← (do match n with
        | .str p s => return join5 "{\"str\":{\"pre\":" (nat (← x.name p)) ",\"str\":" (quoted s) "},\"in\":"
        | .num p k => return join5 "{\"num\":{\"pre\":" (nat (← x.name p)) ",\"i\":" (nat k) "},\"in\":"
        | .anonymous => return "" : BaseIO String)
      let i ← nextNumber x.nameCount
      x.write (join3 text (nat i) "}\n")
      let t ← x.names.swap #[]
      let old := t[b]?.getD .nil
      x.names.set (t.set! b (.cons n i old))
      return i

partial def Export.level (x : Export) (l : Level) : BaseIO Nat := do
  if l.isZero then return 0
  else
    let b := bucketOf l.hash
    let t ← x.levels.get
    match (t[b]?.getD .nil).find l with
    | some i => return i
    | none =>
      let text ← (do match l with
        | .succ a => return join3 "{\"succ\":" (nat (← x.level a)) ",\"il\":"
        | .max a c => return join5 "{\"max\":[" (nat (← x.level a)) "," (nat (← x.level c)) "],\"il\":"
        | .imax a c => return join5 "{\"imax\":[" (nat (← x.level a)) "," (nat (← x.level c)) "],\"il\":"
        | .param n => return join3 "{\"param\":" (nat (← x.name n)) ",\"il\":"
        | _ => do
          x.fail "unsound" "a universe metavariable is left"
          return "" : BaseIO String)
      let i ← nextNumber x.levelCount
      x.write (join3 text (nat i) "}\n")
      let t ← x.levels.swap #[]
      let old := t[b]?.getD .nil
      x.levels.set (t.set! b (.cons l i old))
      return i

partial def Export.levelList (x : Export) (ls : List Level) (acc : String) : BaseIO String := do
  match ls with
  | [] => return acc
  | l :: r =>
    let i ← x.level l
    x.levelList r (if acc == "" then nat i else join3 acc "," (nat i))

partial def Export.nameList (x : Export) (ns : List Name) (acc : String) : BaseIO String := do
  match ns with
  | [] => return acc
  | n :: r =>
    let i ← x.name n
    x.nameList r (if acc == "" then nat i else join3 acc "," (nat i))

def binderText : BinderInfo → String
  | .default => "\"default\""
  | .implicit => "\"implicit\""
  | .strictImplicit => "\"strictImplicit\""
  | .instImplicit => "\"instImplicit\""

mutual
/-- The number of an expression, written first if it is new. -/
partial def Export.expr (x : Export) (e : Expr) : BaseIO Nat := do
  match e with
  | .mdata _ a => x.expr a
  | _ =>
  if (← x.hasFailed) then return 0
  else
    let b := bucketOf e.hash
    let t ← x.exprs.get
    match (t[b]?.getD .nil).find e with
    | some i => return i
    | none =>
      let text ← x.exprText e
      let i ← x.numbered text
      let t ← x.exprs.swap #[]
      let old := t[b]?.getD .nil
      x.exprs.set (t.set! b (.cons e i old))
      return i

/-- The number of what is written so. -/
partial def Export.numbered (x : Export) (text : String) : BaseIO Nat := do
  let b := bucketOf text.hash
  let t ← x.texts.get
  match (t[b]?.getD .nil).find text with
  | some i => return i
  | none =>
    let i ← nextNumber x.exprCount
    if i ≥ mostExprs then
      x.fail "limit" "the proof's terms are too large to be handed over"
      return 0
    else
      x.write (join5 "{" text ",\"ie\":" (nat i) "}\n")
      let t ← x.texts.swap #[]
      let old := t[b]?.getD .nil
      x.texts.set (t.set! b (.cons text i old))
      return i

partial def Export.exprText (x : Export) (e : Expr) : BaseIO String := do
  match e with
  | .bvar i => return join3 "\"bvar\":" (nat i) ""
  | .sort l => return join3 "\"sort\":" (nat (← x.level l)) ""
  | .const n us =>
    let i ← x.name n
    let ls ← x.levelList us ""
    return join5 "\"const\":{\"name\":" (nat i) ",\"us\":[" ls "]}"
  | .app f a =>
    let i ← x.expr f
    let j ← x.expr a
    return join5 "\"app\":{\"fn\":" (nat i) ",\"arg\":" (nat j) "}"
  | .lam n t b bi => return String.append "\"lam\":" (← x.binder n t b bi)
  | .forallE n t b bi => return String.append "\"forallE\":" (← x.binder n t b bi)
  | .letE n t v b _ =>
    let i ← x.name n
    let j ← x.expr t
    let k ← x.expr v
    let l ← x.expr b
    return join5 (join5 "\"letE\":{\"name\":" (nat i) ",\"type\":" (nat j) ",\"value\":") (nat k) ",\"body\":" (nat l) ",\"nondep\":false}"
  | .proj s i a =>
    let n ← x.name s
    let j ← x.expr a
    return join5 (join3 "\"proj\":{\"typeName\":" (nat n) ",\"idx\":") (nat i) ",\"struct\":" (nat j) "}"
  | .lit (.natVal k) => return join5 "\"natVal\":" "\"" (nat k) "\"" ""
  | .lit (.strVal s) => return String.append "\"strVal\":" (quoted s)
  | _ => do
    x.fail "unsound" "the term has free variables or metavariables"
    return ""

partial def Export.binder (x : Export) (n : Name) (t b : Expr) (bi : BinderInfo) : BaseIO String := do
  let i ← x.name n
  let j ← x.expr t
  let k ← x.expr b
  return join5 (join5 "{\"name\":" (nat i) ",\"type\":" (nat j) ",\"body\":") (nat k) ",\"binderInfo\":" (binderText bi) "}"
end

/-! #### Declarations -/

/-- The fields that every declaration begins with. -/
def Export.head (x : Export) (v : ConstantVal) : BaseIO String := do
  let n ← x.name v.name
  let ps ← x.nameList v.levelParams ""
  let t ← x.expr v.type
  return join5 (join3 "\"name\":" (nat n) ",\"levelParams\":[") ps "],\"type\":" (nat t) ""

def flag (name : String) (b : Bool) : String := join5 ",\"" name "\":" (if b then "true" else "false") ""

def count (name : String) (n : Nat) : String := join5 ",\"" name "\":" (nat n) ""

def Export.list (x : Export) (name : String) (ns : List Name) : BaseIO String := do
  return join5 ",\"" name "\":[" (← x.nameList ns "") "]"

def Export.writeAxiom (x : Export) (v : ConstantVal) : BaseIO Unit := do
  x.write (join3 "{\"axiom\":{" (← x.head v) ",\"isUnsafe\":false}}\n")

def Export.writeTheorem (x : Export) (v : ConstantVal) (value : Expr) : BaseIO Unit := do
  let h ← x.head v
  let i ← x.expr value
  x.write (join5 "{\"thm\":{" h (count "value" i) (← x.list "all" [v.name]) "}}\n")

def hintsText : ReducibilityHints → String
  | .opaque => "\"opaque\""
  | .abbrev => "\"abbrev\""
  | .regular h => join3 "{\"regular\":" (nat h.toNat) "}"

def recursorNames (first : Name) : List Name → Nat → List Name
  | [], nested => aux nested
  | t :: ts, nested => .str t "rec" :: recursorNames first ts nested
where
  aux : Nat → List Name
    | 0 => []
    | n + 1 => .str first (String.append "rec_" (nat (n + 1))) :: aux n

mutual
/-- Writes the constants, and first everything they use. -/
partial def Export.constants (x : Export) : List Name → BaseIO Unit
  | [] => return ()
  | n :: ns => do
    x.constant n
    x.constants ns

partial def Export.uses (x : Export) (e : Expr) : BaseIO Unit := x.constants e.getUsedConstants.toList

/-- Whether a constant is met for the first time. -/
partial def Export.isNew (x : Export) (n : Name) : BaseIO Bool := do
  let b := bucketOf n.hash
  let t ← x.seen.get
  match (t[b]?.getD .nil).find n with
  | some _ => return false
  | none =>
    let t ← x.seen.swap #[]
    let old := t[b]?.getD .nil
    x.seen.set (t.set! b (.cons n 0 old))
    return true

partial def Export.constant (x : Export) (n : Name) : BaseIO Unit := do
  if x.known n then return ()
  else if (← x.hasFailed) then return ()
  else if !(← x.isNew n) then return ()
  else match x.src.find? n with
    | none => x.fail "unsound" (String.append "the proof uses an unknown constant " (nameText n))
    | some ci => match ci with
      | .axiomInfo v =>
        x.uses v.type
        x.writeAxiom v.toConstantVal
        match getOriginalConstKind? x.src n with
        | some .axiom => return ()
        | none => return ()
        | some _ => x.note n
      | .thmInfo v =>
        x.uses v.type
        if x.proofs && !(memberName n x.leftOut) then
          x.uses v.value
          x.writeTheorem v.toConstantVal v.value
        else
          x.writeAxiom v.toConstantVal
          x.note n
      | .defnInfo v =>
        match v.safety with
        | .safe =>
          x.uses v.type
          x.uses v.value
          let h ← x.head v.toConstantVal
          let i ← x.expr v.value
          x.write (join5 "{\"def\":{" h (join5 (count "value" i) ",\"hints\":" (hintsText v.hints) ",\"safety\":\"safe\"" "") (← x.list "all" [n]) "}}\n")
        | _ => x.refuseUnsafe n
      | .opaqueInfo v =>
        if v.isUnsafe then x.refuseUnsafe n
        else
          x.uses v.type
          x.uses v.value
          let h ← x.head v.toConstantVal
          let i ← x.expr v.value
          x.write (join5 "{\"opaque\":{" h (count "value" i) (← x.list "all" [n]) ",\"isUnsafe\":false}}\n")
      | .quotInfo _ => x.quotients
      | .inductInfo v => x.family v
      | .ctorInfo v => x.parent v.induct
      | .recInfo v => x.parent v.getMajorInduct

partial def Export.note (x : Export) (n : Name) : BaseIO Unit := do
  let l ← x.stated.swap []
  x.stated.set (n :: l)

partial def Export.refuseUnsafe (x : Export) (n : Name) : BaseIO Unit :=
  x.fail "unsound" (String.append "the proof uses the unsafe or partial definition " (nameText n))

partial def Export.quotients (x : Export) : BaseIO Unit := do
  x.constant ``Eq
  each [(``Quot, "type"), (``Quot.mk, "ctor"), (``Quot.lift, "lift"), (``Quot.ind, "ind")]
where
  each : List (Name × String) → BaseIO Unit
    | [] => return ()
    | (n, kind) :: r => do
      match x.src.find? n with
      | none => return ()
      | some ci =>
        let _ ← x.isNew n
        x.write (join5 "{\"quot\":{" (← x.head ci.toConstantVal) ",\"kind\":\"" kind "\"}}\n")
        each r

partial def Export.parent (x : Export) (n : Name) : BaseIO Unit := do
  match x.src.find? n with
  | some (.inductInfo v) => x.family v
  | _ => x.fail "unsound" (String.append "the proof uses a constructor of no type: " (nameText n))

/-- An inductive family is one declaration: its types, constructors and recursors. -/
partial def Export.family (x : Export) (v : InductiveVal) : BaseIO Unit := do
  if v.isUnsafe then x.refuseUnsafe v.name
  else match typesOf x.src v.all with
    | none => x.fail "unsound" (String.append "the inductive type is not whole: " (nameText v.name))
    | some types =>
      let recs := recursorNames v.name v.all v.numNested
      let _ ← each (fun n => do let _ ← x.isNew n) (familyNames types)
      let _ ← each (fun n => do let _ ← x.isNew n) recs
      x.constants (notIn (familyNames types) (familyUses types []))
      let ts ← texts (typeText) v.all ""
      let cs ← texts (ctorText) (ctorNames types) ""
      let rs ← texts (recText) recs ""
      x.write (join5 (join3 "{\"inductive\":{\"types\":[" ts "],\"ctors\":[") cs "],\"recs\":[" rs "]}}\n")
where
  each (f : Name → BaseIO Unit) : List Name → BaseIO Unit
    | [] => return ()
    | n :: ns => do
      f n
      each f ns
  ctorNames : List InductiveType → List Name
    | [] => []
    | t :: ts => names t.ctors (ctorNames ts)
  names : List Constructor → List Name → List Name
    | [], acc => acc
    | c :: cs, acc => c.name :: names cs acc
  texts (f : ConstantInfo → BaseIO String) : List Name → String → BaseIO String
    | [], acc => return acc
    | n :: ns, acc => do
      match x.src.find? n with
      | none => texts f ns acc
      | some ci =>
        let s ← f ci
        texts f ns (if acc == "" then s else join3 acc "," s)
  typeText (ci : ConstantInfo) : BaseIO String := do
    match ci with
    | .inductInfo v =>
      let h ← x.head v.toConstantVal
      let ls := String.append (← x.list "all" v.all) (← x.list "ctors" v.ctors)
      let ns := join5 (count "numParams" v.numParams) (count "numIndices" v.numIndices) ls (count "numNested" v.numNested) ""
      return join5 "{" h ns (join3 (flag "isRec" v.isRec) (flag "isReflexive" v.isReflexive) (flag "isUnsafe" v.isUnsafe)) "}"
    | _ => return ""
  ctorText (ci : ConstantInfo) : BaseIO String := do
    match ci with
    | .ctorInfo v =>
      let h ← x.head v.toConstantVal
      let i ← x.name v.induct
      let ns := join5 (count "induct" i) (count "cidx" v.cidx) (count "numParams" v.numParams) (count "numFields" v.numFields) ""
      return join5 "{" h ns (flag "isUnsafe" v.isUnsafe) "}"
    | _ => return ""
  recText (ci : ConstantInfo) : BaseIO String := do
    match ci with
    | .recInfo v =>
      x.uses v.type
      let h ← x.head v.toConstantVal
      let ns := join5 (count "numParams" v.numParams) (count "numIndices" v.numIndices) (count "numMotives" v.numMotives)
        (count "numMinors" v.numMinors) ""
      let rs ← rules v.rules ""
      return join5 "{" h (String.append (← x.list "all" v.all) ns) (join5 ",\"rules\":[" rs "]" (flag "k" v.k) (flag "isUnsafe" v.isUnsafe)) "}"
    | _ => return ""
  rules : List RecursorRule → String → BaseIO String
    | [], acc => return acc
    | r :: rs, acc => do
      let c ← x.name r.ctor
      let i ← x.expr r.rhs
      let s := join5 "{\"ctor\":" (nat c) (join3 (count "nfields" r.nfields) ",\"rhs\":" (nat i)) "}" ""
      rules rs (if acc == "" then s else join3 acc "," s)
end

/-- What was written, or why it cannot be. -/
def Export.text (x : Export) : BaseIO (Except Problem String) := do
  match (← x.failed.get) with
  | some p => return .error p
  | none => return .ok (← x.out.get)
