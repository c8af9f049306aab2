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

def anyLookAlike : List Char → Bool
  | [] => false
  | c :: cs => isLookAlike c || anyLookAlike cs

/-- The characters with a blank after each: `<-` can be read as `<` and `-`. -/
def spaced : List Char → String
  | [] => ""
  | c :: cs => join3 (String.ofList [c]) " " (spaced cs)

/-- The library's reader stops at this sign, or takes it for a name that means nothing: text that holds it had no meaning before. -/
def isNewSign (base full : Ctx) (s : String) : Bool :=
  match trimmed s with
  | [] => false
  | c :: cs =>
    let t := String.ofList (c :: cs)
    let ictx := inputCtx t
    let st := Parser.ParserFn.run (Parser.tokenFn []) ictx (parserCtx base) (Parser.getTokenTable base.env) (Parser.mkParserState t)
    if isIdFirst c && allIdRest cs then
      -- A word: not a keyword, and not a constant.
      !st.hasError && ictx.atEnd st.pos && st.stxStack.back.isIdent && unknownName base.env (.str .anonymous t) (openNamespaces full)
    else if c.toNat ≥ 128 then !(isIdRest c) && st.hasError && !(anyLookAlike (c :: cs))
    else allPunctuation (c :: cs) && !(readsAs base (join3 "x " (spaced (c :: cs)) "y")) && !(readsAs base (join3 "x " t " y")) && !(readsAs base (join3 "x" t "y"))
      && !(readsAs base (join3 "x " t " -y")) && !(readsAs base (String.append "x " t)) && !(readsAs base (String.append t " y"))

def allNew (base full : Ctx) : List String → Bool
  | [] => true
  | s :: ss => isNewSign base full s && allNew base full ss

