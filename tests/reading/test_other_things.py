"""Files of scores and recordings are said to be what they are, with what can be done."""

import json

import pytest

from handful import read
from handful.errors import BankError

HEADER = "Start (s),End (s),Scientific name,Common name,Confidence,File"


def test_scores_of_another_model_are_for_rescore(tmp_path):
    birds = tmp_path / "birds.csv"
    birds.write_text(f"{HEADER}\n0,3,Parus major,Great Tit,0.8,a.wav\n")
    with pytest.raises(BankError, match=r"scores of another model \(BirdNET.*handful rescore .*birds\.csv"):
        read(birds)
    assert read(birds, features="Start (s),Confidence").n_rows == 1, "somebody who names columns wants them"
    found = {"predictions": [{"filepath": "a.jpg", "classifications": {"classes": ["cow"], "scores": [0.8]}}]}
    (tmp_path / "predictions.json").write_text(json.dumps(found))
    with pytest.raises(BankError, match=r"scores of another model \(predictions of SpeciesNet.*handful rescore"):
        read(tmp_path / "predictions.json")


def test_recordings_need_vectors(tmp_path):
    (tmp_path / "day").mkdir()
    (tmp_path / "day" / "a.WAV").write_bytes(b"RIFF")
    with pytest.raises(BankError, match=r"has recordings, such as day/a\.WAV.*handful rescore"):
        read(tmp_path)
