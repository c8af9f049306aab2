/-! ### Whether a header bends the statement, decided on the elaborated statement -/

/-- Constants that are not the same in two environments. -/
def differing (a b : Environment) : List Name → Option Name
  | [] => none
  | n :: ns =>
    match a.find? n, b.find? n with
    | some x, some y =>
      if x.type == y.type && sameValue (x.value? (allowOpaque := true)) (y.value? (allowOpaque := true)) then differing a b ns else some n
    | _, _ => some n
where
  sameValue : Option Expr → Option Expr → Bool
    | some x, some y => x == y
    | none, none => true
    | _, _ => false

def sameNames : List Name → List Name → Bool
  | [], [] => true
  | a :: as, b :: bs => a == b && sameNames as bs
  | _, _ => false

/-! #### Instances that a statement cannot do without -/

/-- Classes of coercions, which elaboration unfolds so that no trace of the instance is left. -/
def coercionClasses : List Name :=
  [``Coe, ``CoeTC, ``CoeOut, ``CoeOTC, ``CoeHead, ``CoeHTC, ``CoeTail, ``CoeHTCT, ``CoeDep, ``CoeT]

def lastOf : List Expr → Option Expr
  | [] => none
  | [e] => some e
  | _ :: es => lastOf es

/-- The class with its arguments, those that instance search finds out left open. -/
def openOutputs (cls : Expr) (out : Array Nat) : List Expr → Nat → MetaM Expr
  | [], _ => return cls
  | a :: as, i => do
    if isPosition out i 0 out.size then
      let m ← Meta.mkFreshExprMVar none
      openOutputs (.app cls m) out as (i + 1)
    else openOutputs (.app cls a) out as (i + 1)

def canSynth (t : Expr) : MetaM Bool := do
  let env := (← (get : CoreM Core.State)).env
  let out := match t.getAppFn with
    | .const cls _ => match getOutParamPositions? env cls with
      | some a => a
      | none => #[]
    | _ => #[]
  let t ← openOutputs t.getAppFn out (appArgs t []) 0
  match (← Meta.synthInstance? t) with
  | some _ => return true
  | none => return false

/-- Whether the base can do what the instance of type `ty` does. -/
def alreadyThere (ty : Expr) : TermElabM Bool := do
  let (_, _, goal) ← Meta.forallMetaTelescopeReducing ty
  let goal ← Meta.whnfR goal
  match goal.getAppFn with
  | .const cls _ =>
    let args := appArgs goal []
    if cls == ``CoeSort || cls == ``CoeFun then return true
    else if memberName cls coercionClasses then
      match args, lastOf args with
      | a :: _, some b =>
        if a.hasExprMVar || b.hasExprMVar then return true
        else
          let u ← Meta.getLevel a
          let v ← Meta.getLevel b
          let x ← Meta.mkFreshExprMVar a
          match (← Meta.synthInstance? (mkApp3 (mkConst ``CoeT [u, v]) a x b)) with
          | some _ => return true
          | none => return false
      | _, _ => return true
    else canSynth goal
  | _ => return true

/-- An instance of the header that the base has no need of. -/
def needless (base : Ctx) (env : Environment) : List Name → BaseIO (Option Name)
  | [] => return none
  | n :: ns => do
    match env.find? n with
    | none => needless base env ns
    | some ci =>
      -- A type that mentions constants of the header cannot have had an instance before: the base does not know them.
      match (← runTerm base n 200000 (coreState base.env `_policy) {} {} (alreadyThere ci.type)) with
      | .ok (((true, _), _), _) => return some n
      | _ => needless base env ns

/-- Where a subterm stands. -/
structure Spot where
  lctx : LocalContext
  instances : LocalInstances
  count : Nat

def atSpot {α : Type} (p : Spot) (x : MetaM α) : TermElabM α := fun _ _ ctx => x { ctx with lctx := p.lctx, localInstances := p.instances }

def typeAndClass (e : Expr) : MetaM (Expr × Option Name) := do
  let t ← Meta.inferType e
  return (t, ← Meta.isClass? t)

def classOf (t : Expr) : MetaM (Option Name) := Meta.isClass? t

/-- A subterm that is an instance by one of `left`, where the base has an instance as well. -/
partial def replaced (base : Ctx) (full : Ctx) (left : List Name) (p : Spot) (e : Expr) : BaseIO (Option Name) := do
  match e with
  | .forallE n t b bi => under n t b bi
  | .lam n t b bi => under n t b bi
  | .letE n t v b _ =>
    match (← replaced base full left p v) with
    | some x => return some x
    | none => under n t b .default
  | .mdata _ e => replaced base full left p e
  | .proj _ _ e => replaced base full left p e
  | .const n _ => here n e
  | .app f a =>
    let first ← (do match e.getAppFn with
      | .const n _ => here n e
      | _ => return none : BaseIO (Option Name))
    match first with
    | some x => return some x
    | none => match (← replaced base full left p f) with
      | some x => return some x
      | none => replaced base full left p a
  | _ => return none
where
  under (n : Name) (t b : Expr) (bi : BinderInfo) : BaseIO (Option Name) := do
    match (← replaced base full left p t) with
    | some x => return some x
    | none =>
      let id : FVarId := ⟨.num `_spot p.count⟩
      let lctx := p.lctx.mkLocalDecl id n t bi
      let cls ← (do match (← runTerm full `_policy 200000 (coreState full.env `_policy) {} {} (atSpot p (classOf t))) with
        | .ok (((c, _), _), _) => return c
        | .error _ => return none : BaseIO (Option Name))
      let insts := match cls with
        | some c => p.instances.push { className := c, fvar := mkFVar id }
        | none => p.instances
      replaced base full left { lctx := lctx, instances := insts, count := p.count + 1 } (b.instantiate1 (mkFVar id))
  here (n : Name) (e : Expr) : BaseIO (Option Name) := do
    if !(memberName n left) then return none
    else match (← runTerm full `_policy 200000 (coreState full.env `_policy) {} {} (atSpot p (typeAndClass e))) with
      | .error _ => return none
      | .ok ((((_, none), _), _), _) => return none
      | .ok ((((t, some _), _), _), _) =>
        match (← runTerm base `_policy 200000 (coreState base.env `_policy) {} {} (atSpot p (canSynth t))) with
        | .ok (((true, _), _), _) => return some n
        | _ => return none

