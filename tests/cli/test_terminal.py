import io
import sys

from rich.table import Table
from rich.text import Text

from handful.cli.terminal import show


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
