#!/usr/bin/env python3
"""All weights of a trace by plain vectorised NumPy: the yardstick Catamount's speed is measured
against.

The recurrences of `crates/objective`, forwards for J and backwards for its gradient, as one would
write them in NumPy: arrays over the steps and over all traces of one length, a Python loop over the
budget (for `mcts` arrays over the clocks, a loop over traces and steps). Plain probabilities, so a
trace whose success leaves the range of a double is out of reach: the check leaves those out and
says how many.

    python3 benches/numpy_weights.py
        checks against the golden answers, then times
    python3 benches/numpy_weights.py --catamount target/release/catamount
        times the command line in the same run, too; with --parquet it is given and gives Parquet

Needs NumPy alone; --parquet pyarrow, too.
"""

import argparse
import functools
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

OBJECTIVES = ["ua", "pass", "bfs", "rdfs", "vdfs", "mcts"]
GOLDEN = Path(__file__).resolve().parent.parent / "crates/objective/golden/weights.jsonl"
TRACES, MEAN_LENGTH, BUDGET = 40_660, 1.87, 256
BATCH = 2048


def attempts(log_x, tries, q):
    """log of x (1 - c^K) / (1 - c) with c = (1-x)(1-q), and its derivative by log x."""
    x, miss = np.exp(log_x), -np.expm1(log_x)
    c, gone = miss * (1 - q), x + miss * q
    log_c = np.where(gone < 0.5, np.log1p(-gone), np.log(c))
    found = -np.expm1(tries * log_c)
    return log_x + np.log(found) - np.log(gone), q / gone + x * (1 - q) * tries * c ** (
        tries - 1
    ) / found


def ua(log_p, tries, q):
    log_success, weights = attempts(log_p, tries / log_p.shape[1], q)
    return log_success.sum(axis=1), weights


def rollouts(log_p, tries, q):
    log_success, weight = attempts(log_p.sum(axis=1), tries, q)
    return log_success, np.repeat(weight[:, None], log_p.shape[1], axis=1)


def retry(log_p, budget, q):
    """J(b, t) = p J(b-1, t+1) + c J(b-1, t)."""
    p, c = np.exp(log_p), -np.expm1(log_p) * (1 - q)
    traces, length = p.shape
    table = np.zeros((budget + 1, traces, length + 1))
    table[:, :, length] = 1
    for b in range(1, budget + 1):
        table[b, :, :length] = p * table[b - 1, :, 1:] + c * table[b - 1, :, :length]
    adjoint, slope = np.zeros((traces, length)), np.zeros((traces, length))
    adjoint[:, 0] = 1
    for b in range(budget, 0, -1):
        slope += adjoint * (table[b - 1, :, 1:] - (1 - q) * table[b - 1, :, :length])
        before = c * adjoint
        before[:, 1:] += (p * adjoint)[:, :-1]
        adjoint = before
    success = table[budget, :, 0]
    return np.log(success), p * slope / success[:, None]


def after(values):
    """The sum over this and all later steps."""
    return np.cumsum(values[:, ::-1], axis=1)[:, ::-1]


def backtrack(log_p, budget, q, levin):
    """J(b, t) = p J(b-1, t+1) + c sum_k s_k J(b-1, k) / sum_k s_k over the path."""
    p, c = np.exp(log_p), -np.expm1(log_p) * (1 - q)
    traces, length = p.shape
    depth = np.arange(length)
    score = np.ones((traces, length))
    if levin:
        score[:, 1:] = np.exp(np.cumsum(log_p, axis=1)[:, :-1] / depth[1:])
    total = np.cumsum(score, axis=1)
    table = np.zeros((budget + 1, traces, length + 1))
    table[:, :, length] = 1
    back = np.zeros((budget + 1, traces, length))
    for b in range(1, budget + 1):
        back[b] = np.cumsum(score * table[b - 1, :, :length], axis=1) / total
        table[b, :, :length] = p * table[b - 1, :, 1:] + c * back[b]
    adjoint, slope, drift = (
        np.zeros((traces, length)),
        np.zeros((traces, length)),
        np.zeros((traces, length)),
    )
    adjoint[:, 0] = 1
    for b in range(budget, 0, -1):
        slope += adjoint * (table[b - 1, :, 1:] - (1 - q) * back[b])
        share = c * adjoint / total
        spread = after(share)
        if levin:
            drift += spread * table[b - 1, :, :length] - after(share * back[b])
        before = score * spread
        before[:, 1:] += (p * adjoint)[:, :-1]
        adjoint = before
    success = table[budget, :, 0]
    weights = p * slope
    if levin and length > 1:
        # d s_k / d log p_j = s_k / k for every j up to k.
        weights[:, :-1] += after(drift[:, 1:] * score[:, 1:] / depth[1:])
    return np.log(success), weights / success[:, None]


