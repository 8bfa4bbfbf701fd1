"""Transforms: formulas, masks, purity."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import handful_fewshot as fewshot
from handful import FeatureBank
from handful.datasets import load_clinc150
from handful.errors import TaskError
from handful_fewshot import TaskBatch
from handful_fewshot.errors import TransformError
from tests.tasks_at_hand import ragged_tasks, random_task

# What the transforms that need more than a task are given here.
PARAMETERS = {"cl2n": {"base_mean": [0.5, -1.0, 0.0, 2.0, 0.1, 0.3]}, "l2_times": {"factor": 5.0}}


def apply(name: str, task: TaskBatch) -> TaskBatch:
    return fewshot.transform(name, task, **PARAMETERS.get(name, {}))


@pytest.mark.parametrize("name", list(fewshot.TRANSFORMS))
def test_inputs_are_left_alone_and_padding_is_inert(name):
    tasks = ragged_tasks(3)
    padded = TaskBatch.pad(tasks)
    before = padded.query.clone(), padded.support.clone()
    result = apply(name, padded)
    assert torch.equal(padded.query, before[0])
    assert torch.equal(padded.support, before[1])
    for t, task in enumerate(tasks):
        alone = apply(name, task)
        torch.testing.assert_close(result.support[t, : alone.support.shape[1]], alone.support[0])
        torch.testing.assert_close(result.query[t, : alone.query.shape[1]], alone.query[0])


def test_l2_gives_unit_vectors_and_keeps_zero():
    task = random_task(0)
    task = task.with_features(1e-20 * task.support, task.query * (torch.arange(15) > 0)[:, None])
    unit = fewshot.transform("l2", task)
    torch.testing.assert_close(unit.support.norm(dim=-1), torch.ones_like(unit.support[..., 0]))
    assert (unit.query[:, 0] == 0).all()


@given(seed=st.integers(0, 1000))
def test_range_scaling_puts_the_query_into_the_unit_cube(seed):
    scaled = fewshot.transform("range_scale", random_task(seed)).query
    torch.testing.assert_close(scaled.amin(1), torch.zeros(3, 8, dtype=torch.float64))
    torch.testing.assert_close(scaled.amax(1), torch.ones(3, 8, dtype=torch.float64))


def test_a_missing_or_needless_parameter_is_refused():
    with pytest.raises(
        TransformError, match=r"takes base_mean .* got nothing; call transform\('cl2n', task, base_mean="
    ):
        fewshot.transform("cl2n", random_task(0))
    with pytest.raises(
        TransformError, match=r"'l2' takes nothing in addition to the task, got base_mean; call transform\('l2'"
    ):
        fewshot.transform("l2", random_task(0), base_mean=[0.0])
    with pytest.raises(TransformError, match=r"one number per dimension, shape \(8,\), got shape \(3,\)"):
        fewshot.transform("cl2n", random_task(0), base_mean=[0.0, 1.0, 2.0])


def test_cl2n_is_l2_about_the_base_mean():
    task = random_task(4)
    mean = torch.linspace(-1, 1, 8, dtype=torch.float64)
    moved = fewshot.transform("l2", task.with_features(task.support - mean, task.query - mean))
    for given_as in (mean, mean.numpy(), mean.tolist()):
        result = fewshot.transform("cl2n", task, base_mean=given_as)
        torch.testing.assert_close(result.support, moved.support)
        torch.testing.assert_close(result.query, moved.query)


def published_chain(points: torch.Tensor, n_support: int) -> torch.Tensor:
    """PT-MAP's preprocessing of one task with its rotation: power, QR, L2, then centre and L2 in each set."""
    rotated = torch.linalg.qr((points + 1e-6).sqrt().T).R.T
    rotated = rotated / rotated.norm(dim=-1, keepdim=True)
    sets = [part - part.mean(0) for part in (rotated[:n_support], rotated[n_support:])]
    return torch.cat([part / part.norm(dim=-1, keepdim=True) for part in sets])


def test_pt_maps_chain_has_the_distances_of_the_published_one():
    task = random_task(5, dim=40)  # more dimensions than points: there the rotation reduces
    task = task.with_features(task.support.abs(), task.query.abs())
    result = fewshot.transform("pt_map_preprocess", task)
    for t in range(3):
        expected = published_chain(torch.cat([task.support[t], task.query[t]]), task.support.shape[1])
        ours = torch.cat([result.support[t], result.query[t]])
        torch.testing.assert_close(torch.cdist(ours, ours), torch.cdist(expected, expected), atol=1e-7, rtol=0)


@pytest.mark.parametrize(
    "name", ["l2", "range_scale", "range_scale_public_code", "pt_map_preprocess", "cl2n", "found_scale"]
)
@pytest.mark.parametrize("exponent", [-40, 20])
def test_features_of_any_scale_give_the_same_but_for_a_constant(name, exponent):
    task = random_task(3, dtype=torch.float32)
    base = torch.linspace(-1, 1, task.dim)

    def ready(factor: float) -> TaskBatch:
        parameters = {"base_mean": base * factor} if name == "cl2n" else {}
        scaled = task.with_features(task.support * factor, task.query * factor)
        return fewshot.transform(name, scaled, **parameters)

    near, far = ready(1.0), ready(2.0**exponent)
    offset = 0 if name != "range_scale_public_code" else near.query[:, :1] - far.query[:, :1]
    for one, other in ((near.support, far.support), (near.query, far.query)):
        # PT-MAP adds 1e-6 to features near one, which matters to those near zero.
        torch.testing.assert_close(one, other + offset, rtol=0, atol=1e-3 if name.startswith("pt_map") else 1e-5)


