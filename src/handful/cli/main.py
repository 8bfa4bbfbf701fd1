"""`handful`: all commands, with every error turned into a sentence and an exit code.

0 is success, 1 an error, 2 a command line that cannot be understood, 130 an interruption by Ctrl-C.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from handful.cli.terminal import Interrupted, warn
from handful.errors import HandfulError, SkippedRowsWarning
from handful.machine.outputs import refusal

if TYPE_CHECKING:
    import typer

SUMMARY = "Label a whole batch at once when only a few of your many classes occur in it, and you don't know which."
INTERRUPTED = 130  # the exit code in shells for a process ended by Ctrl-C


def make_app() -> typer.Typer:
    """Put the commands together, one line each, and those of other packages."""
    import typer

    from handful.cli import catalogue, classify, demo, doctor, export, extract, options, rescore, review, run
    from handful.extensions import commands

    app = typer.Typer(
        cls=options.SectionGroup,
        help=SUMMARY,
        invoke_without_command=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},  # of all commands below, too
    )
    app.callback()(options.without_command)
    app.command("classify", cls=options.PanelCommand)(classify.classify_command)
    app.command("review", cls=options.PanelCommand)(review.review_command)
    app.command("rescore", cls=options.PanelCommand)(rescore.rescore_command)
    app.command("run")(run.run_command)
    app.command("export")(export.export_command)
    app.add_typer(catalogue.app, name="catalogue")
    app.command("extract")(extract.extract_command)
    app.command("demo")(demo.demo)
    app.command("doctor")(doctor.doctor)
    for name, command, package in commands():
        heading = f"Commands of {package}"
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=heading)
        else:
            app.command(name, rich_help_panel=heading)(command)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal of Windows, or a file, may not know every letter
            stream.reconfigure(errors="backslashreplace")
    try:
        app = make_app()
    except KeyboardInterrupt:
        return _complain("interrupted before anything was changed; run the same command again", INTERRUPTED)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", SkippedRowsWarning)
            warnings.showwarning = lambda message, *_, **__: warn(message)
            app(args=None if arguments is None else list(arguments), prog_name="handful")
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer's answer to a KeyboardInterrupt
            return _complain("interrupted; run the same command again", INTERRUPTED)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:  # outside of what typer looks after
        return _complain("interrupted; run the same command again", INTERRUPTED)
    except Interrupted as end:
        return _complain(str(end), INTERRUPTED)
    except HandfulError as error:
        return _complain(str(error))
    except OSError as error:  # of a disk, where no writer or reader has said it better
        path = "" if error.filename is None else f"{os.fsdecode(error.filename)} cannot be read or written: "
        return _complain(f"{path}{refusal(error)}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from handful.machine.extras import how_to_install

        return _complain(f"this command needs PyTorch, which is not installed; {how_to_install('torch', 'fewshot')}")
    return 0


def _complain(sentence: str, code: int = 1) -> int:
    sys.stderr.write(f"handful: {sentence}\n")
    return code
