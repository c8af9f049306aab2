"""Reference answers for the objectives: `python3 make.py > weights.jsonl` (needs mpmath).

Deliberately another route than the Rust code: the plain recurrences of the paper in 120-digit
arithmetic, and weights by a central difference in log p with a step of 1e-40, whose error is far
below the 15 digits that are kept.
"""

import json
import math
import random
from functools import lru_cache

from mpmath import mp, mpf, exp, log

mp.dps = 120
STEP = mpf(10) ** -40


def retry(p, n, q):
    later = [mpf(1)] * (n + 1)
    for x in reversed(p):
        here = [mpf(0)] * (n + 1)
        for b in range(1, n + 1):
            here[b] = x * later[b - 1] + (1 - x) * (1 - q) * here[b - 1]
        later = here
    return later[n]


def backtrack(p, n, q, levin):
    length = len(p)
    scores, product = [mpf(1)], mpf(1)
    for k, x in enumerate(p[:-1], 1):
        product *= x
        scores.append(exp(log(product) / k) if levin else mpf(1))
    value = [mpf(0)] * length + [mpf(1)]
    for _ in range(n):
        new, weighted, total = list(value), mpf(0), mpf(0)
        for t in range(length):
            weighted += scores[t] * value[t]
            total += scores[t]
            new[t] = p[t] * value[t + 1] + (1 - p[t]) * (1 - q) * weighted / total
        value = new
    return value[0]


def widening(p, n, q):
    """Brute force over (n_k, m_k): the definition itself."""
    length = len(p)

    @lru_cache(maxsize=None)
    def value(nodes, b):
        if len(nodes) > length:
            return mpf(1)
        if b == 0:
            return mpf(0)
        deepest = len(nodes) - 1
        d = next(
            (k for k, (v, m) in enumerate(nodes) if m < math.isqrt(v) + 1), deepest
        )  # ceil(sqrt(v+1)) = isqrt(v)+1
        after = tuple((v + (k <= d), m + (k == d)) for k, (v, m) in enumerate(nodes))
        hit = after + ((0, 0),) if d == deepest else after
        return p[d] * value(hit, b - 1) + (1 - p[d]) * (1 - q) * value(after, b - 1)

    return value(((0, 0),), n)


def attempts(x, k, q):
    with mp.workdps(mp.dps + 10 - int(mp.floor(mp.log10(x)))):  # 1 - c is as small as x
        c = (1 - x) * (1 - q)
        return x * (1 - c**k) / (1 - c)


def success(objective, log_p, n, kappa, q):
    p = [exp(l) for l in log_p]
    length = len(p)
    q, effective = mpf(q), length + mpf(n - length) / mpf(kappa)
    if objective == "ua":
        return mp.fprod(attempts(x, effective / length, q) for x in p)
    if objective == "pass":
        return attempts(mp.fprod(p), n, q)
    budget = int(mp.floor(effective))
    if objective in ("bfs", "dfs"):
        return retry(p, budget, q)
    if objective in ("rdfs", "vdfs"):
        return backtrack(p, budget, q, objective == "vdfs")
    return widening(p, budget, q)


def answer(objective, logp, n, kappa, q):
    l = [mpf(x) for x in logp]
    j = success(objective, l, n, kappa, q)
    weights = []
    for t in range(len(l)):
        up, down = list(l), list(l)
        up[t] += STEP
        down[t] -= STEP
        change = success(objective, up, n, kappa, q) - success(objective, down, n, kappa, q)
        weights.append(float(change / (2 * STEP * j)))
    return {
        "objective": objective,
        "logp": logp,
        "budget": n,
        "kappa": kappa,
        "absorption": q,
        "log_success": float(log(j)),
        "weights": weights,
    }


def main():
    rng = random.Random(20261115)
    kinds = {
        "ordinary": lambda: -rng.expovariate(1 / 1.5),
        "unlikely": lambda: -rng.uniform(5, 60),
        "tiny": lambda: -rng.uniform(100, 1000),
        "sure": lambda: -(10 ** rng.uniform(-13, -2)),
        "mixed": lambda: rng.choice([-1e-13, -1e-9, -1e-4, -0.5, -3.0, -60.0, -700.0]),
    }
    priors = [(1, 0), (1, 0.02), (5, 0.02), (3, 0), (1, 0.3), (2.5, 1e-9)]
    for objective in ["ua", "pass", "bfs", "dfs", "rdfs", "vdfs", "mcts"]:
        for kind, draw in kinds.items():
            for _ in range(5):
                length = rng.choice([1, 2, 3, 5] if objective != "mcts" else [1, 2, 3])
                n = rng.choice([length, 16, 64, 256] if objective != "mcts" else [6, 16, 30])
                kappa, q = rng.choice(priors)
                if objective == "pass":
                    kappa = 1
                if (
                    objective == "mcts"
                    and int(length + (n - length) / kappa) < [0, 1, 3, 6][length]
                ):
                    kappa = 1
                print(json.dumps(answer(objective, [draw() for _ in range(length)], n, kappa, q)))
    # Long traces and large budgets, where the recurrences lose digits or leave the range of a
    # double if they can.
    for objective, length, n, kind in [
        ("bfs", 40, 3000, "ordinary"),
        ("bfs", 60, 2000, "tiny"),
        ("rdfs", 12, 1500, "ordinary"),
        ("rdfs", 30, 600, "mixed"),
        ("vdfs", 12, 1500, "ordinary"),
        ("vdfs", 30, 600, "mixed"),
        ("vdfs", 40, 300, "tiny"),
        ("rdfs", 5, 4000, "sure"),
        ("vdfs", 5, 4000, "sure"),
        ("bfs", 5, 20000, "unlikely"),
        ("ua", 200, 100000, "mixed"),
        ("pass", 200, 100000, "ordinary"),
    ]:
        print(json.dumps(answer(objective, [kinds[kind]() for _ in range(length)], n, 1, 0)))


if __name__ == "__main__":
    main()
