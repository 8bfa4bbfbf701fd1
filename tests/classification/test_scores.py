"""Joint labels from the scores of another tool, by site and by sequence, and back into the tool's file."""

import csv
import json

import numpy as np
import pytest

from handful.classification import rescore, write_page, write_predictions
from handful.classification.files import writes_back
from handful.classification.labelled import n_groups, predictions
from handful.errors import FileFormatError, OptionError

CLASSES = [f"animal {k}" for k in range(20)]
SITES = {"north": (1, 4), "south": (7, 12)}


def made(folder, n=60, weak=2.2, seed=0):
    """A file as SpeciesNet writes it: two classes per site, sequences of three images, top five of noisy scores."""
    rng = np.random.default_rng(seed)
    images, truth, coco = [], [], []
    for site, classes in SITES.items():
        for i in range(n):
            k = classes[(i // 3) % 2]
            logits = rng.normal(size=20)
            logits[k] += weak
            p = np.exp(logits) / np.exp(logits).sum()
            top = np.argsort(-p)[:5]
            file = f"{site}/{i:03}.jpg"
            images.append({
                "filepath": file,
                "classifications": {"classes": [CLASSES[t] for t in top], "scores": p[top].tolist()},
                "prediction": CLASSES[top[0]], "prediction_score": p[top[0]], "prediction_source": "classifier",
            })  # fmt: skip
            coco.append({"id": file, "file_name": file, "location": site, "seq_id": f"{site}-{i // 3}"})
            truth.append(CLASSES[k])
    (folder / "predictions.json").write_text(json.dumps({"predictions": images}, indent=1))
    (folder / "cct.json").write_text(json.dumps({"images": coco}))
    return folder / "predictions.json", np.array(truth)


def accuracy(found, truth):
    return (np.array(predictions(found)["label"]) == truth).mean()


def test_by_site_and_by_sequence(tmp_path):
    path, truth = made(tmp_path)
    first = np.array([image["prediction"] for image in json.loads(path.read_text())["predictions"]])
    top_one = (first == truth).mean()
    by_folder = rescore(path, group_by="folder")
    by_site = rescore(path, group_by="location", sites=tmp_path / "cct.json")
    in_sequence = rescore(path, group_by="location", sites=tmp_path / "cct.json", sequence="seq_id")
    assert predictions(by_folder)["label"] == predictions(by_site)["label"]
    assert accuracy(by_site, truth) > top_one + 0.1
    assert accuracy(in_sequence, truth) > accuracy(by_site, truth)
    assert by_site.about.group_by == ("location",)
    assert {CLASSES[k] for k in SITES["north"]} == set(by_site["north"].present_classes)
    assert predictions(by_site)["seq_id"][:2] == ["north-0", "north-0"]
    labels = np.array(predictions(in_sequence)["label"]).reshape(-1, 3)
    assert (labels == labels[:, :1]).all()
    assert rescore(path).about.group_by == ()


def test_what_is_known_about_the_place(tmp_path):
    path, _ = made(tmp_path)
    (tmp_path / "list.txt").write_text("animal 1\nanimal 7\nanimal 99\n")
    found = rescore(path, candidates=tmp_path / "list.txt")
    assert set(predictions(found)["label"]) <= {"animal 1", "animal 7"}
    (tmp_path / "weights.csv").write_text("species,weight\n" + "".join(f"{name},1\n" for name in CLASSES))
    plain, weighted = rescore(path), rescore(path, prior=tmp_path / "weights.csv")
    np.testing.assert_allclose(predictions(weighted)["certainty"], predictions(plain)["certainty"], atol=0.05)


def test_written_back_or_as_a_table(tmp_path):
    path, truth = made(tmp_path)
    found = rescore(path, group_by="folder")
    write_predictions(found, tmp_path / "better.json")
    images = json.loads((tmp_path / "better.json").read_text())["predictions"]
    assert [image["prediction"] for image in images] == predictions(found)["label"]
    assert [image["classifications"] for image in images] == [
        image["classifications"] for image in json.loads(path.read_text())["predictions"]
    ]
    assert (tmp_path / "better.groups.csv").exists()
    write_predictions(found, tmp_path / "better.csv")
    with (tmp_path / "better.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["folder"] for row in rows[:2]] == ["north", "north"]
    write_predictions(rescore(path), tmp_path / "one.csv")
    assert writes_back(path, tmp_path / "x.JSON")
    assert len(truth) == len(rows) == len((tmp_path / "one.csv").read_text().splitlines()) - 1


def test_birds(tmp_path):
    """Stretches of one recording are labelled jointly, and the table comes back with two columns more."""
    rng, best = np.random.default_rng(1), []
    lines = ["Start (s),End (s),Scientific name,Common name,Confidence,File"]
    for i in range(40):
        other = rng.integers(500)  # of thousands of species that the model knows
        common, rare = rng.uniform(0.3, 0.9), rng.uniform(0.1, 0.6)
        lines.append(f"{3 * i}.0,{3 * i + 3}.0,Turdus merula,Blackbird,{common:.4f},a.wav")
        lines.append(f"{3 * i}.0,{3 * i + 3}.0,Rarus {other},Rarity {other},{rare:.4f},a.wav")
        best.append(common > rare)
    (tmp_path / "b.csv").write_text("\n".join(lines) + "\n")
    found = rescore(tmp_path / "b.csv", group_by="file")
    labels = np.array(predictions(found)["label"])
    assert (labels == "Turdus merula_Blackbird").mean() > np.mean(best) + 0.05
    write_predictions(found, tmp_path / "c.csv")
    after = (tmp_path / "c.csv").read_text().splitlines()
    assert [line.rsplit(",", 2)[0] for line in after] == lines


def test_what_is_not_there_is_refused(tmp_path):
    path, _ = made(tmp_path)
    with pytest.raises(OptionError, match="no column 'location' of the items; there is folder"):
        rescore(path, group_by="location")
    with pytest.raises(OptionError, match="no column 'seq_id'"):
        rescore(path, sequence="seq_id")
    (tmp_path / "cct.json").write_text(json.dumps({"images": [{"id": 1, "file_name": "other.jpg"}]}))
    with pytest.raises(FileFormatError, match="has no row for 120 of 120 files"):
        rescore(path, sites=tmp_path / "cct.json")


def test_items_without_a_sequence_stand_alone(tmp_path):
    path, _ = made(tmp_path)
    images = json.loads((tmp_path / "cct.json").read_text())["images"]
    for image in images:
        image.pop("seq_id")
    images[0]["seq_id"] = "only"
    (tmp_path / "cct.json").write_text(json.dumps({"images": images}))
    alone, found = rescore(path), rescore(path, sites=tmp_path / "cct.json", sequence="seq_id")
    assert predictions(found)["label"] == predictions(alone)["label"]


def annotated_images(**column):
    """Six images of a site, and what COCO Camera Traps say about them."""
    (name, values) = next(iter(column.items()))
    cow = {"classes": ["cow", "half \ud800"], "scores": [0.8, 0.1]}
    images = [{"filepath": f"site\udcff/{i}.jpg", "classifications": cow} for i in range(6)]
    sites = [{"id": i, "file_name": f"site\udcff/{i}.jpg", name: value} for i, value in enumerate(values)]
    return {"predictions": images}, {"images": sites}


@pytest.mark.parametrize("group_by", [None, "folder"])
def test_every_value_of_a_foreign_file_can_be_written(tmp_path, group_by):
    parquet = pytest.importorskip("pyarrow.parquet")
    predictions, sites = annotated_images(**{"half \ud83d": [1, "a\ud800", None, 2.5, 10**40, {"z": [1]}]})
    (tmp_path / "predictions.json").write_text(json.dumps(predictions))
    (tmp_path / "cct.json").write_text(json.dumps(sites))
    found = rescore(tmp_path / "predictions.json", sites=tmp_path / "cct.json", group_by=group_by)
    for name in ("out.json", "out.csv", "out.parquet"):
        write_predictions(found, tmp_path / name)
    texts = ["1", r"a\ud800", None, "2.5", str(10**40), "{'z': [1]}"]
    table = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert table[r"half \ud83d"] == texts
    assert table["item"][0] == r"site\udcff/0.jpg"
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row[r"half \ud83d"] for row in rows] == [text or "" for text in texts]
    assert rows[0]["runner_up"] == r"half \ud800"
    # Into the tool's own file, what is not ours goes as it was.
    back = json.loads((tmp_path / "out.json").read_text())["predictions"]
    assert back[0]["filepath"] == predictions["predictions"][0]["filepath"]
    assert back[0]["prediction"] == "cow"
    write_page(found, tmp_path / "page.html", title="t")
    data = (tmp_path / "page.html").read_text(encoding="utf-8").split("id='data'>")[1].split("</script>")[0]
    assert json.loads(data)["names"][0] == "site\udcff/0.jpg"


def test_lists_are_no_sequence(tmp_path):
    predictions, sites = annotated_images(seq_id=[[1]] * 6)
    (tmp_path / "predictions.json").write_text(json.dumps(predictions))
    (tmp_path / "cct.json").write_text(json.dumps(sites))
    with pytest.raises(FileFormatError, match=r"column 'seq_id' must contain text or numbers, got \[1\]"):
        rescore(tmp_path / "predictions.json", sites=tmp_path / "cct.json", sequence="seq_id")


def test_weights_as_large_as_numbers_can_be(tmp_path):
    path, _ = made(tmp_path)
    (tmp_path / "w.csv").write_text("species,weight\n" + "".join(f"{name},1e308\n" for name in CLASSES))
    found, plain = rescore(path, prior=tmp_path / "w.csv"), rescore(path)
    assert predictions(found)["certainty"] == pytest.approx(predictions(plain)["certainty"])


def nested(folder, name):
    """The two sites of `made`, each with two cameras: `north/camera 1/000.jpg`."""
    path, truth = made(folder)
    content = json.loads(path.read_text())
    for i, image in enumerate(content["predictions"]):
        site, file = image["filepath"].split("/")
        image["filepath"] = name(site, f"camera {i % 2}", file)
    path.write_text(json.dumps(content))
    return path, truth


@pytest.mark.parametrize(
    ("name", "level", "sites"),
    [
        ("{}/{}/{}", 1, ["north", "south"]),
        ("{}\\{}\\{}", 1, ["north", "south"]),
        ("/data/{}/{}/{}", 2, ["/data/north", "/data/south"]),
        ("D:\\data\\{}\\{}\\{}", 2, ["D:/data/north", "D:/data/south"]),
    ],
)
def test_by_a_level_of_the_folders(tmp_path, name, level, sites):
    plain, _ = made(tmp_path)
    expected = predictions(rescore(plain, group_by="folder"))["label"]
    path, _ = nested(tmp_path, name.format)
    found = rescore(path, group_by=f"folder:{level}")
    assert found.groups.tolist() == sites
    assert predictions(found)["label"] == expected
    assert n_groups(rescore(path, group_by="folder")) == 4
    pooled = rescore(path, group_by="folder", pool=f"folder:{level}")
    assert pooled.pooling.pools.tolist() == sites


def test_levels_that_some_paths_do_not_have_are_refused(tmp_path):
    path, _ = nested(
        tmp_path, lambda site, camera, file: f"{site}/{file}" if site == "north" else f"{site}/{camera}/{file}"
    )
    with pytest.raises(FileFormatError, match=r"60 of 120 paths have fewer than 2 folders.*all have folder:1"):
        rescore(path, group_by="folder:2")
    with pytest.raises(OptionError, match="no column 'folder:0' of the items; there is folder, folder:1"):
        rescore(path, group_by="folder:0")
