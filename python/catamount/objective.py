"""Weights of ragged batches of traces, under the paper's objectives or a strategy of your own."""

from __future__ import annotations

import enum
from typing import Any, Hashable, NamedTuple, Protocol, Sequence, Union, runtime_checkable

import numpy as np

from . import _catamount
from ._catamount import Dual

__all__ = ["Status", "Strategy", "Weighed", "minimum_budget", "weigh", "weights"]


class Status(str, enum.Enum):
    """Whether a configuration has an outcome."""

    SOLVED = "solved"
    DEAD = "dead"
    LIVE = "live"


@runtime_checkable
class Strategy(Protocol):
    """A search projected onto a demonstrated trace: the triple (selection, advance, miss).

    A configuration is anything hashable, the remaining budget included; a tuple of integers is
    best. Node `t` is the state from which the tactic of step `t` (counted from 0) advances. Every
    `advance` and `miss` must spend budget.
    """

    def start(self, length: int, budget: int) -> Hashable:
        """The first configuration for a trace of `length` steps."""
        ...

    def status(self, configuration: Any, length: int) -> Union[Status, str]:
        """Solved, dead or live."""
        ...

    def selection(
        self, configuration: Any, p: Sequence[Dual]
    ) -> Union[int, Sequence[tuple[int, Union[float, Dual]]]]:
        """The nodes that may be expanded next with their probabilities, or the one node that will
        be.

        Where the probabilities depend on the policy, compute them from `p`: the derivatives are
        carried along.
        """
        ...

    def advance(self, configuration: Any, node: int) -> Hashable:
        """The demonstrated tactic was sampled at the node."""
        ...

    def miss(self, configuration: Any, node: int) -> Hashable:
        """Something else was."""
        ...


class Weighed(NamedTuple):
    """What the surrogate says of a batch of traces."""

    weights: Any
    """The weight d log J / d log p_t of every tactic; the kind, type and device of `logp`."""
    log_success: Any
    """log J of every trace."""
    feasible: Any
    """False for a trace that no search within the budget can find: it carries the weights of the
    smallest budget that can (all ones) and log J is the sum of its log p.
    """


def weigh(
    logp: Any,
    lengths: Any = None,
    *,
    objective: Union[str, Strategy] = "bfs",
    budget: int | None = None,
    kappa: float = 1.0,
    absorption: float = 0.0,
    max_configurations: int = 5_000_000,
) -> Weighed:
    """Weights, log J and feasibility of a ragged batch of traces.

    logp: log-probabilities of all tactics, one trace after the other: a NumPy array, a torch
        tensor, anything that speaks DLPack, or a plain sequence. float64 and float32 memory is read
        in place; half precision is widened. Gradients do not flow through the answer: a weight is a
        constant in the loss.
    lengths: number of tactics of every trace. Without it, `logp` is a sequence of traces (arrays or
        lists) and the weights come back as a list of arrays.
    objective: one of `catamount.OBJECTIVES`, or an object with the methods of `catamount.Strategy`.
    budget: expansions the search will be deployed with (rollouts for "pass"); not needed for "ce".
    kappa, absorption: the prior on off-trace behaviour: expansions that a miss costs, and the
        probability that it is never recovered from.
    max_configurations: where a strategy of your own stops being solved exactly and is refused.

    A ValueError names the trace (counted from 0) that cannot be weighed, and why.
    """
    if lengths is None:
        traces = list(logp)
        if any(_is_number(trace) for trace in traces):
            raise ValueError(
                "logp is a flat sequence of numbers, which does not say where a trace ends; give "
                "lengths=[...], one number of "
                "tactics a trace, or wrap a single trace in a list: weights([logp], ...)"
            )
        flat = [np.asarray(_to_numpy(trace)[0], dtype=np.float64).reshape(-1) for trace in traces]
        joined = np.concatenate(flat) if flat else np.zeros(0)
        sizes = [len(part) for part in flat]
        answer = weigh(
            joined,
            sizes,
            objective=objective,
            budget=budget,
            kappa=kappa,
            absorption=absorption,
            max_configurations=max_configurations,
        )
        pieces = np.split(answer.weights, np.cumsum(sizes)[:-1]) if sizes else []
        same = [_to_numpy(trace)[1](piece) for trace, piece in zip(traces, pieces)]
        return Weighed(same, answer.log_success, answer.feasible)

    array, back = _to_numpy(logp)
    if array.ndim != 1:
        raise ValueError(
            f"logp has {array.ndim} dimensions; give all traces one after the other, and their "
            "lengths"
        )
    counts = np.ascontiguousarray(np.asarray(_to_numpy(lengths)[0]).reshape(-1))
    if counts.size and not np.issubdtype(counts.dtype, np.integer):
        raise ValueError(f"lengths are whole numbers, not {counts.dtype}")
    counts = counts.astype(np.int64, copy=False)
    if budget is None:
        if objective != "ce":
            raise ValueError(
                "budget is missing: how many expansions will the search be deployed with?"
            )
        budget = 0
    if isinstance(budget, bool) or int(budget) != budget or budget < 0:
        raise ValueError(f"budget must be a whole number of at least 0, not {budget!r}")
    budget = int(budget)

    if isinstance(objective, str):
        native = _catamount.weigh_f32 if array.dtype == np.float32 else _catamount.weigh_f64
        parts = native(array, counts, objective, budget, float(kappa), float(absorption))
    else:
        missing = [
            name
            for name in ("start", "status", "selection", "advance", "miss")
            if not hasattr(objective, name)
        ]
        if missing:
            raise TypeError(
                f"objective is a name or a strategy; {type(objective).__name__} has no method "
                f"{', '.join(missing)}"
            )
        wide = array.astype(np.float64, copy=False)
        parts = _catamount.weigh_strategy(
            wide, counts, objective, budget, float(kappa), float(absorption), max_configurations
        )
    return Weighed(*map(back, parts))