@functools.cache
def clocks(budget):
    """For a child found at reading T of its parent's clock: the child's reading at reading n (0 if
    n was no tick of the child's), and the widening samples spent by then.
    """
    child, widened = (
        np.zeros((budget + 1, budget + 1), int),
        np.zeros((budget + 1, budget + 1), int),
    )
    for found in range(1, budget + 1):
        square, ticks, spent = found, 0, 0
        for reading in range(found, budget):
            if reading == square * square:
                square, spent = square + 1, spent + 1
            else:
                ticks += 1
                child[found, reading + 1], widened[found, reading + 1] = ticks, spent
    return child, widened


def widening(log_p, budget, q):
    """g_k(n) = sum over T of p c^(T-1) u^W g_{k+1}(child(n, T)), by the nodes' own clocks."""
    child, widened = clocks(budget)
    ticks = child > 0
    log_success, weights = np.empty(len(log_p)), np.empty(log_p.shape)
    readings = np.arange(budget + 1)
    for i, trace in enumerate(log_p):
        p, miss = np.exp(trace), -np.expm1(trace)
        c, u, length = miss * (1 - q), 1 - q * miss, len(trace)
        first = [
            np.where(readings > 0, p[k] * c[k] ** np.maximum(readings - 1.0, 0), 0.0)
            for k in range(length)
        ]
        finished, factors = [None] * length, [None] * length
        finished[-1] = first[-1]
        for k in range(length - 2, -1, -1):
            factors[k] = np.where(ticks, first[k][:, None] * u[k] ** widened, 0.0)
            finished[k] = (factors[k] * finished[k + 1][child]).sum(axis=0)
        success = finished[0].sum()
        reach = np.ones(budget + 1)
        for k in range(length - 1):
            flow = factors[k] * reach
            share = flow * finished[k + 1][child]
            slope = (
                1
                - np.maximum(readings - 1, 0)[:, None] * p[k] / miss[k]
                + widened * q * p[k] / u[k]
            )
            weights[i, k] = (share * slope).sum() / success
            reach = np.bincount(child.ravel(), flow.ravel(), budget + 1)
            reach[0] = 0
        last = length - 1
        slope = 1 - np.maximum(readings - 1, 0) * p[last] / miss[last]
        weights[i, last] = (reach * finished[last] * slope).sum() / success
        log_success[i] = math.log(success)
    return log_success, weights


def weigh(objective, log_p, budget, kappa=1.0, q=0.0):
    """log J and weights of traces of one length, a row each."""
    length = log_p.shape[1]
    effective = length + (budget - length) / kappa
    whole = math.floor(effective)
    match objective:
        case "ua":
            return ua(log_p, effective, q)
        case "pass":
            return rollouts(log_p, budget, q)
        case "bfs" | "dfs":
            return retry(log_p, whole, q)
        case "rdfs" | "vdfs":
            return backtrack(log_p, whole, q, objective == "vdfs")
        case "mcts":
            return widening(log_p, whole, q)
    raise ValueError(objective)


def check(path):
    """Compares with the golden answers wherever plain doubles can hold them."""
    worst, seen, left_out = {}, 0, 0
    for line in path.read_text().splitlines():
        case = json.loads(line)
        log_p = np.array([case["logp"]])
        # Success of e^-700 underflows, and a budget shorter than the trace has no weights of its
        # own.
        if log_p.sum() < -650 or case["budget"] < log_p.shape[1]:
            left_out += 1
            continue
        with np.errstate(all="ignore"):
            log_success, weights = weigh(
                case["objective"], log_p, case["budget"], case["kappa"], case["absorption"]
            )
        seen += 1
        expected = np.array(case["weights"])
        off = np.abs(weights[0] - expected).max()
        # log J itself near zero keeps an absolute error only.
        off = max(
            off, abs(log_success[0] - case["log_success"]) / max(1.0, abs(case["log_success"]))
        )
        if not off < 1e-8:
            sys.exit(f"{case['objective']} is off by {off:.1e} on {line}")
        worst[case["objective"]] = max(worst.get(case["objective"], 0.0), off)
    print(
        f"golden answers: {seen} of {seen + left_out} cases agree to 1e-8 "
        f"({left_out} outside what plain doubles can do)"
    )
    print(
        "largest difference: "
        + ", ".join(f"{name} {off:.0e}" for name, off in sorted(worst.items()))
    )
    return seen


def epoch(seed=0):
    """Traces like the paper's training set: 40,660 of mean length 1.87, log p from near-certain to
    hopeless.
    """
    random = np.random.default_rng(seed)
    lengths = 1 + random.poisson(MEAN_LENGTH - 1, TRACES)
    return [
        -random.exponential(1.0, length) * 10 ** random.uniform(-2, 1, length) - 1e-6
        for length in lengths
    ]


def by_length(traces):
    lengths = np.array([len(trace) for trace in traces])
    for length in np.unique(lengths):
        which = np.flatnonzero(lengths == length)
        for start in range(0, len(which), BATCH):
            batch = which[start : start + BATCH]
            yield batch, np.array([traces[i] for i in batch])


