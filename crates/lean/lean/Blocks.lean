/-! ### Tactic blocks of a stranger's header: who runs them

A tactic is code to Lean: its configuration is evaluated, and whatever a header has defined may stand there under some name.
So the process that says what is to be proved runs none of a stranger's own choice. The proofs of the header's theorems are
left to the prover, which hands them over as terms; in what is left (definitions, instances, the statement, macros for terms)
a block is made of tactics that take no code, without configuration. -/

/-- The theorem's own node inside a declaration: `theorem`, or Mathlib's `lemma`. -/
def theoremNode (stx : Syntax) : Option Syntax :=
  if stx.getKind == `Lean.Parser.Command.declaration && (stx.getArg 1).getKind == `Lean.Parser.Command.theorem then some (stx.getArg 1)
  else if stx.getKind == `lemma then some (stx.getArg 1)
  else none

/-- The constant that a declaration written as `full` became. -/
def declaredName (env : Environment) (full : Name) : Name :=
  if hasConst env full then full else mkPrivateName env full

/-! #### Leaving proofs out -/

/-- `:= sorry`, as the library reads it. -/
def placeholder (base : Ctx) : Option Syntax :=
  let (stx, _, _) := Parser.parseCommand (inputCtx "theorem _placeholder : True := sorry") (parserCtx base) {} {}
  match theoremNode stx with
  | some thm => some (thm.getArg 3)
  | none => none

/-- A command with the proofs of its theorems left out, and what these are called. -/
structure Shortened where
  stx : Syntax
  ids : List Name
deriving Inhabited

mutual
partial def shorten (hole : Syntax) (stx : Syntax) (ids : List Name) : Shortened :=
  let k := stx.getKind
  if k == `Lean.Parser.Command.in then
    let s := shorten hole (stx.getArg 2) ids
    { s with stx := stx.setArg 2 s.stx }
  else if k == `Lean.Parser.Command.mutual then
    let s := shortenEach hole (stx.getArg 1) 0 ids
    { s with stx := stx.setArg 1 s.stx }
  else match theoremNode stx with
    | none => { stx := stx, ids := ids }
    | some thm => { stx := stx.setArg 1 (thm.setArg 3 hole), ids := ((thm.getArg 1).getArg 0).getId :: ids }

partial def shortenEach (hole : Syntax) (group : Syntax) (i : Nat) (ids : List Name) : Shortened :=
  if i ≥ group.getNumArgs then { stx := group, ids := ids }
  else
    let s := shorten hole (group.getArg i) ids
    shortenEach hole (group.setArg i s.stx) (i + 1) s.ids
end

def declaredNames (env : Environment) (ns : Name) : List Name → List Name → List Name
  | [], acc => acc
  | id :: ids, acc => declaredNames env ns ids (declaredName env (fullName ns id) :: acc)

/-! #### What may stand in the blocks that are run -/

/-- Tactics that take terms and names and no code. -/
def plainTactics : List Name :=
  [`Lean.Parser.Tactic.intro, `Lean.Parser.Tactic.intros, `Lean.Parser.Tactic.introMatch, `Lean.Parser.Tactic.exact,
   `Lean.Parser.Tactic.apply, `Lean.Parser.Tactic.refine, `Lean.Parser.Tactic.refine', `Lean.Parser.Tactic.tacticRfl,
   `Lean.Parser.Tactic.tacticRfl', `Lean.Parser.Tactic.applyRfl, `Lean.Parser.Tactic.acRfl,
   `Lean.Parser.Tactic.constructor, `Lean.Parser.Tactic.cases, `Lean.Parser.Tactic.induction,
   `Lean.Parser.Tactic.rcases, `Lean.Parser.Tactic.obtain, `Lean.Parser.Tactic.rintro, `Lean.Parser.Tactic.omega,
   `Lean.Parser.Tactic.simp, `Lean.Parser.Tactic.simpAll, `Lean.Parser.Tactic.dsimp, `Lean.Parser.Tactic.simpa,
   `Lean.Parser.Tactic.unfold, `Lean.Parser.Tactic.delta, `Lean.Parser.Tactic.rwSeq, `Lean.Parser.Tactic.rewriteSeq,
   `Lean.Parser.Tactic.tacticRwa__, `Lean.Parser.Tactic.decide, `Lean.Parser.Tactic.assumption,
   `Lean.Parser.Tactic.contradiction, `Lean.Parser.Tactic.exfalso, `Lean.Parser.Tactic.tacticExfalso,
   `Lean.Parser.Tactic.falseOrByContra, `Lean.Parser.Tactic.subst, `Lean.Parser.Tactic.substVars,
   `Lean.Parser.Tactic.left, `Lean.Parser.Tactic.right, `Lean.Parser.Tactic.«tacticExists_,,»,
   `Lean.Parser.Tactic.tacticHave__, `Lean.Parser.Tactic.tacticHave', `Lean.Parser.Tactic.tacticHaveI__,
   `Lean.Parser.Tactic.tacticLet__, `Lean.Parser.Tactic.show, `Lean.Parser.Tactic.tacticSuffices_,
   `Lean.Parser.Tactic.tacticTrivial, `Lean.Parser.Tactic.split, `Lean.Parser.Tactic.injection,
   `Lean.Parser.Tactic.injections, `Lean.Parser.Tactic.change, `Lean.Parser.Tactic.specialize,
   `Lean.Parser.Tactic.generalize, `Lean.Parser.Tactic.revert, `Lean.Parser.Tactic.clear, `Lean.Parser.Tactic.renameI,
   `Lean.Parser.Tactic.case, `Lean.Parser.Tactic.«tacticNext_=>_», `Lean.Parser.Tactic.tacticNofun,
   `Lean.Parser.Tactic.«tacticNomatch_,,», `Lean.Parser.Tactic.tacticInfer_instance,
   `Lean.Parser.Tactic.tacticAnd_intros, `Lean.Parser.Tactic.tacticExact_mod_cast_,
   `Lean.Parser.Tactic.tacticAssumption_mod_cast_, `Lean.Parser.Tactic.tacticNorm_cast__, `Lean.Parser.Tactic.symm,
   `Lean.Parser.Tactic.skip, `Lean.Parser.Tactic.done, `Lean.Parser.Tactic.first, `Lean.Parser.Tactic.tacticTry_,
   `Lean.Parser.Tactic.tacticRepeat_, `Lean.Parser.Tactic.allGoals, `Lean.Parser.Tactic.anyGoals,
   `Lean.Parser.Tactic.paren, `Lean.Parser.Tactic.nestedTactic, `Lean.Parser.Tactic.tacticFunext___,
   `Lean.Parser.Tactic.«tactic_<;>_», `Lean.Parser.Tactic.match, `Lean.Parser.Tactic.grind, `tacticSimp_wf,
   `«tacticBy_cases_:_», `Lean.Parser.Tactic.«tacticBy_cases_:_», `Lean.Elab.Tactic.Ext.ext, `Lean.cdot, `Lean.calcTactic]

