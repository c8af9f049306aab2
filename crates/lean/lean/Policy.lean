/-! ### Policy: what a header, a statement and a tactic may say at all

The judge decides whether a term proves a type. It cannot see that a stranger's header has changed what the statement's
words mean: so such a header is made of declarations and scoping commands only. And nowhere may a proof run code of its own:
it could not change a verdict, but it could keep the prover from its work. Files of a library, and headers of the user's
pool, are not held to this; the tactics tried in them are. -/

/-- Keywords that run code or read files while elaborating, and those that leave a goal unproved: no proof comes of what
follows them, so a search need not look there. -/
def codeWords : List String :=
  ["run_tac", "by_elab", "run_cmd", "run_elab", "run_meta", "run_conv", "unsafe", "eval%", "include_str", "dbg_trace",
   "initialize", "builtin_initialize", "native_decide", "bv_decide", "bv_decide?", "bv_check", "sorry", "admit", "stop",
   "implemented_by", "extern", "csimp", "with_panel_widgets", "show_panel_widgets", "#guard", "#eval", "#eval!"]

def whyCode (w : String) : String :=
  if w == "sorry" || w == "admit" || w == "stop" then join3 "`" w "` leaves the goal unproved"
  else if w == "native_decide" || w == "bv_decide" || w == "bv_decide?" || w == "bv_check" then
    join3 "`" w "` trusts compiled code instead of the kernel"
  else join3 "`" w "` runs code inside the prover"

/-- Options whose names start so steer limits, printing and automation. Others can switch checks off (`debug`), have
documentation run code (`doc`), or let a macro's words mean something else (`hygiene`). -/
def harmlessOptions : List String :=
  ["maxHeartbeats", "maxRecDepth", "maxSynthPendingDepth", "maxUniverseOffset", "synthInstance", "autoImplicit", "relaxedAutoImplicit",
   "pp", "linter", "trace", "diagnostics", "tactic", "smartUnfolding", "backward", "exponentiation", "warn", "warningAsError", "Elab",
   "simprocs", "grind", "quotPrecheck"]

def isHarmlessOption : Name → Bool
  | .str .anonymous s => memberStr s harmlessOptions
  | .str p _ => isHarmlessOption p
  | _ => false

/-- Constants whose value Lean finds by running code, also where they are only compared. -/
def codeIdents : List Name :=
  [`Lean.reduceBool, `reduceBool, `Lean.reduceNat, `reduceNat, `Lean.ofReduceBool, `ofReduceBool, `Lean.ofReduceNat, `ofReduceNat]

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
   `Lean.Parser.Term.namedPattern, `Lean.Parser.Term.letOptEq]

/-- A configuration item, `(name := value)`, of any tactic whatever it calls the syntax. -/
def isConfigItem (stx : Syntax) (k : Name) : Bool :=
  if k == `Lean.Parser.Tactic.valConfigItem || k == `Lean.Parser.Tactic.config then true
  else (stx.getArg 0).isToken "(" && (stx.getArg 2).isToken ":=" && !(memberName k namedKinds)

mutual
/-- Why the syntax may not be used, if it may not. -/
partial def forbidden (stx : Syntax) : Option String :=
  match stx with
  | .atom _ v => if memberStr v codeWords then some (whyCode v) else none
  | .ident _ _ n _ => if memberName (unrooted n.eraseMacroScopes) codeIdents then some (whyCode (nameText n)) else none
  | .node _ k args =>
    if k == `Lean.Parser.Tactic.posConfigItem && (stx.getArg 1).getId == `native then some (whyCode "native_decide")
    else if isConfigItem stx k && !(isPlainValue (stx.getArg 3)) then
      some "a tactic's configuration is code to Lean: only values written out may stand there"
    else if (stx.getArg 0).isToken "set_option" && !(isHarmlessOption (stx.getArg 1).getId.eraseMacroScopes) then
      some (join3 "the option `" (nameText (stx.getArg 1).getId) "` can switch checks off or run code")
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
   "local", "scoped", "-simp", "-", "expose", "induction_eliminator", "cases_eliminator", "coe", "simps", "to_additive", "gcongr", "mono",
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

/-- What a header's own syntax may be for. A macro for commands or attributes could make any of them. -/
def ownCategories : List Name := [`term, `tactic, `conv]

/-- Whether it is a quotation of a term or a tactic. -/
def isQuotation (stx : Syntax) : Bool :=
  if stx.getKind == `Lean.Parser.Term.dynamicQuot then memberName (stx.getArg 1).getId.eraseMacroScopes ownCategories
  else memberName stx.getKind [`Lean.Parser.Term.quot, `Lean.Parser.Tactic.quot, `Lean.Parser.Tactic.quotSeq]

/-- Whether a macro's body is a quotation with nothing but variables put into it: no code. -/
partial def isTemplate (body : Syntax) : Bool :=
  if isQuotation body then !(holdsKind [`antiquotNestedExpr] body)
  else body.getNumArgs == 1 && isTemplate (body.getArg 0)

