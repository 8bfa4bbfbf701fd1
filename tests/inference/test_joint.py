"""The rules: the evidence rises, a batch is judged once, and what others do changes nothing."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from handful.inference.joint import (
    DONE,
    JUDGED,
    OPENING,
    SHARP,
    SHARPEST,
    SOFTENED,
    SOFTEST,
    JointRules,
    Tally,
    advance,
    judge,
    opening,
    tilts,
    typical_shots,
)
from handful.numerics.dirichlet import dirichlet_divergence
from handful.numerics.simplex import softmax

seeds = st.integers(0, 10_000)


def posed(seed: int, n_tasks: int = 3, n_query: int = 40, n_classes: int = 15, spread: float = 3.0):
    """Scores in nats, how they are counted, and rules that never take uniform proportions."""
    scores = spread * torch.randn(n_tasks, n_query, n_classes, generator=torch.Generator().manual_seed(seed)).double()
    scores[..., :3] += 6  # the classes that occur

    def count(tilt, likelihood):
        u = softmax(scores + tilt.unsqueeze(1))
        return Tally(u.weights.sum(-2), u.log_normaliser().sum(-1) if likelihood else None)

    n = torch.full((n_tasks,), float(n_query), dtype=torch.float64)
    rules = JointRules(n, n_classes, torch.full_like(n, torch.inf), torch.full_like(n, -torch.inf), 1000, 1e-3)
    return count, rules, opening(count(torch.zeros(n_tasks, n_classes).double(), False).counts, n_classes)


def evidence(state, rules, count):
    """Lower bound on `ln p(batch | α)`."""
    _, log_likelihood = count(tilts(state.counts, state.concentration), True)
    total = torch.digamma(rules.n_query + rules.n_classes * state.concentration)
    divergence = dirichlet_divergence(state.counts, state.concentration, rules.n_classes)
    return log_likelihood - rules.n_query * total - divergence


@given(seed=seeds)
def test_the_evidence_never_falls(seed):
    count, rules, state = posed(seed)
    values = []
    while bool((state.stage < JUDGED).any()):
        state = advance(state, rules, count)
        values.append(evidence(state, rules, count))
    # α is learned from the end of the opening on; until then it is no free choice.
    assert torch.stack(values[OPENING:]).diff(dim=0).min() >= -1e-8


def test_stages_follow_one_another():
    count, rules, state = posed(1, n_tasks=1)
    seen = [int(state.stage)]
    while seen[-1] < DONE:
        before, state = state, advance(state, rules, count)
        seen.append(int(state.stage))
        if seen[-2] == JUDGED:
            assert int(state.n_iter) == int(before.n_iter)  # it was judged, not iterated
            assert torch.equal(state.counts, before.counts)
    assert seen[: OPENING + 1] == [0] * OPENING + [SHARP]
    assert seen.count(JUDGED) == 1
    assert seen == sorted(seen)
    assert bool(state.converged)


def test_a_state_that_was_saved_goes_on_as_if_nothing_had_been():
    count, rules, state = posed(2)
    states = [state]
    for _ in range(30):
        states.append(advance(states[-1], rules, count))
    again = states[11]
    for expected in states[12:]:
        again = advance(again, rules, count)
        assert torch.equal(again.counts, expected.counts)
        assert torch.equal(again.stage, expected.stage)


def test_iterations_that_run_out_are_not_convergence():
    count, rules, state = posed(3, n_tasks=1)
    for tol, most in ((1e-12, 2), (0.0, 3)):
        short = JointRules(rules.n_query, rules.n_classes, rules.shots, rules.uniform, most, tol)
        found = state
        while int(found.stage) < DONE:
            found = advance(found, short, count)
        assert not bool(found.converged)
        assert int(found.n_iter) == OPENING + 2 * most


def judged(counts, *, uniform=-math.inf, shots=math.inf, alpha=0.1):
    counts = torch.tensor([counts], dtype=torch.float64)
    state = opening(counts, counts.shape[-1])
    state = type(state)(**(vars(state) | {"concentration": torch.tensor([alpha], dtype=torch.float64)}))
    limits = (torch.tensor([value], dtype=torch.float64) for value in (float(counts.sum()), shots, uniform))
    n, s, u = limits
    return judge(state, JointRules(n, counts.shape[-1], s, u, 10, 1e-3), torch.zeros(1, dtype=torch.float64))


@pytest.mark.parametrize(
    ("counts", "factor"),
    [([75.0], SOFTEST), ([6.0] * 12 + [3.0], math.sqrt(75**2 / (12 * 36 + 9) / 12.5)), ([1.0] * 75, SHARPEST)],
)
def test_the_more_classes_the_sharper(counts, factor):
    found = judged(counts)
    assert float(found.factor) == pytest.approx(factor)
    assert int(found.stage) == SOFTENED


def test_uniform_proportions_end_it():
    for found in (judged([5.0] * 15, uniform=1e9), judged([5.0] * 15, shots=5.0, alpha=5.0)):
        assert bool(found.spread_out)
        assert int(found.stage) == DONE
        assert float(found.factor) == SHARPEST
    assert not bool(judged([5.0] * 15, shots=5.0, alpha=4.9).spread_out)


def test_shots_that_differ_count_by_what_prototypes_lack():
    assert typical_shots(torch.tensor([5.0, 5.0])).item() == 5
    assert typical_shots(torch.tensor([[1.0, 1.0, 100.0]])).tolist() == pytest.approx([1.4925], rel=1e-3)
