import numpy as np
import pytest

import catamount
from catamount import Dual, Status

LOGP, LENGTHS = [-0.5, -2.0, -0.1, -1.3], [3, 1]


class Retry:
    """Best-first search on a trace: stay until the step succeeds."""

    def start(self, length, budget):
        return (0, budget)

    def status(self, c, length):
        return Status.SOLVED if c[0] == length else Status.DEAD if c[1] == 0 else Status.LIVE

    def selection(self, c, p):
        return c[0]

    def advance(self, c, node):
        return (c[0] + 1, c[1] - 1)

    def miss(self, c, node):
        return (c[0], c[1] - 1)


class Levin(Retry):
    """Back to an ancestor by Levin score: the selection depends on the policy."""

    def start(self, length, budget):
        return (0, budget, False)

    def selection(self, c, p):
        if not c[2]:
            return [(c[0], 1.0)]
        product, scores = Dual(1.0), [Dual(1.0)]
        for k in range(c[0]):
            product = product * p[k]
            scores.append(product ** (1 / (k + 1)))
        total = sum(scores, Dual(0.0))
        return [(k, score / total) for k, score in enumerate(scores)]

    def advance(self, c, node):
        return (node + 1, c[1] - 1, False)

    def miss(self, c, node):
        return (node, c[1] - 1, True)


@pytest.mark.parametrize("strategy, name", [(Retry(), "bfs"), (Levin(), "vdfs")])
@pytest.mark.parametrize("kappa, q", [(1.0, 0.0), (3.0, 0.05)])
def test_a_strategy_written_in_python_equals_the_built_in_one(strategy, name, kappa, q):
    own = catamount.weigh(LOGP, LENGTHS, objective=strategy, budget=12, kappa=kappa, absorption=q)
    built_in = catamount.weigh(LOGP, LENGTHS, objective=name, budget=12, kappa=kappa, absorption=q)
    np.testing.assert_allclose(own.weights, built_in.weights, rtol=1e-10)
    np.testing.assert_allclose(own.log_success, built_in.log_success, rtol=1e-10)


def test_a_budget_too_small_is_infeasible():
    answer = catamount.weigh([-1.0, -1.0], [2], objective=Retry(), budget=1)
    assert not answer.feasible[0] and list(answer.weights) == [1.0, 1.0]


def changed(**methods):
    return type("Changed", (Retry,), methods)()


@pytest.mark.parametrize(
    "strategy, error, words",
    [
        (changed(miss=lambda self, c, node: c), ValueError, "leads back to itself"),
        (
            changed(status=lambda self, c, length: "solved" if c[0] == length else "live"),
            ValueError,
            "more than 1000",
        ),
        (changed(start=lambda self, length, budget: [0, budget]), TypeError, "hashable"),
        (changed(selection=lambda self, c, p: 7), ValueError, "node 7; the nodes are 0 to 2"),
        (changed(selection=lambda self, c, p: [(0, 0.3)]), ValueError, "add up to 1"),
        (
            changed(selection=lambda self, c, p: [(0, "x")]),
            TypeError,
            "a number or a catamount.Dual",
        ),
        (
            changed(status=lambda self, c, length: "finished"),
            ValueError,
            '"solved", "dead" or "live"',
        ),
        (changed(advance=lambda self, c, node: 1 // 0), ZeroDivisionError, "zero"),
        (object(), TypeError, "has no method start"),
    ],
)
def test_what_is_wrong_with_a_strategy_is_said(strategy, error, words):
    with pytest.raises(error, match=words):
        catamount.weigh(LOGP, LENGTHS, objective=strategy, budget=12, max_configurations=1000)


def test_dual_arithmetic():
    x = Dual(0.25)
    for value, expected in [
        (x + 1, 1.25), (1 + x, 1.25), (x - 1, -0.75), (1 - x, 0.75), (2 * x, 0.5), (x * 2, 0.5),
        (x / 2, 0.125),
        (1 / x, 4.0), (-x, -0.25), (x**0.5, 0.5), (x * x, 0.0625),
    ]:  # fmt: skip
        assert float(value) == pytest.approx(expected, rel=1e-14)
    assert x < 0.5 < Dual(0.75) and x <= x and x >= 0.25 and x == 0.25 and x != 0.3 and not x > x
    assert x.log_value == pytest.approx(np.log(0.25))
    with pytest.raises(ZeroDivisionError):
        x / 0
    with pytest.raises(TypeError):
        x + "1"
    with pytest.raises(ValueError):
        Dual(0.0) ** 0.5
    with pytest.raises(ValueError):
        Dual(float("nan"))
    with pytest.raises(TypeError, match="hashable"):
        {x}
