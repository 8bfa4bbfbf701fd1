import io
import sys

import pytest

from handful.cli.terminal import data, waiting


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_data_goes_to_standard_output(capsys):
    data("42")
    assert capsys.readouterr() == ("42\n", "")


def test_progress_is_silent_when_nobody_watches(capsys):
    with waiting("working"):
        pass
    assert capsys.readouterr() == ("", "")


def test_progress_goes_to_a_terminal_on_standard_error(capsys, monkeypatch):
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with waiting("working hard"):
        pass
    assert "working hard" in terminal.getvalue()
    assert capsys.readouterr().out == ""
