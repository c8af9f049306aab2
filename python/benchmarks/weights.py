"""How long weights take: the Python call, the Rust call inside it, and PyTorch's autograd on the
same dynamic program.

    python benchmarks/weights.py [--traces 10000] [--budget 256] [--json]

The traces have the paper's mean length (1.87 steps) and ordinary probabilities. The Rust call is
timed inside the extension module, by the same threads. PyTorch (if installed) runs the recurrence
of best-first search, differentiated by autograd, in double precision: trace by trace, as a loss
function would, and as one padded batch; a part of the traces is enough for the former. Times are
the best of several, taken in turns; on a busy machine the CPU time of all threads says more than
the clock.
"""

import argparse
import json
import time

import numpy as np

import catamount
from catamount import _catamount


def make_traces(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """log-probabilities and lengths."""
    random = np.random.default_rng(seed)
    lengths = np.minimum(random.geometric(1 - 0.465, count), 20).astype(np.int64)
    return 2.0 * np.log(random.uniform(1e-9, 1.0, lengths.sum())), lengths


def best(function, repeats: int) -> float:
    """The least of several durations."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def torch_trace(logp, budget):
    """log J of one trace by its recurrence; autograd does the rest."""
    import torch

    p = logp.exp()
    live = torch.zeros(len(p) + 1, dtype=logp.dtype)
    live[0] = 1.0
    zero = torch.zeros(1, dtype=logp.dtype)
    stay = torch.cat([1 - p, torch.ones(1, dtype=logp.dtype)])
    for _ in range(budget):
        live = live * stay + torch.cat([zero, live[:-1] * p])
    return live[-1].log()


def torch_batch(logp, mask, budget):
    """log J of a padded batch; padding is a step that always succeeds."""
    import torch

    rows, width = logp.shape
    p = torch.where(mask, logp.exp(), torch.ones_like(logp))
    live = torch.zeros(rows, width + 1, dtype=logp.dtype)
    live[:, 0] = 1.0
    zero, one = torch.zeros(rows, 1, dtype=logp.dtype), torch.ones(rows, 1, dtype=logp.dtype)
    stay = torch.cat([1 - p, one], 1)
    padding = (~mask).sum(1)
    answer = torch.zeros(rows, dtype=logp.dtype)
    # A padded step takes one expansion and never fails: a trace with k of them has N + k
    # expansions.
    for step in range(1, budget + int(padding.max()) + 1):
        live = live * stay + torch.cat([zero, live[:, :-1] * p], 1)
        answer = torch.where(step == budget + padding, live[:, -1], answer)
    return answer.log()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--budget", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    logp, lengths = make_traces(arguments.traces)
    budget, repeats = arguments.budget, arguments.repeats
    report = {"traces": len(lengths), "steps": int(lengths.sum()), "budget": budget}

    for objective in ("bfs", "vdfs", "ua"):
        python, rust, python_cpu, rust_cpu = [], [], [], []
        for _ in range(repeats):
            busy = time.process_time()
            python.append(
                best(lambda: catamount.weigh(logp, lengths, objective=objective, budget=budget), 1)
            )
            python_cpu.append(time.process_time() - busy)
            busy = time.process_time()
            rust += _catamount.time_weigh(logp, lengths, objective, budget, 1)
            rust_cpu.append(time.process_time() - busy)
        report[objective] = {
            "python_s": min(python),
            "rust_s": min(rust),
            "python_over_rust": min(python) / min(rust),
            "cpu_python_over_rust": min(python_cpu) / min(rust_cpu),
        }

    try:
        import torch
    except ImportError:
        torch = None
    if torch is not None:
        part = min(100, len(lengths))
        pieces = [torch.tensor(piece) for piece in np.split(logp, np.cumsum(lengths)[:-1])[:part]]

        def each():
            weights = []
            for piece in pieces:
                leaf = piece.clone().requires_grad_()
                torch_trace(leaf, budget).backward()
                weights.append(leaf.grad)
            return torch.cat(weights)

        width = int(lengths.max())
        mask = torch.arange(width)[None, :] < torch.tensor(lengths)[:, None]
        padded = torch.zeros(len(lengths), width, dtype=torch.double)
        padded[mask] = torch.tensor(logp)

        def batched():
            leaf = padded.clone().requires_grad_()
            torch_batch(leaf, mask, budget).sum().backward()
            return leaf.grad[mask]

        exact = catamount.weights(logp, lengths, objective="bfs", budget=budget)
        np.testing.assert_allclose(
            each().numpy(), exact[: int(lengths[:part].sum())], rtol=1e-6, atol=1e-9
        )
        np.testing.assert_allclose(batched().numpy(), exact, rtol=1e-6, atol=1e-9)
        per_trace = best(each, 2) / part * len(lengths)
        at_once = best(batched, 2)
        python = report["bfs"]["python_s"]
        report["torch"] = {
            "trace_by_trace_s": per_trace,
            "trace_by_trace_over_python": per_trace / python,
            "one_batch_s": at_once,
            "one_batch_over_python": at_once / python,
        }
    if arguments.json:
        print(json.dumps(report))
        return
    print(f"{report['traces']} traces, {report['steps']} steps, N = {budget}")
    for objective in ("bfs", "vdfs", "ua"):
        row = report[objective]
        print(
            f"{objective:5} Python {row['python_s'] * 1e3:8.2f} ms   Rust "
            f"{row['rust_s'] * 1e3:8.2f} ms   "
            f"Python/Rust {row['python_over_rust']:.3f} by the clock, "
            f"{row['cpu_python_over_rust']:.3f} in CPU time"
        )
    if "torch" in report:
        row = report["torch"]
        print(
            f"torch autograd, trace by trace: {row['trace_by_trace_s']:.2f} s, "
            f"{row['trace_by_trace_over_python']:.0f} x"
        )
        print(
            f"torch autograd, one batch:      {row['one_batch_s']:.2f} s, "
            f"{row['one_batch_over_python']:.0f} x"
        )


if __name__ == "__main__":
    main()
