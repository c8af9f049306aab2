/-! ### Imports under WebAssembly: a process reads a module once

Lean's own `importModules` reads all modules again for every import, where they cannot be mapped into memory, and what was
read is never given back: hundreds of MiB after a few files. Here a module that was read before is taken again. Only what
was read is shared, and nobody changes that; the environment is made anew by Lean's own `finalizeImport`. -/

/-- A module as Lean's importer keeps it. Lean's own structure is private; this has the same fields. -/
public structure ReadModule extends EffectiveImport where
  parts : Array (ModuleData × CompactedRegion)
  ir : Option (ModuleData × CompactedRegion)
  needsData : Bool
  needsIRTrans : Bool

/-- `Lean.ImportState`, whose fields are private. -/
structure ReadModules where
  modules : Std.HashMap Name ReadModule
  order : Array Name

unsafe def readModules (s : ImportState) : ReadModules := unsafeCast s

unsafe def importState (r : ReadModules) : ImportState := unsafeCast r

/-- The file of a module, as it was when the module was read. -/
structure Stamp where
  path : System.FilePath
  bytes : UInt64
  modified : IO.FS.SystemTime

/-- What a process has read so far. -/
structure Reading where
  state : ImportState := default
  stamps : List Stamp := []   -- of what the package does not bring: its own files are written once

def stampOf (path : System.FilePath) : IO Stamp := do
  let m ← path.metadata
  return { path := path, bytes := m.byteSize, modified := m.modified }

/-- Whether files are as they were when they were read. -/
def unchanged : List Stamp → BaseIO Bool
  | [] => return true
  | s :: ss => do
    match (← (stampOf s.path).toBaseIO) with
    | .error _ => return false
    | .ok now =>
      if now.bytes == s.bytes && now.modified == s.modified then unchanged ss else return false

def ofPackage (module : Name) : Bool :=
  let root := module.getRoot
  root == `Init || root == `Std || root == `Lean || root == `Lake

/-- Notes the files of the modules from the `i`th on. -/
partial def stamped (order : Array Name) (i : Nat) (acc : List Stamp) : IO (List Stamp) := do
  match order[i]? with
  | none => return acc
  | some module =>
    if ofPackage module then stamped order (i + 1) acc
    else
      let path ← findOLean module
      let s ← stampOf path
      stamped order (i + 1) (s :: acc)

@[extern "the code of that name"]
public opaque _root_.Std.HashMap.insert._redArg (e : BEq Name) (h : Hashable Name) (m : Std.HashMap Name ReadModule) (n : Name)
  (x : ReadModule) : Std.HashMap Name ReadModule

@[noinline] def sameName (a b : Name) : Bool := a == b
@[noinline] def hashOf (n : Name) : UInt64 := hash n

/-- What an import would read that came first. -/
structure Closure where
  read : ReadModules
  seen : NameHashSet := {}
  order : Array Name := #[]   -- as it would read them

/-- The module as it is imported by `x`, who is the first to do so here: an earlier import may have come to it by another. -/
def Closure.found (c : Closure) (x : Import) (m : ReadModule) : Closure :=
  let c := { c with order := c.order.push x.module }
  if m.isMeta == x.isMeta then c
  else
    let modules := Std.HashMap.insert._redArg ⟨sameName⟩ ⟨hashOf⟩ c.read.modules x.module { m with isMeta := x.isMeta }
    { c with read := { c.read with modules := modules } }

/-- Adds everything that `imports` need from the `i`th on. -/
partial def Closure.add (c : Closure) (imports : Array Import) (i : Nat) : Closure :=
  match imports[i]? with
  | none => c
  | some x =>
    if c.seen.contains x.module then c.add imports (i + 1)
    else
      let c := { c with seen := c.seen.insert x.module }
      match c.read.modules.get? x.module with
      | none => c.add imports (i + 1)
      | some m =>
        let c := match m.parts[0]? with
          | some (data, _) => c.add data.imports 0
          | none => c
        (c.found x m).add imports (i + 1)

@[noinline] def finished (state : ImportState) (imports : Array Import) (loadExts : Bool) : IO Environment := do
  let env ← finalizeImport state imports {} 0 false loadExts
  return env

/-- The environment of these imports, and what has been read then. -/
unsafe def importingUnsafe (before : Reading) (imports : Array Import) (loadExts : Bool) : IO (Environment × Reading) := do
  -- What is on the disk now and what was read before do not go together.
  let before := if (← unchanged before.stamps) then before else {}
  let known := (readModules before.state).order.size
  let (_, state) ← StateRefT'.run (importModulesCore imports) before.state
  let r := readModules state
  let stamps ← stamped r.order known before.stamps
  let c := ({ read := r } : Closure).add imports 0
  let needed := importState { c.read with order := c.order }
  let env ← withImporting (finished needed imports loadExts)
  return (env, { state := state, stamps := stamps })

def importing (before : Reading) (imports : Array Import) (loadExts : Bool) : IO (Environment × Reading) :=
  unsafe importingUnsafe before imports loadExts

