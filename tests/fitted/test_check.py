"""What `catalogue check` finds, and its page."""

import re

import numpy as np

from handful.fitted import FittedModel, Record, Source
from handful.fitted.check import KINDS, check_catalogue
from handful.fitted.page import write_check_page
from tests.clouds_at_hand import clouds


def spoilt():
    """A catalogue with one of everything that is looked for."""
    X, y = clouds(shots=5)
    y = y.astype("<U20")
    y[7] = "class 12"  # it is a class 01
    y[50:52] = "Class 10"
    X[21] = X[20]  # of one class
    X[31] = X[95]  # of two classes
    X, y = np.concatenate([X, X[:1] + 3]), np.append(y, "lonely")
    return X, y


def of_kind(findings, kind):
    return [finding for finding in findings if finding.kind == kind]


def test_everything_that_is_wrong_is_found(tmp_path):
    X, y = spoilt()
    sources = {row: Source(f"{row}.jpg", "photos") for row in range(100)}
    (tmp_path / "photos").mkdir()
    for row in range(2, 100):
        (tmp_path / "photos" / f"{row}.jpg").touch()
    catalogue = FittedModel.of(X, y).with_record(Record("network, weights 12", "image", None, sources))
    found = check_catalogue(catalogue, tmp_path, model="network, weights 34")
    assert [finding.examples for finding in of_kind(found, "suspect")][:1] == [(7,)]
    assert of_kind(found, "suspect")[0].classes == ("class 12", "class 01")
    assert [finding.classes for finding in of_kind(found, "names")] == [("Class 10", "class 10")]
    assert [finding.examples for finding in of_kind(found, "duplicate")] == [(20, 21)]
    assert [finding.examples for finding in of_kind(found, "conflict")] == [(31, 95)]
    assert [finding.classes for finding in of_kind(found, "few")] == [("lonely",)]
    assert "weights 34" in of_kind(found, "model")[0].message
    said = [finding.message for finding in of_kind(found, "source")]
    assert said == ["1 example of 101 without a source.", "2 examples: their files are gone from photos."]
    assert [finding.kind for finding in found] == sorted([f.kind for f in found], key=list(KINDS).index)


def test_a_good_catalogue_has_no_finding(tmp_path):
    X, y = clouds(noise=0.2)
    (tmp_path / "table.csv").touch()
    record = Record(sources={row: Source(f"row {row}", "table.csv", f"{row}") for row in range(80)})
    assert check_catalogue(FittedModel.of(X, y).with_record(record), tmp_path) == []
    assert len(check_catalogue(FittedModel.of(X, y).with_record(record), tmp_path, fewest=5)) == 20


def test_equal_content_is_found_where_vectors_differ(tmp_path):
    X, y = clouds(noise=0.2)
    record = Record(sources={row: Source(f"row {row}", "", "same" if row in (3, 9) else f"{row}") for row in range(80)})
    (found,) = check_catalogue(FittedModel.of(X, y).with_record(record), tmp_path)
    assert (found.kind, found.examples) == ("conflict", (3, 9))


def test_the_page_shows_the_examples_and_runs_nothing(tmp_path):
    X, y = spoilt()
    y = np.where(y == "lonely", "<script>alert(1)</script>", y)
    previews = {row: b"\xff\xd8 picture %d" % row for row in range(101)}
    catalogue = FittedModel.of(X, y).with_record(Record("", "image", previews=previews))
    found = check_catalogue(catalogue, tmp_path)
    write_check_page(catalogue, found, tmp_path / "page.html", "birds")
    page = (tmp_path / "page.html").read_text()
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert page.count("data:image/jpeg;base64,") > 10
    assert f"birds: {len(found)} things to look at" in page
    assert len(re.findall("<article>", page)) == len(found)


def test_the_page_shows_texts(tmp_path):
    X, y = clouds(2, 2)
    catalogue = FittedModel.of(X, y).with_record(Record("", "text", previews={0: "where is <my> bag", 1: "b"}))
    write_check_page(catalogue, check_catalogue(catalogue, tmp_path, fewest=3), tmp_path / "page.html", "t")
    assert "where is &lt;my&gt; bag" in (tmp_path / "page.html").read_text()
