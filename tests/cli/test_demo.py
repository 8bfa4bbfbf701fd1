import csv
import io
import pydoc
import re
import shlex
from contextlib import redirect_stdout
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
from handful.cli import demo
from handful.cli.main import main
from handful.datasets import load_clinc150, load_clinc150_sentences
from tests.review.reviews import answer_next


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The folder of one demo; beside it, what it prints."""
    place = tmp_path_factory.mktemp("demo") / "demo"
    with redirect_stdout(io.StringIO()) as printed:
        assert main(["demo", "--out", str(place)]) == 0
    (place.parent / "terminal.txt").write_text(printed.getvalue(), encoding="utf-8")
    return place


def shown_rows(shown):
    """Rows of the bank that are in the batch of the demo."""
    sentences = np.array(load_clinc150_sentences())
    batch = np.load(shown / "batch.npz")["text"].tolist()
    return next(rows for rows in demo.drawn(load_clinc150())[1] if sentences[rows].tolist() == batch)


class Cells(HTMLParser):
    """Rows of all tables, as texts."""

    def __init__(self, page):
        super().__init__()
        self.rows = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, text):
        if self.rows and self.rows[-1] and self.lasttag in ("td", "th"):
            self.rows[-1][-1] += text.strip()


def test_the_page_shows_the_batch_its_classes_and_the_gain(shown):
    page = (shown / "index.html").read_text()
    names = np.array(load_clinc150().class_names)
    rows = shown_rows(shown)
    truth = names[load_clinc150().labels[rows]]
    with open(shown / "labels.csv", encoding="utf-8", newline="") as file:
        predicted = list(csv.DictReader(file))
    together = np.array([row["label"] for row in predicted])
    sentences = np.array(load_clinc150_sentences())[rows]
    assert [row["text"] for row in predicted] == sentences.tolist()
    rows = Cells(page).rows
    counts = {row[0].replace(" ", "_"): row[1:4] for row in rows if len(row) == 5 and row[0] != "class"}
    for name in {*truth, *together}:
        expected = [int((labels == name).sum()) for labels in (truth, together)]
        assert [counts[name][0], counts[name][2]] == [str(n or "–") for n in expected]
    assert sum(int(n) for n in (row[1].replace("–", "0") for row in counts.values())) == demo.ITEMS
    assert f"As one batch<b>{(together == truth).sum()} of {demo.ITEMS} right</b>" in page
    changed = [row for row in rows if len(row) == 4 and row[0] in sentences]
    assert changed
    for sentence, really, alone, label in changed:
        item = sentences.tolist().index(sentence)
        assert [really, label] == [array[item].replace("_", " ") for array in (truth, together)]
        assert alone != label
    right = int(re.search(r"One at a time<b>(\d+) of", page)[1])
    gained = sum((row[3] == row[1]) - (row[2] == row[1]) for row in changed)
    assert right + gained == (together == truth).sum()
    assert "<h1>review" not in page
    assert (shown / "report.html").is_file()
    assert "href='report.html'" in page


def test_the_sentences_are_shown_in_the_terminal_and_on_the_report(shown):
    sentences = np.array(load_clinc150_sentences())[shown_rows(shown)]
    printed = (shown.parent / "terminal.txt").read_text(encoding="utf-8")
    assert sum(f'  "{sentence}"\n' in printed for sentence in sentences) == demo.MOST_SHOWN
    assert all(len(line) <= demo.WIDTH for line in printed.splitlines() if not line.startswith("The page: "))
    review = (shown / "report.html").read_text(encoding="utf-8")
    assert all(sentence in review for sentence in sentences if not set(sentence) & set("'\"<>&"))
    labels = [np.array(names) for names in (["a"] * 6, ["b"] * 5 + ["a"], ["a"] * 6)]
    lines = demo.changes_said(demo.Labelled(sentences[:6], *labels)).splitlines()
    assert lines[1:3] == [f'  "{sentences[0]}"', "      b → a"]
    assert len(lines) == 2 + 2 * demo.MOST_SHOWN
    assert lines[-1] == "  and 1 more, on the page"
    long = demo.Labelled(np.array(["word " * 40]), *(np.array([name]) for name in "aba"))
    assert max(map(len, demo.changes_said(long).splitlines())) <= demo.WIDTH


def test_no_header_of_the_page_breaks_inside_a_word(shown):
    rules = re.findall(r"(?:^|})\s*th \{([^}]*)\}", (shown / "index.html").read_text(encoding="utf-8"), re.MULTILINE)
    assert any("overflow-wrap: normal" in rule for rule in rules)


def test_the_gain_is_a_mean_of_pairs():
    truth, other = np.array(["a", "b"] * 5), np.array(["x"] * 10)
    half = np.where(np.arange(10) < 5, truth, other)
    found = [demo.Labelled(other, truth, half, truth), demo.Labelled(other, truth, other, half)]
    expected = "Over 2 such batches: 25.0% right one at a time, 75.0% as a batch, a gain of 50.0 ± 0.0 points."
    assert demo.gain_said(found) == expected


def test_the_command_of_the_page_runs(shown, monkeypatch, tmp_path):
    words = " ".join(demo.AGAIN).split()
    for name in ("catalogue.npz", "batch.npz"):
        (tmp_path / name).write_bytes((shown / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    assert main(words[1:]) == 0
    assert (tmp_path / "labels.csv").read_text() == (shown / "labels.csv").read_text()


def test_labelling_jointly_has_an_effect_and_leaves_something_to_review(shown):
    alone, together = map(int, re.findall(r"(\d+) of 75 labels right", (shown.parent / "terminal.txt").read_text()))
    assert alone + 5 < together < 73


def test_the_batch_shown_is_the_one_in_the_middle():
    truth = np.array(["a"] * 4)
    right = [np.array(["a"] * n + ["b"] * (4 - n)) for n in (4, 1, 0, 2)]
    assert demo.middle([demo.Labelled(truth, truth, truth, labels) for labels in right]) == 1


def block_of_first_steps(section):
    """Return the commands of a section: those that install, and the others."""
    text = (Path(__file__).parents[2] / "docs" / "learn" / "first_steps.md").read_text(encoding="utf-8")
    block = text.partition(f"## {section}\n")[2].partition("```bash\n")[2].partition("```")[0]
    commands = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert commands[0][:2] == ["pip", "install"]
    return commands[1:]


def test_the_start_with_nothing_runs_as_printed_in_an_empty_folder_in_seven_decisions(tmp_path, monkeypatch):
    serve = pytest.importorskip("handful.review.serve", reason="the extra 'review' is not installed")
    server = pytest.importorskip("handful.review.server")
    bank = load_clinc150()
    intents = dict(zip(load_clinc150_sentences(), np.array(bank.class_names)[bank.labels].tolist(), strict=True))

    def served(page, finish, where, *, catalogue, watching):
        watching.start(60)
        watching.stop()
        review = page.review
        truth = [intents[sentence] for sentence in review.batch.contents]
        while answer_next(review, truth) is not None:
            pass
        assert review.progress()["decisions"] == 7
        return finish(review, server.Wanted())

    monkeypatch.setattr(serve, "serve", served)
    monkeypatch.chdir(tmp_path)
    demo_command, review_command = block_of_first_steps("Name photographs without examples")
    assert main(demo_command[1:]) == 0
    assert main(review_command[1:]) == 0
    assert Path("tour/batch.handful").is_file()


def test_the_tour_runs_as_printed_in_an_empty_folder(tmp_path, monkeypatch):
    *commands, review = block_of_first_steps("Review a batch with a catalogue")
    assert review[:2] == ["handful", "review"]
    monkeypatch.chdir(tmp_path)
    for command in commands:
        assert main(command[1:]) == 0
    catalogue, batch = review[2:]
    assert main(["classify", catalogue, batch, "--out", "labels.csv"]) == 0
    assert Path("labels.csv").read_bytes() == Path("tour/labels.csv").read_bytes()


def test_catalogue_and_batches_have_no_row_in_common():
    bank = load_clinc150()
    catalogue, batches = demo.drawn(bank)
    assert np.bincount(bank.labels[catalogue]).tolist() == [demo.SHOTS] * 150
    for batch in batches:
        assert len(set(batch)) == demo.ITEMS
        assert not set(batch) & set(catalogue)
        assert len(set(bank.labels[batch])) == demo.INSIDE


def test_what_it_sends_to_comes_with_the_package(capsys):
    named = re.findall(r"^  handful ([\w ]+?)(?: --help)?  ", demo.NEXT, re.MULTILINE)
    assert len(named) == 3
    for command in named:
        assert main([*command.split(), "--help"]) == 0
        assert "Usage" in capsys.readouterr().out
    explained = re.findall(r"pydoc (\S+)", demo.NEXT)
    assert len(explained) == 1
    assert all("Examples" in pydoc.getdoc(pydoc.locate(name)) for name in explained)
