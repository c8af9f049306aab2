
/-! ### The verdict

The challenge's declarations are the user's: they go on top of the imports, through the kernel. Its last one is the goal.
Then come the proof's: definitions and theorems under fresh names, the last of them a theorem of the goal's name, levels and
type. -/

/-- Deterministic: the same terms run out at the same point on every machine. -/
def kernelHeartbeats : USize := 2000000000

/-- What the kernel says, without printing terms: that would run the printer's extensions. -/
def kernelProblem (e : Kernel.Exception) : Problem :=
  match e with
  | .unknownConstant _ n => refused (String.append "unknown constant " (nameText n))
  | .alreadyDeclared _ n => refused (String.append "already declared: " (nameText n))
  | .declTypeMismatch _ d _ => refused (String.append "the value has another type than its declaration says: " (declName d))
  | .declHasMVars _ n _ => refused (String.append "metavariables in " (nameText n))
  | .declHasFVars _ n _ => refused (String.append "free variables in " (nameText n))
  | .funExpected _ _ _ => refused "function expected"
  | .typeExpected _ _ _ => refused "type expected"
  | .letTypeMismatch _ _ n _ _ => refused (String.append "a `let` of another type than it says: " (nameText n))
  | .exprTypeMismatch _ _ _ _ => refused "type mismatch"
  | .appTypeMismatch _ _ _ _ _ => refused "application type mismatch"
  | .invalidProj _ _ _ => refused "invalid projection"
  | .thmTypeIsNotProp _ n _ => refused (String.append "the type of a theorem is no proposition: " (nameText n))
  | .other s => refused s
  | .deterministicTimeout => { kind := "limit", text := "the kernel needs more heartbeats than it gets" }
  | .excessiveMemory => { kind := "fault", text := "the kernel ran out of memory" }
  | .deepRecursion => { kind := "limit", text := "the terms are too deep for the kernel" }
  | .interrupted => { kind := "fault", text := "the kernel was interrupted" }
where
  refused (s : String) : Problem := { kind := "kernel", text := String.append "(kernel) " s }
  declName : Declaration → String
    | .axiomDecl v => nameText v.name
    | .defnDecl v => nameText v.name
    | .thmDecl v => nameText v.name
    | .opaqueDecl v => nameText v.name
    | _ => "a family"

def hasConstant (env : Environment) (n : Name) : Bool :=
  match env.find? n with
  | some _ => true
  | none => false

def addDeclaration (env : Environment) (d : Declaration) : Except Problem Environment :=
  match env.addDeclCore kernelHeartbeats d none with
  | .error e => .error (kernelProblem e)
  | .ok env => .ok env

/-- All but the last, as they are. -/
partial def addChallenge (ds : Array Declaration) (i : Nat) (env : Environment) : Except Problem Environment :=
  if i + 1 ≥ ds.size then .ok env
  else match ds[i]? with
    | none => .ok env
    | some d => match addDeclaration env d with
      | .error e => .error e
      | .ok env => addChallenge ds (i + 1) env

def unsound (s : String) : Problem := { kind := "unsound", text := s }

def fresh (env : Environment) (n : Name) (d : Declaration) : Except Problem Environment :=
  if n.isAnonymous then .error (unsound "a constant without a name")
  else if hasConstant env n then .error (unsound (String.append "a constant is declared again: " (nameText n)))
  else addDeclaration env d

/-- All but the last: definitions and theorems under fresh names that are not the goal's. -/
partial def addAuxiliaries (goal : Name) (ds : Array Declaration) (i : Nat) (env : Environment) : Except Problem Environment :=
  if i + 1 ≥ ds.size then .ok env
  else
    let one : Except Problem Environment := match ds[i]? with
      | some (.thmDecl v) => if v.name == goal then bad "the theorem itself among its auxiliaries" else fresh env v.name (.thmDecl v)
      | some (.defnDecl v) => if v.name == goal then bad "the theorem itself among its auxiliaries" else fresh env v.name (.defnDecl v)
      | some (.axiomDecl v) => bad (String.append "the proof uses a new axiom " (nameText v.name))
      | _ => bad "only definitions and theorems may be made by a proof"
    match one with
    | .error e => .error e
    | .ok env => addAuxiliaries goal ds (i + 1) env
