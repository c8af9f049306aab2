"""Compute-aligned training for theorem-proving search.

The weights of demonstrated traces under the search they will be deployed with, the searches
themselves, and the statistics that compare them. Everything numeric is computed by Catamount's Rust
crates.

    >>> import numpy as np, catamount
    >>> logp = np.log([0.9, 0.01, 0.5])          # of the tactics of one trace
    >>> catamount.weights(logp, [3], objective="bfs", budget=256).round(3)
    array([0.003, 0.269, 0.01 ])

`catamount.hf` (transformers) and `catamount.ray` are imported on their own; they need those
packages.
"""

from ._catamount import OBJECTIVES, STRATEGIES, Dual, __version__
from .environment import Lean, Metamath, Session, Verdict
from .evaluation import Run, search
from .log import Comparison, compare, read_log, read_manifest, read_times, read_trees
from .objective import Status, Strategy, Weighed, minimum_budget, weigh, weights
from .policy import NgramPolicy, OpenAIPolicy, Policy, ReplayPolicy, uniform
from .traces import Step, Trace, metamath_traces, read_traces, write_traces

__all__ = [
    "OBJECTIVES",
    "STRATEGIES",
    "Comparison",
    "Dual",
    "Lean",
    "Metamath",
    "NgramPolicy",
    "OpenAIPolicy",
    "Policy",
    "ReplayPolicy",
    "Run",
    "Session",
    "Status",
    "Step",
    "Strategy",
    "Trace",
    "Verdict",
    "Weighed",
    "__version__",
    "compare",
    "metamath_traces",
    "minimum_budget",
    "read_log",
    "read_manifest",
    "read_times",
    "read_traces",
    "read_trees",
    "search",
    "uniform",
    "weigh",
    "weights",
    "write_traces",
]
