import io
import re
import sys
import time

import pytest
from rich.table import Table
from rich.text import Text

from handful.cli import terminal as lines
from handful.cli.terminal import now_and_then, show, waiting


def until_written(capsys, text):
    """Wait until standard error has the text, however long that takes; return what was written."""
    written = ""
    while text not in written:
        time.sleep(0.01)
        written += capsys.readouterr().err
    return written


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_an_answer_is_plain_and_no_line_is_broken(capsys):
    table = Table("name", box=None)
    table.add_row("x" * 300)
    show(Text("head", style="bold"), table)
    assert capsys.readouterr().out.splitlines() == ["head", " name", " " + "x" * 300]


def test_a_terminal_gets_emphasis_and_its_own_width(capsys, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("NO_COLOR", raising=False)
    show(Text("word " * 20, style="bold"))
    assert "\x1b[1m" in terminal.getvalue()
    assert len(terminal.getvalue().splitlines()) > 2


def test_lines_come_now_and_then_with_the_latest_news(capsys, monkeypatch):
    monkeypatch.setattr(lines, "FIRST_LINE", 0.05)
    monkeypatch.setattr(lines, "NEXT_LINES", 0.05)
    with now_and_then("reading photos") as news:
        first = until_written(capsys, "handful: reading photos, ")
        news("3 of 4")
        until_written(capsys, "handful: reading photos: 3 of 4, ")
    assert re.fullmatch(r"handful: reading photos, \S+ \S+ so far", first.splitlines()[0])


def test_progress_goes_to_a_terminal_on_standard_error(capsys, monkeypatch):
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with waiting("working hard"):
        pass
    assert "working hard" in terminal.getvalue()
    assert capsys.readouterr().out == ""
