import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("typer")
import handful_command

# SIGINT may be ignored by whoever runs the tests.
PROGRAM = """
import signal, sys, handful_command
signal.signal(signal.SIGINT, signal.default_int_handler)
print("ready", flush=True)
sys.exit(handful_command.main())
"""


def interrupted(arguments, wait_for, seconds):
    """Start the command, wait for a file or a while, press Ctrl-C; the exit code and what was said."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    deadline = time.monotonic() + 120
    while wait_for is not None and not list(wait_for()) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    time.sleep(seconds)
    # Python loses Ctrl-C if it arrives during a callback of the interpreter. A person then presses it again.
    for _ in range(4):
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=40)
        except subprocess.TimeoutExpired:
            continue
        return process.returncode, said
    process.kill()
    raise AssertionError("the command goes on after four interruptions")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for another process")
@pytest.mark.parametrize("seconds", [0.01, 0.4])
def test_an_interruption_of_the_imports_is_one_line(tmp_path, seconds):
    arguments = ["bench", "run", "--bank", "clinc150", "--method", "paddle", "--tasks", 9999, "--out", tmp_path / "r"]
    code, said = interrupted(arguments, None, seconds)
    # How far the command came depends on the machine: between two imports typer answers, and knows less.
    assert said in (
        "handful: interrupted before anything was changed; run the same command again\n",
        "handful: interrupted; run the same command again\n",
    )
    assert code == 130


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for another process")
def test_an_interruption_of_a_run_is_one_line_that_says_how_to_go_on(tmp_path):
    out = tmp_path / "my run"
    arguments = ["bench", "run", "--bank", "clinc150", "--method", "tim", "--tasks", 100_000, "--out", out]
    code, said = interrupted(arguments, lambda: out.glob("plan.json"), 0.5)
    assert said == (
        "handful: interrupted; rows that were written are kept. "
        f"Continue with: handful bench run --resume --out '{out}'\n"
    )
    assert code == 130


def test_the_exit_code_is_that_of_the_command(monkeypatch, capsys):
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(sys, "argv", ["handful", "nonsense"])
    assert handful_command.main() == 2
    monkeypatch.setattr(sys, "argv", ["handful", "--help"])
    assert handful_command.main() == 0
    assert signal.getsignal(signal.SIGINT) is before
