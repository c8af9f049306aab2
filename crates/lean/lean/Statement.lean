/-! ### Statements: one theorem, read without a proof and elaborated with a placeholder -/

def lambdas : Expr → Nat
  | .lam _ _ b _ => lambdas b + 1
  | .mdata _ e => lambdas e
  | _ => 0

/-- The first node of kind `k`. -/
partial def findKind (k : Name) (stx : Syntax) : Option Syntax :=
  if stx.getKind == k then some stx else go stx.getArgs 0
where
  go (args : Array Syntax) (i : Nat) : Option Syntax :=
    match args[i]? with
    | none => none
    | some a => match findKind k a with
      | some s => some s
      | none => go args (i + 1)

def startPos (s : Syntax) : Nat := match s.getPos? true with | some p => p.byteIdx | none => 0
def endPos (s : Syntax) : Nat := match s.getTailPos? true with | some p => p.byteIdx | none => 0
def cut (s : String) (b e : Nat) : String := String.Pos.Raw.extract s ⟨b⟩ ⟨e⟩

/-- A parsed statement. -/
structure Statement where
  text : String             -- with the placeholder proof
  stx : Syntax
  id : Name

/-- Whether a declaration has no modifiers from the `i`th on: the first is its documentation. -/
partial def onlyDocumented (modifiers : Array Syntax) (i : Nat) : Bool :=
  match modifiers[i]? with
  | none => true
  | some m => m.getNumArgs == 0 && onlyDocumented modifiers (i + 1)

/-- Reads exactly one theorem without a proof: what is appended here must be its proof, and the last thing read. -/
def parseStatement (c : Ctx) (stmt : String) (strict : Bool) : BaseIO (Except Problem Statement) := do
  let bad (why : String) : Except Problem Statement := .error { kind := "statement", text := why }
  let s := String.append stmt "\n:= sorry"
  let ictx := inputCtx s
  let (stx, ps, log) := Parser.parseCommand ictx (parserCtx c) {} {}
  match (← firstError log) with
  | some e => return .error { kind := "parse", text := e }
  | none =>
  match theoremNode stx with
  | none => return bad "the statement must be one `theorem name ... : type`, without `:=`"
  | some thm =>
    let val := thm.getArg 3
    if !(ictx.atEnd ps.pos) then return bad "the statement holds more than one command"
    else if val.getKind != `Lean.Parser.Command.declValSimple || startPos val < stmt.utf8ByteSize then
      return bad "the statement must stop before its proof: no `:=`, no `where`, no `|`"
    else if startPos thm != startPos stx && !(onlyDocumented (stx.getArg 0).getArgs 1) then
      return bad "the statement must start with `theorem`, without attributes or modifiers"
    else match (if strict then orElse (forbidden (thm.getArg 2)) (blockForbids false (thm.getArg 2)) else none) with
      | some why => return .error { kind := "policy", text := String.append "in the statement, " why }
      | none =>
        let declId := thm.getArg 1
        return .ok { text := s, stx := stx, id := (declId.getArg 0).getId }

/-- The constant that a statement, elaborated with a placeholder proof, makes. -/
def elabStatement (c : Ctx) (s : String) (stx : Syntax) (id : Name) : BaseIO (Except Problem (ConstantInfo × Environment)) := do
  match (← elabCommand s stx { c.cmd with messages := {} }) with
  | .error e => return .error (← problemOf e)
  | .ok (_, st) =>
  match (← firstError st.messages) with
  | some e => return .error { kind := "elaboration", text := e }
  | none =>
    let full := fullName c.ns id
    match st.env.find? full with
    | some ci => return .ok (ci, st.env)
    | none => match st.env.find? (mkPrivateName st.env full) with
      | some ci => return .ok (ci, st.env)
      | none => return .error { kind := "statement", text := "the statement did not produce a declaration" }

