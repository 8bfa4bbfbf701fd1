import json
import sys
from dataclasses import replace

import pytest

from handful.errors import FileFormatError, MissingExtraError, OptionError, TrainingError
from handful.fewshot.networks.checkpoint import Checkpoint
from handful.fewshot.training import BaseSplit, train
from handful.fewshot.training.run import FINISHED, STATE
from handful.fewshot.training.splits import only_classes
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
    with pytest.raises(MissingExtraError, match=r"pip install .*\[train\]'"):
        train(split, RECIPE, tmp_path)
