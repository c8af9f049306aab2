import multiprocessing
import threading

import numpy as np
import pytest

import catamount


def retry_log_j(logp, budget, kappa=1.0, q=0.0):
    """log P(the sum of geometric waits is at most N), by a plain dynamic program."""
    length = len(logp)
    budget = int(length + (budget - length) / kappa)
    p = np.exp(logp)
    live = np.zeros(length + 1)
    live[0] = 1.0
    for _ in range(budget):
        step = live.copy()
        step[1:] += live[:-1] * p
        step[:-1] -= live[:-1] * p
        step[:-1] -= live[:-1] * (1 - p) * q
        live = step
    return np.log(live[-1])


def numeric_weights(logp, budget, **prior):
    def slope(t):
        up, down = np.array(logp), np.array(logp)
        up[t] += 1e-6
        down[t] -= 1e-6
        return (retry_log_j(up, budget, **prior) - retry_log_j(down, budget, **prior)) / 2e-6

    return [slope(t) for t in range(len(logp))]


TRACES = [[-0.1, -4.6, -0.7], [-2.0], [-1.0, -0.2, -3.0, -0.5, -0.01]]
FLAT, LENGTHS = np.concatenate([np.array(t) for t in TRACES]), [3, 1, 5]


@pytest.mark.parametrize("budget, kappa, q", [(8, 1.0, 0.0), (256, 1.0, 0.0), (64, 5.0, 0.02)])
def test_weights_are_the_derivatives_of_log_j(budget, kappa, q):
    answer = catamount.weigh(
        FLAT, LENGTHS, objective="bfs", budget=budget, kappa=kappa, absorption=q
    )
    expected = np.concatenate([numeric_weights(t, budget, kappa=kappa, q=q) for t in TRACES])
    np.testing.assert_allclose(answer.weights, expected, atol=1e-7)
    np.testing.assert_allclose(
        answer.log_success,
        [retry_log_j(t, budget, kappa, q) for t in TRACES],
        rtol=1e-9,
        atol=1e-15,
    )
    assert answer.feasible.all() and answer.feasible.dtype == bool


@pytest.mark.parametrize(
    "logp", [np.log([0.9, 0.01]), [-0.1, -4.6], [np.float32(-1.0)], (-1.0, [-2.0])]
)
def test_a_flat_batch_without_lengths_is_refused(logp):
    with pytest.raises(ValueError, match="lengths=.*wrap a single trace"):
        catamount.weights(logp, budget=8)


@pytest.mark.parametrize("objective", catamount.OBJECTIVES)
def test_every_objective_answers_and_the_smallest_budget_is_cross_entropy(objective):
    for trace in TRACES:
        smallest = catamount.minimum_budget(objective, len(trace))
        at_smallest = catamount.weights(trace, [len(trace)], objective=objective, budget=smallest)
        if objective == "mcts":
            # Widening samples at nodes already passed may repeat a hit: only the last step has a
            # single chance.
            assert at_smallest[-1] == pytest.approx(1.0, rel=1e-9)
        else:
            np.testing.assert_allclose(at_smallest, np.ones(len(trace)), rtol=1e-9)
        generous = catamount.weights(trace, [len(trace)], objective=objective, budget=1000)
        assert objective == "ce" or generous.sum() < at_smallest.sum()


def test_pass_and_ua_have_closed_forms():
    x, n = np.exp(-2.2), 16
    j = 1 - (1 - x) ** n
    weight = n * x * (1 - x) ** (n - 1) / j
    answer = catamount.weigh([-0.7, -1.5], [2], objective="pass", budget=n)
    np.testing.assert_allclose(answer.weights, [weight, weight], rtol=1e-12)
    np.testing.assert_allclose(answer.log_success, [np.log(j)], rtol=1e-12)