def noSpot : Spot := { lctx := {}, instances := #[], count := 0 }

def replacedIn (base full : Ctx) (left : List Name) : List Name → BaseIO (Option Name)
  | [] => return none
  | n :: ns => do
    match full.env.find? n with
    | none => replacedIn base full left ns
    | some ci =>
      match (← replaced base full left noSpot ci.type) with
      | some x => return some x
      | none =>
        match ci.value? (allowOpaque := true) with
        | none => replacedIn base full left ns
        | some v => match (← replaced base full left noSpot v) with
          | some x => return some x
          | none => replacedIn base full left ns

def replaces (n : Name) : String := join3 "the header's instance `" (nameText n) "` replaces one that already exists"

/-- Whether `include` makes variables part of every statement. -/
def includesAny (st : Command.State) : Bool :=
  match st.scopes with
  | sc :: _ => hasAny sc.includedVars
  | [] => false

/-- Why the header of context `c`, over the imports `base`, bends the statement `stmt`, elaborated to `ci` in `env`, if it does. -/
def headerBends (base c : Ctx) (env : Environment) (s : Statement) (stmt : String) (ci : ConstantInfo) : BaseIO (Option String) := do
  let new := newConstants base.env env ci.type.getUsedConstants.toList []
  let inside := insideOf c s.id
  match anyVariableHides base.env (openNamespaces inside) (scopeVariables c.cmd) 0, hiddenByOpen base.env c.opens, hiddenBy base.env (openNamespaces inside) new, orElse (misnamed env new) (namesakes base.env env new) with
  | some why, _, _, _ => return some why
  | none, some why, _, _ => return some why
  | none, none, some why, _ => return some why
  | none, none, none, some why => return some why
  | none, none, none, none =>
  match takenWord inside c.words with
  | some w => return some (join3 "the header's notation takes the word `" w "`, which is a name that had a meaning before")
  | none =>
  match c.plain with
  | none => return none
  | some plain =>
    match (← onPlain plain) with
    | some (ci2, env2) =>
      if ci.type == ci2.type && sameNames ci.levelParams ci2.levelParams then
        match differing env env2 new with
        | none => return none
        | some n => return some (join3 "the header's own syntax or instances change what `" (nameText n) "` means")
      else return some "the header's own syntax or instances change what the statement means"
    | none =>
      if plain.leftSyntax then
        return some "the statement, or the header itself, cannot be read without the header's own syntax, whose signs had a meaning before"
      else match (← needless base env plain.leftInstances) with
        | some n => return some (replaces n)
        | none =>
          let full := { c with env := env }
          match (← replaced base full plain.leftInstances noSpot ci.type) with
          | some n => return some (replaces n)
          | none => match (← replacedIn base full plain.leftInstances new) with
            | some n => return some (replaces n)
            | none => return none
where
  onPlain (plain : PlainHeader) : BaseIO (Option (ConstantInfo × Environment)) := do
    match plain.state with
    | none => return none
    | some st =>
      let pc := ctxOf st
      match (← parseStatement pc stmt true) with
      | .error _ => return none
      | .ok s2 => match (← elabStatement pc s2.text s2.stx s2.id) with
        | .error _ => return none
        | .ok r => return some r

