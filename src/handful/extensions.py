"""Extensions: commands, methods and encoders that other packages add by entry points; `handful_fewshot` is one.

| group | an entry point stands for |
|---|---|
| `handful.commands` | a command of `handful`: a `typer.Typer` of several, or the function of one |
| `handful.methods` | a function that makes an estimator for `classify(method=…)`; or a mapping of several |
| `handful.encoders` | an encoder, see `handful.extraction.encoders.register_encoder` |

This is the only file of the product that knows the name of the paper's package, to say what to install for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from handful.errors import HandfulWarning, MissingExtraError, OptionError
from handful.machine.extras import how_to_install, install_command
from handful.machine.registry import package_of, points_of

COMMANDS = "handful.commands"
METHODS = "handful.methods"
ENCODERS = "handful.encoders"

# The package with the methods of the few-shot literature, and the extra with what it needs.
PAPER = "handful_fewshot"
EXTRA = "fewshot"


def commands() -> Iterator[tuple[str, Any, str]]:
    """Yield name, command and package of the commands of others; what cannot be loaded is skipped with a warning."""
    for point in points_of(COMMANDS):
        try:
            yield point.name, point.load(), package_of(point)
        except (Exception, SystemExit) as error:  # another package's fault must not stop this one
            warnings.warn(
                f"the command {point.name!r} ({point.value}) was skipped: {error}", HandfulWarning, stacklevel=2
            )


def method_classifier(method: str) -> Any:
    """Return an estimator with `check`, `fit` and `infer` that labels a batch by the method of this name.

    Examples
    --------
    >>> method_classifier("paddle").method
    'paddle'
    """
    from handful.arguments import did_you_mean  # NumPy, which help should not wait for

    names = list[str]()
    for point in points_of(METHODS):
        try:
            value = point.load()
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f"the method {method!r} cannot be looked up in {point.value}: the package {error.name!r} is not "
                f"installed; {how_to_install(error.name, EXTRA)}"
            ) from error
        several = value if isinstance(value, Mapping) else {point.name: value}
        if method in several:
            return several[method]()
        names += several
    listed = f"; choose from {', '.join(names)}" if names else ""
    raise OptionError(f"no method is called {method!r}{did_you_mean(method, names)}{listed}{what_to_install()}")


def what_to_install() -> str:
    """Return the end of a sentence about a name that was not found: where more names come from, if that is absent."""
    if any(package_of(point) == PAPER for point in points_of(COMMANDS)):
        return ""
    return (
        f"; the commands, methods and encoders of few-shot research come with {PAPER}, which is not installed: run "
        f"{install_command(EXTRA)}"
    )
