import numpy as np
import pytest

from handful.errors import TrainingError
from handful.extraction.items import list_items
from handful.fewshot.tasks import Balanced, UniformOverPool
from handful.fewshot.training.validation import REALISTIC, check_validation, few_shot_accuracies, validation_specs
from tests.items_at_hand import image_folder


def clusters(spread: float, n_classes: int = 8, each: int = 20):
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(n_classes), each)
    centres = 10 * np.eye(n_classes, 16)
    return (centres[labels] + spread * random.normal(size=(len(labels), 16))).astype(np.float32), labels


def test_features_that_tell_classes_apart_score_one_and_noise_scores_chance():
    assert few_shot_accuracies(*clusters(0.01), n_tasks=20) == {"five_way": 1.0, REALISTIC: 1.0}
    features, labels = clusters(0.01)
    noise = np.random.default_rng(1).normal(size=features.shape).astype(np.float32)
    found = few_shot_accuracies(noise, labels, n_tasks=100)
    assert abs(found["five_way"] - 1 / 5) < 0.04
    assert abs(found[REALISTIC] - 1 / 8) < 0.04


def test_the_two_protocols_are_the_literatures_and_the_papers():
    specs = validation_specs(np.repeat(np.arange(16), 600))
    five_way, realistic = specs["five_way"], specs[REALISTIC]
    assert (five_way.n_classes, five_way.n_query, five_way.query) == (5, 75, Balanced(k_eff=5))
    assert (realistic.n_classes, realistic.n_query, realistic.query) == (None, 75, UniformOverPool(k_eff=5))
    assert five_way.support.shots == realistic.support.shots == 5


@pytest.mark.parametrize(("n_classes", "name"), [(2, "two_way"), (3, "three_way"), (4, "four_way"), (9, "five_way")])
def test_the_name_says_how_many_classes_the_tasks_have(n_classes, name):
    specs = validation_specs(np.repeat(np.arange(n_classes), 20))
    assert list(specs) == [name, REALISTIC]
    assert specs[name].n_classes == min(n_classes, 5)


def test_classes_too_small_for_a_task_are_named(tmp_path):
    folder = image_folder(tmp_path / "photos")
    check_validation(list_items(folder))
    for number in range(5, 8):
        (folder / "class1" / f"{number:02d}.png").unlink()
    with pytest.raises(TrainingError, match="'class1' has 5 images, but 5 shots and a query need at least 6"):
        check_validation(list_items(folder))
    with pytest.raises(TrainingError, match="at least 2 classes"):
        check_validation(list_items(image_folder(tmp_path / "one", n_classes=1)))