def weights(
    logp: Any,
    lengths: Any = None,
    *,
    objective: Union[str, Strategy] = "bfs",
    budget: int | None = None,
    kappa: float = 1.0,
    absorption: float = 0.0,
) -> Any:
    """The weight of every tactic of a ragged batch of traces; see `weigh` for the arguments."""
    return weigh(
        logp, lengths, objective=objective, budget=budget, kappa=kappa, absorption=absorption
    ).weights


def minimum_budget(objective: str, length: int) -> int:
    """The smallest budget with which a trace of this length can succeed."""
    return _catamount.minimum_budget(objective, length)


def _to_numpy(values: Any) -> tuple[np.ndarray, Any]:
    """The values as a contiguous float array (or as they are, where they are no floats), and the
    way back.

    float32 and float64 arrays in host memory are not copied. The way back keeps booleans as they
    are.
    """
    if isinstance(values, np.ndarray):
        return _contiguous(values), _numpy_like(values.dtype)
    if type(values).__module__.partition(".")[0] == "torch":
        import torch

        tensor = values.detach()
        host = tensor.to("cpu")
        if host.is_floating_point() and host.dtype not in (torch.float32, torch.float64):
            host = host.float()

        def back(array: np.ndarray) -> Any:
            answer = torch.from_numpy(np.ascontiguousarray(array))
            dtype = (
                tensor.dtype
                if tensor.is_floating_point() and array.dtype != np.bool_
                else answer.dtype
            )
            return answer.to(device=tensor.device, dtype=dtype)

        return _contiguous(host.numpy()), back
    if hasattr(values, "__dlpack__"):
        array = np.from_dlpack(values)
        namespace = values.__array_namespace__() if hasattr(values, "__array_namespace__") else np
        like = _numpy_like(array.dtype)
        return _contiguous(array), lambda answer: namespace.from_dlpack(like(answer))
    array = np.asarray(values)
    if array.dtype.kind in "iub" or array.size == 0:
        return array, lambda answer: answer
    return _contiguous(array), lambda answer: answer


def _is_number(value: Any) -> bool:
    """Whether this is one number, of whatever library, rather than a trace of them."""
    return np.isscalar(value) or getattr(value, "ndim", None) == 0


def _contiguous(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind in "iu":
        return np.ascontiguousarray(array)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    return np.ascontiguousarray(array)


def _numpy_like(dtype: np.dtype) -> Any:
    if dtype.kind == "f":
        return lambda answer: (
            answer if answer.dtype == np.bool_ else answer.astype(dtype, copy=False)
        )
    return lambda answer: answer
