/-
Two programs are made of these files, each one module, joined in this order when it is built (see PROTOCOL.md):
- the server, which elaborates: Server, Stubs and Imports (under WebAssembly) or Shims (natively), Base, Context, Policy, Hiding,
  Blocks, Header, Statement, Bend, Kernel, Export, Proof, Hypotheses, Challenge, Source, Steps, Premises, Trace, Messages, File,
  Serve;
- the judge, which does not: Judge, Base, Terms, Verdict.

Style. The WebAssembly package of Lean ships only the exported part of the .olean files, where the compiler cannot
resolve compiler-made helpers (`List.reverse._redArg`, specialisations, private loops behind `for`) that inlining
exposes. So this code calls monomorphic library functions and has its own loops. It is ordinary Lean all the same.
-/
import Lean
open Lean Meta Elab

namespace Catamount
