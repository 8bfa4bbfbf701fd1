"""`handful rescore`: one command from the scores of another tool to better labels in its own format."""

import csv
import json

import numpy as np
import pytest

from handful.cli.main import main
from handful.reading.class_lists import common_names
from tests.classification.test_scores import made
from tests.fields.tool_files import BIRDNET, DEER, MEGADETECTOR, MOOSE
from tests.items_at_hand import image_bytes


def run(capsys, *arguments):
    code = main(["rescore", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_one_command(tmp_path, capsys):
    path, truth = made(tmp_path)
    code, out, err = run(
        capsys, path, "--sites", tmp_path / "cct.json", "--group-by", "location", "--sequence", "seq_id",
        "--out", tmp_path / "better.json", "--out", tmp_path / "better.html",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "by the scores of 20 classes" in out
    assert "predictions.json with joint labels" in out
    images = json.loads((tmp_path / "better.json").read_text())["predictions"]
    right = [image["prediction"] == true for image, true in zip(images, truth, strict=True)]
    assert sum(right) > 0.9 * len(right)
    assert (tmp_path / "better.groups.csv").exists()
    assert (tmp_path / "better.html").exists()


@pytest.mark.parametrize("group_by", [(), ("--group-by", "folder")])
def test_people_read_common_names_and_files_keep_the_taxonomy(tmp_path, capsys, group_by):
    found = [{"classes": [DEER, MOOSE], "scores": [0.7, 0.2]}, {"classes": [MOOSE, DEER], "scores": [0.8, 0.1]}]
    images = [{"filepath": f"wood/{i}.jpg", "classifications": found[i % 2]} for i in range(20)]
    (tmp_path / "p.json").write_text(json.dumps({"predictions": images}))
    arguments = (tmp_path / "p.json", *group_by, "--out", tmp_path / "p.html")
    code, out, err = run(capsys, *arguments, "--out", tmp_path / "p.csv")
    assert (code, err) == (0, "")
    assert "white-tailed deer" in out
    assert ";" not in out
    shown, _, rest = (tmp_path / "p.html").read_text().partition("<script type='application/json' id='data'>")
    assert DEER not in shown
    data = json.loads(rest.partition("</script>")[0])
    assert data["classes"] == [DEER, MOOSE]
    assert data["called"] == list(common_names([DEER, MOOSE]))
    assert DEER in (tmp_path / "p.csv").read_text()


def test_overturned_high_scores_are_told_on_terminal_and_page(tmp_path, capsys):
    path, _ = made(tmp_path)
    content = json.loads(path.read_text())
    for image in content["predictions"]:  # the same order and ratios, of a model that is far too sure
        scores = np.array(image["classifications"]["scores"]) ** 20
        image["classifications"]["scores"] = (scores / scores.sum()).tolist()
    path.write_text(json.dumps(content))
    arguments = (path, "--group-by", "folder", "--out", tmp_path / "p.html", "--out", tmp_path / "p.csv")
    code, _, err = run(capsys, *arguments)
    with (tmp_path / "p.csv").open() as stream:
        labels = [row["label"] for row in csv.DictReader(stream)]
    lost = {
        place
        for place, (image, label) in enumerate(zip(content["predictions"], labels, strict=True))
        if image["classifications"]["scores"][0] >= 0.9 and image["prediction"] != label
    }
    assert code == 0
    assert len(lost) > 10
    (line,) = err.splitlines()
    assert line.startswith(f"warning: {len(lost)} items in 2 of 2 groups, for example ")
    assert "with a score of 0.9 or more for one class were given another" in line
    page, _, rest = (tmp_path / "p.html").read_text().partition("<script type='application/json' id='data'>")
    assert f"{len(lost)} items in 2 of 2 groups" in page
    assert set(json.loads(rest.partition("</script>")[0])["first"]) == lost


def shown_pictures(page):
    data = page.read_text().partition("<script type='application/json' id='data'>")[2].partition("</script>")[0]
    return json.loads(data)["pictures"]


@pytest.mark.parametrize("where", ["beside", "named", "absolute", "backslashes"])
def test_pictures_of_scored_images(tmp_path, capsys, where):
    (tmp_path / "photos").mkdir()
    path, _ = made(tmp_path / "photos", n=3)
    for name in ("north/000.jpg", "south/002.jpg"):
        (tmp_path / "photos" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "photos" / name).write_bytes(image_bytes(0))
    (tmp_path / "photos/south/001.jpg").write_bytes(b"no image")
    content, more = json.loads(path.read_text()), ()
    if where == "absolute":
        for image in content["predictions"]:
            image["filepath"] = str(tmp_path / "photos" / image["filepath"])
    if where == "backslashes":
        for image in content["predictions"]:
            image["filepath"] = image["filepath"].replace("/", "\\")
    path.write_text(json.dumps(content))
    if where in ("named", "absolute"):
        path = path.rename(tmp_path / "elsewhere.json")
    if where == "named":
        assert run(capsys, path, "--out", tmp_path / "p.csv", "--out", tmp_path / "p.html")[0] == 0
        assert shown_pictures(tmp_path / "p.html") is None
        more = ("--pictures", tmp_path / "photos")
    code, _, err = run(
        capsys,
        path,
        *more,
        "--out",
        tmp_path / "p.csv",
        "--out",
        tmp_path / "p.html",
        "--group-by",
        "folder",
    )
    assert (code, err) == (0, "")
    assert [picture is not None for picture in shown_pictures(tmp_path / "p.html")] == [True, *[False] * 4, True]


def test_pictures_of_detections_and_none_of_sounds(tmp_path, capsys):
    (tmp_path / "md.json").write_text(json.dumps(MEGADETECTOR))
    (tmp_path / "north").mkdir()
    (tmp_path / "north/0001.jpg").write_bytes(image_bytes(0))
    report = ("--out", tmp_path / "p.html")
    assert run(capsys, tmp_path / "md.json", "--out", tmp_path / "out.json", *report)[0] == 0
    first, second = shown_pictures(tmp_path / "p.html")
    assert first == second is not None
    (tmp_path / "b.csv").write_text(BIRDNET.replace("/rec/", ""))
    (tmp_path / "A").mkdir()
    (tmp_path / "A/1.wav").write_bytes(b"RIFF")
    assert run(capsys, tmp_path / "b.csv", "--out", tmp_path / "c.csv", *report)[0] == 0
    assert shown_pictures(tmp_path / "p.html") is None


def test_a_folder_without_the_pictures_is_refused_and_without_pillow_there_are_none(tmp_path, capsys, monkeypatch):
    path, _ = made(tmp_path, n=3)
    arguments = (path, "--out", tmp_path / "p.csv", "--out", tmp_path / "p.html")
    code, _, err = run(capsys, *arguments, "--pictures", tmp_path / "nowhere")
    assert (code, "nowhere has none of the 6 images, such as 'north/000.jpg'" in err) == (1, True)
    (tmp_path / "north").mkdir()
    (tmp_path / "north/000.jpg").write_bytes(image_bytes(0))
    monkeypatch.setattr("handful.classification.scores.find_spec", lambda name: None)
    assert run(capsys, *arguments)[0] == 0
    assert shown_pictures(tmp_path / "p.html") is None


def test_one_batch_as_a_table(tmp_path, capsys):
    path, _ = made(tmp_path)
    code, out, _ = run(capsys, path, "--out", tmp_path / "p.parquet", "--out", tmp_path / "p.html")
    assert code == 0
    assert "labelled jointly by the scores of 20 classes" in out


def test_what_does_not_go_together_is_a_sentence(tmp_path, capsys):
    path, _ = made(tmp_path)
    code, _, err = run(capsys, path, "--out", tmp_path / "p.ods")
    assert code == 1
    assert "written as .parquet, .csv" in err
    (tmp_path / "other.json").write_text("{}")
    code, _, err = run(capsys, tmp_path / "other.json", "--out", tmp_path / "p.json")
    assert code == 1
    assert "has no scores in a known format" in err


def test_labels_as_annotations_of_the_sites(tmp_path, capsys):
    path, _ = made(tmp_path)
    arguments = (path, "--group-by", "location", "--out", tmp_path / "better.json")
    sites, noted = tmp_path / "cct.json", tmp_path / "noted.json"
    assert run(capsys, *arguments, "--sites", sites, "--annotate", noted)[0] == 0
    content = json.loads(noted.read_text())
    named = {entry["id"]: entry["name"] for entry in content["categories"]}
    images = json.loads((tmp_path / "better.json").read_text())["predictions"]
    assert [named[one["category_id"]] for one in content["annotations"]] == [image["prediction"] for image in images]
    assert content["images"] == json.loads(sites.read_text())["images"]
    code, _, err = run(capsys, path, "--out", tmp_path / "b.json", "--annotate", noted)
    assert (code, "name that file with --sites" in err) == (1, True)
    (tmp_path / "sites.csv").write_text("file,site\n" + "".join(f"{image['filepath']},x\n" for image in images))
    arguments = (path, "--sites", tmp_path / "sites.csv", "--out", tmp_path / "b.json")
    code, _, err = run(capsys, *arguments, "--annotate", noted)
    assert (code, "is a plain table" in err) == (1, True)
