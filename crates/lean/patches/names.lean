/- A name of Lean 4.28.0 that the package, which is a little older, has not. -/
private def Lean.Meta.DiscrTree.insertKeyValue {α : Type} [BEq α] (d : Lean.Meta.DiscrTree α)
    (keys : Array Lean.Meta.DiscrTree.Key) (v : α) : Lean.Meta.DiscrTree α :=
  d.insertCore keys v