def test_kinds_and_types_come_back_as_they_came():
    single = catamount.weights(FLAT.astype(np.float32), LENGTHS, budget=64)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, catamount.weights(FLAT, LENGTHS, budget=64), rtol=1e-5)
    assert catamount.weights(FLAT.astype(np.float16), LENGTHS, budget=64).dtype == np.float16
    strided = np.repeat(FLAT, 2)[::2]
    assert not strided.flags.c_contiguous
    np.testing.assert_array_equal(
        catamount.weights(strided, np.array(LENGTHS, dtype=np.int32), budget=64),
        catamount.weights(FLAT, LENGTHS, budget=64),
    )
    ragged = catamount.weights(TRACES, budget=64)
    assert [len(part) for part in ragged] == LENGTHS
    np.testing.assert_array_equal(
        np.concatenate(ragged), catamount.weights(FLAT, LENGTHS, budget=64)
    )
    assert len(catamount.weights(np.zeros(0), [], budget=8)) == 0


class Foreign:
    """An array of another library, known by DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_anything_that_speaks_dlpack_is_read():
    answer = catamount.weights(Foreign(FLAT.copy()), LENGTHS, budget=64)
    np.testing.assert_array_equal(answer, catamount.weights(FLAT, LENGTHS, budget=64))


def test_extremes_have_no_nan():
    logp = np.array([-1000.0, -1e-13, -300.0, -200.0])
    for objective in catamount.OBJECTIVES:
        answer = catamount.weigh(logp, [2, 2], objective=objective, budget=256)
        assert np.isfinite(answer.weights).all() and np.isfinite(answer.log_success).all(), (
            objective
        )
    infeasible = catamount.weigh([-1.0] * 5, [5], objective="bfs", budget=4)
    assert not infeasible.feasible[0] and infeasible.log_success[0] == -5.0
    np.testing.assert_array_equal(infeasible.weights, np.ones(5))


@pytest.mark.parametrize(
    "logp, lengths, arguments, words",
    [
        ([-1.0, np.nan], [1, 1], {}, "trace 1 .*not a number"),
        ([-1.0, -2.0, 0.5], [1, 2], {}, "trace 1 .*step 2 is positive"),
        ([-1.0], [0, 1], {}, "trace 0 .*no steps"),
        ([-1.0], [2], {}, "add up to 2"),
        ([-1.0], [-1], {}, "trace 0 .*length is -1"),
        ([[-1.0]], [1], {}, "2 dimensions"),
        ([-1.0], [1.0], {}, "whole numbers"),
        ([-1.0], [1], {"budget": None}, "budget is missing"),
        ([-1.0], [1], {"budget": -1}, "budget must be"),
        ([-1.0], [1], {"budget": 1.5}, "budget must be"),
        ([-1.0], [1], {"objective": "bsf"}, "unknown objective `bsf`"),
        ([-1.0], [1], {"kappa": 0.5}, "kappa"),
        ([-1.0], [1], {"absorption": 1.0}, "absorption"),
        ([-1.0], [1], {"objective": "pass", "kappa": 2.0}, "`pass` has no kappa"),
    ],
)
def test_what_is_wrong_is_named(logp, lengths, arguments, words):
    with pytest.raises(ValueError, match=words):
        catamount.weights(logp, lengths, **{"budget": 8, **arguments})


def test_other_threads_run_meanwhile():
    logp = np.full(40_000, -2.0)
    lengths = np.full(10_000, 4)
    thread = threading.Thread(
        target=lambda: catamount.weights(logp, lengths, objective="vdfs", budget=512)
    )
    count = 0
    thread.start()
    while thread.is_alive():
        count += 1
    # Holding the lock throughout would leave this thread a handful of turns.
    assert count > 1000


def in_child(queue):
    queue.put(catamount.weights(FLAT, LENGTHS, budget=64))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_weigh_too():
    expected = catamount.weights(FLAT, LENGTHS, budget=64)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    np.testing.assert_array_equal(queue.get(timeout=60), expected)
    child.join()
