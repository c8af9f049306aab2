
/-! ### Names for the compiler of the WebAssembly package

It asks for helpers that it has made itself and that the package's exported files leave out. Each is there in the package as
code, which is found by its name; what is wanted here is the name. A native Lean has them and is not given this file. -/

@[extern "the code of that name"]
public opaque _root_.Lean.MapDeclarationExtension.find?._redArg (i : Inhabited DeclarationRanges)
  (ext : MapDeclarationExtension DeclarationRanges) (env : Environment) (n : Name) (mode : EnvExtension.AsyncMode) (level : OLeanLevel) :
  Option DeclarationRanges

@[extern "the code of that name"]
public opaque _root_.Lean.withImporting._redArg (x : IO Environment) : IO Environment

/-- What a text is parsed from. Natively a function of Lean's makes it (Shims.lean), which calls such a helper here. -/
def inputCtx (s : String) : Parser.InputContext :=
  { inputString := s, fileName := "<catamount>", fileMap := FileMap.ofString s,
    endPos := s.rawEndPos, endPos_valid := Nat.le_refl _ }

