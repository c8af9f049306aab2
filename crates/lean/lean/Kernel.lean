/-! ### The final check: what was built is added to the environment it started from, by the kernel, piece by piece

Nothing that elaboration did to the environment is trusted: every new constant that the proof uses is taken out of it as
data and given to the kernel again, on top of the environment that was there before. -/

def kernelText (e : Kernel.Exception) (opts : Options) : BaseIO String := (e.toMessageData opts).toString

/-- Environments and what was already added on the way. -/
structure Rebuilt where
  env : Environment
  added : List Name

def ctorsOf (env : Environment) : List Name → Option (List Constructor)
  | [] => some []
  | n :: ns =>
    match env.find? n, ctorsOf env ns with
    | some ci, some r => some ({ name := n, type := ci.type } :: r)
    | _, _ => none

def typesOf (env : Environment) : List Name → Option (List InductiveType)
  | [] => some []
  | n :: ns =>
    match env.find? n with
    | some (.inductInfo v) =>
      match ctorsOf env v.ctors, typesOf env ns with
      | some cs, some r => some ({ name := n, type := v.type, ctors := cs } :: r)
      | _, _ => none
    | _ => none

/-- Every constant that a family of inductive types mentions in its types and constructors. -/
def familyUses : List InductiveType → List Name → List Name
  | [], acc => acc
  | t :: ts, acc => familyUses ts (ctors t.ctors (push t.type.getUsedConstants.toList acc))
where
  push : List Name → List Name → List Name
    | [], acc => acc
    | n :: ns, acc => push ns (n :: acc)
  ctors : List Constructor → List Name → List Name
    | [], acc => acc
    | c :: cs, acc => ctors cs (push c.type.getUsedConstants.toList acc)

def notIn (family : List Name) : List Name → List Name
  | [] => []
  | n :: ns => if memberName n family then notIn family ns else n :: notIn family ns

def familyNames : List InductiveType → List Name
  | [] => []
  | t :: ts => t.name :: ctors t.ctors (familyNames ts)
where
  ctors : List Constructor → List Name → List Name
    | [], acc => acc
    | c :: cs, acc => c.name :: ctors cs acc

def addToKernel (r : Rebuilt) (n : Name) (d : Declaration) : BaseIO (Except Problem Rebuilt) := do
  match r.env.addDeclCore 0 d none with   -- 0: no heartbeat limit; the host watches the clock
  | .error ex => return .error { kind := "kernel", text := (← kernelText ex {}) }
  | .ok env => return .ok { env := env, added := n :: r.added }

mutual
/-- Adds the constants `ns` of `src`, and first everything they use. -/
partial def rebuild (src : Environment) (r : Rebuilt) : List Name → BaseIO (Except Problem Rebuilt)
  | [] => return .ok r
  | n :: ns => do
    if hasConst r.env n then rebuild src r ns
    else match src.find? n with
      | none => return .error { kind := "unsound", text := String.append "the proof uses an unknown constant " (nameText n) }
      | some ci =>
        match (← rebuildOne src r ci) with
        | .error e => return .error e
        | .ok r => rebuild src r ns

partial def rebuildOne (src : Environment) (r : Rebuilt) (ci : ConstantInfo) : BaseIO (Except Problem Rebuilt) := do
  let value (v : Expr) (d : Declaration) : BaseIO (Except Problem Rebuilt) := do
    match (← rebuild src r ci.type.getUsedConstants.toList) with
    | .error e => return .error e
    | .ok r => match (← rebuild src r v.getUsedConstants.toList) with
      | .error e => return .error e
      | .ok r => addToKernel r ci.name d
  match ci with
  | .defnInfo v => if isSafe v.safety then value v.value (.defnDecl v) else unsafeUse ci.name
  | .thmInfo v => value v.value (.thmDecl v)
  | .opaqueInfo v => if v.isUnsafe then unsafeUse ci.name else value v.value (.opaqueDecl v)
  | .axiomInfo v => return .error { kind := "unsound", text := String.append "the proof uses a new axiom " (nameText v.name) }
  | .quotInfo v => return .error { kind := "unsound", text := String.append "the proof uses a new quotient constant " (nameText v.name) }
  | .inductInfo v => if v.isUnsafe then unsafeUse v.name else family src r v
  | .ctorInfo v => parent src r v.induct
  | .recInfo v => parent src r v.getMajorInduct
