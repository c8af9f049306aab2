
/-! ### Names, lists, strings -/

/-- A name as text, without escapes. -/
def nameText : Name → String
  | .anonymous => ""
  | .str .anonymous s => s
  | .str p s => String.append (String.append (nameText p) ".") s
  | .num p n => String.append (String.append (nameText p) ".") (toString n)

/-- `revOnto [c, b, a] acc` is `a :: b :: c :: acc`. -/
def revOnto {α : Type} : List α → List α → List α
  | [], acc => acc
  | x :: xs, acc => revOnto xs (x :: acc)

def join3 (a b c : String) : String := String.append a (String.append b c)

def join5 (a b c d e : String) : String := join3 a b (join3 c d e)

def memberStr (s : String) : List String → Bool
  | [] => false
  | x :: xs => if x == s then true else memberStr s xs

def memberName (n : Name) : List Name → Bool
  | [] => false
  | x :: xs => if x == n then true else memberName n xs

/-- The name without its last part. -/
def parentOf : Name → Name
  | .str p _ => p
  | .num p _ => p
  | .anonymous => .anonymous

/-- Whether the name starts with `_root_`. -/
def isRooted : Name → Bool
  | .str .anonymous s => s == "_root_"
  | .str p _ => isRooted p
  | .num p _ => isRooted p
  | .anonymous => false

/-- The name without a leading `_root_`. -/
def unrooted : Name → Name
  | .str .anonymous s => if s == "_root_" then .anonymous else .str .anonymous s
  | .str p s => .str (unrooted p) s
  | .num p n => .num (unrooted p) n
  | .anonymous => .anonymous

/-- The full name of a declaration written as `id` in namespace `ns`. -/
def fullName (ns id : Name) : Name := if isRooted id then unrooted id else ns ++ id

/-! ### JSON -/

def field (j : Json) (k : String) : Json :=
  match j.getObjVal? k with
  | .ok v => v
  | .error _ => Json.null

def strField (j : Json) (k : String) : String :=
  match (field j k).getStr? with
  | .ok s => s
  | .error _ => ""

def natField (j : Json) (k : String) (default : Nat) : Nat :=
  match (field j k).getNat? with
  | .ok n => n
  | .error _ => default

def boolField (j : Json) (k : String) : Bool :=
  match (field j k).getBool? with
  | .ok b => b
  | .error _ => false

def num (n : Nat) : Json := Json.num (JsonNumber.fromNat n)

def nameArray : List Name → Array Json → Array Json
  | [], acc => acc
  | n :: ns, acc => nameArray ns (acc.push (Json.str (nameText n)))

/-- Names with the quotes that tell `a.b` from «a.b». -/
def quotedNames : List Name → Array Json → Array Json
  | [], acc => acc
  | n :: ns, acc => quotedNames ns (acc.push (Json.str n.toString))

def natList : List Json → List Nat
  | [] => []
  | j :: js => match j.getNat? with
    | .ok n => n :: natList js
    | .error _ => natList js

def stringList : List Json → List String
  | [] => []
  | j :: js => match j.getStr? with
    | .ok s => s :: stringList js
    | .error _ => stringList js

def stringsField (j : Json) (k : String) : List String :=
  match (field j k).getArr? with
  | .ok a => stringList a.toList
  | .error _ => []

/-- What an answer says besides its id. -/
abbrev Fields := List (String × Json)

def appendFields : Fields → Fields → Fields
  | [], b => b
  | a :: as, b => a :: appendFields as b

/-- A refusal: its class, and why. -/
structure Problem where
  kind : String
  text : String

def Problem.fields (p : Problem) : Fields :=
  [("ok", Json.bool false), ("kind", Json.str p.kind), ("error", Json.str p.text)]

