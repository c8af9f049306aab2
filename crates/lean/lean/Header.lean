/-! ### Headers: elaborated whole, and a second time without what could bend a statement

A header may have syntax of its own (a helper tactic, notation) and instances. Neither may change what a statement says. So
the header is also run without them, as far as they could: the *plain* header. A statement that reads the same on both is not
bent. One that needs what was left out is accepted only if the library had no meaning for it: its own signs are new, and
its instances are for what the library has no instance of. -/

structure HeaderRun where
  full : Command.State
  plain : Option Command.State   -- none: it could not follow
  differ : Bool                  -- whether the two are different at all
  leftSyntax : Bool
  leftInstances : List Name
  signs : List String            -- signs that its notation brought
  words : List String            -- signs of its notation that could be taken for names
  leftOut : List Name            -- theorems whose proofs were left out
  depth : Nat                    -- how many scopes there were before it

/-! #### Signs that are new -/

mutual
partial def stringsOf (stx : Syntax) (acc : List String) : List String :=
  match stx.isStrLit? with
  | some s => s :: acc
  | none => stringsIn stx.getArgs 0 acc

partial def stringsIn (args : Array Syntax) (i : Nat) (acc : List String) : List String :=
  match args[i]? with
  | none => acc
  | some a => stringsIn args (i + 1) (stringsOf a acc)
end

def dropBlanks : List Char → List Char
  | [] => []
  | c :: cs => if c == ' ' then dropBlanks cs else c :: cs

def trimmed (s : String) : List Char := revOnto (dropBlanks (revOnto (dropBlanks s.toList) [])) []

def allIdRest : List Char → Bool
  | [] => true
  | c :: cs => isIdRest c && allIdRest cs

/-- No namespace that is open has a constant of this name. -/
def unknownName (env : Environment) (n : Name) : List Name → Bool
  | [] => !(hasConst env n)
  | ns :: r => if hasConst env (ns ++ n) then false else unknownName env n r

/-- Signs made of these and nothing else. -/
def allPunctuation : List Char → Bool
  | [] => true
  | c :: cs => (match c with
    | '+' | '*' | '-' | '/' | '<' | '>' | '=' | '~' | '^' | '&' | '%' | '!' | '|' | '\\' => true
    | _ => false) && allPunctuation cs

