"""The product without PyTorch: run by `.ci/light` in an environment that has the core, `images` and pyarrow alone.

Not collected with the other tests, which need packages of the paper's package.
"""

import csv
import importlib.util
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

import handful
import handful_fewshot
from handful.cli.main import main
from handful.errors import MissingExtraError
from handful.estimators import FewClassSplit
from handful.extraction.encoders import load_encoder
from handful.scale import run
from handful.workers import here

K, D = 40, 32


def world() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(K, D)).astype(np.float32)
    names = np.array([f"class {k:02}" for k in range(K)])
    X = centres.repeat(5, 0) + 0.7 * rng.normal(size=(5 * K, D)).astype(np.float32)
    truth = np.repeat([3, 7, 11], 12)
    batch = centres[truth] + 0.7 * rng.normal(size=(36, D)).astype(np.float32)
    return X, names.repeat(5), batch, names[truth]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    X, y, batch, truth = world()
    np.savez(tmp_path / "c.npz", features=X, labels=y)
    np.savez(tmp_path / "b.npz", features=batch, site=np.arange(36) % 2, animal=truth)
    return tmp_path


def test_there_is_no_torch_here() -> None:
    assert importlib.util.find_spec("torch") is None


def test_estimators(tmp_path: Path) -> None:
    X, y, batch, truth = world()
    classifier = handful.BatchClassifier().fit(X, y)
    found = classifier.infer(batch)
    assert (found.labels == truth).mean() > 0.9
    assert set(found.present_classes) == set(truth)
    classifier.save(tmp_path / "classifier")
    again = handful.BatchClassifier.load(tmp_path / "classifier")
    assert (again.predict(batch, groups=np.arange(36) % 3) == classifier.predict(batch, groups=np.arange(36) % 3)).all()
    assert again.explain(batch, 0).label == truth[0]
    assert len(again.questions(batch, 3)) == 3
    assert len(list(FewClassSplit(2, n_present=2, n_items=5, shots=2, random_state=0).split(X, y))) == 2
    scores = batch @ np.stack([X[y == name].mean(0) for name in np.unique(y)]).T
    assert (handful.infer_scores(scores, np.unique(y), kind="logits").labels == truth).mean() > 0.9
    vectors = {str(name): X[y == name].mean(0) for name in np.unique(y)}
    assert (handful.BatchClassifier().add_names(vectors).predict(batch) == truth).mean() > 0.9


@pytest.mark.parametrize(
    "options",
    [
        ["c.npz", "b.npz", "--out", "page.html", "--out", "tasks.json"],
        ["c.npz", "b.npz", "--group-by", "site", "--out", "page.html"],
        ["c.npz", "b.npz", "--sequence", "animal"],
        ["b.npz", "--names", "c.npz"],
    ],
)
def test_the_command_line(files: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    monkeypatch.chdir(files)
    for ending in ("csv", "parquet"):
        assert main(["classify", *options, "--out", f"labels.{ending}"]) == 0
        assert Path(f"labels.{ending}").stat().st_size > 0


def test_scores_of_another_model(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    listed = {"classes": ["cow", "deer"], "scores": [0.7, 0.2]}
    images = [{"filepath": f"site/{i}.jpg", "classifications": listed} for i in range(6)]
    Path("s.json").write_text(json.dumps({"predictions": images}), encoding="utf-8")
    assert main(["rescore", "s.json", "--group-by", "folder", "--out", "better.json"]) == 0
    assert json.loads(Path("better.json").read_text(encoding="utf-8"))["predictions"][0]["prediction"] == "cow"


def test_runs_from_disk_to_disk(files: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y, batch, _ = world()
    classifier = handful.BatchClassifier().fit(X, y)
    sites = np.arange(36) % 3
    pq.write_table(pa.table({"site": sites, "vector": batch.tolist()}), files / "batch.parquet")
    found = run(files / "batch.parquet", classifier, files / "out", group_by="site", workers=here())
    assert pq.read_table(found.items)["label"].to_pylist() == classifier.predict(batch, groups=sites).tolist()


def draw(file: Path, colour: str, edge: int) -> Path:
    """A photograph of a disc."""
    picture = Image.new("RGB", (260, 220), "white")
    ImageDraw.Draw(picture).ellipse((edge, edge, edge + 110, edge + 110), fill=colour)
    file.parent.mkdir(parents=True, exist_ok=True)
    picture.save(file)
    return file


def test_photographs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for colour in ("black", "blue", "green", "red"):
        for number in range(3):
            draw(tmp_path / "photos" / colour / f"{number}.png", colour, 20 + 15 * number)
    for colour in ("blue", "red"):
        for number in range(6):
            draw(tmp_path / "new" / f"{colour}_{number}.png", colour, 10 + 14 * number)
    assert main(["classify", "photos", "new", "--out", "labels.csv"]) == 0
    with Path("labels.csv").open(encoding="utf-8") as lines:
        found = {row["item"]: row["label"] for row in csv.DictReader(lines)}
    assert found == {name: name.partition("_")[0] for name in found}
    assert len(found) == 12
    encoder = load_encoder("efficientnet-lite0")
    (vector,) = encoder.embed([Image.new("RGB", (300, 200), (200, 100, 50))])
    assert vector.shape == (1280,)
    np.testing.assert_allclose(
        vector[[1, 2, 468, 113]], [0.0030155, 0.2347319, 3.2281275, 3.7963905], atol=1e-4
    )  # PyTorch
    assert "torch" not in sys.modules


def test_what_needs_torch_says_so(files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(files)
    Path("t.csv").write_text("text,label\na b,x\nc d,y\n", encoding="utf-8")
    assert main(["classify", "t.csv", "t.csv", "--out", "p.csv"]) == 1
    assert re.search(r'pip install .*\[torch\]"', capsys.readouterr().err)
    assert main(["bench", "paper", "--list"]) in (0, 1, 2)
    assert main(["doctor"]) == 0
    with pytest.raises(MissingExtraError, match=r"\[fewshot\]"):
        _ = handful_fewshot.METHODS
    assert "torch" not in sys.modules


def test_the_demo(tmp_path: Path) -> None:
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    assert (tmp_path / "demo" / "report.html").is_file()
