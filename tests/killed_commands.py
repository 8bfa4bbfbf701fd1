"""Commands that are killed while they write: what such a process imports, so that a server can import it before."""

import os
import resource
import signal
import sys

import handful.classification  # noqa: F401 - commands import it when they begin
from handful.cli.main import main
from handful.machine.outputs import UNFINISHED


def label_and_die(folder, command, step, n_bytes):
    """Run a command in a process that is killed while it writes.

    From the moment that the unfinished file is opened, it is killed before the step of this number (opening a file or
    a folder, renaming, removing), or when a file becomes longer than `n_bytes`.
    """
    os.chdir(folder)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    steps = 0

    def watch(event, arguments):
        nonlocal steps
        if event not in ("open", "os.rename", "os.remove"):
            return
        if steps == 0 and not str(arguments[0]).endswith(UNFINISHED):
            return
        steps += 1
        if n_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))
        elif steps == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    os._exit(main(command.split()))
