"""One bar per long step, where somebody looks: on a terminal and in a notebook; in a pipe nothing."""

import io
import os
import re
import select
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from handful import progress
from handful.estimators import BatchClassifier
from handful.fitted import FittedModel
from handful.progress import Progress, Reporter, bars, lines, silent
from tests.worlds import Clouds


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watch(monkeypatch, columns=120):
    """Make standard error a terminal on which all work is long; it keeps what is drawn."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "LONG", 0.0)
    monkeypatch.setattr(progress, "BETWEEN", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))


def drawn():
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", sys.stderr.getvalue())


def work(n=4):
    with bars("some work") as listener:
        report = Reporter(listener).stage("count", n, unit="items")
        for _ in range(n):
            report(1)


def test_a_pipe_stays_silent(capfd, monkeypatch):
    monkeypatch.setattr(progress, "LONG", 0.0)
    work()
    assert tuple(capfd.readouterr()) == ("", "")


def test_short_work_is_not_shown(monkeypatch):
    watch(monkeypatch)
    monkeypatch.setattr(progress, "LONG", 60.0)
    work()
    assert drawn() == ""


@pytest.mark.parametrize("columns", [120, 60])
def test_a_terminal_shows_what_is_done_and_how_fast(monkeypatch, columns):
    watch(monkeypatch, columns)
    work()
    assert "✓ count" in drawn()
    assert "4 of 4 items" in drawn()
    assert columns < 100 or "items/s" in drawn()


def test_work_that_reports_nothing_has_a_bar_without_an_end(monkeypatch):
    watch(monkeypatch)
    with bars("a long look"):
        while "a long look" not in drawn():
            time.sleep(0.01)


def test_bars_inside_bars_are_drawn_together_and_a_listener_gets_all(monkeypatch):
    watch(monkeypatch)
    with bars("outside"), bars("inside"):
        Reporter().stage("one", 1)(1)
        with silent():
            Reporter().stage("hidden", 1)(1)
    assert "one" in drawn()
    assert "hidden" not in drawn()
    sys.stderr.truncate(0)
    seen = []
    with bars("outside", seen.append) as listener:
        Reporter(listener).stage("two", 10, 4, "rows")(3)
    assert (seen[0].stage, seen[0].done, seen[0].total, seen[0].unit) == ("two", 7, 10, "rows")
    assert seen[0].seconds_left == pytest.approx(3 / seen[0].per_second)
    assert "two" not in drawn()


def test_a_failure_ends_the_drawing(monkeypatch):
    watch(monkeypatch)

    def fail():
        Reporter().stage("begun", 3)(1)
        return 1 / 0

    with pytest.raises(ZeroDivisionError), bars("fails"):
        fail()
    assert progress._drawing.get() is None
    assert sys.stderr.getvalue().endswith("\x1b[?25h")  # the cursor is there again


def test_the_time_left_may_be_known_better():
    seen = []
    report = Reporter(seen.append).stage("run", 10)
    report(1, 90.0)
    report(1, None)
    assert [one.seconds_left for one in seen] == [90.0, None]
    assert str(Progress("run", 1, 10, 1.0, 90.0, "tasks", 0.1)) == "run: 1 of 10 tasks, 0.1 tasks/s, 1:30 min left"


def test_a_notebook_shows_html_and_takes_it_away(monkeypatch):
    shown = []
    handle = SimpleNamespace(update=shown.append)
    display = SimpleNamespace(HTML=str, display=lambda html, display_id: shown.append(html) or handle)
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1), display=display)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(progress, "LONG", 0.0)
    monkeypatch.setattr(progress, "BETWEEN", 0.0)
    with bars("<b>work</b>"):
        report = Reporter().stage("<i>count</i>", 2, unit="items")
        report(1)
        report(1)
    assert "<div>&lt;i&gt;count&lt;/i&gt; <progress value='2' max='2'></progress> 2 of 2 items" in shown[-2]
    assert shown[-1] == ""
    assert not any("<b>" in html or "<i>" in html for html in shown)


def test_fitting_and_labelling_groups_are_shown(monkeypatch):
    clouds = Clouds(20, 16)
    codes = np.arange(20).repeat(5)
    X = clouds.around(codes, 0.3)
    watch(monkeypatch)
    _ = FittedModel.of(X, codes).head
    assert re.search(r"fit the catalogue .* (\d) of \1 fits", drawn())
    classifier = BatchClassifier().fit(X, codes)
    for label in (classifier.infer, classifier.predict):
        sys.stderr.truncate(0)
        label(X, groups=np.arange(100) // 10)
        assert "100 of 100 items" in drawn()


def test_a_log_gets_a_line_at_most_every_while_and_the_last(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LONG", 0.0)
    with lines(), bars("run"):
        report = Reporter().stage("run", 4, unit="tasks")
        for _ in range(4):
            report(1)
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in said] == ["run: 1 of 4 tasks", "run: 4 of 4 tasks"]
    Reporter().stage("run", 1)(1)
    assert capsys.readouterr().err == ""


PROGRAM = """
import time
from handful.progress import Reporter, bars
with bars("embed"):
    report = Reporter().stage("embed the batch", 1200, unit="items")
    for _ in range(12):
        time.sleep(0.25)
        report(100)
"""


@pytest.mark.parametrize(("encoding", "finished"), [("utf-8", "✓"), ("ascii", "*")])
def test_a_real_terminal(encoding, finished):
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "PYTHONIOENCODING": encoding}
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=theirs, stdout=theirs, env=environment)
    os.close(theirs)
    said = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            said += os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
    assert process.wait() == 0
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said.decode())
    assert re.search(r"embed the batch .* of 1,200 items +\d+ items/s +\d+ s left", text)
    assert f"{finished} embed the batch" in text
    assert "\\u" not in text
