import pytest

from handful.banks.bank import FeatureBank
from handful.cli.main import main
from handful_fewshot.cli import train
from handful_fewshot.networks import NETWORKS
from handful_fewshot.networks.checkpoint import Checkpoint
from handful_fewshot.training import splits
from tests.items_at_hand import image_folder, zipped
from tests.trainings_at_hand import OPTIONS

pytestmark = pytest.mark.beyond
SHORT = [*OPTIONS, "--epochs", "1"]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return image_folder(tmp_path_factory.mktemp("photos") / "all", n_classes=6, each=8)


def refused(capsys, *arguments):
    assert main(["train", *map(str, arguments)]) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


def test_from_images_to_a_bank(photos, tmp_path, capsys):
    run, bank = tmp_path / "run", tmp_path / "bank"
    archive = zipped(photos, tmp_path / "photos.zip", prefix="base/")
    assert main(["train", "--items", f"{archive}/base", "--hold-out", "2", "--out", str(run), *SHORT]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{run}  epoch 1  two_way ")
    assert "realistic" in printed
    extraction = ["extract", "--items", str(photos), "--encoder", f"checkpoint:{run}", "--out", str(bank)]
    assert main(extraction) == 0
    found = FeatureBank.load(bank)
    assert (found.n_rows, found.dim) == (48, 256)
    assert "centre crop 12" in found.provenance.preprocessing
    assert found.provenance.encoder.startswith("checkpoint of conv4, weights ")


def test_every_option_reaches_the_recipe(photos, tmp_path):
    options = ["--no-flip", "--no-enlarge", "--rotations", "--jitter", "0.1", "--drop-at", "1", "--drop-at", "2"]
    options += ["--momentum", "0.8", "--weight-decay", "0.001", "--label-smoothing", "0.2", "--seed", "5"]
    options += ["--mean", "1", "1", "1", "--std", "0.3", "0.3", "0.3"]
    assert main(["train", "--items", str(photos), "--out", str(tmp_path / "run"), *SHORT, *options]) == 0
    assert Checkpoint.load(tmp_path / "run").recipe == {
        "network": "conv4",
        "side": 12,
        "epochs": 1,
        "batch_size": 8,
        "learning_rate": 0.02,
        "momentum": 0.8,
        "weight_decay": 0.001,
        "drop_at": [1, 2],
        "label_smoothing": 0.2,
        "smallest_area": 0.5,
        "jitter": 0.1,
        "flip": False,
        "rotations": True,
        "enlarge": False,
        "mean": [1, 1, 1],
        "std": [0.3, 0.3, 0.3],
        "seed": 5,
    }


def test_validation_classes_of_their_own(photos, tmp_path, capsys):
    others = image_folder(tmp_path / "others", n_classes=3)
    for k in range(3):
        (others / f"class{k}").rename(others / f"other{k}")
    arguments = ["--items", str(photos), "--validation", str(others), "--out", str(tmp_path / "run"), *SHORT]
    assert main(["train", *arguments]) == 0
    said = refused(capsys, "--items", photos, "--validation", photos, "--out", tmp_path / "same", *SHORT)
    assert "both trained on and validated with" in said


def test_a_benchmark_is_read_by_its_lists(photos, tmp_path, monkeypatch, capsys):
    small = splits.Benchmark(
        splits.IMAGENET_LISTS,
        {splits.BASE: 3, splits.VALIDATION: 2, splits.TEST: 1},
        (0, 100),
        "get it somewhere",
    )
    monkeypatch.setattr(splits, "BENCHMARKS", {"tiny": small})
    lists, run = tmp_path / "lists", tmp_path / "run"
    lists.mkdir()
    for file, classes in {"train.csv": (0, 1, 2), "val.csv": (3, 4), "test.csv": (5,)}.items():
        (lists / file).write_text("".join(f"class{k},all\n" for k in classes))
    arguments = ["--items", photos, "--benchmark", "tiny", "--lists", lists]
    assert main(["train", *map(str, arguments), "--out", str(run), *SHORT]) == 0
    assert Checkpoint.load(run).classes == ("class0", "class1", "class2")
    table = ["--items", f"{run}/items.csv", "--split", "test", "--out", str(tmp_path / "bank")]
    assert main(["extract", "--encoder", f"checkpoint:{run}", *table]) == 0
    assert FeatureBank.load(tmp_path / "bank").n_rows == 8
    assert "has its own validation classes" in refused(capsys, *arguments, "--hold-out", 2, "--out", tmp_path / "x")
    (lists / "test.csv").unlink()
    assert "test.csv is missing; get it somewhere" in refused(capsys, *arguments, "--out", tmp_path / "y", *SHORT)


def test_options_that_contradict_each_other(photos, tmp_path, capsys):
    out = ["--items", photos, "--out", tmp_path / "run"]
    assert "--validation cannot be combined with --hold-out" in refused(
        capsys, *out, "--validation", photos, "--hold-out", 2
    )
    assert "belong together" in refused(capsys, *out, "--benchmark", "mini-imagenet")
    assert "belong together" in refused(capsys, *out, "--lists", photos)


def test_wrong_layouts_and_broken_images_say_what_to_do(photos, tmp_path, capsys):
    out = ["--out", tmp_path / "run", *SHORT]
    flat = tmp_path / "flat"
    flat.mkdir()
    (flat / "a.png").write_bytes((photos / "class0" / "00.png").read_bytes())
    assert "must have one folder per class" in refused(capsys, "--items", flat, *out)
    assert "does not exist; check the path" in refused(capsys, "--items", tmp_path / "gone", *out)
    (tmp_path / "empty").mkdir()
    assert "is an empty folder" in refused(capsys, "--items", tmp_path / "empty", *out)
    broken = image_folder(tmp_path / "broken")
    (broken / "class1" / "03.png").write_bytes(b"no picture")
    said = refused(capsys, "--items", broken, *out)
    assert "1 of 24 images cannot be read; fix or remove them: class1/03.png" in said
    assert "cannot be held out" in refused(capsys, "--items", photos, "--hold-out", 5, *out)
    assert not (tmp_path / "run").exists()


def test_the_names_in_the_help_are_those_there_are():
    assert list(train.NETWORK_NAMES) == list(NETWORKS)
    assert list(train.BENCHMARK_NAMES) == list(splits.BENCHMARKS)
