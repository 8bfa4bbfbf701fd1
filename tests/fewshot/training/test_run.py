"""train: what is refused, what resumes; and the tasks that an epoch is judged by."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from handful.errors import FileFormatError, MissingExtraError, OptionError
from handful.extraction.items import list_items
from handful_fewshot.errors import TrainingError
from handful_fewshot.networks.checkpoint import Checkpoint
from handful_fewshot.tasks import Balanced, UniformOverPool
from handful_fewshot.training import BaseSplit, train
from handful_fewshot.training.run import (
    FINISHED,
    REALISTIC,
    STATE,
    check_validation,
    few_shot_accuracies,
    validation_specs,
)
from handful_fewshot.training.splits import only_classes
from tests.items_at_hand import image_folder
from tests.trainings_at_hand import RECIPE, small_split

pytestmark = pytest.mark.beyond


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    return small_split(tmp_path_factory.mktemp("photos"))


@pytest.fixture(scope="module")
def run(split, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "one"
    return folder, train(split, RECIPE, folder, accelerator="cpu")


def test_a_finished_run_says_so_and_keeps_no_state(run):
    folder, kept = run
    about = json.loads((folder / "run.json").read_text())
    assert about.items() >= RECIPE.to_mapping().items()
    assert about["inputs"]["base images"]["name"] == "the set of 32 images of 4 classes"
    assert (folder / FINISHED).exists()
    assert not (folder / STATE).exists()
    assert kept.epoch == Checkpoint.load(folder).epoch


def test_another_recipe_or_other_images_do_not_continue_a_run(run, split, tmp_path):
    folder, _ = run
    with pytest.raises(OptionError, match=r"differs in epochs \(3, now 4\); give it what it was started with"):
        train(split, replace(RECIPE, epochs=4), folder, accelerator="cpu")
    with pytest.raises(OptionError, match="does not contain the base images of the run"):
        train(small_split(tmp_path, each=9), RECIPE, folder, accelerator="cpu")


def test_a_folder_with_something_else_is_left_alone(split, tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(TrainingError, match="nor a run of `handful train`"):
        train(split, RECIPE, tmp_path, accelerator="cpu")
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(FileFormatError, match=r"run\.json is damaged"):
        train(split, RECIPE, tmp_path, accelerator="cpu")


def test_too_few_classes_are_refused(split, tmp_path):
    with pytest.raises(TrainingError, match="at least 2 base classes"):
        train(BaseSplit(only_classes(split.base, [0]), None), RECIPE, tmp_path)
    with pytest.raises(TrainingError, match="both trained on and validated with"):
        train(BaseSplit(split.base, split.base), RECIPE, tmp_path)


def test_a_batch_larger_than_the_data_is_refused(split, tmp_path):
    with pytest.raises(TrainingError, match="there are 32; lower the batch size"):
        train(split, replace(RECIPE, batch_size=64), tmp_path, accelerator="cpu")


def test_settings_of_the_machine_are_checked(split, tmp_path):
    with pytest.raises(OptionError, match="precision must be 32-true, 16-mixed, bf16-mixed, 64-true"):
        train(split, RECIPE, tmp_path, precision="8")
    with pytest.raises(OptionError, match="devices must be at least 1"):
        train(split, RECIPE, tmp_path, devices=0)


def test_without_lightning_it_says_what_to_install(split, on_lightning, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning", None)
    monkeypatch.delitem(sys.modules, on_lightning.__name__)
    with pytest.raises(MissingExtraError, match=r'pip install .*\[train\]"'):
        train(split, RECIPE, tmp_path)


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
