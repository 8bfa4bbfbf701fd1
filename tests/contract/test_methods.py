"""What every method promises, checked for every method in the table and for its variants.

One file, though a long one: all promises share one table of methods and of the exceptions, each with its reason.
"""

import contextlib
import dataclasses
import gc
import inspect
import json
import pickle
import weakref
from collections.abc import Callable
from functools import partial
from types import FunctionType, ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import handful
import handful_fewshot as fewshot
import handful_fewshot.dispatch
import handful_fewshot.errors
from handful import FeatureBank
from handful_fewshot import METHODS, TaskBatch
from handful_fewshot.methods import ici
from tests.banks_at_hand import random_bank
from tests.tasks_at_hand import ragged_tasks, random_task

# Options that make another method of one: checked under the name `method:variant`.
VARIANTS = {
    "baseline:prototypes": {"head": "prototypes", "max_iter": 5},
    "bd_cspn:public_code": {"public_code": True},
    "em_dirichlet:examples": {"examples": True, "max_iter": 3, "max_bounds": 10},
    "transclip:examples": {"examples": True},
    "pt_map:column_mass": {"column_mass": 3.0, "max_iter": 3, "max_sweeps": 100},
    "ilpc:balanced": {"balanced": True, "training_steps": 30},
    "proto_lp:balanced": {"balanced": True, "max_iter": 2, "cost_weight": 1.0},
}
# Short runs where the default is long, for TIM with steps long enough to matter, at a temperature for features that are
# not of unit length; everything else at its defaults.
OPTIONS = {
    **{name: {"max_iter": 30} for name in ("paddle", "soft_kmeans", "prior_em")},
    "paddle_gd": {"max_iter": 5},
    "tim": {"max_iter": 30, "learning_rate": 1e-2, "temperature": 0.5},
    "tim_adm": {"max_iter": 20, "temperature": 0.5},
    "alpha_tim": {"max_iter": 30, "learning_rate": 1e-2, "temperature": 0.5},
    "ici": {"max_iter": 1},
    "ilpc": {"training_steps": 30},
    "baseline": {"max_iter": 20},
    "baseline_pp": {"max_iter": 20},
    "pt_map": {"max_iter": 3, "max_sweeps": 100},
    "proto_lp": {"max_iter": 10},
    "ostim": {"max_iter": 10, "learning_rate": 1e-2},
    "eol": {"max_iter": 10},
    "em_dirichlet": {"max_iter": 3, "max_bounds": 10},
    "names_probe": {"max_iter": 5},
    **VARIANTS,
}
# Adam divides a gradient by its own size, so where a gradient vanishes it turns rounding into steps of 1e-3; five
# iterations cannot go further than this. The regressions of ICI end at a tolerance, in another order a step later.
ROUNDING = {"paddle_gd": 5e-3, "ici": 1e-6, "batch_classifier": 1e-5}
SINGLE_ROUNDING = {"paddle_gd": 2e-2}
# Angles between features, and weight decay towards zero, mean something only about the origin; so does the length of
# the rows, which sets the ridge of a head.
TIED_TO_ORIGIN = {
    *("batch_classifier", "sparse_em"),
    *("baseline", "baseline_pp", "bd_cspn", "bd_cspn:public_code"),
    *("ilpc", "ilpc:balanced", "proto_lp", "proto_lp:balanced"),
    *("oslo", "ostim", "eol", "prototype_threshold"),
    *("em_dirichlet", "em_dirichlet:examples", "transclip", "transclip:examples", "stata"),
    *("zero_shot", "names_probe"),
}
# A step of Adam on coordinates is not a geometric object: it moves with a translation but not with a rotation. Nor is
# a diagonal covariance, nor the noise of a class, which depends on its coordinates.
TIED_TO_AXES = {
    "batch_classifier",
    *("paddle_gd", "baseline:prototypes", "tim", "alpha_tim", "ostim", "eol"),
    *("transclip", "transclip:examples", "stata", "names_probe"),
}
seeds = st.integers(0, 10_000)
# Methods and variants share their solvers, so one example of each promise is enough every day.
EXAMPLES = 1 if settings.default.max_examples <= 3 else settings.default.max_examples


def method_of(name: str) -> fewshot.Method:
    return METHODS[name.split(":")[0]]


def solve(name: str, task: TaskBatch) -> fewshot.Solution:
    return fewshot.solve(method_of(name).name, task, **OPTIONS.get(name, {}))