/-- Whether the library reads all of the text as one term. -/
def readsAs (base : Ctx) (s : String) : Bool :=
  let ictx := inputCtx s
  let fn : Parser.ParserFn := Parser.andthenFn Parser.whitespace (Parser.categoryParser `term 0).fn
  let st := Parser.ParserFn.run fn ictx (parserCtx base) (Parser.getTokenTable base.env) (Parser.mkParserState s)
  !st.hasError && ictx.atEnd st.pos

/-- Signs that are easily taken for one of the library's. -/
def lookAlikes : List Char :=
  "꞊═⹀゠᐀⩵⩶⩽≦⩾≧‹˂ᐸ❮〈⧼›˃ᐳ❯〉⧽−‐‑‒–—―⁃➖˗∗⁎٭∕⁄╱⧸ǀ│❘⏐⌐⋀ᐱ⋁ᐯ∊ⱯƎ➔➜⇾⨯✕✖⧧⧣᛭➕∶︰ː։".toList

def isLookAlike (c : Char) : Bool :=
  memberChar lookAlikes || (c.toNat ≥ 0xFE50 && c.toNat ≤ 0xFE6F) || (c.toNat ≥ 0xFF00 && c.toNat ≤ 0xFFEF)
where
  memberChar : List Char → Bool
    | [] => false
    | d :: ds => c == d || memberChar ds

/-- The characters with a blank after each: `<-` can be read as `<` and `-`. -/
def spaced : List Char → String
  | [] => ""
  | c :: cs => join3 (String.ofList [c]) " " (spaced cs)

def within (n : Nat) : List (Nat × Nat) → Bool
  | [] => false
  | (a, b) :: r => (a ≤ n && n ≤ b) || within n r

/-- What is plainly a sign of mathematics: arrows, operators, technical signs, shapes, brackets, letter-like signs, sub- and
superscripts. -/
def isMathematical (c : Char) : Bool :=
  within c.toNat [(0xAC, 0xAC), (0xB0, 0xB9), (0xD7, 0xD7), (0xF7, 0xF7), (0x2016, 0x2016), (0x2020, 0x2022), (0x2032, 0x2037), (0x2070, 0x209C),
    (0x2100, 0x214F), (0x2190, 0x22FF), (0x2300, 0x239D), (0x23AF, 0x23CF), (0x25A0, 0x25FF), (0x2605, 0x2606), (0x2660, 0x266F),
    (0x27C0, 0x27FF), (0x2900, 0x2AFF), (0x1D400, 0x1D7FF)]

/-- A sign with something beyond ASCII in it: nothing that could pass for another, and no part that reads as a comparison. -/
def allMathematical : List Char → Bool
  | [] => true
  | c :: cs =>
    (if c.toNat ≥ 128 then (isMathematical c || isIdRest c) && !(isLookAlike c)
     else !(c == ' ' || c == '=' || c == '<' || c == '>')) && allMathematical cs

/-- The reader at `base` stops at this sign, or takes it for a name that means nothing: text that holds it had no meaning there. -/
def isNewIn (base full : Ctx) (s : String) : Bool :=
  match trimmed s with
  | [] => false
  | ['|'] => false
  | c :: cs =>
    let t := String.ofList (c :: cs)
    let ictx := inputCtx t
    let st := Parser.ParserFn.run (Parser.tokenFn []) ictx (parserCtx base) (Parser.getTokenTable base.env) (Parser.mkParserState t)
    if isIdFirst c && allIdRest cs then
      -- A word: not a keyword, and not a constant.
      !st.hasError && ictx.atEnd st.pos && st.stxStack.back.isIdent && unknownName base.env (.str .anonymous t) (openNamespaces full)
    else if c.toNat ≥ 128 then !(isIdRest c) && st.hasError && allMathematical (c :: cs)
    else allPunctuation (c :: cs) && !(readsAs base (join3 "x " (spaced (c :: cs)) "y")) && !(readsAs base (join3 "x " t " y")) && !(readsAs base (join3 "x" t "y"))
      && !(readsAs base (join3 "x " t " -y")) && !(readsAs base (String.append "x " t)) && !(readsAs base (String.append t " y"))

/-- New to the library, and to the library with the namespaces that are open here; a sign may serve its header twice. -/
def isNewSign (base full : Ctx) (s : String) : Bool :=
  isNewIn base full s && (memberStr (String.ofList (trimmed s)) full.signs || isNewIn full full s)

def allNew (base full : Ctx) : List String → Bool
  | [] => true
  | s :: ss => isNewSign base full s && allNew base full ss

/-- The signs that a command of `notation` and its like brings. -/
def signsOf (stx : Syntax) : List String := stringsIn (stx.setArg (stx.getNumArgs - 1) Syntax.missing).getArgs 0 []

def trimAll : List String → List String → List String
  | [], acc => acc
  | s :: ss, acc => trimAll ss (String.ofList (trimmed s) :: acc)

/-- `notation` and its like whose signs are all new. -/
def isNewNotation (base full : Ctx) (stx : Syntax) : Bool :=
  let k := stx.getKind
  if k == `Lean.Parser.Command.notation || k == `Lean.Parser.Command.mixfix then
    match signsOf stx with
    | [] => false
    | [s, s'] => if isBars s && isBars s' then isAround (stx.getArg (stx.getNumArgs - 3)) else allNew base full [s, s'] && honestSign s (lastArg stx)
    | s :: ss => allNew base full (s :: ss) && honestSign s (lastArg stx) && !(k == `Lean.Parser.Command.mixfix && isLetter (trimmed s))
  else false