where
  bad (s : String) : Except Problem Environment := .error (unsound s)

def sameLevels : List Name → List Name → Bool
  | [], [] => true
  | a :: as, b :: bs => a == b && sameLevels as bs
  | _, _ => false

/-- An environment of exported parts shows library theorems as axioms; their original kind tells them from real ones. -/
def realAxioms (base : Environment) : List Name → List Name → Bool → List Name × Bool
  | [], acc, opaqueLibrary => (acc, opaqueLibrary)
  | n :: ns, acc, opaqueLibrary =>
    match getOriginalConstKind? base n with
    | some .axiom => realAxioms base ns (n :: acc) opaqueLibrary
    | none => realAxioms base ns (n :: acc) opaqueLibrary
    | some _ => realAxioms base ns acc true

structure Verdict where
  axioms : List Name
  opaqueLibrary : Bool

/-- Whether `proof` proves the goal of `challenge`, over the imports. -/
def judge (base : Environment) (challenge proof : Array Declaration) : Except Problem Verdict :=
  match challenge[challenge.size - 1]?, proof[proof.size - 1]? with
  | some (.axiomDecl goal), some (.thmDecl claim) =>
    if !(claim.name == goal.name) then .error (unsound (String.append "a proof of something else: " (nameText claim.name)))
    else if !(sameLevels claim.levelParams goal.levelParams) then .error (unsound "a proof for other universe levels")
    else if !(claim.type == goal.type) then .error (unsound "a proof of another statement")
    else match addChallenge challenge 0 base with
      | .error e => .error { kind := "challenge", text := e.text }
      | .ok env => match addAuxiliaries goal.name proof 0 env with
        | .error e => .error e
        | .ok env =>
          let d : Declaration := .thmDecl { name := goal.name, levelParams := goal.levelParams, type := goal.type, value := claim.value }
          match fresh env goal.name d with
          | .error e => .error e
          | .ok done =>
            let (_, s) := (CollectAxioms.collect goal.name done).run {}
            let (axioms, opaqueLibrary) := realAxioms base s.axioms.toList [] false
            .ok { axioms := axioms, opaqueLibrary := opaqueLibrary }
  | some (.axiomDecl _), _ => .error (unsound "the proof does not end with a theorem")
  | _, _ => .error { kind := "challenge", text := "the challenge does not end with its goal" }

/-! ### The loop -/

def answer (base : Environment) (j : Json) : Fields :=
  match readTerms (field j "challenge"), readTerms (field j "proof") with
  | some challenge, some proof =>
    match judge base challenge proof with
    | .error e => e.fields
    | .ok v => [("ok", Json.bool true), ("axioms", Json.arr (quotedNames v.axioms #[])), ("library_axioms_visible", Json.bool (!v.opaqueLibrary))]
  | _, _ => ({ kind := "request", text := "the tables are damaged" } : Problem).fields

def send (out : IO.FS.Stream) (fields : Fields) : IO Unit := do
  out.putStr (String.append (Json.mkObj fields).compress "\n")
  out.flush

partial def loop (inp out : IO.FS.Stream) (base : Environment) : IO Unit := do
  let line ← inp.getLine
  if line.isEmpty then return ()
  else
    match Json.parse line with
    | .error e =>
      send out ({ kind := "request", text := e } : Problem).fields
      loop inp out base
    | .ok j =>
      send out (("id", field j "id") :: answer base j)
      loop inp out base

def toImports : List String → List Import
  | [] => []
  | m :: ms => { module := m.toName } :: toImports ms

/-- Imports the modules named in `args` without running any of their code, then judges until end of input. -/
def serveJudge (args : List String) : IO UInt32 := do
  let mods := match args with | [] => ["Init"] | _ => args
  let env ← importModules (toImports mods).toArray {} 0 (loadExts := false)
  let out ← IO.getStdout
  send out [("protocol", num 2), ("ready", Json.bool true), ("lean", Json.str Lean.versionString)]
  loop (← IO.getStdin) out env
  return 0

end Catamount

-- `main` holds no literals: symbols `l_main___closed__*` of the host binary would shadow ours.
public def main (args : List String) : IO UInt32 := Catamount.serveJudge args
