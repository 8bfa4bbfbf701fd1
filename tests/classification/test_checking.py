"""What `catalogue check` finds, and its page."""

import re

import numpy as np

from handful.catalogue.file import CatalogueFile
from handful.classification.check_page import write_check_page
from handful.classification.checking import check_file
from handful.classification.findings import KINDS, Source, findings_about
from handful.fitted import FittedModel, Record
from handful.items import import_labelled
from tests.clouds_at_hand import clouds


def spoilt():
    """A catalogue with one of everything that is looked for."""
    X, y = clouds(shots=5)
    y = y.astype("<U30")
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
    model = FittedModel.of(X, y).with_record(Record("network, weights 12"))
    found = findings_about(model, sources, tmp_path, fewest=2, installed="network, weights 34")
    assert [finding.examples for finding in of_kind(found, "suspect")][:1] == [(7,)]
    assert of_kind(found, "suspect")[0].classes == ("class 12", "class 01")
    assert [finding.classes for finding in of_kind(found, "names")] == [("Class 10", "class 10")]
    assert [finding.examples for finding in of_kind(found, "duplicate")] == [(20, 21)]
    assert [finding.examples for finding in of_kind(found, "conflict")] == [(31, 95)]
    assert [finding.classes for finding in of_kind(found, "few")] == [("lonely",)]
    assert "weights 34" in of_kind(found, "model")[0].message
    said = [finding.message for finding in of_kind(found, "source")]
    assert said == ["2 examples: their files are gone from photos."]


def test_a_good_catalogue_has_no_finding():
    file = CatalogueFile.open()
    _ = import_labelled(file, clouds(noise=0.2), "examples")
    assert check_file(file).findings == []
    assert len(check_file(file, fewest=5).findings) == 20


def test_the_page_shows_the_examples_and_runs_nothing(tmp_path):
    X, y = spoilt()
    y = np.where(y == "lonely", "<script>alert(1)</script>", y)
    file = CatalogueFile.open()
    _ = import_labelled(
        file,
        {"emb": X.tolist(), "label": y, "text": [f"<i>{row}</i>" for row in range(len(y))]},
        "examples",
        features="emb",
        person="Ada",
    )
    checked = check_file(file)
    assert [one.kind for one in checked.findings] == sorted(
        [one.kind for one in checked.findings], key=list(KINDS).index
    )
    write_check_page(checked, file, tmp_path / "page.html", "birds")
    page = (tmp_path / "page.html").read_text()
    assert "<script" not in page
    assert "<i>" not in page
    assert "default-src 'none'" in page
    assert "&lt;i&gt;7&lt;/i&gt;" in page
    assert "<b>8</b> class 12<br>row 7, said by Ada, examples" in page
    assert f"birds: {len(checked.findings)} things to look at" in page
    assert len(re.findall("<article>", page)) == len(checked.findings)
