/-! ### Policy: what a header, a statement and a tactic may say at all

The kernel decides whether a term proves a type. It cannot see that a header has changed what the statement's words
mean, and nothing holds against code that a proof runs inside the server. So headers are made of declarations and
scoping commands only, and nowhere may a proof run code of its own. Files of a library are the user's and are not
held to this; the tactics tried in them are. -/

/-- Keywords that run code or read files while elaborating. -/
def codeWords : List String :=
  ["run_tac", "by_elab", "run_cmd", "run_elab", "run_meta", "run_conv", "unsafe", "eval%", "include_str", "dbg_trace",
   "initialize", "builtin_initialize", "native_decide", "bv_decide", "bv_decide?", "bv_check", "sorry", "admit", "stop",
   "implemented_by", "extern", "csimp"]

def whyCode (w : String) : String :=
  if w == "sorry" || w == "admit" || w == "stop" then join3 "`" w "` leaves the goal unproved"
  else if w == "native_decide" || w == "bv_decide" || w == "bv_decide?" || w == "bv_check" then
    join3 "`" w "` trusts compiled code instead of the kernel"
  else join3 "`" w "` runs code inside the prover"

/-- Options whose names start so can switch checks off. -/
def isUnsafeOption : Name → Bool
  | .str .anonymous s => s == "debug"
  | .str p _ => isUnsafeOption p
  | .num p _ => isUnsafeOption p
  | .anonymous => false