where
  -- A sign, one variable, a sign.
  isAround (items : Syntax) : Bool := items.getNumArgs == 3 && !((items.getArg 1).isStrLit?.isSome) && (items.getArg 0).isStrLit?.isSome
  -- `Λ` and `ϵ` between two terms pass for `∧` and `∈`.
  isLetter : List Char → Bool
    | [c] => c.toNat ≥ 128 && isIdFirst c
    | _ => false
  -- `|x|` is no term of the library's, although it has the sign.
  isBars (s : String) : Bool := String.ofList (trimmed s) == "|" && !(readsAs base "|x|") && !(readsAs base "f |x|")
  honestSign (s : String) (meaning : Syntax) : Bool :=
    match standsFor (.str .anonymous (String.ofList (trimmed s))) wellKnown with
    | none => true
    | some m => meaning.getId == m && alone m (openNamespaces full)
  -- No namespace that is open has another constant of this name.
  alone (m : Name) : List Name → Bool
    | [] => true
    | ns :: r => !(hasConst full.env (ns ++ m)) && alone m r

mutual
/-- Whether a name in the syntax is one of the base's. -/
partial def namesBase (base full : Ctx) (stx : Syntax) : Bool :=
  match stx with
  | .ident _ _ n _ => !(unknownName base.env (unrooted n) (openNamespaces full))
  | .node _ _ args => namesBaseIn base full args 0
  | _ => false

partial def namesBaseIn (base full : Ctx) (args : Array Syntax) (i : Nat) : Bool :=
  match args[i]? with
  | none => false
  | some a => if namesBase base full a then true else namesBaseIn base full args (i + 1)
end

/-- Commands that the plain header leaves out: syntax with signs that had a meaning, instances taken away or derived for
types of the library. -/
partial def leavesOut (base full : Ctx) (stx : Syntax) : Bool :=
  let k := stx.getKind
  if k == `Lean.Parser.Command.in then leavesOut base full (stx.getArg 2)
  else if memberName k syntaxCommands then !(isNewNotation base full stx)
  else if k == `Lean.Parser.Command.deriving then namesBase base full (lastArg stx)
  else k == `Lean.Parser.Command.attribute && holdsKind [`Lean.Parser.Command.eraseAttr] stx

/-! #### Instances for what the library already knows -/

/-- The arguments of an application, before those in `acc`. -/
def appArgs : Expr → List Expr → List Expr
  | .app f a, acc => appArgs f (a :: acc)
  | _, acc => acc

def isPosition (out : Array Nat) (i : Nat) (j : Nat) : Nat → Bool
  | 0 => false
  | m + 1 => match out[j]? with
    | none => false
    | some p => p == i || isPosition out i (j + 1) m

/-- Arguments that instance search goes by. -/
def inputArgs (out : Array Nat) : List Expr → Nat → List Expr
  | [], _ => []
  | a :: as, i => if isPosition out i 0 out.size then inputArgs out as (i + 1) else a :: inputArgs out as (i + 1)

/-- A constant of the header that instance search will not look through. -/
def isSolid (base env : Environment) (n : Name) : Bool :=
  if hasConst base n then false
  else match getReducibilityStatusCore env n with
    | .reducible => false
    | _ => true

mutual
/-- Whether a type is about one of the header's own: what it comes down to has one for its head, or under a constructor of
types. What only a redex or an abbreviation mentions is gone when instance search looks. -/
partial def isAbout (base env : Environment) (e : Expr) : MetaM Bool := do
  let e ← instantiateMVars e
  let e ← Meta.whnfR e
  match e with
  | .forallE _ d b _ => if (← isAbout base env d) then return true else if b.hasLooseBVars then return false else isAbout base env b
  | _ =>
    match e.getAppFn with
    | .const n _ =>
      if isSolid base env n then return true
      else match env.find? n with
        | some (.inductInfo _) => anyAbout base env (appArgs e [])
        | _ => return false
    | _ => return false

partial def anyAbout (base env : Environment) : List Expr → MetaM Bool
  | [] => return false
  | e :: es => do if (← isAbout base env e) then return true else anyAbout base env es