mutual
/-- The alternatives of `macro_rules` that are not from a template to a template. -/
partial def codeAlternative (stx : Syntax) : Bool :=
  if stx.getKind == `Lean.Parser.Term.matchAlt then
    !(isTemplate (stx.getArg (stx.getNumArgs - 1))) || !(quotationsOnly (stx.getArg 1))
  else codeAlternativeIn stx.getArgs 0
where
  -- Patterns: groups, between `|`, of quotations, between commas.
  quotationsOnly (stx : Syntax) : Bool :=
    match stx with
    | .atom _ _ => true
    | .node _ k args => isQuotation stx || (k == `null && all args 0)
    | _ => false
  all (args : Array Syntax) (i : Nat) : Bool :=
    match args[i]? with
    | none => true
    | some a => quotationsOnly a && all args (i + 1)

partial def codeAlternativeIn (args : Array Syntax) (i : Nat) : Bool :=
  match args[i]? with
  | none => false
  | some a => if codeAlternative a then true else codeAlternativeIn args (i + 1)
end

def lastArg (stx : Syntax) : Syntax := stx.getArg (stx.getNumArgs - 1)

/-- Why a command that extends the syntax may not stand in a header, if it may not. -/
def syntaxForbids (stx : Syntax) : Option String :=
  let k := stx.getKind
  if memberName k syntaxCommands && holdsKind [`Lean.Parser.Command.namedName] stx then
    some "a header's own syntax may not be given a name: it could be one that Lean runs code for"
  else if k == `Lean.Parser.Command.syntax && !(memberName (lastArg stx).getId ownCategories) then
    some "a header's `syntax` may be for terms and tactics only"
  else if k == `Lean.Parser.Command.macro then
    let tail := lastArg stx
    if !(memberName (tail.getArg 1).getId ownCategories) then some "a header's `macro` may make terms and tactics only"
    else if isTemplate (lastArg tail) then none
    else some "a header's `macro` must be a quotation that holds no code"
  else if k == `Lean.Parser.Command.macro_rules then
    if codeAlternative stx then some "a header's `macro_rules` must turn quotations of terms and tactics into such, without code" else none
  else none

/-- Commands that, before `in`, change where the next one stands and nothing else. -/
def scopeCommands : List Name :=
  [`Lean.Parser.Command.open, `Lean.Parser.Command.set_option, `Lean.Parser.Command.variable, `Lean.Parser.Command.universe,
   `Lean.Parser.Command.omit, `Lean.Parser.Command.include]

/-- Attributes that steer tactics and are not asked when a statement is read. -/
def steeringAttributes : List String :=
  ["simp", "ext", "grind", "norm_cast", "push_cast", "symm", "trans", "refl"]

/-- Whether what stands in the brackets of `attribute [...]` steers tactics only. -/
partial def onlySteers (attributes : Array Syntax) (i : Nat) : Bool :=
  match attributes[i]? with
  | none => true
  | some a =>
    let fine :=
      if a.getKind == `Lean.Parser.Command.eraseAttr then memberStr (nameText (a.getArg 1).getId) steeringAttributes
      else if a.getKind == `Lean.Parser.Term.attrInstance then memberStr (firstWord (a.getArg 1)) steeringAttributes
      else a.isAtom
    fine && onlySteers attributes (i + 1)

/-- Why a command may not stand before `in`, if it may not. Whatever is run after it is looked at as a command of its own;
what stands before is not. -/
def scopeForbids (stx : Syntax) : Option String :=
  let k := stx.getKind
  if memberName k scopeCommands || (k == `Lean.Parser.Command.attribute && onlySteers (stx.getArg 2).getArgs 0) then none
  else some (join3 "in a header, `" (firstWord stx) "` may not stand before `in`")

/-- The command that is left when all that stands before `in` is taken away. -/
partial def afterIn (stx : Syntax) : Syntax :=
  if stx.getKind == `Lean.Parser.Command.in then afterIn (stx.getArg 2) else stx

/-- Why a command may not stand in a header, if it may not. -/
partial def headerForbids (stx : Syntax) : Option String :=
  let k := stx.getKind
  if k == `Lean.Parser.Command.in then
    match scopeForbids (stx.getArg 0), headerForbids (stx.getArg 0) with
    | some why, _ => some why
    | none, some why => some why
    | none, none => headerForbids (stx.getArg 2)
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
    | some a =>
      if a.getKind != `Lean.Parser.Command.declaration then some "in a header, `mutual` may hold declarations only"
      else match headerForbids a with
        | some why => some why
        | none => each args (i + 1)

