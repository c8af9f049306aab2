/- `alias` as an abbreviation: its own elaborator needs code that the WebAssembly package cannot compile. -/
namespace Batteries.Tactic.Alias
open Lean
macro_rules
  | `($mods:declModifiers alias $new:ident := $old:ident) =>
    `($mods:declModifiers abbrev $new : type_of% @$old := @$old)
end Batteries.Tactic.Alias
