"""`handful review`: the options of `classify`, refusals before the work, and what is said at the end."""

import inspect

import numpy as np
import pytest

from handful.catalogue.file import CatalogueFile
from handful.cli.classify import classify_command
from handful.cli.main import main
from handful.cli.review import FROM_CLASSIFY, _unfinished, review_command
from handful.review import serve
from handful.review.server import Wanted


@pytest.fixture
def here(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "catalogue.npz", features=rng.normal(size=(4, 6)), labels=list("abcd"))
    np.savez(tmp_path / "today.npz", features=rng.normal(size=(5, 6)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_has_the_options_of_classify_word_for_word():
    own, theirs = inspect.signature(review_command).parameters, inspect.signature(classify_command).parameters
    assert set(FROM_CLASSIFY) <= set(own)
    without = set(theirs) - set(own)
    assert without == {"method"}


def test_an_interrupted_review_goes_on_with_the_same_command(here, monkeypatch, capsys):
    interrupted = []

    def interrupts(page, finish, where, *, catalogue, watching):
        opens(watching)
        interrupted.append((page.title, where.host, catalogue.name))

    monkeypatch.setattr(serve, "serve", interrupts)
    for words in (["catalogue.npz", "today.npz"], ["catalogue.handful", "today.npz"], ["catalogue.handful"]):
        assert main(["review", *words]) == 130
        assert "run the same command again to go on" in capsys.readouterr().err
    assert interrupted == [("today", "127.0.0.1", "catalogue.handful")] * 3
    assert {path.name for path in here.iterdir()} == {"catalogue.npz", "today.npz", "catalogue.handful"}
    with CatalogueFile.open(here / "catalogue.handful") as file:
        assert {name: len(items) for name, items in file.said.places.items()} == {"catalogue": 4, "today": 5}


def opens(watching):
    """Open the batch of a page, as a server does."""
    watching.start(60)
    watching.stop()


def served(page, finish, where, *, catalogue, watching):
    """Finish at once."""
    opens(watching)
    return finish(page.review, Wanted())


def test_what_was_written_is_said(here, monkeypatch, capsys):
    monkeypatch.setattr(serve, "serve", served)
    assert main(["review", "catalogue.npz", "today.npz", "--out", "labels.csv", "--out", "page.html"]) == 0
    said = capsys.readouterr().out
    for name in ("labels.csv", "page.html"):
        assert f"wrote {name}" in said
        assert (here / name).is_file()
    assert "for the next batch: handful review catalogue.handful next_batch" in said


def test_a_batch_alone_is_named(here, monkeypatch, capsys):
    (here / "names.txt").write_text("elk\nowl\n")
    offered = []

    def reviewed(page, finish, where, *, catalogue, watching):
        opens(watching)
        offered.extend(page.review.session.names)
        page.review.decide(page.review.number, [0, 1], "new", "fox")
        assert (page.out, page.catalogue) == ("today.labels.csv", "today.handful")
        return finish(page.review, Wanted())

    monkeypatch.setattr(serve, "serve", reviewed)
    assert main(["review", "today.npz", "--candidates", "names.txt"]) == 0
    said = capsys.readouterr().out
    assert offered == ["elk", "owl"]
    assert "wrote today.labels.csv" in said
    assert (here / "today.handful").is_file()
    assert "for the next batch: handful review today.handful next_batch" in said


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["today.npz", "--prior", "weights.csv"], "there are no examples yet"),
        (["today.npz", "--group-by", "site", "--sequence", "list"], "sequence, group_by: there are no examples yet"),
        (["kinds.handful", "--next"], "--next names the labels of each batch of a folder"),
        (["catalogue.npz", "today.npz", "--address", "localhost:70000"], "a port up to 65535, got localhost:70000"),
        (["kinds.handful"], "has no batch yet; name one: handful review kinds.handful BATCH"),
        (["catalogue.npz", "today.npz", "more.npz"], "got 3 paths"),
    ],
)
def test_what_a_review_cannot_have_is_refused_with_a_sentence(here, words, reason, capsys):
    assert main(["review", *words]) == 1
    assert reason in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("out", ["today.npz", "catalogue.npz", "labels.txt"])
def test_no_input_is_overwritten(here, out, capsys):
    before = (here / "today.npz").read_bytes()
    assert main(["review", "catalogue.npz", "today.npz", "--out", out]) == 1
    assert (here / "today.npz").read_bytes() == before
    assert not list(here.glob("*.handful"))


def test_a_folder_of_batches_is_reviewed_one_after_another(here, monkeypatch, capsys):
    days = here / "days"
    days.mkdir()
    for name in ("2026.05.02.npz", "2026.05.01.npz"):
        np.savez(days / name, features=np.random.default_rng(1).normal(size=(5, 6)))
    (days / ".hidden").touch()
    served, finishes = [], False

    def serves(page, finish, where, *, catalogue, watching):
        opens(watching)
        served.append(page.title)
        return finish(page.review, Wanted()) if finishes else None

    monkeypatch.setattr(serve, "serve", serves)
    command = ["review", "catalogue.npz", "days", "--next"]
    assert main(command) == 130
    finishes = True
    assert main(command) == 0  # an interrupted one is not finished
    assert "next is days/2026.05.02.npz: run the same command again" in capsys.readouterr().out
    assert main(command) == 0
    assert "next is" not in capsys.readouterr().out
    assert main(command) == 0
    assert "every batch in days has labels here" in capsys.readouterr().out
    assert served == ["2026.05.01", "2026.05.01", "2026.05.02"]
    assert (here / "2026.05.01.labels.csv").is_file()
    assert (here / "2026.05.02.labels.csv").is_file()


def test_a_folder_of_batches_that_cannot_be_told_apart_is_refused(here, monkeypatch, capsys):
    def refused(*words):
        assert main(["review", "catalogue.npz", *words, "--next"]) == 1
        return capsys.readouterr().err

    (here / "days").mkdir()
    assert "is empty" in refused("days")
    assert "leave --next out" in refused("today.npz")
    assert "leave --out out" in refused("days", "--out", "labels.csv")
    assert "in another folder" in refused(".")
    for name in ("a.npz", "a.csv"):
        (here / "days" / name).touch()
    assert "would be one file" in refused("days")


def test_folders_are_batches_by_their_whole_name(here):
    names = ["2026.05.01", "2026.05.02", "2026.05.03"]
    for name in names:
        (here / "days" / name).mkdir(parents=True)
    (here / "2026.05.02.labels.csv").touch()
    assert [batch.name for batch in _unfinished(here / "days")] == [names[0], names[2]]
