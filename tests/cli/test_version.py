import pytest

pytest.importorskip("typer")
import handful
from handful.cli.main import SUMMARY, main


def test_the_version_is_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr() == (f"handful {handful.__version__}\n", "")


def test_it_is_in_the_help_which_stays_what_it_was(capsys):
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert "--version  Print the version and exit." in said
    assert SUMMARY in " ".join(said.split())
