"""The study of spectra: runs are as described, rules do what their names say, the page says what was measured."""

import importlib

import numpy as np
import pytest

import spectra as study

PER = 3


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Forty compounds in pairs of one mass, and eight more that the library lacks, in the form of the data."""
    for name in ("spectra", "real_uses"):
        monkeypatch.setattr(importlib.import_module(name), "COMPOUNDS", 40)
    rng = np.random.default_rng(0)
    folder, centres = tmp_path / "massbank-two-labs", rng.random((48, 30)) * (rng.random((48, 30)) < 0.3)
    folder.mkdir()
    for part, n, labs in (("reference", 40, 1), ("query", 48, 2)):
        labels = np.tile(np.arange(n).repeat(PER), labs)
        vectors = centres[labels] + 0.02 * rng.random((len(labels), 30))
        np.save(folder / f"{part}.npy", (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16))
        np.save(folder / f"{part}_labels.npy", labels)
        np.save(folder / f"{part}_precursor.npy", 100.0 + labels // 2)
        np.save(folder / f"{part}_lab.npy", np.arange(labs).repeat(n * PER))
    return tmp_path


def test_a_cell_is_measured(data):
    library, _, _ = study.loaded(data)
    classifier = study.BatchClassifier().fit(library.vectors, library.labels)
    cells = study.measured(data, "Athens", classifier, 3)
    assert list(cells) == [f"{window}, {n}" for window in study.WINDOWS for n in ("all known", "some unknown")]
    near = cells["0.01, some unknown"]
    # Compounds of the library come in pairs of one mass, and no unknown one has the mass of any.
    assert near["candidates"] == {"one": 0.0, "none": 0.0, "none, of unknown ones": 100.0}
    assert {row[rule]["found"] for row in near["runs"] for rule in row} == {100.0}
    assert cells["any, some unknown"]["candidates"]["none, of unknown ones"] == 0
    assert {row["jointly, named"]["rejected"] for row in near["runs"]} == {0.0}
    assert near["precision"]["cosine, equal"] >= near["precision"]["jointly"]
    assert "modified" not in near["precision"]
    assert "modified" in cells["any, all known"]["precision"]
    assert "found" not in cells["any, all known"]["runs"][0]["cosine"]


def test_rules_choose_among_candidates():
    library = study.Spectra(np.eye(3), np.arange(3), np.array([100.0, 100.3, 200.0]))
    masses = np.array([100.0, 100.0, 150.0])
    vectors = np.array([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    of = {window: study.allowed_of(library, masses, width) for window, width in study.WINDOWS.items()}
    assert [found.sum(1).tolist() for found in of.values()] == [[1, 1, 0], [2, 2, 0], [3, 3, 3]]
    for nearest in (study.best(vectors, library.labels, of["0.5"]), study.nearest_mean(library, vectors, of["0.5"])):
        assert nearest.labels.tolist() == [1, 0, study.UNKNOWN]
    assert study.best(vectors, library.labels, of["0.01"]).labels.tolist() == [0, 0, study.UNKNOWN]
    assert study.best(vectors, library.labels, of["any"]).above(0.9).labels.tolist() == [study.UNKNOWN, 2, 0]


def test_the_modified_cosine_pairs_every_peak_once():
    one, other = np.array([0.0, 0.6, 0.0, 0.8]), np.array([0.0, 0.8, 0.6, 0.0])
    assert study.modified_cosine(one, other, 0) == pytest.approx(0.48)
    # 3 pairs with 1 or 1 with 1: the peak at 1 of the other is taken by the larger one.
    assert study.modified_cosine(one, other, 2) == pytest.approx(0.64)
    assert study.modified_cosine(one, other, 1) == pytest.approx(0.48 + 0.48)
    rng = np.random.default_rng(0)
    rows = rng.random((40, 20)) * (rng.random((40, 20)) < 0.4)
    masses = rng.integers(100, 106, 40).astype(float)
    library, items = study.Spectra(rows[:30], np.arange(30), masses[:30]), study.Spectra(rows[30:], [], masses[30:])
    scores = [
        [study.modified_cosine(one, other, round(mass - near)) for other, near in zip(rows[:30], masses, strict=False)]
        for one, mass in zip(rows[30:], masses[30:], strict=True)
    ]
    found = study.nearest_modified(library, items._replace(labels=np.zeros(10)))
    np.testing.assert_allclose(found.scores, np.max(scores, axis=1))


def test_a_threshold_has_the_precision_asked_for():
    found = study.Named(np.array([0, 1, 2, 3, study.UNKNOWN]), np.array([0.9, 0.8, 0.8, 0.5, -np.inf]))
    truth = np.array([0, 1, 9, 3, 4])
    assert study.threshold(found, truth, 0.75) == 0.5
    assert study.threshold(found, truth, 1.0) == 0.9
    assert study.threshold(found, truth[::-1], 1.0) == np.inf
    assert study.precision(found.above(0.6).labels, truth) == pytest.approx(2 / 3)
    assert study.figures(found.above(0.6).labels, np.array([0, 1, 5000, 3, 5000])) == {
        "right": 66.67,
        "rejected": 33.33,
        "found": 50.0,
    }


def test_what_the_page_says_is_so():
    found = study.kept(study.RESULTS, study.LABORATORIES)
    for cells in found.values():
        assert {len(of["runs"]) for of in cells.values()} == {100}
        for what, of in cells.items():
            named, equal = (
                study.MeanEstimate.of(study.gains(of, rule)) for rule in ("jointly, named", "jointly, equal")
            )
            if what.startswith("0.01"):
                assert named.mean > -named.half_width
                assert named.mean < 2
            else:
                assert named.above_zero
            assert equal.above_zero
            # As many are right among those named, or more, and no more than that is required.
            assert of["precision"]["jointly, equal"] >= of["precision"]["cosine, 0.7"]
            if what == "any, some unknown":
                assert np.mean([row["jointly, equal"]["found"] for row in of["runs"]]) < 20
            elif what.endswith("some unknown"):
                assert np.mean([row["cosine, 0.7"]["found"] for row in of["runs"]]) > 90
                # Not only those without a candidate.
                gained = [row["jointly"]["found"] - row["jointly, named"]["found"] for row in of["runs"]]
                assert np.mean(gained) > 1
        by_window = [np.mean(study.gains(cells[f"{w}, all known"], "jointly, named")) for w in study.WINDOWS]
        assert by_window[0] < min(by_window[1:])
