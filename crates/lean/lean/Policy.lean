/-! ### Policy: what a header, a statement and a tactic may say at all

The judge decides whether a term proves a type. It cannot see that a stranger's header has changed what the statement's
words mean: so such a header is made of declarations and scoping commands only. And nowhere may a proof run code of its own:
it could not change a verdict, but it could keep the prover from its work. Files of a library, and headers of the user's
pool, are not held to this; the tactics tried in them are. -/

/-- Keywords that run code or read files while elaborating. -/
def codeWords : List String :=
  ["run_tac", "by_elab", "run_cmd", "run_elab", "run_meta", "run_conv", "unsafe", "eval%", "include_str", "dbg_trace",
   "initialize", "builtin_initialize", "native_decide", "bv_decide", "bv_decide?", "bv_check", "sorry", "admit", "stop",
   "implemented_by", "extern", "csimp", "with_panel_widgets", "show_panel_widgets", "#guard", "#eval", "#eval!"]

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

/-! Lean evaluates the configuration of a tactic as code, with `unsafe` allowed: only what is plainly a value may stand there. -/

/-- Words that stand for values. -/
def plainWords : List Name := [`true, `false, `none]

mutual
/-- Whether a term is a value written out: numbers, strings, `true`, `.name`, and lists, pairs and structures of such. -/
partial def isPlainValue (stx : Syntax) : Bool :=
  match stx with
  | .atom _ _ => true
  | .ident _ _ n _ => memberName n plainWords
  | .missing => false
  | .node _ k args =>
    if memberName k [`num, `str, `char, `scientific, `name] then true
    else if k == `Lean.Parser.Term.dotIdent then true
    else if k == `Lean.Parser.Term.app then (stx.getArg 0).getKind == `Lean.Parser.Term.dotIdent && allPlain (stx.getArg 1).getArgs 0
    else if k == `Lean.Parser.Term.structInstField then allPlain (stx.getArg 1).getArgs 0
    else if memberName k [`Lean.Parser.Term.paren, `Lean.Parser.Term.tuple, `Lean.Parser.Term.anonymousCtor, `Lean.Parser.Term.structInst,
        `Lean.Parser.Term.structInstFields, `Lean.Parser.Term.structInstFieldDef, `Lean.Parser.Term.optEllipsis, `«term[_]», `null] then allPlain args 0
    else false

partial def allPlain (args : Array Syntax) (i : Nat) : Bool :=
  match args[i]? with
  | none => true
  | some a => isPlainValue a && allPlain args (i + 1)
end

/-- Syntax `(name := ...)` whose right-hand side nobody evaluates. -/
def namedKinds : List Name :=
  [`Lean.Parser.Term.namedArgument, `Lean.Parser.Tactic.discharger, `Lean.Parser.Command.namedName, `Lean.Parser.Command.namedPrio,
   `Lean.Parser.Term.namedPattern]

/-- A configuration item, `(name := value)`, of any tactic whatever it calls the syntax. -/
def isConfigItem (stx : Syntax) (k : Name) : Bool :=
  if k == `Lean.Parser.Tactic.valConfigItem || k == `Lean.Parser.Tactic.config then true
  else (stx.getArg 0).isToken "(" && (stx.getArg 2).isToken ":=" && !(memberName k namedKinds)

mutual
/-- Why the syntax may not be used, if it may not. -/
partial def forbidden (stx : Syntax) : Option String :=
  match stx with
  | .atom _ v => if memberStr v codeWords then some (whyCode v) else none
  | .ident _ _ n _ =>
    if memberName (unrooted n.eraseMacroScopes) bannedIdents then some (join3 "`" (nameText n) "` stands in for a proof") else none
  | .node _ k args =>
    if k == `Lean.Parser.Tactic.posConfigItem && (stx.getArg 1).getId == `native then some (whyCode "native_decide")
    else if isConfigItem stx k && !(isPlainValue (stx.getArg 3)) then
      some "a tactic's configuration is code to Lean: only values written out may stand there"
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
   "local", "scoped", "-simp", "-", "expose", "induction_eliminator", "cases_eliminator", "coe", "simps", "to_additive", "aesop", "gcongr", "mono",
   "inherit_doc", "nolint", "fun_prop", "measurability", "continuity", "bound", "macro_inline", "pp_nodot"]

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
   `Lean.Parser.Command.deriving, `Lean.Parser.Command.noncomputableSection, `Lean.Parser.Command.include,
   `Lean.Parser.Command.check, `Lean.Parser.Command.print]

/-- Commands that extend the syntax. They may stand in a header where they run no code; whether they may touch the statement
is decided when it is elaborated. -/
def syntaxCommands : List Name :=
  [`Lean.Parser.Command.notation, `Lean.Parser.Command.mixfix, `Lean.Parser.Command.macro, `Lean.Parser.Command.macro_rules,
   `Lean.Parser.Command.syntax]

