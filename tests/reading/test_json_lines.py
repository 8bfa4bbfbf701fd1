import json

import pytest

from handful.errors import BankError
from handful.reading import read


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_one_object_per_line(tmp_path):
    table = read(jsonl(tmp_path / "x.jsonl", [{"text": "a", "site": 3}, {"text": "b", "day": None}]))
    assert table.columns == {"text": ["a", "b"], "site": [3, None], "day": [None, None]}
    assert (table.text, table.vectors) == ("text", None)


def test_vectors_are_lists_or_numbered(tmp_path):
    rows = [{"embedding": [1, 2.5], "id": "a"}, {"embedding": [3, 4], "id": "b"}]
    table = read(jsonl(tmp_path / "x.jsonl", rows))
    assert table.vectors.tolist() == [[1, 2.5], [3, 4]]
    assert table.columns == {"id": ["a", "b"]}
    table = read(jsonl(tmp_path / "y.jsonl", [{"e0": 1, "e1": 2, "text": "a"}]), features="e")
    assert (table.vectors.tolist(), table.columns) == ([[1, 2]], {"text": ["a"]})
    with pytest.raises(BankError, match="different lengths, and none is usual: row 0 has 2 numbers, row 1 has 1"):
        read(jsonl(tmp_path / "z.jsonl", [{"embedding": [1, 2]}, {"embedding": [1]}]))
    kept = read(jsonl(tmp_path / "y.jsonl", [{"embedding": [k, 2]} for k in range(20)] + [{"embedding": [1]}]))
    assert (kept.n_rows, [str(one) for one in kept.skipped]) == (
        20,
        ["line 21: it has 1 number in 'embedding', and most rows have 2"],
    )


def test_lines_that_cannot_be_read_are_skipped_and_listed(tmp_path):
    lines = [json.dumps({"text": f"s{k}"}) for k in range(60)]
    lines[3], lines[5], lines[8] = "", "{", "[1]"
    lines[10], lines[12] = json.dumps({"text": None}), json.dumps({"text": 7})
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    with pytest.raises(
        BankError, match="3 of 59 rows cannot be read, more than 5%; the first is line 6: it is not JSON"
    ):
        read(tmp_path / "x.jsonl")
    lines += [json.dumps({"text": "more"})] * 10
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    table = read(tmp_path / "x.jsonl")
    assert [(one.row, one.name) for one in table.skipped] == [
        (4, "line 6"),
        (7, "line 9"),
        (9, "line 11"),
        (11, "line 13"),
    ]
    assert [one.kind for one in table.skipped] == ["unreadable", "unreadable", "blank", "unreadable"]
    assert (table.n_rows, table.rows[4]) == (65, 5)


def test_numbers_that_no_vector_can_hold_are_skipped_and_listed(tmp_path):
    lines = ['{"features": [1, 2]}'] * 80
    lines[3:7] = [f'{{"features": [1, {one}]}}' for one in ("9" * 400, "1e400", "NaN", "-Infinity")]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    table = read(tmp_path / "x.jsonl")
    assert table.vectors.tolist() == [[1, 2]] * 76
    assert [str(one) for one in table.skipped[:3:2]] == [
        f"line 4: it is not JSON, or no object ({'9' * 39!r:.40} is not a finite number)",
        "line 6: it must have numbers in features",
    ]


def test_other_text_is_refused(tmp_path):
    for content, sentence in ((b"\xff", "not a table in UTF-8"), (b"", "has no rows"), (b"{", "is not JSON")):
        (tmp_path / "x.jsonl").write_bytes(content)
        with pytest.raises(BankError, match=sentence):
            read(tmp_path / "x.jsonl")
