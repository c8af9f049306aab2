/-! ### Names of a header that hide others -/

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

/-- The context inside which a declaration of this name is read: `theorem A.b` stands in namespace `A`. -/
def insideOf (c : Ctx) (id : Name) : Ctx := if isRooted id then c else { c with ns := c.ns ++ parentOf id }

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

/-- What a name means, written short where these namespaces are open, if anything. -/
def meaningIn (base : Environment) (n : Name) : List Name → Option Name
  | [] => if isMeaningful base n then some n else none
  | ns :: r => if isMeaningful base (ns ++ n) then some (ns ++ n) else meaningIn base n r

/-- The base's name that `n` hides when written short, if any. -/
def hides (base : Environment) (spaces : List Name) (n : Name) : List Name → Option Name
  | [] => meaningIn base n spaces
  | ns :: r =>
    if ns.isPrefixOf n && !(ns == n) then
      match meaningIn base (n.replacePrefix ns .anonymous) spaces with
      | some m => some m
      | none => hides base spaces n r
    else hides base spaces n r

def hiddenBy (base : Environment) (spaces : List Name) : List Name → Option String
  | [] => none
  | n :: ns =>
    match hides base spaces (privateToUserName n) spaces with
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
        -- A name that instance search does not look through would get instances of its own.
        let right := match ci.value?, getReducibilityStatusCore env n with
          | some (.const c _), .reducible => c == m
          | _, _ => false
        if right then misnamed env ns else some (join5 "the header's `" (nameText n) "` is not `" (nameText m) "`")

/-- A type of the header that is called like one of the library's: a definition beside it means it where it says the other. -/
def namesakes (base env : Environment) : List Name → Option String
  | [] => none
  | n :: ns =>
    let own := match env.find? n with
      | some (.inductInfo _) => true
      | some (.defnInfo _) => true
      | _ => false
    let twin := match base.find? (lastPart (privateToUserName n)) with
      | some (.inductInfo _) => true
      | _ => false
    if own && twin then some (join5 "the header's `" (nameText n) "` is called like the library's `" (nameText (lastPart n)) "`")
    else namesakes base env ns

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

/-- A `variable` named like a constant of the library, which would turn the statement's word into a variable. -/
partial def variableHides (base : Environment) (spaces : List Name) (stx : Syntax) : Option Name :=
  match stx with
  | .node _ k args =>
    if memberName k [`Lean.Parser.Term.explicitBinder, `Lean.Parser.Term.implicitBinder, `Lean.Parser.Term.strictImplicitBinder,
        `Lean.Parser.Term.instBinder] then
      ids (stx.getArg 1).getArgs 0
    else go args 0
  | _ => none
where
  ids (a : Array Syntax) (i : Nat) : Option Name :=
    match a[i]? with
    | none => none
    | some x =>
      if !x.isIdent then ids a (i + 1)
      else match meaningIn base x.getId spaces with
        | some _ => some x.getId
        | none => if isWellKnown x.getId then some x.getId else ids a (i + 1)
  go (a : Array Syntax) (i : Nat) : Option Name :=
    match a[i]? with
    | none => none
    | some x => match variableHides base spaces x with
      | some n => some n
      | none => go a (i + 1)

def scopeVariables (st : Command.State) : Array (TSyntax `Lean.Parser.Term.bracketedBinder) :=
  match st.scopes with
  | sc :: _ => sc.varDecls
  | [] => #[]

partial def anyVariableHides (base : Environment) (spaces : List Name) (vs : Array (TSyntax `Lean.Parser.Term.bracketedBinder)) (i : Nat) : Option String :=
  match vs[i]? with
  | none => none
  | some v => match variableHides base spaces v.raw with
    | some n => some (join3 "the header's variable `" (nameText n) "` hides a constant of the same name")
    | none => anyVariableHides base spaces vs (i + 1)

