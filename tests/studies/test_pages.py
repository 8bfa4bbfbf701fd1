"""Pages of measurements: they are what the results say, and every one has the same short form."""

import importlib
import json
import re
from pathlib import Path

import pytest

import pages

ROOT = Path(__file__).resolve().parents[2]

STUDIES = (
    "harm",
    "open_batches",
    "study_page",
    "names",
    "scores",
    "sites",
    "sessions",
    "from_nothing",
    "reliability",
    "camera_traps",
    "voices",
    "two_levels",
    "spectra",
    "scale",
    "sensitivity",
    "mechanisms",
    "protocols",
)


def page_of(study):
    """Make the page of a study from its results."""
    if study == "methods_table":
        module = importlib.import_module(study)
        return module.page(module.load(module.RESULTS))
    return importlib.import_module(study).page()


@pytest.mark.parametrize("study", [*STUDIES, "methods_table"])
def test_a_page_is_that_of_its_results_and_has_the_usual_form(study):
    page = page_of(study)
    assert page.behind() == [], f"behind the results: python studies/{study}.py --render"
    assert (pages.MEASURED / f"{page.name}.svg").is_file()
    text = page.text()
    assert len(re.findall(r"^\|(?: -+ \|)+$", text, re.MULTILINE)) == 1, "one table"
    assert text.count("![") == 1, "one figure"
    opening, _, end = text.partition("## How it was made")
    assert "```" not in opening
    assert f"python studies/{study}.py" in end


def test_the_page_of_paddle_has_the_numbers_of_the_paper_and_of_the_study():
    study = importlib.import_module("study_page")
    table = study.beside_the_paper(study.load().where(weighted=False))
    text = study.PADDLE_PAGE.read_text(encoding="utf-8")
    assert table in text, "behind the results: python studies/study_page.py"
    assert "| PADDLE (published scale) | 63.2 / 73.3 / 80.0 | 45.8 / 62.5 / 72.0 | 84.3 |" in table


def test_no_number_of_ours_stands_beside_the_papers_without_its_interval():
    study = importlib.import_module("study_page")
    head, _, *rows = study.beside_the_paper(study.load().where(weighted=False)).splitlines()[:-2]
    ours = [k for k, title in enumerate(head.split(" | ")) if title.startswith("here: ")]
    assert len(ours) == 3
    for row in rows:
        for k in ours:
            assert all(
                re.fullmatch(r"[\d.]+ ± [\d.]+†?", entry) for entry in row.strip("| ").split(" | ")[k].split(" / ")
            )


@pytest.mark.parametrize("study", ["methods_table", "study_page"])
def test_methods_are_named_with_the_scale_of_their_features_and_few_tasks_are_marked(study):
    page = page_of(study)
    names = [line.split(" | ")[0].strip("| ") for line in page.table.splitlines()[2:] if line.startswith("|")]
    assert len(names) > 10
    assert len(set(names)) == len(names)
    assert "paddle (published scale)" in names
    assert all(re.fullmatch(r"\w+ \(.+\)", name) for name in names)
    assert {row["method"] for row in page.rows} >= set(names)
    assert "fewer than 100 tasks" in page.table.splitlines()[-1].lower()
    if study == "methods_table":
        for figure, n in re.findall(r"(± \S+) \((\d+);", page.table):
            assert figure.endswith("†") == (int(n) < 100)


def test_every_page_says_which_version_measured_it(tmp_path):
    file = tmp_path / "measured.json"
    known = {"version": "0.4.0", "commit": "0123456789", "cpu_minutes": 2.4}
    file.write_text(json.dumps({"one": {**known, "state": "whole"}, "two": {**known, "state": "begun"}}))
    assert pages.measured_with("one", file) == "Measured with handful 0.4.0, in 2 CPU minutes."
    for name in ("two", "three"):
        assert pages.measured_with(name, file) == "Measured with an earlier version."
    stands = {"with": "0.4.1", "reason": "no answer moved"}
    file.write_text(json.dumps({"one": {**known, "state": "whole", "stands": stands}}))
    assert pages.measured_with("one", file) == (
        "Measured with handful 0.4.0, in 2 CPU minutes. Not measured again with 0.4.1: no answer moved."
    )
    assert pages.not_again("three", file) == []
    measure = importlib.import_module("measure")
    assert {page_of(study).name for study in [*STUDIES, "methods_table"]} - {"study"} <= set(measure.STUDIES)


def test_every_page_is_listed():
    index = (pages.MEASURED / "index.md").read_text(encoding="utf-8")
    for study in [*STUDIES, "methods_table"]:
        assert f"]({page_of(study).name}.md)" in index


def test_a_file_that_was_changed_by_hand_is_found(tmp_path):
    page = pages.Page(
        "one", "One", "?", "", lambda: pages.dots({"a": {"b": [1.0]}}, "x"), "", "", "", "", (), [{"a": 1}]
    )
    assert page.behind(tmp_path) == ["one.md", "one.csv"]
    page.write(tmp_path)
    assert page.behind(tmp_path) == []
    (tmp_path / "one.csv").write_text("a\n2\n")
    assert page.behind(tmp_path) == ["one.csv"]
    assert (tmp_path / "one.svg").read_text().startswith("<svg")


def test_what_is_kept_is_not_measured_again(tmp_path, monkeypatch, capsys):
    measured = []

    def cells(folder):
        for size in (5, 10):
            yield (
                "part",
                {"size": size},
                lambda size=size: measured.append(size) or {"right": [size, 0.5], "of": {"a": 1}},
            )

    for words in (["--banks", "one"], ["--parts", "other"], [], ["--again"]):
        monkeypatch.setattr("sys.argv", ["study", "data", *words])
        pages.measure_groups("About it.", {"tuning": ["one", "two, three"]}, tmp_path, cells, lambda: None)
    assert measured == [5, 10] * 4
    rows = [{"size": size, "right": [size, 0.5], "of": {"a": 1}} for size in (5, 10)]
    found = pages.kept(tmp_path / "tuning", ["one", "two, three", "four"])
    assert found == {"one": {"part": rows}, "two, three": {"part": rows}}
    assert len((tmp_path / "tuning" / "two_three.json").read_text().splitlines()) == 6  # a row has a line of its own


def test_rows_are_flat_in_a_file():
    rows = [{"a": {"b c": 1.23456, "d": [2.0, 0.5]}}, {"e": "x, y"}]
    assert pages.as_csv(rows) == 'a_b_c,a_d,a_d_half_width,e\n1.235,2.0,0.5,\n,,,"x, y"\n'


def test_every_series_of_a_figure_is_named_once():
    figure = pages.dots({"a": {"x": [1.0, 2.0], "y": [3.0]}, "b": {"y": [4.0]}}, "points", at=0)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["x", "y"]
    means = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() not in (".", "None")]
    assert means == [1.5, 3.0, 4.0]
