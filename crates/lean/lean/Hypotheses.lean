
/-! ### Hypotheses that a header adds

`variable` puts arguments before a theorem's own, and instances among them are there whether the statement mentions them or
not. Those that assert something are reported with the ruling. One that the statement is not about is *hidden*: a proof may
not rest on it, unless it holds anyway. -/

structure Hypothesis where
  text : String
  position : Nat            -- among the theorem's arguments
  hidden : Bool
  holds : Bool

def Hypothesis.json (h : Hypothesis) : Json :=
  Json.mkObj [("text", Json.str h.text), ("position", num h.position), ("hidden", Json.bool h.hidden), ("holds", Json.bool h.holds)]

def hypothesesJson : List Hypothesis → Array Json → Array Json
  | [], acc => acc
  | h :: hs, acc => hypothesesJson hs (acc.push h.json)

/-! #### Which arguments are the header's -/

/-- How many arguments a group of binders names. -/
def groupSize (b : Syntax) : Nat :=
  if memberName b.getKind [`Lean.Parser.Term.explicitBinder, `Lean.Parser.Term.implicitBinder, `Lean.Parser.Term.strictImplicitBinder] then
    (b.getArg 1).getNumArgs
  else 1

partial def groupSizes (bs : Array Syntax) (i : Nat) (n : Nat) : Nat :=
  match bs[i]? with
  | none => n
  | some b => groupSizes bs (i + 1) (n + groupSize b)

/-- Implicit arguments that a type starts with: the placeholder proof takes them as well. -/
partial def leadingImplicit (type : Syntax) : Nat :=
  let k := type.getKind
  if k == `Lean.Parser.Term.forall then go (type.getArg 1).getArgs 0 0 (type.getArg 4)
  else if k == `Lean.Parser.Term.depArrow then go #[type.getArg 0] 0 0 (type.getArg 2)
  else 0
where
  go (bs : Array Syntax) (i n : Nat) (body : Syntax) : Nat :=
    match bs[i]? with
    | none => n + leadingImplicit body
    | some b =>
      if memberName b.getKind [`Lean.Parser.Term.implicitBinder, `Lean.Parser.Term.instBinder] then
        go bs (i + 1) (n + groupSize b) body
      else n

/-- How many of a theorem's `n` arguments stand before those that its statement writes. -/
def headerArguments (stx : Syntax) (n : Nat) : Nat :=
  match theoremNode stx with
  | none => 0
  | some thm =>
    let sig := thm.getArg 2
    n - groupSizes (sig.getArg 0).getArgs 0 0 - leadingImplicit ((sig.getArg 1).getArg 1)

/-! #### What they assert -/

/-- What an instance is of. -/
def classHead : Expr → Name
  | .forallE _ _ b _ => classHead b
  | .mdata _ e => classHead e
  | e => match e.getAppFn with
    | .const n _ => n
    | _ => .anonymous

/-- Whether a type is a proposition, whether it is of a class, and how it is printed. -/
def shown (t : Expr) : MetaM (Bool × Bool × String) := do
  let prop ← Meta.isProp t
  let cls ← classOf t
  let f ← Meta.ppExpr t
  return (prop, cls.isSome, f.pretty)

/-- What the header's own variables are, to those who ask. -/
structure Asserted where
  hypotheses : List Hypothesis
  types : List (Nat × Expr)     -- the type of each, with the arguments before it, by position
  classes : List Nat            -- positions of instances of the header's own classes

/-- The first `k` arguments of the type `e`. A `variable` that is an instance of what the library has an instance of already
replaces that one: it is refused, unless it is a proof or a decision. -/
partial def assertedBy (base full : Ctx) (includes : Bool) (whole : Expr) (k i : Nat) (p : Spot) (e : Expr) (acc : Asserted) :
    BaseIO (Except Problem Asserted) := do
  match e with
  | .mdata _ e => assertedBy base full includes whole k i p e acc
  | .forallE n t b bi =>
    if i ≥ k then return .ok acc
    else
      -- A header's options may not shorten what a reader is shown.
      let (prop, cls, text) ← (do match (← runTerm { full with opts := {} } `_policy 200000 (coreState full.env `_policy) {} {} (atSpot p (shown t))) with
        | .ok (((r, _), _), _) => return r
        | .error _ => return (false, false, "?") : BaseIO (Bool × Bool × String))
      let used := b.hasLooseBVar 0
      -- An argument of a class is an instance to what stands after it, whatever its brackets.
      let isInst := bi.isInstImplicit || cls
      let replaces ← (do
        if !isInst || !used || prop || memberName (classHead t) decidableClasses then return false
        else match (← runTerm full `_policy 200000 (coreState full.env `_policy) {} {} (atSpot { p with instances := #[] } (canSynth t))) with
          | .ok (((r, _), _), _) => return r
          | .error _ => return true : BaseIO Bool)
      if replaces then
        return .error { kind := "policy", text := join3 "the header's `variable` of type `" text "` replaces an instance that already exists" }
      else
        let idle := !used
        let own := isInst && !(hasConst base.env (classHead t))
        let hidden := idle && (if isInst then !t.hasFVar || own else includes && !t.hasFVar && !t.isSort)
        let asserts := isInst || prop || (includes && idle && !t.isSort)
        let acc := if asserts then
            { acc with hypotheses := { text := text, position := i, hidden := hidden, holds := false } :: acc.hypotheses,
                       types := (i, cutAfter whole i) :: acc.types, classes := if own then i :: acc.classes else acc.classes }
          else acc
        let id : FVarId := ⟨.num `_spot p.count⟩
        let lctx := p.lctx.mkLocalDecl id n t bi
        let instances := if isInst then p.instances.push { className := classHead t, fvar := mkFVar id } else p.instances
        assertedBy base full includes whole k (i + 1) { lctx := lctx, instances := instances, count := p.count + 1 } (b.instantiate1 (mkFVar id)) acc
  | _ => return .ok acc
where
  -- The `i`th argument's type, after the arguments before it.
  cutAfter : Expr → Nat → Expr
    | .mdata _ e, i => cutAfter e i
    | .forallE _ t _ _, 0 => t
    | .forallE n t b bi, i + 1 => .forallE n t (cutAfter b i) bi
    | e, _ => e

/-! #### Whether they contradict each other, or hold anyway: what automation can tell -/

/-- Whether these tactics, ours, prove the type. They are read as the library reads them: a header may have given `x0` or
`omega` another meaning. -/
def provedBy (base c : Ctx) (levels : List Name) (type : Expr) (tactics : String) : BaseIO Bool := do
  match (← runTerm c `_policy 200000 (coreState c.env `_policy) {} { levelNames := levels } (introduce type 0)) with
  | .error _ => return false
  | .ok ((((root, g), ts), ms), cs) =>
    let p : Proof := { ctx := c, base := c.env, name := `_policy, levels := levels, type := type, root := root, core := cs, mst := ms,
                       term := ts, goals := [g] }
    match parseTactics base tactics with
    | .error _ => return false
    | .ok stx =>
    match (← runSyntax p stx 40000) with
    | .ok q =>
      let (e, _) := instantiateMVarsCore q.mst.mctx q.root
      -- A theorem of the header whose proof nobody has seen yet shows nothing.
      return q.isDone && !(restsOnSorry q.core.env e.getUsedConstants.toList)
    | .error _ => return false

/-- `intro x0 x1 ...`, so that what was introduced can be named. -/
def introText : Nat → String → String
  | 0, acc => acc
  | n + 1, acc => introText n (join3 (String.append " x" (nat n)) acc "")

def casesText : List Nat → String
  | [] => ""
  | i :: is => join5 "\ntry cases x" (nat i) "" (casesText is) ""

/-- The conclusion after `k` arguments replaced by `False`. -/
def falseAfter : Expr → Nat → Expr
  | .mdata _ e, k => falseAfter e k
  | .forallE n t b bi, k + 1 => .forallE n t (falseAfter b k) bi
  | _, _ => mkConst ``False

def withHolds (base c : Ctx) (levels : List Name) (a : Asserted) : List Hypothesis → List Hypothesis → BaseIO (List Hypothesis)
  | [], acc => return acc
  | h :: hs, acc => do
    if !h.hidden then withHolds base c levels a hs (h :: acc)
    else match typeAt h.position a.types with
      | none => withHolds base c levels a hs (h :: acc)
      | some t =>
        let holds ← provedBy base c levels t
          "intros\nfirst | infer_instance | (constructor <;> intros <;> first | rfl | trivial | assumption | omega | grind | simp)"
        withHolds base c levels a hs ({ h with holds := holds } :: acc)
where
  typeAt (i : Nat) : List (Nat × Expr) → Option Expr
    | [] => none
    | (j, t) :: r => if i == j then some t else typeAt i r

/-- What the header of a stranger's claim assumes, beside what the statement says. -/
def Proof.hypotheses (base : Ctx) (p : Proof) : BaseIO (Except Problem (List Hypothesis)) := do
  let k := headerArguments p.statement p.arguments
  match (← assertedBy base p.ctx (includesAny p.ctx.cmd) p.type k 0 noSpot p.type { hypotheses := [], types := [], classes := [] }) with
  | .error e => return .error e
  | .ok a =>
    match a.hypotheses with
    | [] => return .ok []
    | hs =>
      let tactics := join5 (String.append "intro" (introText k "")) (casesText a.classes) "\nfirst | contradiction | omega | grind | simp_all" "" ""
      if (← provedBy base p.ctx p.levels (falseAfter p.type k) tactics) then
        return .error { kind := "policy", text := "the hypotheses that the header's `variable` adds contradict each other" }
      else return .ok (← withHolds base p.ctx p.levels a hs [])