/-- A constant that stands for an unfinished or an unchecked proof, written as a name. -/
def bannedIdents : List Name :=
  [`sorryAx, `Lean.ofReduceBool, `ofReduceBool, `Lean.ofReduceNat, `ofReduceNat, `Lean.trustCompiler, `trustCompiler,
   `Lean.reduceBool, `reduceBool, `Lean.reduceNat, `reduceNat]

mutual
/-- Why the syntax may not be used, if it may not. -/
partial def forbidden (stx : Syntax) : Option String :=
  match stx with
  | .atom _ v => if memberStr v codeWords then some (whyCode v) else none
  | .ident _ _ n _ =>
    if memberName (unrooted n.eraseMacroScopes) bannedIdents then some (join3 "`" (nameText n) "` stands in for a proof") else none
  | .node _ k args =>
    if k == `Lean.Parser.Tactic.posConfigItem && (stx.getArg 1).getId == `native then some (whyCode "native_decide")
    else if (stx.getArg 0).isToken "set_option" && isUnsafeOption (stx.getArg 1).getId.eraseMacroScopes then
      some (join3 "the option `" (nameText (stx.getArg 1).getId) "` can switch checks off")
    else forbiddenIn args 0
  | .missing => none

partial def forbiddenIn (args : Array Syntax) (i : Nat) : Option String :=
  match args[i]? with
  | none => none
  | some a => match forbidden a with
    | some why => some why
    | none => forbiddenIn args (i + 1)
end

/-- The first word of a piece of syntax. -/
partial def firstWord (stx : Syntax) : String :=
  match stx with
  | .atom _ v => v
  | .ident _ _ n _ => nameText n
  | .node _ _ args => go args 0
  | .missing => ""
where
  go (args : Array Syntax) (i : Nat) : String :=
    match args[i]? with
    | none => ""
    | some a => let w := firstWord a; if w == "" then go args (i + 1) else w

/-- Attributes that only steer automation. -/
def harmlessAttributes : List String :=
  ["simp", "ext", "reducible", "irreducible", "semireducible", "instance", "inline", "noinline", "always_inline", "specialize",
   "refl", "symm", "trans", "congr", "norm_cast", "push_cast", "elab_as_elim", "match_pattern", "grind", "deprecated", "class",
   "local", "scoped", "-simp", "-", "expose", "induction_eliminator", "cases_eliminator", "coe", "simps", "to_additive", "aesop", "gcongr", "mono"]

mutual
partial def badAttribute (stx : Syntax) : Option String :=
  match stx with
  | .node _ k args =>
    if k == `Lean.Parser.Term.attrInstance then
      let w := firstWord (stx.getArg 1)
      if memberStr w harmlessAttributes then none
      else some (join3 "the attribute `" w "` in the header can change what the statement means or run code")
    else badAttributeIn args 0
  | _ => none

partial def badAttributeIn (args : Array Syntax) (i : Nat) : Option String :=
  match args[i]? with
  | none => none
  | some a => match badAttribute a with
    | some why => some why
    | none => badAttributeIn args (i + 1)
end

def headerCommands : List Name :=
  [`Lean.Parser.Command.open, `Lean.Parser.Command.namespace, `Lean.Parser.Command.section, `Lean.Parser.Command.end,
   `Lean.Parser.Command.variable, `Lean.Parser.Command.universe, `Lean.Parser.Command.set_option, `Lean.Parser.Command.omit,
   `Lean.Parser.Command.attribute, `Lean.Parser.Command.moduleDoc, `Lean.Parser.Command.declaration,
   `Lean.Parser.Command.deriving, `Lean.Parser.Command.noncomputableSection]

/-- Why a command may not stand in a header, if it may not. -/
partial def headerForbids (stx : Syntax) : Option String :=
  let k := stx.getKind
  if k == `Lean.Parser.Command.in then
    match headerForbids (stx.getArg 0) with
    | some why => some why
    | none => headerForbids (stx.getArg 2)
  else if k == `Lean.Parser.Command.mutual then each (stx.getArg 1).getArgs 0
  else if k == `Lean.Parser.Command.declaration && (stx.getArg 1).getKind == `Lean.Parser.Command.axiom then
    some "the header declares an axiom"
  else if memberName k headerCommands then
    match forbidden stx with
    | some why => some (String.append "in the header, " why)
    | none => badAttribute stx
  else some (join5 "a header may not use `" (firstWord stx) "` (" (nameText k) "): it can change what the statement means or run code")
where
  each (args : Array Syntax) (i : Nat) : Option String :=
    match args[i]? with
    | none => none
    | some a => match headerForbids a with
      | some why => some why
      | none => each args (i + 1)

/-! ### Whether a header bends the statement -/

def hasConst (env : Environment) (n : Name) : Bool :=
  match env.find? n with
  | some _ => true
  | none => false

/-- Constants reachable from `todo` that the base does not have. -/
partial def newConstants (base env : Environment) (todo : List Name) (acc : List Name) : List Name :=
  match todo with
  | [] => acc
  | n :: rest =>
    if hasConst base n || memberName n acc then newConstants base env rest acc
    else match env.find? n with
      | none => newConstants base env rest acc
      | some ci =>
        let acc := n :: acc
        let inType := pushAll ci.type.getUsedConstants 0 rest
        match ci.value? (allowOpaque := true) with
        | some v => newConstants base env (pushAll v.getUsedConstants 0 inType) acc
        | none => newConstants base env inType acc
where
  pushAll (ns : Array Name) (i : Nat) (acc : List Name) : List Name :=
    match ns[i]? with
    | none => acc
    | some n => pushAll ns (i + 1) (n :: acc)

/-- Namespaces whose members can be written without their prefix. -/
def openNamespaces (c : Ctx) : List Name := own c.ns (opened c.opens)
where
  own : Name → List Name → List Name
    | .str p s, acc => own p (.str p s :: acc)
    | _, acc => acc
  opened : List OpenDecl → List Name
    | [] => []
    | .simple ns _ :: r => ns :: opened r
    | _ :: r => opened r

/-- The base constant that `n` hides when written short, if any. -/
def hides (base : Environment) (n : Name) : List Name → Option Name
  | [] => none
  | ns :: r =>
    if ns.isPrefixOf n && !(ns == n) then
      let short := n.replacePrefix ns .anonymous
      if hasConst base short then some short else hides base n r
    else hides base n r

def hiddenBy (base : Environment) (spaces : List Name) : List Name → Option String
  | [] => none
  | n :: ns =>
    match hides base (privateToUserName n) spaces with
    | some s => some (join5 "the header's `" (nameText n) "` hides `" (nameText s) "`, which the statement may mean")
    | none => hiddenBy base spaces ns

/-- `open X renaming a → b` and `open X (b)` where `b` already means something else. -/
def hiddenByOpen (base : Environment) : List OpenDecl → Option String
  | [] => none
  | .explicit short full :: r =>
    if hasConst base short && !(hasConst base full) then
      some (join5 "the header opens `" (nameText full) "` as `" (nameText short) "`, which already means something else")
    else hiddenByOpen base r
  | _ :: r => hiddenByOpen base r

/-- Is `ty` (after its arguments) a class that the base already has an instance of? -/
def alreadyInstance (ty : Expr) : TermElabM Bool := do
  let (_, _, goal) ← Meta.forallMetaTelescope ty
  match (← Meta.isClass? goal) with
  | none => return false
  | some _ =>
    match (← Meta.synthInstance? goal) with
    | some _ => return true
    | none => return false

/-- A reachable instance of the header for which the base has one already: it silently replaces a meaning. -/
def replacedInstance (base : Ctx) (env : Environment) : List Name → BaseIO (Option String)
  | [] => return none
  | n :: ns => do
    match env.find? n with
    | none => replacedInstance base env ns
    | some ci =>
      -- A type that mentions header constants cannot have had an instance before: the base does not know them.
      match (← runTerm base n 200000 (coreState base.env `_policy) {} {} (alreadyInstance ci.type)) with
      | .ok (((true, _), _), _) => return some (join3 "the header's instance `" (nameText n) "` replaces one that already exists")
      | _ => replacedInstance base env ns