def defined_parts(solution: fewshot.Solution) -> dict[str, torch.Tensor]:
    """Prototypes and objective, where the method has them."""
    parts = {} if solution.unknown is None else {"unknown": solution.unknown[..., 0]}
    for part in ("prototypes", "objective"):
        with contextlib.suppress(handful_fewshot.errors.UndefinedError):
            parts[part] = getattr(solution, part)
    return parts


def close_parts(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert a.keys() == b.keys()
    for part, value in a.items():
        close(value, b[part])


def close(a: torch.Tensor, b: torch.Tensor, atol: float = 1e-8) -> None:
    torch.testing.assert_close(a, b, atol=atol, rtol=1e-7)


@pytest.fixture(params=[*METHODS, *VARIANTS], scope="module")
def name(request) -> str:
    return request.param


@pytest.fixture(autouse=True)
def short_path_of_ici(monkeypatch):
    """A grid of 15 values instead of 100: promises do not depend on how fine it is, and it takes most of the time."""
    monkeypatch.setattr(ici, "N_LEVELS", 15)


def test_a_method_is_in_the_table_with_a_transform_and_pickles(name):
    method = method_of(name)
    assert method.name == name.split(":")[0]
    assert method.transform in fewshot.TRANSFORMS
    assert pickle.loads(pickle.dumps(method)) == method


def test_a_method_is_told_neither_query_labels_nor_how_many_classes_are_present(name):
    """By type: it takes a task, which has no place for either, and its own options."""
    parameters = inspect.signature(method_of(name).solve).parameters.values()
    assert [parameter.annotation for parameter in parameters] == ["TaskBatch", method_of(name).options.__name__]
    fields = {field.name for field in dataclasses.fields(TaskBatch)}
    assert fields == {"support", "support_labels", "query", "n_classes", "support_mask", "query_mask", "names"}


def answers_under_two_truths(name: str, gather: Callable) -> list[torch.Tensor]:
    """From bank to answer twice, with the same rows: once two classes are present in the query, once all six."""
    bank = random_bank(n_classes=6, least=20, most=20)
    spec = fewshot.TaskSpec(fewshot.ShotsPerClass(3), fewshot.UniformOverPool(k_eff=2), n_query=12)
    drawn = fewshot.draw(bank.labels, spec, seed=0, indices=[0])
    other_truth = np.arange(12).reshape(1, 12) % 6
    other_labels = bank.labels.copy()
    other_labels[drawn.query] = other_truth
    other_bank = FeatureBank.from_arrays(bank.features, other_labels, bank.class_names)
    worlds = [(bank, drawn), (other_bank, dataclasses.replace(drawn, query_labels=other_truth))]
    return [solve(name, gather(*world)[0]).log_assignments for world in worlds]


def test_an_answer_does_not_depend_on_query_labels_nor_on_how_many_classes_are_present(name):
    """By trial: with the rows left as they are, another truth in bank and draw gives the same bits."""
    one, other = answers_under_two_truths(name, fewshot.gather)
    assert torch.equal(one, other)


def test_the_trial_finds_out_a_gather_that_lets_labels_slip_into_the_features():
    def leaky_gather(*world):
        task, truth = fewshot.gather(*world)
        return task.with_features(task.support, task.query + 0.1 * truth.unsqueeze(-1)), truth

    one, other = answers_under_two_truths("nearest_prototype", leaky_gather)
    assert not torch.equal(one, other)


@settings(max_examples=EXAMPLES)
@given(seed=seeds)
def test_rows_sum_to_one(name, seed):
    solution = solve(name, random_task(seed))
    sums = solution.log_assignments.exp().sum(-1)
    close(sums, torch.ones_like(sums))
    close(solution.proportions.sum(-1), torch.ones(3, dtype=torch.float64))
    # A method that rejects says of every query how sure it is.
    assert (solution.unknown is not None) == method_of(name).rejects
    if solution.unknown is not None:
        assert solution.unknown.shape == solution.log_assignments.shape[:2]
        assert ((solution.unknown >= 0) & (solution.unknown <= 1)).all()
        assert len(solution.unknown.unique()) > 1
    # ICI's rounds end when every point is in; all others without a tolerance take a fixed number of steps.
    if "tol" not in method_of(name).options.__dataclass_fields__ and name != "ici":
        assert solution.converged.all()


def with_names(task: TaskBatch, names: torch.Tensor) -> TaskBatch:
    return TaskBatch(task.support, task.support_labels, task.query, task.n_classes, names=names)


def test_names_are_read_or_make_no_difference_and_those_of_a_task_are_its_own(name):
    task = random_task(2)
    names = torch.randn(3, task.n_classes, task.dim, dtype=task.dtype, generator=torch.Generator().manual_seed(0))
    named = solve(name, with_names(task, names)).log_assignments
    assert torch.equal(named, solve(name, task).log_assignments) == (not method_of(name).names)
    # Shared names are copies; tasks of a batch have their own.
    close(solve(name, with_names(task, names[:1])).log_assignments[0].exp(), named[0].exp())
    alone = solve(name, with_names(task, names).select(torch.tensor([2, 0])))
    close(alone.log_assignments.exp(), named[[2, 0]].exp())
    if method_of(name).names:  # class means stand for names that are missing
        means = torch.stack([task.support[0][task.support_labels[0] == k].mean(0) for k in range(task.n_classes)])
        of_means = solve(name, with_names(task, means[None])).log_assignments[0].exp()
        if name != "em_dirichlet:examples":  # without names, each example is left out of the mean of its class
            close(of_means, solve(name, task).log_assignments[0].exp())


@settings(max_examples=EXAMPLES)
@given(seed=seeds)
def test_a_task_is_answered_alone_as_in_a_batch(name, seed):
    """Chunks of one task are tasks on their own."""
    task = random_task(seed, n_tasks=4)
    together = solve(name, task)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fewshot.dispatch, "CHUNK_NUMBERS", 1)
        alone = solve(name, task)
    close(together.log_assignments.exp(), alone.log_assignments.exp())
    close_parts(defined_parts(together), defined_parts(alone))
    assert torch.equal(together.n_iter, alone.n_iter)
    assert torch.equal(together.converged, alone.converged)