end

def decidableClasses : List Name := [``Decidable, ``DecidableEq, ``DecidablePred, ``DecidableRel]

/-- Whether an instance of type `ty` could be found where the library means something else: it is not about a type of the header.
Proofs and decisions cannot differ in what they say. -/
def couldReplace (base : Environment) (ty : Expr) : TermElabM Bool := do
  let (_, _, goal) ← Meta.forallMetaTelescopeReducing ty
  let goal ← Meta.whnfR goal
  if (← Meta.isProp goal) then return false
  else
    let env := (← (get : CoreM Core.State)).env
    match goal.getAppFn with
    | .const cls _ =>
      if memberName cls decidableClasses then return false
      else if isSolid base env cls then return false
      else
        let out := match getOutParamPositions? env cls with
          | some a => a
          | none => #[]
        let about ← anyAbout base env (inputArgs out (appArgs goal []) 0)
        return !about
    | _ => return true

/-- Constants that the library does not have. -/
partial def ownConstants (env : Environment) : List Name := below env.constants.map₂.root []
where
  below (node : PersistentHashMap.Node Name ConstantInfo) (acc : List Name) : List Name :=
    match node with
    | .entries es => entries es 0 acc
    | .collision ks _ _ => revOnto ks.toList acc
  entries (es : Array (PersistentHashMap.Entry Name ConstantInfo (PersistentHashMap.Node Name ConstantInfo))) (i : Nat) (acc : List Name) : List Name :=
    match es[i]? with
    | none => acc
    | some (.entry n _) => entries es (i + 1) (n :: acc)
    | some (.ref node) => entries es (i + 1) (below node acc)
    | some .null => entries es (i + 1) acc

/-- What a name may stand for by `open X (a)` and `open X renaming a → b`. -/
def byOpen (n : Name) : List OpenDecl → List Name → List Name
  | [], acc => acc
  | .explicit short full :: r, acc => byOpen n r (if short == n then full :: acc else acc)
  | _ :: r, acc => byOpen n r acc

/-- The constants that an `attribute` command may be about: too many do no harm. -/
partial def attributeTargets (c : Ctx) (ids : Array Syntax) (i : Nat) (acc : List Name) : List Name :=
  match ids[i]? with
  | none => acc
  | some x =>
    let n := x.getId
    attributeTargets c ids (i + 1) (byOpen n c.opens (unrooted n :: revOnto (underAll n (openNamespaces c)) acc))

/-- Those that are instances after a command and were none before. -/
def becameInstances (before after : Environment) : List Name → List Name → List Name
  | [], acc => acc
  | n :: ns, acc =>
    becameInstances before after ns (if Meta.isInstanceCore after n && !(Meta.isInstanceCore before n) && !(memberName n acc) then n :: acc else acc)

def firstInstance (env : Environment) : List Name → Option Name
  | [] => none
  | n :: ns => if Meta.isInstanceCore env n then some n else firstInstance env ns

/-- Instances that a command made; `at_` is where its last part stands. An instance that was one before could only get
another priority, and so come before those it stood behind. -/
def madeInstances (stx : Syntax) (at_ : Ctx) (before after : Environment) : Except Problem (List Name) :=
  let own := ownConstants after
  let last := afterIn stx
  if last.getKind == `Lean.Parser.Command.attribute then
    let targets := attributeTargets at_ (last.getArg 4).getArgs 0 []
    match (if holdsKind [`Lean.Parser.Attr.instance] last then firstInstance before targets else none) with
    | some n => .error { kind := "policy", text := join3 "the header gives the instance `" (nameText n) "` another priority" }
    | none => .ok (becameInstances before after targets (becameInstances before after own []))
  else .ok (becameInstances before after own [])

