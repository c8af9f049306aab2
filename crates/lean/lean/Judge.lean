/-
The judge: reads terms as data and gives them to the kernel. It has no elaborator, runs no tactic and evaluates no term,
so nothing that a proof says can change what it answers (see PROTOCOL.md).
-/
import Lean.AddDecl
import Lean.Util.CollectAxioms
import Lean.Data.Json
open Lean

namespace Catamount
