
/-! ### Terms, read from numbered tables

The program has read and checked the terms already: every reference is to something earlier. Here a number that is not in
its table is an error all the same. -/

structure Tables where
  names : Array Name
  levels : Array Level
  exprs : Array Expr

def natOf (a : Array Json) (i : Nat) : Option Nat :=
  match a[i]? with
  | none => none
  | some j => match j.getNat? with
    | .ok n => some n
    | .error _ => none

def strOf (a : Array Json) (i : Nat) : Option String :=
  match a[i]? with
  | none => none
  | some j => match j.getStr? with
    | .ok s => some s
    | .error _ => none

def arrOf (a : Array Json) (i : Nat) : Option (Array Json) :=
  match a[i]? with
  | none => none
  | some j => match j.getArr? with
    | .ok r => some r
    | .error _ => none

def nameOf (ns : Array Name) (a : Array Json) (i : Nat) : Option Name :=
  match natOf a i with
  | none => none
  | some k => ns[k]?

def levelOf (ls : Array Level) (a : Array Json) (i : Nat) : Option Level :=
  match natOf a i with
  | none => none
  | some k => ls[k]?

def exprOf (es : Array Expr) (a : Array Json) (i : Nat) : Option Expr :=
  match natOf a i with
  | none => none
  | some k => es[k]?

partial def readNames (rows : Array Json) (i : Nat) (acc : Array Name) : Option (Array Name) :=
  if i ≥ rows.size then some acc
  else match arrOf rows i with
    | none => none
    | some row => match nameOf acc row 0 with
      | none => none
      | some p => match strOf row 1 with
        | some s => readNames rows (i + 1) (acc.push (.str p s))
        | none => match natOf row 1 with
          | some n => readNames rows (i + 1) (acc.push (.num p n))
          | none => none

def readLevel (names : Array Name) (acc : Array Level) (row : Array Json) : Option Level :=
  match natOf row 0 with
  | some 0 => match levelOf acc row 1 with
    | some a => some (.succ a)
    | none => none
  | some 1 => match levelOf acc row 1, levelOf acc row 2 with
    | some a, some b => some (.max a b)
    | _, _ => none
  | some 2 => match levelOf acc row 1, levelOf acc row 2 with
    | some a, some b => some (.imax a b)
    | _, _ => none
  | some 3 => match nameOf names row 1 with
    | some n => some (.param n)
    | none => none
  | _ => none

partial def readLevels (names : Array Name) (rows : Array Json) (i : Nat) (acc : Array Level) : Option (Array Level) :=
  if i ≥ rows.size then some acc
  else match arrOf rows i with
    | none => none
    | some row => match readLevel names acc row with
      | none => none
      | some l => readLevels names rows (i + 1) (acc.push l)

partial def levelsFrom (ls : Array Level) (a : Array Json) (i : Nat) (acc : List Level) : Option (List Level) :=
  if i ≥ a.size then some (revOnto acc [])
  else match levelOf ls a i with
    | none => none
    | some l => levelsFrom ls a (i + 1) (l :: acc)

partial def namesFrom (ns : Array Name) (a : Array Json) (i : Nat) (acc : List Name) : Option (List Name) :=
  if i ≥ a.size then some (revOnto acc [])
  else match nameOf ns a i with
    | none => none
    | some n => namesFrom ns a (i + 1) (n :: acc)

def binderOf : Option Nat → Option BinderInfo
  | some 0 => some .default
  | some 1 => some .implicit
  | some 2 => some .strictImplicit
  | some 3 => some .instImplicit
  | _ => none

def readExpr (names : Array Name) (levels : Array Level) (acc : Array Expr) (row : Array Json) : Option Expr :=
  match natOf row 0 with
  | some 0 => match natOf row 1 with
    | some i => some (.bvar i)
    | none => none
  | some 1 => match levelOf levels row 1 with
    | some l => some (.sort l)
    | none => none
  | some 2 => match nameOf names row 1, arrOf row 2 with
    | some n, some us => match levelsFrom levels us 0 [] with
      | some ls => some (.const n ls)
      | none => none
    | _, _ => none
  | some 3 => match exprOf acc row 1, exprOf acc row 2 with
    | some f, some a => some (.app f a)
    | _, _ => none
  | some 4 => match nameOf names row 1, exprOf acc row 2, exprOf acc row 3, binderOf (natOf row 4) with
    | some n, some t, some b, some bi => some (.lam n t b bi)
    | _, _, _, _ => none
  | some 5 => match nameOf names row 1, exprOf acc row 2, exprOf acc row 3, binderOf (natOf row 4) with
    | some n, some t, some b, some bi => some (.forallE n t b bi)
    | _, _, _, _ => none
  | some 6 => match nameOf names row 1, exprOf acc row 2, exprOf acc row 3, exprOf acc row 4 with
    | some n, some t, some v, some b => some (.letE n t v b false)
    | _, _, _, _ => none
  | some 7 => match nameOf names row 1, natOf row 2, exprOf acc row 3 with
    | some s, some i, some e => some (.proj s i e)
    | _, _, _ => none
  | some 8 => match strOf row 1 with
    | some digits => match digits.toNat? with
      | some n => some (.lit (.natVal n))
      | none => none
    | none => none
  | some 9 => match strOf row 1 with
    | some s => some (.lit (.strVal s))
    | none => none
  | _ => none