def numpy_weights(objective, traces):
    """Weights of every trace. Traces too short of budget for `mcts` do not occur here: its minimum
    for seven steps is 23.
    """
    out = [None] * len(traces)
    with np.errstate(all="ignore"):
        for which, log_p in by_length(traces):
            for i, row in zip(which, weigh(objective, log_p, BUDGET)[1]):
                out[i] = row
    return out


def processor():
    """Seconds of processor time of this process and of those it has waited for."""
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    own, others = (resource.getrusage(who) for who in both)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def timed(work, least=0.3):
    """Best of several calls, and the last result. Both sides have one thread, so that the
    processor's time is what they take where nothing else runs.
    """
    best, spent, calls, result = math.inf, 0.0, 0, None
    while calls < 1 or (spent < least and calls < 50):
        start = processor()
        result = work()
        took = processor() - start
        best, spent, calls = min(best, took), spent + took, calls + 1
    return best, result


class CommandLine:
    """`catamount weights` on a file, one thread."""

    def __init__(self, path, traces, folder, parquet):
        ending = "parquet" if parquet else "jsonl"
        self.path, self.file = path, Path(folder) / f"traces.{ending}"
        self.out = Path(folder) / "weights.parquet" if parquet else None
        if parquet:
            import pyarrow
            import pyarrow.parquet

            names = [str(i) for i in range(len(traces))]
            table = pyarrow.table({"name": names, "logp": [list(trace) for trace in traces]})
            pyarrow.parquet.write_table(table, self.file)
            return
        with self.file.open("w") as out:
            for i, trace in enumerate(traces):
                out.write(json.dumps({"name": str(i), "logp": list(trace)}) + "\n")

    def __call__(self, objective):
        command = [
            self.path,
            "weights",
            "--objective",
            objective,
            "--budget",
            str(BUDGET),
            str(self.file),
            *(["--out", str(self.out)] if self.out else []),
        ]
        environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout

    def weights(self, text):
        if self.out:
            import pyarrow.parquet

            return pyarrow.parquet.read_table(self.out)["weights"].to_pylist()
        return [json.loads(line)["weights"] for line in text.splitlines()]


def seconds(value):
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def compare(catamount, sample, parquet):
    """One epoch, and one trace of five steps, objective by objective."""
    traces = epoch()
    five = np.random.default_rng(1).uniform(-3, -0.05, (1000, 5))
    mean = sum(map(len, traces)) / len(traces)
    print(
        f"\nProcessor time; N = {BUDGET}; epoch: {len(traces)} traces of mean length {mean:.2f}; "
        f"`mcts` in NumPy on {sample} of them, scaled up"
    )
    columns = ["epoch NumPy", "L=5 NumPy, alone", "L=5 NumPy, batched"]
    if catamount:
        columns += ["epoch catamount", "ratio", "largest difference"]
    print(f"| objective | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
    with tempfile.TemporaryDirectory() as folder:
        command_line = catamount and CommandLine(catamount, traces, folder, parquet)
        clocks(BUDGET)
        for objective in OBJECTIVES:
            few = sample if objective == "mcts" else len(traces)
            took, found = timed(lambda: numpy_weights(objective, traces[:few]))
            took *= len(traces) / few
            with np.errstate(all="ignore"):
                alone, _ = timed(lambda: weigh(objective, five[:1], BUDGET))
                many = 20 if objective == "mcts" else len(five)
                batched, _ = timed(lambda: weigh(objective, five[:many], BUDGET))
            cells = [seconds(took), seconds(alone), seconds(batched / many)]
            if command_line:
                theirs, text = timed(lambda: command_line(objective))
                answers = command_line.weights(text)
                # Where J is so small that plain doubles fail, NumPy has no answer to compare.
                off = [
                    np.abs(np.array(a) - b).max()
                    for a, b in zip(answers, found)
                    if np.isfinite(b).all()
                ]
                if max(off) > 1e-7:
                    sys.exit(f"{objective}: the command line and NumPy differ by {max(off):.1e}")
                cells += [
                    seconds(theirs),
                    f"{took / theirs:.1f}",
                    f"{max(off):.0e} ({len(found) - len(off)} left out)",
                ]
            print(f"| {objective} | {' | '.join(cells)} |", flush=True)
        if command_line:
            print(
                "\ncatamount: the whole command with one thread, reading and writing "
                f"{'Parquet' if parquet else 'JSON lines'} included; NumPy: arrays in memory."
            )
            print(
                "Reading and writing alone (objective ce, which computes nothing): "
                f"{seconds(timed(lambda: command_line('ce'))[0])}."
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--catamount", help="the command-line program to time in the same run")
    parser.add_argument(
        "--parquet", action="store_true", help="give and take Parquet instead of JSON lines"
    )
    parser.add_argument("--golden", type=Path, default=GOLDEN, help="answers to check against")
    parser.add_argument(
        "--sample", type=int, default=400, help="traces of the epoch that NumPy's mcts is timed on"
    )
    arguments = parser.parse_args()
    if check(arguments.golden) == 0:
        sys.exit("no golden case could be checked")
    compare(arguments.catamount, max(1, arguments.sample), arguments.parquet)


if __name__ == "__main__":
    main()