@settings(max_examples=EXAMPLES)
@given(seed=seeds)
def test_order_of_queries_and_support_and_names_of_classes_are_irrelevant(name, seed):
    task, generator = random_task(seed), torch.Generator().manual_seed(seed)
    sizes = (task.query_slots, task.support_slots, task.n_classes)
    of_query, of_support, renamed = (torch.randperm(size, generator=generator) for size in sizes)
    labels = renamed[task.support_labels[:, of_support]]
    other = TaskBatch(task.support[:, of_support], labels, task.query[:, of_query], task.n_classes)
    a, b = solve(name, task), solve(name, other)
    close(a.log_assignments.exp()[:, of_query], b.log_assignments.exp()[..., renamed], ROUNDING.get(name, 1e-8))
    if a.unknown is not None:
        close(a.unknown[:, of_query], b.unknown, ROUNDING.get(name, 1e-8))


@settings(max_examples=EXAMPLES)
@given(seed=seeds)
def test_origin_and_orientation_of_features_are_irrelevant(name, seed):
    task = random_task(seed)
    generator = torch.Generator().manual_seed(seed)
    rotation = torch.linalg.qr(torch.randn(8, 8, dtype=torch.float64, generator=generator)).Q
    offset = 5 * torch.randn(8, dtype=torch.float64, generator=generator)
    if name in TIED_TO_AXES:
        rotation = torch.eye(8, dtype=torch.float64)
    if name in TIED_TO_ORIGIN:
        offset = torch.zeros(8, dtype=torch.float64)
    if name in TIED_TO_AXES & TIED_TO_ORIGIN:
        return
    moved = task.with_features(task.support @ rotation + offset, task.query @ rotation + offset)
    a, b = solve(name, task), solve(name, moved)
    close(a.log_assignments.exp(), b.log_assignments.exp(), atol=ROUNDING.get(name, 1e-6))
    if "prototypes" in defined_parts(a):
        close(a.prototypes @ rotation + offset, b.prototypes, atol=ROUNDING.get(name, 1e-6))


