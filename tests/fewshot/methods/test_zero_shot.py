"""CLIP's zero-shot answer, and the linear probe that starts at it; on sentences with the vectors of their intents."""

import numpy as np
import pytest
import torch

import handful_fewshot as fewshot
from handful_fewshot.methods.baseline import cosine_gradient
from tests.tasks_at_hand import random_task


def named_task(seed: int) -> fewshot.TaskBatch:
    """A made-up pair of spaces: names are class centres in another rotation, moved away from the features."""
    task = random_task(seed)
    generator = torch.Generator().manual_seed(seed)
    names = torch.randn(3, 6, 8, dtype=torch.float64, generator=generator) + 1
    return fewshot.TaskBatch(task.support, task.support_labels, task.query, 6, names=names)


def cosines(points: np.ndarray, names: np.ndarray) -> np.ndarray:
    return np.array([[x @ t / np.sqrt((x @ x) * (t @ t)) for t in names] for x in points])


def test_zero_shot_is_the_softmax_of_cosines_whatever_the_examples():
    task = named_task(0)
    found = fewshot.solve("zero_shot", task, temperature=7.0)
    for t in range(3):
        expected = np.exp(7 * cosines(task.query[t].numpy(), task.names[t].numpy()))
        expected /= expected.sum(1, keepdims=True)
        np.testing.assert_allclose(found.log_assignments[t].exp(), expected, atol=1e-12)
    other = fewshot.TaskBatch(task.support + 5, task.support_labels, task.query, 6, names=task.names)
    assert torch.equal(fewshot.solve("zero_shot", other, temperature=7.0).log_assignments, found.log_assignments)


def test_the_probe_starts_at_the_zero_shot_answer_and_its_gradient_is_that_of_the_loss():
    task = named_task(1)
    start = fewshot.solve("names_probe", task, max_iter=0)
    torch.testing.assert_close(start.log_assignments, fewshot.solve("zero_shot", task).log_assignments)
    points = torch.nn.functional.normalize(task.support, dim=-1)
    weights = task.names.clone().requires_grad_()
    logits = 9.0 * points @ torch.nn.functional.normalize(weights, dim=-1).mT
    labels = task.support_labels.flatten()
    loss = (
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels, reduction="none").reshape(3, -1).mean(-1).sum()
    )
    (expected,) = torch.autograd.grad(loss, weights)
    torch.testing.assert_close(cosine_gradient(points, task.targets, task.names, 9.0), expected)


def test_the_probe_lowers_the_loss_of_the_support():
    task = named_task(2)
    of_support = fewshot.TaskBatch(task.support, task.support_labels, task.support, 6, names=task.names)
    losses = []
    for n in (0, 20, 100):
        log_u = fewshot.solve("names_probe", of_support, max_iter=n, temperature=10.0).log_assignments
        losses.append(-float(log_u.gather(-1, task.support_labels.unsqueeze(-1)).mean()))
    assert losses[0] > losses[1] > losses[2]


@pytest.fixture(scope="module")
def sentences():
    """Sentences of CLINC150 and vectors of its names; ones that MiniLM gave, where it is installed."""
    minilm = pytest.importorskip("handful.extraction.encoders").load_encoder
    from handful.datasets import load_clinc150
    from handful.errors import MissingExtraError

    bank = load_clinc150()
    try:
        names = minilm("minilm").embed([name.replace("_", " ") for name in bank.class_names])
    except (MissingExtraError, OSError) as error:
        pytest.skip(str(error))
    spec = fewshot.TaskSpec(fewshot.ShotsPerClass(2), fewshot.UniformOverPool(5), n_query=40)
    return fewshot.gather(bank, fewshot.draw(bank.labels, spec, 0, range(4)), names=np.asarray(names))


def test_names_of_intents_label_sentences(sentences):
    task, truth = sentences
    right = {
        name: float((fewshot.solve(name, task, **options).predictions == truth).double().mean())
        for name, options in (("zero_shot", {}), ("names_probe", {}), ("transclip", {"examples": True}))
    }
    assert right["zero_shot"] > 0.6
    assert right["names_probe"] > right["zero_shot"]
    assert right["transclip"] > 0.6
