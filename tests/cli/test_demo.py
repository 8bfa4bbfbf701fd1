import csv
import io
import pydoc
import re
import shlex
from contextlib import redirect_stdout
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


def test_the_labels_are_those_whose_number_is_printed(shown):
    names = np.array(load_clinc150().class_names)
    truth = names[load_clinc150().labels[shown_rows(shown)]]
    with open(shown / "labels.csv", encoding="utf-8", newline="") as file:
        together = np.array([row["label"] for row in csv.DictReader(file)])
    printed = (shown.parent / "terminal.txt").read_text(encoding="utf-8")
    assert f"as one batch     {(together == truth).sum()} of {demo.ITEMS} labels right" in printed


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


def test_the_gain_is_a_mean_of_pairs():
    truth, other = np.array(["a", "b"] * 5), np.array(["x"] * 10)
    half = np.where(np.arange(10) < 5, truth, other)
    found = [demo.Labelled(other, truth, half, truth), demo.Labelled(other, truth, other, half)]
    expected = "Over 2 such batches: 25.0% right one at a time, 75.0% as a batch, a gain of 50.0 ± 0.0 points."
    assert demo.gain_said(found) == expected


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