@settings(max_examples=EXAMPLES)
@given(seed=seeds)
def test_padding_is_inert_whatever_lies_under_it_and_shots_may_differ(name, seed):
    tasks = ragged_tasks(seed)
    padded = TaskBatch.pad(tasks)
    fill = torch.tensor(float("nan"), dtype=torch.float64)
    together = solve(
        name,
        TaskBatch(
            padded.support.where(padded.support_mask[..., None], fill),
            padded.support_labels.where(padded.support_mask, 99),
            padded.query.where(padded.query_mask[..., None], fill),
            *(padded.n_classes, padded.support_mask, padded.query_mask),
        ),
    )
    for t, task in enumerate(tasks):
        alone, n = solve(name, task), task.query.shape[1]
        close(together.log_assignments[t, :n].exp(), alone.log_assignments[0].exp())
        close(together.proportions[t], alone.proportions[0])
        close_parts({part: value[t : t + 1] for part, value in defined_parts(together).items()}, defined_parts(alone))
        assert together.n_iter[t] == alone.n_iter[0]
        assert (together.predictions[t, n:] == -1).all()
        assert together.log_assignments[t, n:].isneginf().all()
        if alone.unknown is not None:
            close(together.unknown[t, :n], alone.unknown[0])
            close(together.unknown[t, n:], torch.zeros_like(together.unknown[t, n:]))


@settings(max_examples=EXAMPLES)
@given(seed=seeds)
def test_a_shared_support_equals_its_copies(name, seed):
    task = random_task(seed)
    shared = TaskBatch(task.support[:1], task.support_labels[:1], task.query, task.n_classes)
    copied = TaskBatch(
        task.support[:1].expand(3, -1, -1), task.support_labels[:1].expand(3, -1), task.query, task.n_classes
    )
    a, b = solve(name, shared), solve(name, copied)
    close(a.log_assignments.exp(), b.log_assignments.exp())
    close_parts(defined_parts(a), defined_parts(b))


def test_inputs_are_left_alone_and_the_same_call_gives_the_same_bits(name):
    task = random_task(5, dtype=torch.float32)
    before = [x.clone() for x in (task.support, task.support_labels, task.query)]
    solution = solve(name, task)
    _ = defined_parts(solution)
    for x, y in zip(before, (task.support, task.support_labels, task.query), strict=True):
        assert torch.equal(x, y)
    assert torch.equal(solution.log_assignments, solve(name, task).log_assignments)
    again = pickle.loads(pickle.dumps(solution))
    assert torch.equal(again.log_assignments, solution.log_assignments)
    close_parts(defined_parts(again), defined_parts(solution))


@settings(max_examples=EXAMPLES)
@given(seed=seeds)
def test_single_precision_is_close_to_double(name, seed):
    task = random_task(seed, spread=0.7)
    single = TaskBatch(task.support.float(), task.support_labels, task.query.float(), task.n_classes)
    a, b = solve(name, task), solve(name, single)
    assert b.log_assignments.dtype == torch.float32
    close(a.log_assignments.exp(), b.log_assignments.exp().double(), SINGLE_ROUNDING.get(name, 2e-3))


def scaled(task: TaskBatch, factor: float) -> TaskBatch:
    return task.with_features(factor * task.support, factor * task.query)


def answer_or_sentence(name: str, task: TaskBatch) -> tuple[fewshot.Solution | None, str]:
    try:
        return solve(name, task), ""
    except handful.errors.TaskError as error:
        return None, str(error)


def test_any_magnitude_is_answered_with_numbers_or_refused_with_a_sentence(name):
    """In single precision small features may make all classes tie, which is refused."""
    magnitudes = [(exponent, torch.float32) for exponent in (-45, -20, -6, 3, 20, 37)]
    for exponent, dtype in (*magnitudes, (-5, torch.float64), (6, torch.float64)):
        solution, refused = answer_or_sentence(name, scaled(random_task(5, dtype=dtype), 10.0**exponent))
        if solution is None:
            assert "first, or multiply all features" in refused
            assert dtype == torch.float32
            assert not -3 < exponent < 7
            continue
        assert not solution.log_assignments.isnan().any()
        for value in (solution.proportions, *(defined_parts(solution).values() if abs(exponent) <= 6 else ())):
            assert value.isfinite().all()


def test_after_its_transform_a_method_does_not_see_the_scale(name):
    """Powers of two, so that features lose no digit; l2 stands for transforms that need base classes."""
    kind = method_of(name).transform
    ready = partial(fewshot.transform, "l2" if kind in ("cl2n", "raw") else kind)
    task = random_task(4, dtype=torch.float32)
    near, *others = (solve(name, ready(scaled(task, 2.0**exponent))) for exponent in (0, -40, 20))
    # The offset of PT-MAP's transform is small beside features near one, and nothing beside larger ones.
    atol = SINGLE_ROUNDING.get(name, 1e-2 if name.startswith("pt_map") else 1e-4)
    for far in others:
        assert torch.equal(near.predictions, far.predictions)
        close(near.log_assignments.exp(), far.log_assignments.exp(), atol)