partial def readExprs (names : Array Name) (levels : Array Level) (rows : Array Json) (i : Nat) (acc : Array Expr) : Option (Array Expr) :=
  if i ≥ rows.size then some acc
  else match arrOf rows i with
    | none => none
    | some row => match readExpr names levels acc row with
      | none => none
      | some e => readExprs names levels rows (i + 1) (acc.push e)

/-! #### Declarations -/

def readHead (t : Tables) (row : Array Json) : Option ConstantVal :=
  match nameOf t.names row 1, arrOf row 2, exprOf t.exprs row 3 with
  | some n, some ps, some type => match namesFrom t.names ps 0 [] with
    | some levels => some { name := n, levelParams := levels, type := type }
    | none => none
  | _, _, _ => none

def hintsOf : Nat → ReducibilityHints
  | 0 => .opaque
  | 1 => .abbrev
  | n + 2 => .regular (UInt32.ofNat n)

partial def readConstructors (t : Tables) (rows : Array Json) (i : Nat) (acc : List Constructor) : Option (List Constructor) :=
  if i ≥ rows.size then some (revOnto acc [])
  else match arrOf rows i with
    | none => none
    | some row => match nameOf t.names row 0, exprOf t.exprs row 1 with
      | some n, some type => readConstructors t rows (i + 1) ({ name := n, type := type } :: acc)
      | _, _ => none

partial def readTypes (t : Tables) (rows : Array Json) (i : Nat) (acc : List InductiveType) : Option (List InductiveType) :=
  if i ≥ rows.size then some (revOnto acc [])
  else match arrOf rows i with
    | none => none
    | some row => match nameOf t.names row 0, exprOf t.exprs row 1, arrOf row 2 with
      | some n, some type, some cs => match readConstructors t cs 0 [] with
        | some ctors => readTypes t rows (i + 1) ({ name := n, type := type, ctors := ctors } :: acc)
        | none => none
      | _, _, _ => none

def readDeclaration (t : Tables) (row : Array Json) : Option Declaration :=
  match natOf row 0 with
  | some 0 => match readHead t row with
    | some v => some (.axiomDecl { name := v.name, levelParams := v.levelParams, type := v.type, isUnsafe := false })
    | none => none
  | some 1 => match readHead t row, exprOf t.exprs row 4 with
    | some v, some e => some (.thmDecl { name := v.name, levelParams := v.levelParams, type := v.type, value := e })
    | _, _ => none
  | some 2 => match readHead t row, exprOf t.exprs row 4, natOf row 5 with
    | some v, some e, some h =>
      some (.defnDecl { name := v.name, levelParams := v.levelParams, type := v.type, value := e, hints := hintsOf h, safety := .safe })
    | _, _, _ => none
  | some 3 => match readHead t row, exprOf t.exprs row 4 with
    | some v, some e =>
      some (.opaqueDecl { name := v.name, levelParams := v.levelParams, type := v.type, value := e, isUnsafe := false })
    | _, _ => none
  | some 4 => match arrOf row 1, natOf row 2, arrOf row 3 with
    | some ps, some n, some rows => match namesFrom t.names ps 0 [], readTypes t rows 0 [] with
      | some levels, some types => some (.inductDecl levels n types false)
      | _, _ => none
    | _, _, _ => none
  | _ => none

partial def readDeclarations (t : Tables) (rows : Array Json) (i : Nat) (acc : Array Declaration) : Option (Array Declaration) :=
  if i ≥ rows.size then some acc
  else match arrOf rows i with
    | none => none
    | some row => match readDeclaration t row with
      | none => none
      | some d => readDeclarations t rows (i + 1) (acc.push d)

def rowsOf (j : Json) (k : String) : Option (Array Json) :=
  match (field j k).getArr? with
  | .ok a => some a
  | .error _ => none

/-- The declarations of one file. -/
def readTerms (j : Json) : Option (Array Declaration) :=
  match rowsOf j "names", rowsOf j "levels", rowsOf j "exprs", rowsOf j "declarations" with
  | some ns, some ls, some es, some ds =>
    match readNames ns 0 #[.anonymous] with
    | none => none
    | some names =>
    match readLevels names ls 0 #[.zero] with
    | none => none
    | some levels =>
    match readExprs names levels es 0 #[] with
    | none => none
    | some exprs => readDeclarations { names := names, levels := levels, exprs := exprs } ds 0 #[]
  | _, _, _, _ => none
