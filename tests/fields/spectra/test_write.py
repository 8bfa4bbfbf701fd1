"""Answers in `.mgf`: three lines more in each spectrum, the same after a second time, all others untouched."""

import pytest

from handful.fields.spectra.write import Compound, write_mgf
from handful.reading import read
from tests.spectra_at_hand import mgf

ANSWERS = {0: Compound("caffeine", 0.98765, 0.01), 2: Compound("a\nEND IONS", 0.5, None)}


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_there_and_back(tmp_path, ending, encoding):
    text = mgf([(f"spéctre {k}", 200.0 + k, [(100.5, 1.0)]) for k in range(3)])
    place = tmp_path / "a.mgf"
    place.write_bytes(text.replace("\n", ending).encode(encoding))
    for _ in range(2):  # into itself; the second time, earlier answers are replaced
        write_mgf(place, ANSWERS, place)
        after = place.read_bytes().decode(encoding)
        assert ("\r\n" in after) == (ending == "\r\n")
        lines = after.replace("\r\n", "\n").split("\n")
        ours = [line for line in lines if line.startswith("HANDFUL_")]
        assert ours == [
            "HANDFUL_LABEL=caffeine",
            "HANDFUL_CERTAINTY=0.9877",
            "HANDFUL_UNKNOWN=0.0100",
            r"HANDFUL_LABEL=a\nEND IONS",
            "HANDFUL_CERTAINTY=0.5000",
        ]
        assert lines[1:4] == ours[:3]
        assert "\n".join(line for line in lines if line not in ours) == text
    assert read(place).columns["handful_label"] == ["caffeine", None, r"a\nEND IONS"]