/-- `notation` and its like whose signs are all new. -/
def isNewNotation (base full : Ctx) (stx : Syntax) : Bool :=
  let k := stx.getKind
  if k == `Lean.Parser.Command.notation || k == `Lean.Parser.Command.mixfix then
    match stringsIn (stx.setArg (stx.getNumArgs - 1) Syntax.missing).getArgs 0 [] with
    | [] => false
    | [s, s'] => if isBars s && isBars s' then true else allNew base full [s, s'] && honestSign s (lastArg stx)
    | s :: ss => allNew base full (s :: ss) && honestSign s (lastArg stx)
  else false
where
  -- `|x|` is no term of the library's, although it has the sign.
  isBars (s : String) : Bool := String.ofList (trimmed s) == "|" && !(readsAs base "|x|") && !(readsAs base "f |x|")
  honestSign (s : String) (meaning : Syntax) : Bool :=
    match standsFor (.str .anonymous (String.ofList (trimmed s))) wellKnown with
    | none => true
    | some m => meaning.getId == m

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

def anySolid (base env : Environment) : List Name → Bool
  | [] => false
  | n :: ns => isSolid base env n || anySolid base env ns

def anySolidIn (base env : Environment) : List Expr → Bool
  | [] => false
  | e :: es => anySolid base env e.getUsedConstants.toList || anySolidIn base env es

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
        return !(anySolidIn base env (inputArgs out (appArgs goal []) 0))
    | _ => return true

def parentProjections (ps : Array StructureParentInfo) (i : Nat) (acc : List Name) : Nat → List Name
  | 0 => acc
  | k + 1 => match ps[i]? with
    | none => acc
    | some p => parentProjections ps (i + 1) (p.projFn :: acc) k

def underEach (n : Name) : List Name → List Name → List Name
  | [], acc => n :: acc
  | ns :: r, acc => underEach n r ((ns ++ n) :: acc)

partial def identsUnder (spaces : List Name) (ids : Array Syntax) (i : Nat) (acc : List Name) : List Name :=
  match ids[i]? with
  | none => acc
  | some x => identsUnder spaces ids (i + 1) (underEach x.getId spaces acc)

/-- Names that the command may have made instances: too many do no harm. An instance without a name gets the one that Lean
gives it. -/
partial def instanceCandidates (s : String) (stx : Syntax) (before after : Command.State) : BaseIO (List Name) := do
  let c := ctxOf before
  let k := stx.getKind
  if k == `Lean.Parser.Command.in then instanceCandidates s (stx.getArg 2) before after
  else if k == `Lean.Parser.Command.mutual then each s (stx.getArg 1).getArgs 0 before after []
  else if k == `Lean.Parser.Command.attribute then
    return identsUnder (openNamespaces c) (stx.getArg 4).getArgs 0 []
  else if k != `Lean.Parser.Command.declaration then return []
  else
    let d := stx.getArg 1
    if d.getKind == `Lean.Parser.Command.instance then
      if (d.getArg 3).getNumArgs > 0 then return [fullName c.ns (((d.getArg 3).getArg 0).getArg 0).getId]
      else
        let sig := d.getArg 4
        let act := Command.mkInstanceName (sig.getArg 0).getArgs ((sig.getArg 1).getArg 1)
        match (← (StateRefT'.run (act (commandCtx s)) before).toBaseIO) with
        | .error _ => return [`_unknown]
        | .ok (id, _) => return [fullName c.ns id]
    else
      let n := fullName c.ns ((d.getArg 1).getArg 0).getId
      if d.getKind == `Lean.Parser.Command.structure then
        let ps := getStructureParentInfo after.env n
        return parentProjections ps 0 [n] ps.size
      else return [n]
where
  each (s : String) (args : Array Syntax) (i : Nat) (before after : Command.State) (acc : List Name) : BaseIO (List Name) := do
    match args[i]? with
    | none => return acc
    | some a =>
      let r ← instanceCandidates s a before after
      each s args (i + 1) before after (revOnto r acc)

/-- Which of the names are instances since this command and could replace a meaning. -/
partial def replacing (base : Environment) (before after : Command.State) : List Name → List Name → BaseIO (Except Problem (List Name))
  | [], acc => return .ok acc
  | n :: ns, acc => do
    if n == `_unknown then
      return .error { kind := "policy", text := "the header's instance has no name that can be told; give it one" }
    else if !(Meta.isInstanceCore after.env n) || Meta.isInstanceCore before.env n then
      let p := mkPrivateName after.env n
      if !(n == p) && !(isPrivateName n) && Meta.isInstanceCore after.env p then replacing base before after (p :: ns) acc
      else replacing base before after ns acc
    else match after.env.find? n with
      | none => replacing base before after ns acc
      | some ci =>
        match (← runTerm (ctxOf after) n 200000 (coreState after.env `_policy) {} {} (couldReplace base ci.type)) with
        | .ok (((false, _), _), _) => replacing base before after ns acc
        | _ => replacing base before after ns (n :: acc)

/-- An instance without a name must have been found: otherwise nothing is known about it. -/
def unnamed (stx : Syntax) (after : Command.State) : List Name → Bool
  | [n] => stx.getKind == `Lean.Parser.Command.declaration && (stx.getArg 1).getKind == `Lean.Parser.Command.instance
      && !(hasConst after.env n) && !(hasConst after.env (mkPrivateName after.env n))
  | _ => false

/-- Ends that they are instances. Lean brings them back when a section ends, so this is done after every command. -/
def eraseInstances : List Name → Command.State → BaseIO (Option Command.State)
  | [], st => return some st
  | n :: ns, st => do
    if !(Meta.isInstanceCore st.env n) then eraseInstances ns st
    else match (← runTrusted (String.append "attribute [-instance] _root_." (nameText n)) st) with
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

/-- Reads and elaborates the commands one by one. `placeholder` stands for proofs; with `proofs` they are elaborated all the
same, which is the prover's part. -/
partial def headerLoop (base : Ctx) (placeholder : Syntax) (proofs : Bool) (s : String) (ictx : Parser.InputContext) (ps : Parser.ModuleParserState) (r : HeaderRun) :
    BaseIO (Except Problem HeaderRun) := do
  let c := ctxOf r.full
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
      if scopeCount st.scopes < r.depth then
        return .error { kind := "policy", text := "the header ends a section that it has not begun" }
      else
      let r := if proofs then r else { r with leftOut := declaredNames st.env c.ns shortened.ids r.leftOut }
      if leavesOut base c stx then headerLoop base placeholder proofs s ictx ps' { r with full := st, differ := true, leftSyntax := true }
      else
        let r := if isNewNotation base c stx then { r with words := wordsOf (stringsIn (stx.setArg (stx.getNumArgs - 1) Syntax.missing).getArgs 0 []) r.words } else r
        let candidates ← instanceCandidates s stx r.full st
        if unnamed stx st candidates then
          return .error { kind := "policy", text := "the header's instance has no name that can be told; give it one" }
        else match (← replacing base.env r.full st candidates []) with
        | .error e => return .error e
        | .ok left =>
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
        { full := st, plain := some st, differ := false, leftSyntax := false, leftInstances := [], words := [], leftOut := [],
          depth := scopeCount st.scopes }) with
    | .error e => return .error e
    | .ok r =>
      let plain := if r.differ then some { state := r.plain, leftSyntax := r.leftSyntax, leftInstances := r.leftInstances } else none
      return .ok { (ctxOf r.full) with plain := plain, words := r.words, leftOut := r.leftOut }