/-- Constants that turn anything into anything, or stand for what is not there. -/
def strangeIdents : List String :=
  ["sorryAx", "unsafeCast", "unsafeIO", "unsafeEIO", "unsafeBaseIO", "lcProof", "lcUnreachable", "lcAny", "lcErased", "ptrAddrUnsafe"]

def lastWord : Name → String
  | .str _ s => s
  | _ => ""

def isConfiguration (stx : Syntax) (k : Name) : Bool :=
  memberName k [`Lean.Parser.Tactic.posConfigItem, `Lean.Parser.Tactic.negConfigItem] || isConfigItem stx k

mutual
/-- Why a part of a header that is run may not be, if it may not. `direct`: a tactic stands here. -/
partial def blockForbids (direct : Bool) (stx : Syntax) : Option String :=
  match stx with
  | .ident _ _ n _ =>
    if memberStr (lastWord n.eraseMacroScopes) strangeIdents then some (join3 "`" (nameText n) "` turns anything into anything") else none
  | .node _ k args =>
    -- What a macro for tactics makes is run only where tactics are that no challenger runs.
    if memberName k [`Lean.Parser.Tactic.quot, `Lean.Parser.Tactic.quotSeq] then none
    else if direct && k == `choice then eachForbids true args 0
    else if direct && k == `null then none
    else if direct && !(memberName k plainTactics) then
      some (join3 "outside the proofs of a header's theorems plain tactics may be used, and `" (firstWord stx) "` is none")
    else if isConfiguration stx k then
      some "outside the proofs of a header's theorems tactics and attributes may have no configuration: Lean would run it"
    else if k == `Lean.Parser.Tactic.tacticSeq1Indented then eachForbids true (stx.getArg 0).getArgs 0
    else if k == `Lean.Parser.Tactic.tacticSeqBracketed then eachForbids true (stx.getArg 1).getArgs 0
    else if k == `Lean.Parser.Tactic.«tactic_<;>_» then eachForbids true #[stx.getArg 0, stx.getArg 2] 0
    else if k == `Lean.Parser.Tactic.inductionAlts then
      match eachForbids true (stx.getArg 1).getArgs 0 with
      | some why => some why
      | none => eachForbids false args 0
    else eachForbids false args 0
  | _ => none

partial def eachForbids (direct : Bool) (args : Array Syntax) (i : Nat) : Option String :=
  match args[i]? with
  | none => none
  | some a => match blockForbids direct a with
    | some why => some why
    | none => eachForbids direct args (i + 1)
end

/-! #### Syntax that is the header's own -/

def anyOwn (base env : Environment) : List Name → Bool
  | [] => false
  | n :: ns =>
    if hasConst env n && !(hasConst base n) then true
    else if hasConst env (mkPrivateName env n) then true
    else anyOwn base env ns

def underAll (n : Name) : List Name → List Name
  | [] => [n]
  | ns :: r => (ns ++ n) :: underAll n r