def test_points_that_all_coincide_say_nothing(name):
    task = random_task(6)
    for value in (0.0, -3.0):
        solution = solve(name, task.with_features(task.support * 0 + value, task.query * 0 + value))
        found = solution.log_assignments.exp()
        # Of classes that are equal, the chains of `batch_classifier` met some more often than others.
        close(found, torch.full_like(found, 1 / task.n_classes), 0.06 if name == "batch_classifier" else 1e-6)


def test_small_and_degenerate_tasks_have_answers(name):
    for shape in ({"n_classes": 1, "n_present": 1}, {"n_query": 1}, {"shots": 1}, {"spread": 0.0}, {"dim": 1}):
        solution = solve(name, random_task(1, **shape))
        assert not solution.log_assignments.isnan().any()
        assert all(value.isfinite().all() for value in defined_parts(solution).values())


def test_options_are_frozen_known_by_name_and_survive_json(name):
    method = method_of(name)
    options = method.make_options(**OPTIONS.get(name, {}))
    assert method.make_options(**json.loads(json.dumps(dataclasses.asdict(options)))) == options
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.max_iter = 3
    known = ", ".join(field.name for field in dataclasses.fields(method.options)) or "none"
    with pytest.raises(handful.errors.OptionError, match=f"no option 'speed'; it has {known}$"):
        fewshot.solve(method.name, random_task(0), speed=3)


# Their prototypes are means of the answer, computed on first use.
LATE_PROTOTYPES = {"paddle", "soft_kmeans", "unem"}


def bytes_behind(root: object) -> dict[int, int]:
    """Sizes of all arrays that a value keeps alive, by their address."""
    found, seen, waiting = {}, set(), [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, (type, ModuleType, FunctionType)):
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            found[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
        waiting.extend(gc.get_referents(value))
    return found


@pytest.mark.beyond
def test_a_solution_keeps_no_more_than_twice_its_answer_beside_the_task(name, monkeypatch):
    monkeypatch.setattr(fewshot.dispatch, "CHUNK_NUMBERS", 10_000)  # more than one chunk
    bank = random_bank(n_classes=6, least=40, most=40, dim=64)
    spec = fewshot.TaskSpec(fewshot.ShotsPerClass(3), fewshot.UniformOverPool(k_eff=2), n_query=30)
    task, _ = fewshot.gather(bank, fewshot.draw(bank.labels, spec, seed=0, indices=range(9)))
    solution = solve(name, task)
    own = bytes_behind(solution)
    for of_task in bytes_behind(task):
        own.pop(of_task, None)
    answer = solution.log_assignments.nbytes
    if isinstance(solution.find_prototypes, torch.Tensor):
        assert name not in LATE_PROTOTYPES
        answer += solution.prototypes.nbytes
    assert sum(own.values()) <= 2 * answer


class LargeArrays(TorchDispatchMode):
    """Counts the arrays that live at the same time, in units of `n_bytes`, less than one unit left out."""

    def __init__(self, n_bytes: int) -> None:
        super().__init__()
        self.n_bytes, self.most, self.seen = n_bytes, 0, weakref.WeakValueDictionary()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.seen.update({id(x): x for x in tree_leaves(result) if isinstance(x, torch.Tensor)})
        storages = [x.untyped_storage() for x in list(self.seen.values())]
        units = {storage.data_ptr(): storage.nbytes() // self.n_bytes for storage in storages}
        self.most = max(self.most, sum(units.values()))
        return result


@pytest.mark.beyond
def test_a_further_task_takes_no_more_arrays_of_the_support_than_declared(name):
    """Few queries and dimensions, so that only arrays of shape [support, class] are large."""
    n_classes, shots, most = 30, 5, []
    for n_tasks in (1, 2):
        task = random_task(7, n_tasks=n_tasks, n_classes=n_classes, shots=shots, n_query=2, dim=3, dtype=torch.float32)
        with LargeArrays(4 * shots * n_classes**2) as arrays:
            known = method_of(name).options.__dataclass_fields__
            short = {option: value for option, value in {"record": True, "max_iter": 3}.items() if option in known}
            fewshot.solve(method_of(name).name, task, **{**OPTIONS.get(name, {}), **short})
        most.append(arrays.most)
    assert most[1] - most[0] <= method_of(name).support_arrays
