import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("typer")
import typer

from handful.cli.main import main, make_app


def test_help_lists_the_commands(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "extract" in out
    assert "tasks" in out
    assert "bench" in out
    assert "report" in out


def leaves(command, path=()):
    """All commands, by their words."""
    if not hasattr(command, "commands"):
        return {" ".join(path): command}
    found = {}
    for name, below in command.commands.items():
        found |= leaves(below, (*path, name))
    return found


COMMANDS = [
    "",
    "classify",
    "report",
    "train",
    "demo",
    "doctor",
    "extract",
    "tasks draw",
    "bench run",
]


def test_no_help_waits_for_torch():
    """All of them at once, in a new process: what one of them imported would be there at the end."""
    program = f"""
import sys
from handful.cli.main import main
for words in {COMMANDS}:
    assert main([*words.split(), "--help"]) == 0
assert main(["--version"]) == 0
print([name for name in ("torch", "numpy", "sklearn", "pyarrow") if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("arguments", [["nonsense"], ["extract"], ["tasks", "draw", "--bank", "x", "--shots", "many"]])
def test_a_command_line_that_cannot_be_understood_exits_with_two(arguments, capsys):
    assert main(arguments) == 2
    streams = capsys.readouterr()
    assert "Error" in streams.err
    assert streams.out == ""


def extraction(items):
    return ["extract", "--items", str(items), "--encoder", "minilm", "--out", "new.bank"]


def test_an_error_is_a_sentence_and_exits_with_one(capsys, tmp_path):
    assert main(extraction(tmp_path / "nothing")) == 1
    streams = capsys.readouterr()
    assert streams.err == f"handful: {tmp_path}/nothing does not exist; check the path\n"
    assert streams.out == ""


def test_errors_of_the_system_are_sentences_too(capsys, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("handful.extraction.items.list_items", full)
    assert main(extraction(tmp_path)) == 1
    assert capsys.readouterr().err.startswith("handful: the disk is full; free some space")


def test_errors_of_the_system_name_their_path(capsys, tmp_path, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied", str(tmp_path / "bank"))

    monkeypatch.setattr("handful.extraction.items.list_items", refused)
    assert main(extraction(tmp_path)) == 1
    assert capsys.readouterr().err == (
        f"handful: {tmp_path}/bank cannot be read or written: you have no permission; change the permissions, or "
        "choose another path\n"
    )


def test_every_line_of_examples_is_a_command(capsys):
    """Examples that run together would be copied together."""
    app = typer.main.get_command(make_app())
    for words, command in leaves(app).items():
        assert main([*words.split(), "--help"]) == 0
        said = capsys.readouterr().out
        examples = said[said.index("Example") :].split("\n\n")[0].splitlines()[1:]
        assert examples, words
        assert all(line.strip().startswith(f"handful {words}") for line in examples), words
        assert all(line.count(" handful ") == 1 for line in examples), words
        assert command.help


def test_an_interruption_is_one_line_and_exits_with_130(capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("handful.extraction.items.list_items", interrupt)
        assert main(extraction("somewhere")) == 130
    assert capsys.readouterr() == ("", "handful: interrupted; run the same command again\n")
    monkeypatch.setattr("handful.cli.main.make_app", interrupt)
    assert main(["--help"]) == 130
    assert capsys.readouterr().err == ("handful: interrupted before anything was changed; run the same command again\n")


@pytest.mark.parametrize("command", [[], ["catalogue"], ["bench"]])
def test_the_help_says_a_whole_sentence_about_each_command(capsys, command):
    assert main([*command, "--help"]) == 0
    about = capsys.readouterr().out.partition("Commands:")[2]
    assert about.count(".") >= 3
    assert "..." not in about


@pytest.mark.parametrize("command", [["review"], ["classify"], ["bench", "run"], ["extract"]])
def test_the_help_calls_values_by_common_words(capsys, command):
    assert main([*command, "--help"]) == 0
    options = capsys.readouterr().out
    assert "--out PATH" in options
    assert not any(word in options for word in ("<str", "<list[", "<int", "<float"))


def test_without_a_command_it_says_how_to_begin(capsys):
    assert main([]) == 0
    said = capsys.readouterr().out
    for begin in ("handful review photos/", "handful classify table.xlsx table.xlsx", "handful.label(frame", "--help"):
        assert begin in said


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_letters_that_a_terminal_does_not_know_are_no_failure(tmp_path, encoding):
    np.savez(tmp_path / "c.npz", features=np.eye(4).repeat(3, 0), labels=np.array(["狐", "犬", "ž", "ü"]).repeat(3))
    np.savez(tmp_path / "b ž.npz", features=np.eye(4)[[0, 0, 1]])
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    for command in (["classify", "c.npz", "b ž.npz"], ["classify", "狐.csv", "b ž.npz"], []):
        ran = subprocess.run(
            [sys.executable, "-m", "handful", *command], cwd=tmp_path, env=environment, capture_output=True
        )
        assert b"Traceback" not in ran.stderr
        said = (ran.stdout + ran.stderr).decode(encoding)
        assert ("狐" if encoding == "utf-8" else "\\u72d0") in said or not command
