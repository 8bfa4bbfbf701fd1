"""Compounds: candidates by the precursor of each spectrum, unknown ones without any, and an annotated copy."""

import csv

import numpy as np
import pytest

from handful.classification import classify, rescore, write_predictions
from handful.classification.labelled import class_names, predictions
from handful.cli.main import main
from handful.errors import OptionError
from handful.reading import read
from tests.spectra_at_hand import compounds, mgf, msp, noisy

KNOWN = 40


@pytest.fixture
def files(tmp_path):
    """A library of 40 compounds, and a run with five of them and one of an own mass; true names."""
    rng = np.random.default_rng(0)
    every = compounds(KNOWN, rng)
    stranger = (777.0, compounds(1, rng)[0][1])
    library = [(f"compound {k}", mass, noisy(peaks, rng)) for k, (mass, peaks) in enumerate(every) for _ in range(4)]
    of = [2, 3, 8, 20, 31, None]
    run = [(k, *(stranger if k is None else every[k])) for k in of for _ in range(5)]
    (tmp_path / "library.msp").write_text(msp(library))
    (tmp_path / "run.mgf").write_text(
        mgf((f"scan {i}", mass + 0.002, noisy(peaks, rng)) for i, (_, mass, peaks) in enumerate(run))
    )
    return tmp_path, [None if k is None else f"compound {k}" for k, _, _ in run]


def test_a_run_to_an_annotated_copy(files, capsys):
    folder, truth = files
    arguments = [folder / "library.msp", folder / "run.mgf", "--candidates", "precursor:0.01"]
    assert main(["classify", *map(str, arguments), "--unknown", "none", "--out", str(folder / "named.mgf")]) == 0
    after = read(folder / "named.mgf")
    assert after.columns["handful_label"] == [name or "none" for name in truth]
    np.testing.assert_array_equal(after.vectors, read(folder / "run.mgf").vectors)
    found = predictions(
        classify(folder / "library.msp", folder / "run.mgf", candidates="precursor:0.01", unknown="none")
    )
    said = np.array(after.columns["handful_certainty"], float)
    np.testing.assert_allclose(said, found["certainty"], atol=1e-4)
    assert said[-5:].tolist() == [1] * 5  # no compound has this mass
    assert said[:-5].max() <= 161 / 162
    assert "5 items look like none of your 40 classes" in " ".join(capsys.readouterr().out.split())


def test_only_candidates_of_the_precursor(files):
    folder, truth = files
    found = classify(folder / "library.msp", folder / "run.mgf", candidates="precursor:0.01")
    assert found.rejected.tolist() == [name is None for name in truth]
    assert not found.about.given  # nobody said anything
    table = np.asarray(found.probabilities)
    classes = list(class_names(found))
    pair = [classes.index("compound 2"), classes.index("compound 3")]
    np.testing.assert_allclose(table[:10][:, pair].sum(1), 1, atol=1e-6)
    write_predictions(found, folder / "p.csv")
    with (folder / "p.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["item"] for row in rows[:2]] == ["scan 0", "scan 1"]
    assert {row["precursor_mz"] for row in rows[:10]} == {"310.002"}


def test_a_spectrum_without_precursor_can_be_anything(files):
    folder, truth = files
    text = (folder / "run.mgf").read_text().replace("PEPMASS=310.002 1000.0\n", "", 1)
    (folder / "run.mgf").write_text(text)
    found = classify(folder / "library.msp", folder / "run.mgf", candidates="precursor:0.01")
    assert predictions(found)["label"][0] == truth[0]
    assert np.count_nonzero(np.asarray(found.probabilities)[0]) > 2


def test_what_cannot_be_is_refused(files):
    folder, _ = files
    library, run = folder / "library.msp", folder / "run.mgf"
    for tolerance in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(OptionError, match="a positive mass in Da"):
            classify(library, run, candidates=f"precursor:{tolerance}")
    with pytest.raises(OptionError, match=r"need a number, such as precursor:0\.01"):
        classify(library, run, candidates="precursor:narrow")
    (folder / "scores.json").write_text("{}")
    with pytest.raises(OptionError, match="need a catalogue of examples"):
        rescore(folder / "scores.json", candidates="precursor:0.01")
    np.save(folder / "b.npy", read(run).vectors)
    with pytest.raises(OptionError, match="the batch has no column 'precursor_mz'"):
        classify(library, folder / "b.npy", candidates="precursor:0.01")
    with pytest.raises(OptionError, match=r"a copy of the batch, which is not an \.mgf file"):
        write_predictions(classify(library, folder / "b.npy"), folder / "named.mgf")