def test_features_beyond_the_range_of_their_type_are_refused():
    task = random_task(3, dtype=torch.float32)
    for factor in (1e-42, 1e20):
        with pytest.raises(
            TaskError, match=r"vectors of task 0 have lengths .*; multiply all features by a number that brings"
        ):
            fewshot.transform("l2", task.with_features(task.support * factor, task.query * factor))


def test_the_mean_of_a_task_is_over_support_and_query():
    task = random_task(2)
    centred = fewshot.transform("task_cl2n", task)
    for t in range(3):
        mean = torch.cat([task.support[t], task.query[t]]).mean(0)
        for features, expected in ((centred.support, task.support), (centred.query, task.query)):
            moved = expected[t] - mean
            torch.testing.assert_close(features[t], moved / moved.norm(dim=-1, keepdim=True))


def found_lengths(task: TaskBatch) -> torch.Tensor:
    """The factor of each task: the length of its rows."""
    return fewshot.transform("found_scale", task).query.norm(dim=-1).amax(-1)


def test_the_found_scale_does_not_depend_on_order_or_names():
    task = random_task(6, n_query=30)
    generator = torch.Generator().manual_seed(0)
    sizes = (task.query_slots, task.support_slots, task.n_classes)
    of_query, of_support, renamed = (torch.randperm(size, generator=generator) for size in sizes)
    other = TaskBatch(
        task.support[:, of_support], renamed[task.support_labels[:, of_support]], task.query[:, of_query], 6
    )
    torch.testing.assert_close(found_lengths(task), found_lengths(other))


@pytest.mark.parametrize("shots", [1, 3])
def test_the_found_scale_of_a_task_is_its_own(shots, monkeypatch):
    task = random_task(7, n_tasks=4, shots=shots)
    together = found_lengths(task)
    assert len(together.unique()) == 4
    alone = torch.cat([found_lengths(task.select(slice(t, t + 1))) for t in range(4)])
    torch.testing.assert_close(together, alone)
    monkeypatch.setattr(fewshot.transforms, "FOUND_SCALE_NUMBERS", 1)  # one task at a time
    torch.testing.assert_close(found_lengths(task), alone)


def test_tasks_that_share_a_support_have_their_own_scale():
    task = random_task(8)
    shared = TaskBatch(task.support[:1], task.support_labels[:1], task.query, task.n_classes)
    copied = TaskBatch(
        task.support[:1].expand(3, -1, -1), task.support_labels[:1].expand(3, -1), task.query, task.n_classes
    )
    torch.testing.assert_close(found_lengths(shared), found_lengths(copied))


@pytest.mark.parametrize(("shots", "noise"), [(1, 1.6), (5, 2.0)])
def test_the_found_scale_does_no_harm_to_noisy_features(shots, noise):
    """Ten of twenty classes, vectors with more noise than signal: too soft a scale would join classes."""
    bank = load_clinc150()
    signal = bank.features / np.linalg.norm(bank.features, axis=1, keepdims=True)
    added = np.random.default_rng(0).standard_normal(signal.shape) / signal.shape[1] ** 0.5
    noisy = FeatureBank.from_arrays((signal + noise * added).astype("float32"), bank.labels, list(bank.class_names))
    spec = fewshot.TaskSpec(fewshot.ShotsPerClass(shots), fewshot.UniformOverPool(k_eff=10), 60, 20)
    task, truth = fewshot.gather(noisy, fewshot.draw(noisy.labels, spec, 0, range(6)))

    def right(method: str, transform: str) -> float:
        found = fewshot.solve(method, fewshot.transform(transform, task)).predictions
        return (found == truth).double().mean().item()

    assert right("paddle", "found_scale") > right("nearest_prototype", "l2") + 0.02


def test_degenerate_tasks_have_a_found_scale():
    for shape in ({"n_classes": 1, "n_present": 1}, {"n_query": 1}, {"shots": 1}, {"spread": 0.0}, {"dim": 1}):
        found = fewshot.transform("found_scale", random_task(1, **shape))
        assert found.support.isfinite().all()
        assert found.query.isfinite().all()
    task = random_task(1)
    same = fewshot.transform("found_scale", task.with_features(0 * task.support + 3, 0 * task.query + 3))
    assert same.query.isfinite().all()


@pytest.mark.parametrize("name", sorted(set(fewshot.TRANSFORMS) - {"pt_map_preprocess"}))
def test_names_are_mapped_like_the_features(name):
    """A name that is an example of its class comes out as that example."""
    task = random_task(3, shots=1)
    order = task.support_labels.argsort(-1)
    names = task.support.gather(1, order.unsqueeze(-1).expand_as(task.support))
    named = TaskBatch(task.support, task.support_labels, task.query, task.n_classes, names=names)
    parameters = {"l2_times": {"factor": 3.0}, "cl2n": {"base_mean": [0.1] * task.dim}}.get(name, {})
    found = fewshot.transform(name, named, **parameters)
    mapped = found.support.gather(1, order.unsqueeze(-1).expand_as(found.support))
    torch.testing.assert_close(found.names, mapped)
    # Names change nothing about the features.
    without = fewshot.transform(name, task, **parameters)
    assert torch.equal(found.support, without.support)
    assert torch.equal(found.query, without.query)
    assert without.names is None


def test_names_are_centred_on_their_own_mean_as_pt_map_centres_every_set():
    task = random_task(3)
    named = TaskBatch(task.support, task.support_labels, task.query, task.n_classes, names=task.query[:, :6])
    alone = TaskBatch(task.support, task.support_labels, task.query[:, :6], task.n_classes)
    torch.testing.assert_close(
        fewshot.transform("pt_map_preprocess", named).names, fewshot.transform("pt_map_preprocess", alone).query
    )