mutual
/-- Whether a node of one of these kinds is in the syntax. -/
partial def holdsKind (ks : List Name) (stx : Syntax) : Bool :=
  if memberName stx.getKind ks then true else holdsKindIn ks stx.getArgs 0

partial def holdsKindIn (ks : List Name) (args : Array Syntax) (i : Nat) : Bool :=
  match args[i]? with
  | none => false
  | some a => if holdsKind ks a then true else holdsKindIn ks args (i + 1)
end

def quotations : List Name :=
  [`Lean.Parser.Term.quot, `Lean.Parser.Tactic.quot, `Lean.Parser.Tactic.quotSeq, `Lean.Parser.Term.dynamicQuot]

/-- Whether a macro's body is a quotation with nothing but variables put into it: no code. -/
partial def isTemplate (body : Syntax) : Bool :=
  if memberName body.getKind quotations then !(holdsKind [`antiquotNestedExpr] body)
  else body.getNumArgs == 1 && isTemplate (body.getArg 0)

mutual
/-- The alternatives of `macro_rules` whose right-hand side is not a template. -/
partial def codeAlternative (stx : Syntax) : Bool :=
  if stx.getKind == `Lean.Parser.Term.matchAlt then !(isTemplate (stx.getArg (stx.getNumArgs - 1)))
  else codeAlternativeIn stx.getArgs 0

partial def codeAlternativeIn (args : Array Syntax) (i : Nat) : Bool :=
  match args[i]? with
  | none => false
  | some a => if codeAlternative a then true else codeAlternativeIn args (i + 1)
end

def lastArg (stx : Syntax) : Syntax := stx.getArg (stx.getNumArgs - 1)

/-- Why a command that extends the syntax may not stand in a header, if it may not. -/
def syntaxForbids (stx : Syntax) : Option String :=
  let k := stx.getKind
  if k == `Lean.Parser.Command.macro then
    let tail := lastArg stx
    if (tail.getArg 1).getId == `command then some "a header's `macro` may not make commands"
    else if isTemplate (lastArg tail) then none
    else some "a header's `macro` must be a quotation that holds no code"
  else if k == `Lean.Parser.Command.macro_rules then
    if codeAlternative stx then some "a header's `macro_rules` must give quotations that hold no code" else none
  else none

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
  else if memberName k headerCommands || memberName k syntaxCommands then
    match forbidden stx, syntaxForbids stx with
    | some why, _ => some (String.append "in the header, " why)
    | none, some why => some why
    | none, none => badAttribute stx
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
        let inType := pushAll ci.type.getUsedConstants 0 (constructors ci rest)
        match ci.value? (allowOpaque := true) with
        | some v => newConstants base env (pushAll v.getUsedConstants 0 inType) acc
        | none => newConstants base env inType acc
where
  pushAll (ns : Array Name) (i : Nat) (acc : List Name) : List Name :=
    match ns[i]? with
    | none => acc
    | some n => pushAll ns (i + 1) (n :: acc)
  -- What a type means is in its constructors.
  constructors (ci : ConstantInfo) (acc : List Name) : List Name :=
    match ci with
    | .inductInfo v => revOnto v.ctors acc
    | .ctorInfo v => v.induct :: acc
    | .recInfo v => v.getMajorInduct :: acc
    | _ => acc

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

/-- Whether a name means something: a constant, or what `export` made of one (`max`, `some`). -/
def isMeaningful (base : Environment) (n : Name) : Bool :=
  if hasConst base n then true
  else match getAliases base n false with
    | [] => false
    | _ => true

/-- The base's name that `n` hides when written short, if any. -/
def hides (base : Environment) (n : Name) : List Name → Option Name
  | [] => if isMeaningful base n then some n else none
  | ns :: r =>
    if ns.isPrefixOf n && !(ns == n) then
      let short := n.replacePrefix ns .anonymous
      if isMeaningful base short then some short else hides base n r
    else hides base n r

def hiddenBy (base : Environment) (spaces : List Name) : List Name → Option String
  | [] => none
  | n :: ns =>
    match hides base (privateToUserName n) spaces with
    | some s => some (join5 "the header's `" (nameText n) "` hides `" (nameText s) "`, which the statement may mean")
    | none => hiddenBy base spaces ns

def lastPart : Name → Name
  | .str _ s => .str .anonymous s
  | n => n

/-- Signs that every reader knows, and what they must stand for. -/
def wellKnown : List (Name × Name) := [(`ℕ, `Nat), (`ℤ, `Int), (`ℚ, `Rat), (`ℝ, `Real), (`ℂ, `Complex)]

def standsFor (n : Name) : List (Name × Name) → Option Name
  | [] => none
  | (sign, meaning) :: r => if sign == n then some meaning else standsFor n r

def isWellKnown (n : Name) : Bool :=
  match standsFor n wellKnown with
  | some _ => true
  | none => false

/-- A constant of the header with a well-known sign for its name and another meaning. -/
def misnamed (env : Environment) : List Name → Option String
  | [] => none
  | n :: ns =>
    match standsFor (lastPart n) wellKnown with
    | none => misnamed env ns
    | some m =>
      match env.find? n with
      | none => misnamed env ns
      | some ci =>
        let right := match ci.value? with
          | some (.const c _) => c == m
          | _ => false
        if right then misnamed env ns else some (join5 "the header's `" (nameText n) "` is not `" (nameText m) "`")

/-- `open X renaming a → b` and `open X (b)` where `b` already means something else, here or beside `a`. -/
def hiddenByOpen (base : Environment) : List OpenDecl → Option String
  | [] => none
  | .explicit short full :: r =>
    let renamed := !(lastPart full == short)
    let elsewhere := isMeaningful base short && !(hasConst base full)
    let beside := renamed && (isMeaningful base short || hasConst base (parentOf full ++ short))
    if elsewhere || beside then
      some (join5 "the header opens `" (nameText full) "` as `" (nameText short) "`, which already means something else")
    else hiddenByOpen base r
  | _ :: r => hiddenByOpen base r

/-- Whether the name is written somewhere in the syntax. -/
partial def mentions (n : Name) (stx : Syntax) : Bool :=
  match stx with
  | .ident _ _ m _ => m.eraseMacroScopes == n.eraseMacroScopes
  | .node _ _ args => go args 0
  | _ => false
where
  go (args : Array Syntax) (i : Nat) : Bool :=
    match args[i]? with
    | none => false
    | some a => if mentions n a then true else go args (i + 1)

/-- How many instance arguments a statement starts with. -/
def instanceBinders : Expr → Nat → Nat
  | .forallE _ _ b bi, n => instanceBinders b (if bi.isInstImplicit then n + 1 else n)
  | .mdata _ e, n => instanceBinders e n
  | _, n => n

/-- What an instance is of. -/
def classHead : Expr → Name
  | .forallE _ _ b _ => classHead b
  | .mdata _ e => classHead e
  | e => match e.getAppFn with
    | .const n _ => n
    | _ => .anonymous

/-- A hypothesis from the header's `variable` that nothing else in the statement is about: an instance that is closed or of the
header's own class, and is not used; or what `include` adds, if it is closed. The first `k` instance arguments are the header's;
`stx` is the statement as it is written. -/
def hiddenHypothesis (base : Environment) (stx : Syntax) (includes : Bool) : Expr → Nat → Option Name
  | .forallE n t b bi, k =>
    let idle := !(b.hasLooseBVar 0)
    if bi.isInstImplicit then
      if k == 0 then hiddenHypothesis base stx includes b 0
      else if idle && (!t.hasLooseBVars || !(hasConst base (classHead t))) then some (classHead t)
      else hiddenHypothesis base stx includes b (k - 1)
    else if includes && idle && !t.hasLooseBVars && !t.isSort && !(mentions n stx) then some n
    else hiddenHypothesis base stx includes b k
  | .mdata _ e, k => hiddenHypothesis base stx includes e k
  | _, _ => none

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
    | some x => if isMeaningful base x.getId || isWellKnown x.getId then some x.getId else ids a (i + 1)
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