/-- Hypotheses that `variable [..]` adds although nothing in the statement is about them. -/
def closedInstances : Expr → Nat → Nat
  | .forallE _ t b bi, n => closedInstances b (if bi.isInstImplicit && !t.hasLooseBVars && !t.hasFVar then n + 1 else n)
  | .mdata _ e, n => closedInstances e n
  | _, n => n

partial def countKind (k : Name) (stx : Syntax) : Nat :=
  let here := if stx.getKind == k then 1 else 0
  go stx.getArgs 0 here
where
  go (args : Array Syntax) (i : Nat) (n : Nat) : Nat :=
    match args[i]? with
    | none => n
    | some a => go args (i + 1) (n + countKind k a)

/-- A `variable` named like a constant of the library, which would turn the statement's word into a variable. -/
partial def variableHides (base : Environment) (stx : Syntax) : Option Name :=
  match stx with
  | .node _ k args =>
    if k == `Lean.Parser.Term.explicitBinder || k == `Lean.Parser.Term.implicitBinder || k == `Lean.Parser.Term.strictImplicitBinder then
      ids (stx.getArg 1).getArgs 0
    else go args 0
  | _ => none
where
  ids (a : Array Syntax) (i : Nat) : Option Name :=
    match a[i]? with
    | none => none
    | some x => if hasConst base x.getId then some x.getId else ids a (i + 1)
  go (a : Array Syntax) (i : Nat) : Option Name :=
    match a[i]? with
    | none => none
    | some x => match variableHides base x with
      | some n => some n
      | none => go a (i + 1)

def scopeVariables (st : Command.State) : Array (TSyntax `Lean.Parser.Term.bracketedBinder) :=
  match st.scopes with
  | sc :: _ => sc.varDecls
  | [] => #[]

partial def anyVariableHides (base : Environment) (vs : Array (TSyntax `Lean.Parser.Term.bracketedBinder)) (i : Nat) : Option String :=
  match vs[i]? with
  | none => none
  | some v => match variableHides base v.raw with
    | some n => some (join3 "the header's variable `" (nameText n) "` hides a constant of the same name")
    | none => anyVariableHides base vs (i + 1)

/-- Why the header of context `c`, over the imports `base`, bends a statement elaborated to `type`, if it does. -/
def headerBends (base c : Ctx) (env : Environment) (stx : Syntax) (type : Expr) : BaseIO (Option String) := do
  match anyVariableHides base.env (scopeVariables c.cmd) 0 with
  | some why => return some why
  | none =>
  match hiddenByOpen base.env c.opens with
  | some why => return some why
  | none =>
  if closedInstances type 0 > countKind `Lean.Parser.Term.instBinder stx then
    return some "the header's `variable` adds a hypothesis that the statement does not mention"
  else
    let new := newConstants base.env env type.getUsedConstants.toList []
    match hiddenBy base.env (openNamespaces c) new with
    | some why => return some why
    | none => replacedInstance base env new

