"""Bars of a large batch: one a pass, with how far it is and what is left; nothing where nobody looks."""

import io

from rich.console import Console

from handful.cli.passes import duration, passes
from handful.large import Progress


def reports(on_progress):
    on_progress(Progress("compare", 0, 1, 2, None, 60.0, 65.0))
    on_progress(Progress("compare", 0, 2, 2, None, 120.0, 0.0))
    on_progress(Progress("iterate", 1, 1, 1, 31.4, 121.0, None))
    on_progress(Progress("iterate", 2, 1, 1, 0.25, 122.0, 3.0))


def written(*, terminal):
    stream = io.StringIO()
    with passes("labelling photos", Console(file=stream, force_terminal=terminal, width=120)) as on_progress:
        reports(on_progress)
    return stream.getvalue()


def test_a_bar_a_pass_with_what_is_left():
    last = written(terminal=True).rsplit("labelling photos", 1)[1]
    compare, iterate = last.splitlines()[1:3]
    assert "compare" in compare
    assert "2 of 2 parts" in compare
    assert "2 iterations, change 0.25" in iterate
    assert "3 s left" in iterate


def test_nothing_where_nobody_looks():
    assert written(terminal=False).strip() == ""


def test_durations_read_as_people_say_them():
    assert [duration(s) for s in (0.4, 59.6, 3599, 3600)] == ["0 s", "1:00 min", "59:59 min", "1:00:00 h"]