where
  isSafe : DefinitionSafety → Bool
    | .safe => true
    | _ => false
  unsafeUse (n : Name) : BaseIO (Except Problem Rebuilt) := do
    return .error { kind := "unsound", text := String.append "the proof uses the unsafe or partial definition " (nameText n) }

partial def parent (src : Environment) (r : Rebuilt) (n : Name) : BaseIO (Except Problem Rebuilt) := do
  match src.find? n with
  | some (.inductInfo v) => if v.isUnsafe then return .error { kind := "unsound", text := "the proof uses an unsafe type" } else family src r v
  | _ => return .error { kind := "unsound", text := String.append "the proof uses a constructor of no type: " (nameText n) }

partial def family (src : Environment) (r : Rebuilt) (v : InductiveVal) : BaseIO (Except Problem Rebuilt) := do
  match typesOf src v.all with
  | none => return .error { kind := "unsound", text := String.append "the inductive type is not whole: " (nameText v.name) }
  | some types =>
    match (← rebuild src r (notIn (familyNames types) (familyUses types []))) with
    | .error e => return .error e
    | .ok r => addToKernel r v.name (.inductDecl v.levelParams v.numParams types false)
end

/-- In an environment of exported parts only, imported theorems and unexposed definitions look like axioms; their
original kind tells them from real ones. -/
def splitAxioms (env : Environment) : List Name → List Name → List Name → List Name × List Name
  | [], ax, lib => (ax, lib)
  | n :: ns, ax, lib =>
    match getOriginalConstKind? env n with
    | some .axiom => splitAxioms env ns (n :: ax) lib
    | none => splitAxioms env ns (n :: ax) lib
    | some _ => splitAxioms env ns ax (n :: lib)

/-- What a finished proof rests on. -/
structure Certificate where
  axioms : List Name
  opaqueLibrary : Bool      -- some library theorem's own axioms could not be seen
  declared : List Name      -- constants made on the way (by header, statement and proof)

def seenNames : List Name → NameSet → NameSet
  | [], acc => acc
  | n :: ns, acc => seenNames ns (acc.insert n)

/-- Kernel-check `value : type` as theorem `name`, over `base`, with what it needs taken from `src`. The theorems in `stated`
have no proofs here: what they rest on is not looked for. -/
def certify (base src : Environment) (stated : List Name) (name : Name) (levels : List Name) (type value : Expr) : BaseIO (Except Problem Certificate) := do
  if value.hasExprMVar then return .error { kind := "unsound", text := "the proof term still has metavariables" }
  else if value.hasLevelMVar then return .error { kind := "unsound", text := "the proof term still has universe metavariables" }
  else if value.hasFVar then return .error { kind := "unsound", text := "the proof term has free variables" }
  else if value.hasSorry then return .error { kind := "unsound", text := "the proof term uses sorry" }
  else if type.hasSorry then return .error { kind := "unsound", text := "the statement uses sorry" }
  else if type.hasMVar || type.hasFVar then return .error { kind := "unsound", text := "the statement is not closed" }
  else
    match (← rebuild src { env := base, added := [] } type.getUsedConstants.toList) with
    | .error e => return .error e
    | .ok r =>
    match (← rebuild src r value.getUsedConstants.toList) with
    | .error e => return .error e
    | .ok r =>
    match (← addToKernel r name (.thmDecl { name := name, levelParams := levels, type := type, value := value })) with
    | .error e => return .error e
    | .ok done =>
      let (_, s) := (CollectAxioms.collect name done.env).run { visited := seenNames stated {} }
      let (ax, lib) := splitAxioms base s.axioms.toList [] []
      return .ok { axioms := ax, opaqueLibrary := (match lib with | [] => false | _ => true), declared := r.added }

