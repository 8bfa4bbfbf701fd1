"""`handful classify --scores`: one command from the scores of another tool to better labels in its own format."""

import json

from handful.cli.main import main
from tests.classification.test_scores import made


def run(capsys, *arguments):
    code = main(["classify", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_one_command(tmp_path, capsys):
    path, truth = made(tmp_path)
    code, out, err = run(
        capsys, "--scores", path, "--sites", tmp_path / "cct.json", "--group-by", "location", "--sequence", "seq_id",
        "--out", tmp_path / "better.json", "--report", tmp_path / "better.html",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "by the scores of 20 classes" in out
    assert "predictions.json with joint labels" in out
    images = json.loads((tmp_path / "better.json").read_text())["predictions"]
    right = [image["prediction"] == true for image, true in zip(images, truth, strict=True)]
    assert sum(right) > 0.9 * len(right)
    assert (tmp_path / "better.groups.csv").exists()
    assert (tmp_path / "better.html").exists()


def test_one_batch_as_a_table(tmp_path, capsys):
    path, _ = made(tmp_path)
    code, out, _ = run(capsys, "--scores", path, "--out", tmp_path / "p.parquet", "--report", tmp_path / "p.html")
    assert code == 0
    assert "labelled jointly by the scores of 20 classes" in out


def test_what_does_not_go_together_is_a_sentence(tmp_path, capsys):
    path, _ = made(tmp_path)
    code, _, err = run(capsys, "--scores", path, "--batch", path, "--out", tmp_path / "p.json")
    assert (code, err) == (1, "handful: give --scores, or --batch with --catalogue or --names, not both\n")
    code, _, err = run(capsys, "--batch", path, "--out", tmp_path / "p.csv")
    assert (code, err) == (1, "handful: give --batch with --catalogue, --names or both, or give --scores\n")
    code, _, err = run(capsys, "--scores", path, "--out", tmp_path / "p.xlsx")
    assert code == 1
    assert "written as .parquet, .csv" in err
    (tmp_path / "other.json").write_text("{}")
    code, _, err = run(capsys, "--scores", tmp_path / "other.json", "--out", tmp_path / "p.json")
    assert code == 1
    assert "has no scores in a known format" in err


def test_labels_as_annotations_of_the_sites(tmp_path, capsys):
    path, _ = made(tmp_path)
    arguments = ("--scores", path, "--group-by", "location", "--out", tmp_path / "better.json")
    sites, noted = tmp_path / "cct.json", tmp_path / "noted.json"
    assert run(capsys, *arguments, "--sites", sites, "--annotate", noted)[0] == 0
    content = json.loads(noted.read_text())
    named = {entry["id"]: entry["name"] for entry in content["categories"]}
    images = json.loads((tmp_path / "better.json").read_text())["predictions"]
    assert [named[one["category_id"]] for one in content["annotations"]] == [image["prediction"] for image in images]
    assert content["images"] == json.loads(sites.read_text())["images"]
    code, _, err = run(capsys, "--scores", path, "--out", tmp_path / "b.json", "--annotate", noted)
    assert (code, "name that file with --sites" in err) == (1, True)
    (tmp_path / "sites.csv").write_text("file,site\n" + "".join(f"{image['filepath']},x\n" for image in images))
    arguments = ("--scores", path, "--sites", tmp_path / "sites.csv", "--out", tmp_path / "b.json")
    code, _, err = run(capsys, *arguments, "--annotate", noted)
    assert (code, "is a plain table" in err) == (1, True)