/-- Which of these instances could replace a meaning. -/
def replacing (base : Environment) (after : Command.State) : List Name → List Name → BaseIO (List Name)
  | [], acc => return acc
  | n :: ns, acc => do
    match after.env.find? n with
    | none => replacing base after ns (n :: acc)
    | some ci =>
      match (← runTerm (ctxOf after) n 200000 (coreState after.env `_policy) {} {} (couldReplace base ci.type)) with
      | .ok (((false, _), _), _) => replacing base after ns acc
      | _ => replacing base after ns (n :: acc)

/-- Ends that they are instances. Lean brings them back when a section ends, so this is done after every command. -/
def eraseInstances : List Name → Command.State → BaseIO (Option Command.State)
  | [], st => return some st
  | n :: ns, st => do
    if !(Meta.isInstanceCore st.env n) then eraseInstances ns st
    else match (← runTrusted (String.append "attribute [-instance] _root_." (nameText (privateToUserName n))) st) with
    | .error _ => return none
    | .ok st' => eraseInstances ns st'

def hasAny : List Name → Bool
  | [] => false
  | _ => true

/-! #### The two runs -/

def orElse (a b : Option String) : Option String :=
  match a with
  | some _ => a
  | none => b

def inHeader (why : Option String) : Option String :=
  match why with
  | some w => some (String.append "in the header, " w)
  | none => none

/-- What of a command is run: with `hole`, proofs of theorems are not. -/
def run (hole : Option Syntax) (stx : Syntax) : Syntax :=
  match hole with
  | some h => (shorten h stx []).stx
  | none => stx

/-- One command at a position, read and elaborated; what follows it must start where it did. -/
def followPlain (s : String) (hole : Option Syntax) (ictx : Parser.InputContext) (ps ps' : Parser.ModuleParserState) (st : Command.State) : BaseIO (Option Command.State) := do
  let (stx, ps2, log) := Parser.parseCommand ictx (parserCtx (ctxOf st)) ps {}
  match (← firstError log) with
  | some _ => return none
  | none =>
    if ps2.pos != ps'.pos then return none
    else match (← elabCommand s (run hole stx) { st with messages := {} }) with
      | .error _ => return none
      | .ok (_, st') => match (← firstError st'.messages) with
        | some _ => return none
        | none => return some st'

/-- Those signs that could be names. -/
def wordsOf : List String → List String → List String
  | [], acc => acc
  | s :: ss, acc =>
    match trimmed s with
    | [] => wordsOf ss acc
    | c :: cs => wordsOf ss (if isIdFirst c && allIdRest cs then String.ofList (c :: cs) :: acc else acc)

/-- A sign that is also a name where the statement stands, of the library's or of the header's own. -/
def takenWord (c : Ctx) : List String → Option String
  | [] => none
  | s :: ss =>
    let n : Name := .str .anonymous s
    if !(isWellKnown n) && !(unknownName c.env n (openNamespaces c)) then some s else takenWord c ss

/-- The state in which the last command stands: after all that comes before `in`. -/
partial def atCommand (s : String) (stx : Syntax) (st : Command.State) : BaseIO (Option Command.State) := do
  if stx.getKind != `Lean.Parser.Command.in then return some st
  else match (← elabCommand s (stx.getArg 0) { st with messages := {} }) with
    | .error _ => return none
    | .ok (_, st') => atCommand s (stx.getArg 2) st'

/-- A word of the library's that means something else here. -/
def scopeHides (base : Ctx) (st : Command.State) : Option String :=
  let c := ctxOf st
  orElse (anyVariableHides base.env (openNamespaces c) (scopeVariables st) 0) (hiddenByOpen base.env c.opens)

/-- Reads and elaborates the commands one by one. `placeholder` stands for proofs; with `proofs` they are elaborated all the
same, which is the prover's part. -/
partial def headerLoop (base : Ctx) (placeholder : Syntax) (proofs : Bool) (s : String) (ictx : Parser.InputContext) (ps : Parser.ModuleParserState) (r : HeaderRun) :
    BaseIO (Except Problem HeaderRun) := do
  let c := { (ctxOf r.full) with signs := r.signs }
  let (stx, ps', log) := Parser.parseCommand ictx (parserCtx c) ps {}
  match (← firstError log) with
  | some e => return .error { kind := "parse", text := e }
  | none =>
    if Parser.isTerminalCommand stx then return .ok r
    else
    let shortened := shorten placeholder stx []
    let hole := if proofs then none else some placeholder
    match orElse (headerForbids stx) (orElse (ownSyntaxForbids base c stx) (inHeader (blockForbids false shortened.stx))) with
    | some why => return .error { kind := "policy", text := why }
    | none =>
    match (← elabCommand s (run hole stx) { r.full with messages := {} }) with
    | .error e => return .error (← problemOf e)
    | .ok (_, st) =>
    match (← firstError st.messages) with
    | some e => return .error { kind := "elaboration", text := e }
    | none =>
      match (← atCommand s stx r.full) with
      | none => return .error { kind := "policy", text := "what stands before `in` cannot be elaborated alone" }
      | some inner =>
      match orElse (scopeHides base inner) (scopeHides base st) with
      | some why => return .error { kind := "policy", text := why }
      | none =>
      if scopeCount st.scopes < r.depth then
        return .error { kind := "policy", text := "the header ends a section that it has not begun" }
      else
      let r := if proofs then r else { r with leftOut := declaredNames st.env c.ns shortened.ids r.leftOut }
      if leavesOut base c stx then headerLoop base placeholder proofs s ictx ps' { r with full := st, differ := true, leftSyntax := true }
      else
        let own := afterIn stx
        let r := if isNewNotation base c own then { r with signs := trimAll (signsOf own) r.signs, words := wordsOf (signsOf own) r.words } else r
        match madeInstances stx (ctxOf inner) r.full.env st.env with
        | .error e => return .error e
        | .ok made =>
          let left ← replacing base.env st made []
          -- A scoped instance comes back wherever its namespace is opened: only leaving it out helps.
          if hasAny left && holdsKind [`Lean.Parser.Term.scoped] stx then
            headerLoop base placeholder proofs s ictx ps' { r with full := st, differ := true, leftSyntax := true }
          else
          let plain ← (do
            if !r.differ then return some st
            else match r.plain with
              | none => return none
              | some p => followPlain s hole ictx ps ps' p : BaseIO (Option Command.State))
          let leftInstances := revOnto left r.leftInstances
          let plain ← (do
            match plain with
            | none => return none
            | some p => eraseInstances leftInstances p : BaseIO (Option Command.State))
          headerLoop base placeholder proofs s ictx ps' { r with full := st, plain := plain, differ := r.differ || hasAny left, leftInstances := leftInstances }

/-- Elaborates a header that is the user's own. -/
def runOwnHeader (base : Ctx) (s : String) : BaseIO (Except Problem Ctx) := do
  match (← runTrusted "noncomputable section" base.cmd) with
  | .error e => return .error e
  | .ok st => match (← runTrusted s st) with
    | .error e => return .error e
    | .ok st => return .ok (ctxOf st)

/-- Elaborates a header over the context `base` and holds it to the policy; without `proofs`, those of its theorems are left
out. -/
def runHeader (base : Ctx) (s : String) (proofs : Bool) : BaseIO (Except Problem Ctx) := do
  -- Where the compiler lacks what it needs (see `fileStart`), a definition must not fail for that.
  match (← runTrusted "noncomputable section" base.cmd) with
  | .error e => return .error e
  | .ok st =>
    match placeholder base with
    | none => return .error { kind := "fault", text := "the placeholder for proofs cannot be read" }
    | some hole =>
    match (← headerLoop base hole proofs s (inputCtx s) {}
        { full := st, plain := some st, differ := false, leftSyntax := false, leftInstances := [], signs := [], words := [], leftOut := [],
          depth := scopeCount st.scopes }) with
    | .error e => return .error e
    | .ok r =>
      let plain := if r.differ then some { state := r.plain, leftSyntax := r.leftSyntax, leftInstances := r.leftInstances } else none
      return .ok { (ctxOf r.full) with plain := plain, signs := r.signs, words := r.words, leftOut := r.leftOut }

