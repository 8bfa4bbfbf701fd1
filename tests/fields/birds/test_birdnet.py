"""BirdNET's tables: rows of a stretch of sound are one item; two columns are added, nothing else changes."""

import pytest

from handful.errors import FileFormatError
from handful.fields.birds.birdnet import read_birdnet
from handful.reading.tool_scores import ItemLabel
from tests.fields.tool_files import BIRDNET, RAVEN

ANSWER = ItemLabel("Parus major_Great Tit", 0.98765, None, None)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_the_table_there_and_back(tmp_path, ending, mark):
    (tmp_path / "b.csv").write_bytes(mark + BIRDNET.replace("\n", ending).encode())
    found = read_birdnet(tmp_path / "b.csv")
    assert found.names == ("/rec/A/1.wav 0.0–3.0 s", "/rec/A/1.wav 3.0–6.0 s", "/rec/B/1.wav 0.0–3.0 s")
    assert found.classes[0] == ["Turdus merula_Eurasian Blackbird", "Parus major_Great Tit"]
    assert found.scores == [[0.877, 0.1203], [0.5], [0.3]]
    assert found.columns["file"] == ["/rec/A/1.wav", "/rec/A/1.wav", "/rec/B/1.wav"]
    for _ in range(2):  # the second time, earlier answers are replaced
        found.write([ANSWER] * 3, tmp_path / "out.csv")
        after = (tmp_path / "out.csv").read_bytes().removeprefix(mark).decode()
        lines, before = after.split(ending), BIRDNET.split("\n")
        assert lines[0] == f"{before[0]},handful label,handful certainty"
        assert lines[1:5] == [f"{line},Parus major_Great Tit,0.9877" for line in before[1:5]]
        found = read_birdnet(tmp_path / "out.csv")


def test_a_selection_table_there_and_back(tmp_path):
    (tmp_path / "b.txt").write_text(RAVEN)
    found = read_birdnet(tmp_path / "b.txt")
    assert found.classes == [["Eurasian Blackbird", "Great Tit"], ["Great Tit"]]
    found.write([ItemLabel("Great Tit", 1.0, None, None)] * 2, tmp_path / "out.txt")
    lines, before = (tmp_path / "out.txt").read_text().splitlines(), RAVEN.splitlines()
    assert lines[1:] == [f"{line}\tGreat Tit\t1.0000" for line in before[1:]]


def test_a_table_without_files_is_one_recording(tmp_path):
    text = "\n".join(line.rsplit(",", 1)[0] for line in BIRDNET.splitlines()[:4])
    (tmp_path / "b.csv").write_text(text + "\n")
    assert set(read_birdnet(tmp_path / "b.csv").files) == {"b.csv"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1,2\n", "neither BirdNET's table of results nor a selection table of Raven"),
        (BIRDNET.replace("0.8770", "high"), "row 0 of .* scores between 0 and 1"),
        (BIRDNET.replace("0.8770", "8.77"), "row 0 of .* scores between 0 and 1"),
        (BIRDNET.replace(",0.5,", ","), "row 2 of .* has 5 values, its header 6"),
        (BIRDNET.splitlines()[0] + "\n", "has no rows"),
    ],
)
def test_a_malformed_table_is_refused(tmp_path, text, sentence):
    (tmp_path / "b.csv").write_text(text)
    with pytest.raises(FileFormatError, match=sentence):
        read_birdnet(tmp_path / "b.csv")
    (tmp_path / "c.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="cannot be read as text in UTF-8"):
        read_birdnet(tmp_path / "c.csv")
