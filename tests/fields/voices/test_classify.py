"""Voices: times and clusters from RTTM, names into RTTM, and a number for each voice that is not enrolled."""

import shutil

import numpy as np
import pytest

from handful.classification import classify, write_predictions
from handful.classification.labelled import predictions
from handful.cli.main import main
from handful.errors import FileFormatError, OptionError
from handful.fields.voices.rttm import read_rttm
from tests.worlds import Clouds

SPEAKERS = {"monday": (3, 7, 30), "friday": (4, 5, 6, 9, 12, 31, 32)}  # from 30 on they are not enrolled
CLIPS, DIM = 12, 64


@pytest.fixture
def files(tmp_path):
    """Thirty enrolled voices, two recordings with clusters, and the true speaker of each segment."""
    rng = np.random.default_rng(0)
    clouds = Clouds(33, DIM, rng)

    def voiced(of):
        return clouds.around(of, 0.4).astype(np.float32)

    enrolled = np.arange(30).repeat(5)
    np.savez(tmp_path / "voices.npz", features=voiced(enrolled), labels=[f"voice {k}" for k in enrolled])
    truth = np.concatenate([rng.permutation(np.repeat(of, CLIPS)) for of in SPEAKERS.values()])
    file = np.repeat(list(SPEAKERS), [len(of) * CLIPS for of in SPEAKERS.values()])
    cluster = [f"S{SPEAKERS[name].index(k)}" for name, k in zip(file, truth, strict=True)]
    np.save(tmp_path / "d.npy", voiced(truth))
    lines = [
        f"SPEAKER {name} 2 {i:.3f} 0.900 <NA> <NA> {who} <NA> <NA>\n"
        for i, (name, who) in enumerate(zip(file, cluster, strict=True))
    ]
    (tmp_path / "d.rttm").write_text("".join(lines))
    return tmp_path, truth, file


@pytest.mark.parametrize("sequence", [None, "speaker"])
def test_names_and_one_number_for_each_voice_that_is_not_enrolled(files, sequence):
    folder, truth, file = files
    options = ["--sequence", "file", "--sequence", sequence] if sequence else []  # S0 is another one in each file
    arguments = ["voices.npz", "d.rttm", "--out", "named.rttm"]
    arguments = [str(folder / one) if "." in one else one for one in arguments]
    assert main(["classify", *arguments, "--group-by", "file", *options]) == 0
    before, after = read_rttm(folder / "d.rttm"), read_rttm(folder / "named.rttm")
    assert {name: after[name] for name in after if name != "speaker"} == {
        name: before[name] for name in before if name != "speaker"
    }
    found = {(name, k, who) for name, k, who in zip(file, truth.tolist(), after["speaker"], strict=True)}
    known = {(name, k, f"voice_{k}") for name, of in SPEAKERS.items() for k in of if k < 30}
    assert {one for one in found if one[1] < 30} == known
    strangers = {who for _, k, who in found if k >= 30}
    assert strangers == {"unknown_1", "unknown_2", "unknown_3"}
    assert len([one for one in found if one[1] >= 30]) == 3
    assert next(who for name, k, who in found if name == "monday" and k == 30) == "unknown_1"


def test_the_same_as_a_table(files):
    folder, _, file = files
    found = classify(folder / "voices.npz", folder / "d.rttm", sequence="speaker")
    table = predictions(found)
    assert table["file"] == file.tolist()
    assert table["item"][1] == "monday 1–1.9 s"
    assert {"start", "end", "speaker", "channel"} <= set(table)
    write_predictions(found, folder / "p.csv")
    assert (folder / "p.csv").read_text("utf-8-sig").startswith("row,item,file,start,end,speaker,channel,label")


def test_the_word_for_unknown_voices_and_names_that_are_taken(files):
    folder, truth, _ = files
    with np.load(folder / "voices.npz") as voices:
        labels = np.where(voices["labels"] == "voice 9", "guest 1", voices["labels"])
        np.savez(folder / "voices.npz", features=voices["features"], labels=labels)
    vectors, columns = np.load(folder / "d.npy"), read_rttm(folder / "d.rttm")
    np.savez(folder / "d.npz", features=vectors, start=columns["start"], end=columns["end"], recording=columns["file"])
    found = classify(folder / "voices.npz", folder / "d.npz", unknown="guest", group_by="recording")
    write_predictions(found, folder / "named.rttm")
    after = np.array(read_rttm(folder / "named.rttm")["speaker"])
    assert set(after[truth >= 30]) == {"guest_2", "guest_3", "guest_4"}


def test_a_stranger_in_no_group_has_no_number(files):
    folder, truth, _ = files
    alone = np.concatenate([np.flatnonzero(truth == 3), np.flatnonzero(truth == 30)[:1]])
    vectors, times = np.load(folder / "d.npy")[alone], np.arange(len(alone), dtype=float)
    np.savez(folder / "d.npz", features=vectors, uri=["a"] * len(alone), start=times, end=times + 1)
    found = classify(folder / "voices.npz", folder / "d.npz")
    assert found.rejected.tolist() == [False] * CLIPS + [True]
    write_predictions(found, folder / "named.rttm")
    assert read_rttm(folder / "named.rttm")["speaker"][-1] == "unknown"


def test_what_does_not_belong_together_is_refused(files):
    folder, _, _ = files
    voices, vectors, columns = folder / "voices.npz", np.load(folder / "d.npy"), read_rttm(folder / "d.rttm")

    def beside(name, **arrays):
        """Write the same segments under another name, with vectors and columns beside them."""
        np.savez(folder / f"{name}.npz", **arrays)
        shutil.copy(folder / "d.rttm", folder / f"{name}.rttm")
        return folder / f"{name}.rttm"

    with pytest.raises(OptionError, match=r"there is no 'file'; add it, give the \.rttm file"):
        write_predictions(classify(voices, folder / "d.npy"), folder / "named.rttm")
    with pytest.raises(FileFormatError, match=r"has 120 segments, .* has 119 vectors"):
        classify(voices, beside("less", features=vectors[1:]))
    same = beside("same", features=vectors, start=np.array(columns["start"]) + 0.01)
    assert len(classify(voices, same).about.batch.rows) == 120
    with pytest.raises(FileFormatError, match=r"row 0 has the start 119\.0, .* must be in the order of the segments"):
        classify(voices, beside("other", features=vectors, start=columns["start"][::-1]))


def test_vectors_are_in_one_file_of_the_same_name(files):
    folder, _, _ = files
    voices = folder / "voices.npz"
    shutil.copy(folder / "d.rttm", folder / "alone.rttm")
    with pytest.raises(FileFormatError, match=r"beside it, alone\.npy, .*; there is none of them"):
        classify(voices, folder / "alone.rttm")
    np.savez(folder / "d.npz", features=np.load(folder / "d.npy"))
    with pytest.raises(FileFormatError, match=r"there is d\.npy and d\.npz"):
        classify(voices, folder / "d.rttm")
    (folder / "d.npz").unlink()
    with pytest.raises(OptionError, match="would overwrite"):
        write_predictions(classify(voices, folder / "d.rttm"), folder / "d.parquet")
