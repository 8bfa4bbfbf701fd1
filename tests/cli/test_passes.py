"""Bars of a large batch: one per pass, with how far it is and what is left; without a terminal a line now and then."""

import io

from rich.console import Console

from handful.cli import terminal as lines
from handful.cli.passes import passes
from handful.large import Progress
from tests.cli.test_terminal import until_written


def reports(on_progress):
    on_progress(Progress("embed the batch", 1500, 3000, 60.0, 65.0))
    on_progress(Progress("label", 1, 2, 60.0, 65.0))
    on_progress(Progress("label", 2, 2, 120.0, 0.0))


def written(*, terminal):
    stream = io.StringIO()
    with passes("labelling photos", Console(file=stream, force_terminal=terminal, width=120)) as on_progress:
        reports(on_progress)
    return stream.getvalue()


def test_a_bar_a_pass_with_what_is_left():
    last = written(terminal=True).rsplit("labelling photos", 1)[1]
    embed, label = last.splitlines()[1:3]
    assert "1,500 of 3,000 items" in embed
    assert "label" in label
    assert "2 of 2 parts" in label
    assert "0 s left" in label


def test_short_work_says_nothing_without_a_terminal(capsys):
    assert written(terminal=False) == ""
    assert capsys.readouterr() == ("", "")


def test_long_work_says_where_it_is_without_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(lines, "FIRST_LINE", 0.05)
    with passes("labelling photos", Console(file=io.StringIO(), force_terminal=False)) as on_progress:
        on_progress(Progress("label", 1, 2, 60.0, 65.0))
        until_written(capsys, "handful: labelling photos: label, 1 of 2 parts, 1:05 min left, ")
