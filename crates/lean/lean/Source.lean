/-! ### Pieces of source text, moved to the left margin -/

def splitLines : List Char → List Char → List (List Char) → List (List Char)
  | [], cur, acc => revOnto (revOnto cur [] :: acc) []
  | c :: cs, cur, acc => if c == '\n' then splitLines cs [] (revOnto cur [] :: acc) else splitLines cs (c :: cur) acc

/-- Leading spaces of a line; none for a blank line. -/
def indentOf : List Char → Nat → Option Nat
  | [], _ => none
  | c :: cs, n => if c == ' ' then indentOf cs (n + 1) else some n

def leastIndent : List (List Char) → Option Nat → Option Nat
  | [], m => m
  | l :: ls, m =>
    match indentOf l 0, m with
    | none, m => leastIndent ls m
    | some k, none => leastIndent ls (some k)
    | some k, some m => leastIndent ls (some (if k < m then k else m))

def dropSpaces : Nat → List Char → List Char
  | 0, l => l
  | n + 1, c :: cs => if c == ' ' then dropSpaces n cs else c :: cs
  | _, [] => []

def joinLines (k : Nat) : List (List Char) → List Char → List Char
  | [], acc => revOnto acc []
  | l :: ls, acc => joinLines k ls (revOnto (dropSpaces k l) ('\n' :: acc))

/-- The text that began at column `col`, with later lines moved left by as much. -/
def dedent (col : Nat) (s : String) : String :=
  match splitLines s.toList [] [] with
  | [] => s
  | [_] => s
  | l :: ls =>
    let k := match leastIndent ls none with
      | none => col
      | some m => if m < col then (if m < 2 then 0 else m - 2) else col
    String.ofList (joinLines k ls (revOnto l []))

def trimLeft : List Char → List Char
  | [] => []
  | c :: cs => if c == ' ' || c == '\n' then trimLeft cs else c :: cs

def trimEnd (s : String) : String := String.ofList (revOnto (trimLeft (revOnto s.toList [])) [])

def columnOf (fm : FileMap) (p : Nat) : Nat := (fm.toPosition ⟨p⟩).column
def lineOf (fm : FileMap) (p : Nat) : Nat := (fm.toPosition ⟨p⟩).line

/-- The text from `b` to `e`, moved to the margin. -/
def textBetween (s : String) (fm : FileMap) (b e : Nat) : String := trimEnd (dedent (columnOf fm b) (cut s b e))

def textOf (s : String) (fm : FileMap) (stx : Syntax) : String := textBetween s fm (startPos stx) (endPos stx)

