"""What `handful classify` prints, piped and on terminals of two widths."""

import io
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from handful.classification import About, Batch, classify
from handful.cli import printed
from handful.cli.printed import print_batch
from handful.estimators import Answer, Diagnostic
from handful.extraction.extract import Skipped
from tests.answers_at_hand import answer_of

NAMES = ("ant", "[bold]bee", "a class with a name that is far too long for one column of a narrow terminal")
FILES = [(Path("labels.csv"), "predictions"), (Path("labels.html"), "a page")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def found(batch=None, n_examples=9, encoder="minilm, weights 12ab", names=NAMES, n_items=4, **changes) -> Answer:
    table = [[0.9, 0.05, 0.05], [0.4, 0.55, 0.05], [0.01, 0, 0.99], [0.97, 0.01, 0.02]]
    weak = Diagnostic("weak_features", "Features look weak.", 0.0, 1.0, UserWarning)
    about = {
        "expected_counts": np.array([2.0, 1.25, 1234.5]),
        "presence": np.array([0.999, 0.51, 1.0]),
        "diagnostics": (weak,),
        "unknown": np.zeros(4),
        "rejected": np.array([1, 0, 0, 1], bool),
        "unknown_interval": (0.1, 0.9),
    }
    if n_items < 4:
        about |= {"unknown": np.full(n_items, np.nan), "rejected": np.zeros(n_items, bool)}
    items = batch or Batch(range(4), ("a", "b", "c", "d"), None, (Skipped(4, "e.png", "not an image"),))
    return replace(answer_of(table[:n_items], names, **about | changes), about=About(items, n_examples, encoder))


NOT_JUDGED = {"unknown": np.full(4, np.nan), "rejected": np.zeros(4, bool)}


def test_a_batch_is_told_from_its_items_to_its_files(capsys):
    print_batch(found(), FILES)
    streams = capsys.readouterr()
    assert streams.out.splitlines() == [
        "4 items, labelled jointly, with a catalogue of 3 classes and 9 examples; features of minilm",
        "",
        "3 classes present, with items, expected items and the probability of presence",
        "  items  expected  chance  class",
        f"      1   1,234.5   1.000  {NAMES[2]}",
        "      0       2.0   0.999  ant",
        "      1       1.2   0.510  [bold]bee",
        "      2                    none of these",
        "",
        "1 item is doubtful, because another class or none is nearly as likely.",
        "2 items look like none of your 3 classes.",
        "Written:",
        "  labels.csv   predictions",
        "  labels.html  a page",
    ]
    assert streams.err.splitlines() == [
        "1 of 5 items is skipped: 1 unreadable",
        "  e.png: not an image",
        "warning: Features look weak.",
    ]


def test_many_classes_and_skipped_items_are_printed_in_part(capsys, monkeypatch):
    monkeypatch.setattr(printed, "MOST_CLASSES", 2)
    monkeypatch.setattr(printed, "MOST_SKIPPED", 1)
    lost = tuple(Skipped(row, f"{row}.png", "empty") for row in range(3))
    print_batch(found(Batch(range(4), ("a", "b", "c", "d"), None, lost)), FILES)
    streams = capsys.readouterr()
    assert streams.out.splitlines()[6].split() == ["1", "and", "1", "more"]
    assert streams.err.splitlines()[1:3] == ["  0.png: empty", "  and 2 more"]


@pytest.mark.parametrize("columns", [80, 40])
def test_a_terminal_never_gets_a_line_that_is_too_long(capsys, monkeypatch, columns):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    for name, value in {"TERM": "xterm", "COLUMNS": str(columns), "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    print_batch(found(), FILES)
    text = terminal.getvalue().replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "")
    assert max(map(len, text.splitlines())) <= columns
    assert "".join(NAMES[2].split()) in "".join(text.split())
    assert "  items  expected  chance  class" in map(str.rstrip, text.splitlines())


@pytest.mark.parametrize("columns", [120, 80, 40])
def test_no_word_of_a_header_is_broken(monkeypatch, columns):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    for name, value in {"TERM": "xterm", "COLUMNS": str(columns), "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    table = printed._table(("item", "left"), ("number", "right"), ("classes present", "left"))
    table.add_row("3", "7", "one_long_name_without_blanks_" * 20)
    printed.show(table)
    lines = terminal.getvalue().replace("\x1b[2m", "").replace("\x1b[0m", "").splitlines()
    assert lines[0].split()[:3] == ["item", "number", "classes"]
    assert max(map(len, lines)) <= columns


def test_groups_are_told_with_their_classes(tmp_path, capsys):
    rng = np.random.default_rng(0)
    centres = np.eye(8)
    examples = centres.repeat(5, 0) + 0.05 * rng.normal(size=(40, 8))
    np.savez(tmp_path / "c.npz", features=examples, labels=np.array(list("abcdefgh")).repeat(5))
    batch = centres[[0] * 6 + [1] * 6] + 0.05 * rng.normal(size=(12, 8))
    np.savez(tmp_path / "b.npz", features=batch, site=["wood"] * 6 + ["marsh"] * 6)
    print_batch(classify(tmp_path / "c.npz", tmp_path / "b.npz", group_by="site"), FILES)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "12 items, each group labelled as one batch, with a catalogue of 8 classes and 40 examples"
    assert lines[2:4] == ["2 groups by site", "  site   items  classes present, with expected items"]
    assert lines[4].startswith("  marsh      6  b ")
    assert lines[5].startswith("  wood       6  a ")
    assert lines[-2:] == ["  labels.csv   predictions", "  labels.html  a page"]


def test_where_unknown_items_cannot_be_judged_that_is_said(capsys):
    reason = "Unknown items cannot be judged with a single class; add others."
    print_batch(found(unknown_reason=reason, **NOT_JUDGED), FILES)
    assert reason in capsys.readouterr().out.splitlines()


def test_a_name_of_two_lines_takes_one_line(capsys):
    print_batch(found(names=("two\nlines", "half \ud800", "plain")), FILES)
    lines = capsys.readouterr().out.splitlines()
    assert sum(r"two\nlines" in line for line in lines) == 1
    assert sum(r"half \ud800" in line for line in lines) == 1
    assert "lines" not in {line.strip() for line in lines}
