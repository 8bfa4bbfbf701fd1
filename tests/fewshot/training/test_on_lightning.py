import csv
import math

import pytest
import torch
from torch.nn import functional

from handful.progress import Reporter
from handful_fewshot.errors import CheckpointError
from handful_fewshot.networks.checkpoint import Checkpoint
from handful_fewshot.training import Recipe
from handful_fewshot.training.batches import Pictures
from handful_fewshot.training.run import STATE
from tests.trainings_at_hand import RECIPE, small_split

pytestmark = pytest.mark.beyond
HERE = {"accelerator": "cpu", "devices": 1, "precision": "32-true", "workers": 0}


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    return small_split(tmp_path_factory.mktemp("photos"))


@pytest.fixture(scope="module")
def finished(split, tmp_path_factory, on_lightning):
    folder = tmp_path_factory.mktemp("run")
    pictures = Pictures(split.base), Pictures(split.validation)
    assert on_lightning.fit(*pictures, RECIPE, folder, reporter=Reporter(), **HERE)
    return folder


def test_smoothed_labels_are_the_public_checkpoints(split, on_lightning):
    module = on_lightning.BaseTraining(Recipe(network="conv4", label_smoothing=0.1), 4, None)
    logits, label = torch.tensor([[2.0, 0.5, -1.0, 0.0]]), torch.tensor([1])
    found = functional.cross_entropy(logits, label, label_smoothing=module.smoothing)
    target = torch.tensor([[0.1 / 3, 0.9, 0.1 / 3, 0.1 / 3]])
    torch.testing.assert_close(found, -(target * logits.log_softmax(1)).sum())


def test_a_finished_run_has_a_checkpoint_a_state_and_a_log(finished, split):
    kept = Checkpoint.load(finished)
    assert kept.classes == split.base.class_names
    assert kept.recipe == RECIPE.to_mapping()
    assert kept.data_hash == split.base.data_hash
    assert kept.weights["classifier.weight"].shape == (4, 256)
    assert (finished / STATE).is_file()
    with (finished / "logs" / "version_0" / "metrics.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["epoch"] for row in rows if row["loss"]] == ["0", "1", "2"]
    accuracies = [float(row["realistic"]) for row in rows if row["realistic"]]
    assert len(accuracies) == 3
    assert math.isclose(kept.validation["realistic"], max(accuracies), abs_tol=1e-6)
    assert all(row["two_way"] for row in rows if row["realistic"])


def test_without_validation_the_last_epoch_is_kept(split, tmp_path, on_lightning):
    seen = []
    on_lightning.fit(Pictures(split.base), None, RECIPE, tmp_path, reporter=Reporter(seen.append), **HERE)
    kept = Checkpoint.load(tmp_path)
    assert kept.epoch == RECIPE.epochs
    assert {(one.stage, one.unit) for one in seen} == {("train", "steps")}
    assert [one.done for one in seen] == list(range(1, seen[0].total + 1))
    assert kept.validation == {}


def test_the_best_is_kept_and_remembered_by_a_resumed_training(tmp_path, split, on_lightning):
    class Trainer:
        is_global_zero, current_epoch = True, 0

        def save_checkpoint(self, path):
            pass

    module, trainer = on_lightning.BaseTraining(RECIPE, 4, split.validation), Trainer()
    keep = on_lightning.KeepBest(tmp_path, split.base)
    for epoch, accuracy in enumerate([0.5, 0.7, 0.6]):
        trainer.current_epoch, module.accuracies = epoch, {"realistic": accuracy}
        keep.on_train_epoch_end(trainer, module)
    assert Checkpoint.load(tmp_path).epoch == 2
    resumed = on_lightning.KeepBest(tmp_path, split.base)
    resumed.load_state_dict(keep.state_dict())
    trainer.current_epoch, module.accuracies = 3, {"realistic": 0.65}
    resumed.on_train_epoch_end(trainer, module)
    assert Checkpoint.load(tmp_path).epoch == 2


def test_loading_workers_change_nothing(finished, split, tmp_path, on_lightning):
    pictures, machine = (Pictures(split.base), Pictures(split.validation)), {**HERE, "workers": 1}
    on_lightning.fit(*pictures, RECIPE, tmp_path, reporter=Reporter(), **machine)
    one, other = Checkpoint.load(finished), Checkpoint.load(tmp_path)
    assert one.epoch == other.epoch
    assert all(torch.equal(one.weights[name], other.weights[name]) for name in one.weights)


def test_a_state_is_read_without_running_code(tmp_path, on_lightning):
    states, ran = on_lightning.WholeStates(), tmp_path / "ran"
    states.save_checkpoint({"epoch": 1, "state_dict": {"a": torch.ones(2)}}, tmp_path / "state")
    assert states.load_checkpoint(tmp_path / "state")["epoch"] == 1
    content = (tmp_path / "state").read_bytes()
    states.remove_checkpoint(tmp_path / "state")
    assert not (tmp_path / "state").exists()

    class Hostile:
        def __reduce__(self):
            return ran.write_text, ("yes",)

    torch.save({"epoch": Hostile()}, tmp_path / "pickle")
    (tmp_path / "hostile").write_bytes(on_lightning.sealed((tmp_path / "pickle").read_bytes()))
    (tmp_path / "cut").write_bytes(content[: len(content) // 2])
    (tmp_path / "changed").write_bytes(content.replace(torch.ones(2).numpy().tobytes(), b"\0\0\0\0\0\0\0\0"))
    for name in ("hostile", "cut", "changed"):
        with pytest.raises(CheckpointError, match="is not the state of a training, or it was changed; remove it"):
            states.load_checkpoint(tmp_path / name)
    assert not ran.exists()
