"""RTTM: segments there and back, other lines left out, and every broken line named with its number."""

import math

import pytest

from handful.errors import FileFormatError, OptionError
from handful.fields.voices.rttm import Segment, read_rttm, segments_of, write_rttm

LINE = "SPEAKER meeting 1 0.250 2.500 <NA> <NA> SPEAKER_00 <NA> <NA>\n"


def read(folder, text, encoding="utf-8"):
    (folder / "a.rttm").write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return read_rttm(folder / "a.rttm")


def test_segments_there_and_back(tmp_path):
    segments = [
        Segment("meeting", 0.1, 2.7, "Ann", 0.98765),
        Segment("call", 0.0, 0.5, "unknown_1", 1.0, "2"),
        Segment("meeting", 2.7, 2.7, "Jürgen", 0.5),
    ]
    write_rttm(segments, tmp_path / "new" / "a.rttm")
    found = read_rttm(tmp_path / "new" / "a.rttm")
    assert list(zip(*found.values(), strict=True)) == [
        ("meeting", 0.1, 2.7, "Ann", "1"),
        ("call", 0.0, 0.5, "unknown_1", "2"),
        ("meeting", 2.7, 2.7, "Jürgen", "1"),
    ]
    assert (tmp_path / "new" / "a.rttm").read_text("utf-8").splitlines()[0] == (
        "SPEAKER meeting 1 0.100 2.600 <NA> <NA> Ann 0.9877 <NA>"
    )


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_other_lines_are_left_out(tmp_path, mark):
    text = f"SPKR-INFO meeting 1 <NA> <NA> <NA> unknown SPEAKER_00 <NA> <NA>\r\n;; a comment\r\n\r\n{LINE}"
    found = read(tmp_path, mark + text.encode())
    assert found == {"file": ["meeting"], "start": [0.25], "end": [2.75], "speaker": ["SPEAKER_00"], "channel": ["1"]}


def test_a_missing_name_is_none_and_eight_fields_are_enough(tmp_path):
    assert read(tmp_path, "SPEAKER a 1 0 1 <NA> <NA> <NA>\n")["speaker"] == [None]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no line that begins with SPEAKER"),
        (";; nothing\n", "has no line that begins with SPEAKER"),
        (LINE + "speaker meeting\n", "line 2 of .* must begin with SPEAKER, .*'speaker'"),
        ("file,start,end\n", "line 1 of .* must begin with SPEAKER"),
        (LINE + "\n" + "SPEAKER meeting 1 0.2\n", "line 3 of .* 8 to 10 fields between spaces, got 4"),
        (LINE.replace("SPEAKER_00", "Ann B. Lee"), "line 1 of .* got 12; a name cannot contain spaces"),
        (
            LINE.replace("0.250", "early"),
            "line 1 of .* start and duration in seconds, from 0 to 10,000,000,000, got 'early'",
        ),
        (LINE.replace("2.500", "-2.5"), "line 1 of .* got '-2.5'"),
        (LINE.replace("2.500", "nan"), "line 1 of .* got 'nan'"),
        (LINE.replace("0.250", "1_0"), "line 1 of .* got '1_0'"),
        (LINE.replace("0.250", "\u0661"), "line 1 of .* got '\u0661'"),
        (LINE.replace("0.250", "1e308").replace("2.500", "1e308"), "line 1 of .* got '1e308'"),
        (LINE.replace("0.250", "1e999"), "line 1 of .* got '1e999'"),
        (LINE.replace("0.250", "<NA>"), "line 1 of .* got '<NA>'"),
        (b"\xff\xfe\x00", "cannot be read as text in UTF-8"),
        ("x" * 10_000, "line 1 of .{,200}$"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path, text, sentence):
    with pytest.raises(FileFormatError, match=sentence):
        read(tmp_path, text)


def test_a_file_that_is_no_file_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="does not exist"):
        read_rttm(tmp_path / "none.rttm")
    with pytest.raises(FileFormatError, match="not a regular file"):
        read_rttm(tmp_path)


def test_names_become_one_field_each(tmp_path):
    write_rttm(
        [Segment("a b.wav", 0, 1, "Ann \n Lee\u2028B", 1), Segment("a b.wav", 1, 2, " ", 1)], tmp_path / "a.rttm"
    )
    found = read_rttm(tmp_path / "a.rttm")
    assert found["file"] == ["a_b.wav"] * 2
    assert found["speaker"] == ["Ann_Lee_B", None]
    clash = [Segment("a", 0, 1, "Ann Lee", 1), Segment("a", 1, 2, "Ann_Lee", 1)]
    with pytest.raises(OptionError, match="'Ann Lee' and 'Ann_Lee' are both 'Ann_Lee'"):
        write_rttm(clash, tmp_path / "b.rttm")
    assert not (tmp_path / "b.rttm").exists()


@pytest.mark.parametrize(("start", "end"), [(2, 1), (-1, 1), (math.nan, 1), (0, math.inf)])
def test_impossible_times_are_not_written(tmp_path, start, end):
    with pytest.raises(FileFormatError, match="segment 1 must have a start and an end"):
        write_rttm([Segment("a", 0, 1, "x", 1), Segment("a", start, end, "x", 1)], tmp_path / "a.rttm")
    assert not (tmp_path / "a.rttm").exists()


def test_segments_need_their_columns():
    columns = {"file": ["a", "a"], "start": ["0.5", None], "end": [1, 2]}
    first, second = segments_of(columns, ["x", "y"], [1.0, 0.5])
    assert first == Segment("a", 0.5, 1.0, "x", 1.0, "1")
    assert math.isnan(second.start)
    with pytest.raises(OptionError, match="there is no 'end'"):
        segments_of({"file": ["a"], "start": [0]}, ["x"], [1.0])
