"""What every test may ask for.

With `HANDFUL_CHECK_SHAPES=1` every call checks the shape annotations of methods and engine. That more than doubles the
time, so `make test` does it for `tests/contract/test_methods.py` only, where every method passes through, and
`make slow` for all tests.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

if os.environ.get("HANDFUL_CHECK_SHAPES"):
    from jaxtyping import install_import_hook

    with install_import_hook(["handful_fewshot", "handful.model"], "beartype.beartype"):
        import handful_fewshot.dispatch  # noqa: F401
        import handful_fewshot.gathering  # noqa: F401
        import handful_fewshot.methods  # noqa: F401
        import handful_fewshot.transforms  # noqa: F401

import pytest

from handful.errors import MissingExtraError

# `make core` needs neither of these two.
if importlib.util.find_spec("hypothesis") is not None:
    from hypothesis import settings

    # Every change is tested with the same examples; the profile `thorough` draws new ones.
    settings.register_profile("quick", deadline=None, max_examples=3, derandomize=True)
    settings.register_profile("thorough", deadline=None, max_examples=200)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
if importlib.util.find_spec("torch") is not None:
    import torch

    # Small matrices: a second thread costs more than it brings.
    torch.set_num_threads(1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skip tests that meet a missing extra with `make core`, as a user is told, or on Windows what POSIX alone has."""
    try:
        return (yield)
    except MissingExtraError as error:
        if os.environ.get("HANDFUL_CORE"):
            pytest.skip(str(error))
        raise
    except (AttributeError, ModuleNotFoundError, ValueError) as error:
        if os.name == "nt" and is_about_posix(error):
            pytest.skip(f"only POSIX can do this: {error}")
        raise


def is_about_posix(error: Exception) -> bool:
    """Whether a test asked for what Windows lacks: a function of `os`, a signal, a module, a fork."""
    if isinstance(error, AttributeError):
        return error.obj in (os, signal)
    if isinstance(error, ModuleNotFoundError):
        return error.name in ("fcntl", "pty", "resource", "termios")
    return "cannot find context for 'fork'" in str(error)


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Addresses of reviews are kept where no person has them."""
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    yield
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before


SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def oracle() -> Path:
    """Folder with the reference outputs of the authors' classes."""
    folder = SHARED / "oracle"
    if not folder.is_dir():
        pytest.skip("reference outputs are not here: expected a folder shared/oracle beside the repository")
    return folder


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Ray, if it is installed, without its warning that a default of its own will change."""
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    found: ModuleType = pytest.importorskip("ray")
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, if it and Playwright are installed."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("Chromium is not installed")
    # A page needs neither a sandbox, which root cannot have, nor a graphics card, nor the network.
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=flags)
        yield started
        started.close()


class ReviewProcess:
    """`handful review` as a process of its own; `address` is where its page is."""

    def __init__(self, folder: Path, *words: str) -> None:
        command = [sys.executable, "-m", "handful", "review", *words, "--no-open"]
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split()[-1]
        assert self.address.startswith("http://127.0.0.1:"), self.address

    def kill(self) -> None:
        """End it without a chance to write anything."""
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def start_review() -> Iterator[Callable[..., ReviewProcess]]:
    """Start reviews in a folder, with these words on the command line; none of them outlives the test."""
    started = list[ReviewProcess]()

    def starts(folder: Path, *words: str) -> ReviewProcess:
        started.append(ReviewProcess(folder, *words))
        return started[-1]

    yield starts
    for one in started:
        one.kill()
