
/-! ### The challenge as data: what a proof may rest on, and the goal

The challenger has elaborated header and statement and has run no tactic. It says, in the format of `Export`, what the
judge needs on top of the imports: the constants that the goal and a given proof use, and last, as an axiom of the
theorem's name, the goal. -/

structure ChallengeRequest where
  uses : List Name          -- constants that a proof mentions
  declares : List Name      -- constants that it makes
  proofs : Bool             -- with the proofs of the challenge's own theorems
  whole : Bool              -- with what is imported, down to the ground

structure Challenge where
  terms : String
  imports : List Name
  missing : List Name       -- used, but not there
  taken : List Name         -- made, but there already
  stated : List Name        -- theorems that come without their proofs
  axioms : List Name        -- what those rest on
  opaqueLibrary : Bool

def Challenge.fields (c : Challenge) : Fields :=
  [("terms", Json.str c.terms), ("lean", Json.str Lean.versionStringCore), ("githash", Json.str Lean.githash), ("imports", Json.arr (nameArray c.imports #[])), ("missing", Json.arr (quotedNames c.missing #[])),
   ("taken", Json.arr (quotedNames c.taken #[])), ("stated", Json.arr (quotedNames c.stated #[])),
   ("axioms", Json.arr (quotedNames c.axioms #[])), ("library_axioms_visible", Json.bool (!c.opaqueLibrary))]

/-- A name from its parts. -/
def nameOfParts : List Json → Name → Name
  | [], acc => acc
  | j :: js, acc =>
    match j.getStr? with
    | .ok s => nameOfParts js (.str acc s)
    | .error _ => match j.getNat? with
      | .ok n => nameOfParts js (.num acc n)
      | .error _ => nameOfParts js acc

def namesOf : List Json → List Name
  | [] => []
  | j :: js => match j.getArr? with
    | .ok a => nameOfParts a.toList .anonymous :: namesOf js
    | .error _ => namesOf js

/-- Names, each a list of its parts: text would not tell `a.b` from «a.b». -/
def namesField (j : Json) (k : String) : List Name :=
  match (field j k).getArr? with
  | .ok a => namesOf a.toList
  | .error _ => []

def isImported (env : Environment) (n : Name) : Bool :=
  match env.getModuleIdxFor? n with
  | some _ => true
  | none => false

def withConst (env : Environment) (there : Bool) : List Name → List Name
  | [] => []
  | n :: ns => if hasConst env n == there then n :: withConst env there ns else withConst env there ns

partial def importNames (is : Array Import) (i : Nat) (acc : List Name) : List Name :=
  match is[i]? with
  | none => revOnto acc []
  | some m => importNames is (i + 1) (m.module :: acc)

/-- The axioms of theorems whose proofs this process has seen. -/
def axiomsOf (env : Environment) : List Name → List Name → Bool → List Name × Bool
  | [], acc, opaqueLibrary => (acc, opaqueLibrary)
  | n :: ns, acc, opaqueLibrary =>
    if isImported env n then axiomsOf env ns acc true
    else
      let (_, s) := (CollectAxioms.collect n env).run {}
      let (ax, lib) := splitAxioms env s.axioms.toList [] []
      axiomsOf env ns (merge ax acc) (match lib with | [] => opaqueLibrary | _ => true)
where
  merge : List Name → List Name → List Name
    | [], acc => acc
    | n :: ns, acc => merge ns (if memberName n acc then acc else n :: acc)

/-- The same where the file is there compiled: a theorem that is here by its statement alone is looked up there, under the
same name and with the same type. -/
def axiomsCompiled (env compiled : Environment) : List Name → List Name → Bool → List Name × Bool
  | [], acc, opaqueLibrary => (acc, opaqueLibrary)
  | n :: ns, acc, opaqueLibrary =>
    let there := match env.find? n, compiled.find? n with
      | some a, some b => if a.type == b.type then compiled else env
      | _, _ => env
    let (_, s) := (CollectAxioms.collect n there).run {}
    let (ax, lib) := splitAxioms there s.axioms.toList [] []
    axiomsCompiled env compiled ns (axiomsOf.merge ax acc) (match lib with | [] => opaqueLibrary | _ => true)

def common (a : List Name) : List Name → Option Name
  | [] => none
  | n :: ns => if memberName n a then some n else common a ns

/-- Constants that a proof declares although they are there. A stranger's proof brings the theorems of its header along: the
judge gets them under names of the program's. -/
def takenOf (strict : Bool) (env : Environment) : List Name → List Name
  | [] => []
  | n :: ns =>
    if hasConst env n && !(strict && ofTheorem env n) then n :: takenOf strict env ns else takenOf strict env ns

/-- `compiled` gives the environment after the theorem's file, where proofs of the file were not elaborated. -/
def Proof.challenge (p : Proof) (compiled : IO Environment) (r : ChallengeRequest) : IO (Except Problem Challenge) := do
  let env := p.ctx.env
  if p.type.hasSorry then return .error { kind := "unsound", text := "the statement uses sorry" }
  else
    let x ← newExport env (fun n => if r.whole then false else isImported env n) r.proofs p.leftOut
    -- Literals stand for terms of these.
    let makesString := if hasConst env `String.ofList then `String.ofList else `String.mk
    if r.whole then x.constants [``Nat, ``Char.ofNat, makesString]
    x.uses p.type
    x.constants (withConst env true r.uses)
    x.writeAxiom { name := p.name, levelParams := p.levels, type := p.type }
    match (← x.text) with
    | .error e => return .error e
    | .ok terms =>
      let stated ← x.stated.get
      match common p.leftOut stated with
      | some n => return .error { kind := "policy", text := join3 "the statement, a definition of the header or the proof rests on the header's theorem `" (nameText n) "`, whose proof is not looked at here: prove it where it is used" }
      | none =>
      let (axioms, opaqueLibrary) ← (do
        match stated, p.stated with
        | _ :: _, _ :: _ => return axiomsCompiled env (← compiled) stated [] false
        | _, _ => return axiomsOf env stated [] false : IO (List Name × Bool))
      return .ok { terms := terms, imports := importNames env.imports 0 [], missing := withConst env false r.uses,
                   taken := takenOf p.strict env r.declares, stated := stated, axioms := axioms, opaqueLibrary := opaqueLibrary }