mutual
/-- A parser that the header defines and its syntax names: Lean would run it while reading. -/
partial def ownParser (base full : Ctx) (stx : Syntax) : Option Name :=
  match stx with
  | .ident _ _ n _ => if anyOwn base.env full.env (underAll n.eraseMacroScopes (openNamespaces full)) then some n else none
  | .node _ k args => if isQuotation stx || k == `Lean.Parser.Command.macroTail then none else ownParserIn base full args 0
  | _ => none

partial def ownParserIn (base full : Ctx) (args : Array Syntax) (i : Nat) : Option Name :=
  match args[i]? with
  | none => none
  | some a => match ownParser base full a with
    | some n => some n
    | none => ownParserIn base full args (i + 1)
end

/-- Whether it is the header that gave this kind of syntax its being. -/
def isOwnKind (base full : Ctx) (k : Name) : Bool :=
  Parser.isValidSyntaxNodeKind full.env k && !(Parser.isValidSyntaxNodeKind base.env k)

/-- The kind of what a quotation quotes. -/
def quotedKind (stx : Syntax) : Name :=
  if stx.getKind == `Lean.Parser.Term.dynamicQuot then (stx.getArg 3).getKind
  else if stx.getKind == `Lean.Parser.Tactic.quotSeq then .anonymous
  else inner (stx.getArg 1)
where
  -- The body of a quotation of tactics may come as a sequence of one.
  inner (s : Syntax) : Name := s.getKind

mutual
/-- A rule for syntax that is not the header's own: it would change what the library's words do. -/
partial def foreignRule (base full : Ctx) (stx : Syntax) : Bool :=
  if stx.getKind == `Lean.Parser.Term.matchAlt then foreignPattern base full (stx.getArg 1)
  else foreignRuleIn base full stx.getArgs 0

partial def foreignRuleIn (base full : Ctx) (args : Array Syntax) (i : Nat) : Bool :=
  match args[i]? with
  | none => false
  | some a => if foreignRule base full a then true else foreignRuleIn base full args (i + 1)

partial def foreignPattern (base full : Ctx) (stx : Syntax) : Bool :=
  match stx with
  | .atom _ _ => false
  | .node _ k args =>
    if isQuotation stx then !(isOwnKind base full (quotedKind stx))
    else if k == `null then foreignPatternIn base full args 0
    else true
  | _ => true

partial def foreignPatternIn (base full : Ctx) (args : Array Syntax) (i : Nat) : Bool :=
  match args[i]? with
  | none => false
  | some a => if foreignPattern base full a then true else foreignPatternIn base full args (i + 1)
end

/-- Why syntax of a header may not be declared, if it may not: what `Policy` cannot see without knowing what is there. -/
partial def ownSyntaxForbids (base full : Ctx) (stx : Syntax) : Option String :=
  let k := stx.getKind
  if k == `Lean.Parser.Command.in then ownSyntaxForbids base full (stx.getArg 2)
  else if k == `Lean.Parser.Command.macro_rules then
    if foreignRule base full stx then some "a header's `macro_rules` may be for syntax of its own only" else none
  else if k == `Lean.Parser.Command.syntax || k == `Lean.Parser.Command.macro then
    match ownParser base full stx with
    | some n => some (join3 "a header's syntax may not name a parser of its own: `" (nameText n) "`")
    | none => none
  else none

/-! #### Sections -/

def scopeCount : List Command.Scope → Nat
  | [] => 0
  | _ :: ss => scopeCount ss + 1

/-! #### What rests on a proof that was left out -/

/-- Whether one of the constants rests on a missing proof. -/
def restsOnSorry (env : Environment) : List Name → Bool
  | [] => false
  | n :: ns =>
    let (_, s) := (CollectAxioms.collect n env).run {}
    if memberName ``sorryAx s.axioms.toList then true else restsOnSorry env ns

/-- What follows the name of a statement that is tried out as a theorem (`startProof`). -/
def statementMark : String := "✝statement"

def asStatement : Name → Name
  | .str p s => .str p (String.append s statementMark)
  | n => n

/-- A theorem of the header, or what its proof made on the way (`foo.match_1`). -/
def ofTheorem (env : Environment) (n : Name) : Bool :=
  match env.getModuleIdxFor? n with
  | some _ => false
  | none => isTheorem n || above (match privateToUserName? n with | some u => u | none => n)
where
  -- The statement itself is tried out as a theorem of this name (`startProof`); what it made belongs to the challenge.
  isStatement : Name → Bool
    | .str _ s => s.endsWith statementMark
    | _ => false
  isTheorem (n : Name) : Bool :=
    match env.find? n with
    | some (.thmInfo _) => !isStatement n
    | _ => false
  above : Name → Bool
    | .str p _ => isTheorem p || isTheorem (mkPrivateName env p) || above p
    | .num p _ => isTheorem p || isTheorem (mkPrivateName env p) || above p
    | .anonymous => false
