import os
from pathlib import Path

import numpy as np
import pytest

from handful.classification.names import read_names
from handful.errors import BankError, HandfulError
from handful.extraction.items import list_items
from handful.machine.untrusted import (
    Budget,
    finite,
    lines_of,
    parse_json,
    printable,
    read_text,
    refuse_irregular,
)
from handful.reading import read_bank
from handful.reading.class_lists import read_candidates, read_weights
from handful.reading.scores import read_scores
from handful.reading.sites import read_sites
from handful_fewshot.benchmark.journal import Journal
from handful_fewshot.benchmark.plan import read_plan
from handful_fewshot.networks.checkpoint import Checkpoint
from handful_fewshot.training.splits import BENCHMARKS, benchmark_rows


def test_pipes_devices_and_folders_are_refused_and_files_are_not(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path / "link", tmp_path, "/dev/null"):
        with pytest.raises(BankError, match="is not a regular file"):
            refuse_irregular(path, BankError)
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "missing", "null\0character"):
        refuse_irregular(path, BankError)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '{"a":' * 200_000,
        "[" * 200_000 + "]" * 200_000,
        "9" * 5000,
        "9" * 400,
        "{",
        b"\xff",
        "",
        "[1e400]",
    ],
)
def test_whatever_is_wrong_with_json_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 - Python says what is wrong in its own words
        parse_json(text)


@pytest.mark.parametrize(
    "text", ["", "nan", "inf", "-Infinity", "1_0", "1e400", "\u0661", "\uff11", "0x10", "1,5", None, [], 10**400]
)
def test_what_is_no_finite_decimal_number_is_refused(text):
    with pytest.raises(ValueError, match="is not a finite number"):
        finite(text)


def test_finite_decimal_numbers_are_read():
    assert [finite(one) for one in ("1", "-.5", " 2.5e-3\t", "+7.", 3, np.float32(0.5))] == [1, -0.5, 0.0025, 7, 3, 0.5]


def test_a_budget_is_spent_once_and_says_what_to_do():
    budget = Budget("x.csv.gz", 10**7)
    budget.spend(9 * 10**8)
    budget.spend(cells=3 * 10**6)
    with pytest.raises(BankError, match=r"x.csv.gz has 10,000,000 bytes and would expand to more than 1,000,000,000"):
        budget.spend(-(10**7))  # a damaged size is spent as well


def test_what_is_not_printable_is_written_out():
    assert printable("füchse 🦊 שלום") == "füchse 🦊 שלום"
    assert printable("a\nb\x1b[2J\u202e\u2028") == r"a\nb\x1b[2J\u202e\u2028"


LIST = next(iter(BENCHMARKS["mini-imagenet"].lists))


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("names.txt", read_names),
        ("names.json", read_names),
        ("names.csv", read_names),
        ("plan.toml", read_plan),
        ("checkpoint.json", lambda path: Checkpoint.load(path.parent)),
        ("plan.json", lambda path: Journal(path.parent)),
        (LIST, lambda path: benchmark_rows("mini-imagenet", path.parent, path.parent)),
        ("export.json", read_bank),
        ("scores.json", read_scores),
        ("scores.csv", read_scores),
        ("coco.json", read_sites),
        ("datapackage.json", read_sites),
        ("sites.csv", read_sites),
        ("candidates.txt", lambda path: read_candidates(path, ["a"])),
        ("weights.csv", lambda path: read_weights(path, ["a"])),
        ("items.jsonl", list_items),
        ("bank.csv", read_bank),
        ("bank.npz", read_bank),
        ("bank.parquet", read_bank),
        ("bank.pkl", read_bank),
    ],
)
def test_no_reader_waits_for_a_pipe(tmp_path, name, read):
    os.mkfifo(tmp_path / name)
    with pytest.raises(HandfulError):
        read(tmp_path / name)


@pytest.mark.parametrize("name", ["missing", "null\0character", "half\ud800", "long" * 2000, "."])
def test_what_cannot_be_read_is_said_in_a_sentence(tmp_path, name):
    with pytest.raises(BankError, match="check the path"):
        read_text(tmp_path / name, BankError)


def test_lines_end_where_lines_end():
    assert lines_of("a\nb\r\nc\rd") == ["a", "b", "c", "d"]
    assert lines_of("a\n\n") == ["a", ""]
    assert lines_of("") == []
    assert lines_of("a\x0b\x0c\x1c\x85\u2028\u2029b") == ["a\x0b\x0c\x1c\x85\u2028\u2029b"]


@pytest.mark.parametrize("address", ["s3://bucket/a.bank", Path("s3://bucket/a.bank")])
def test_an_address_is_told_as_it_was_written(address):
    with pytest.raises(HandfulError, match=r"^s3://bucket/a\.bank is an address, .*; copy it to this machine first"):
        read_bank(address)
