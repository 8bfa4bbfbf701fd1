"""`handful catalogue`: what is in a catalogue, what is wrong with it, and changes of what was said."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handful.cli.opened import opened
from handful.cli.options import READING, SectionGroup, with_options
from handful.cli.terminal import data
from handful.progress import bars

if TYPE_CHECKING:
    from handful.catalogue.file import CatalogueFile

# Findings of each kind that are printed.
MOST_PRINTED = 10
# Ending of a catalogue.
ENDING = ".handful"
# Status of a check that found something; 1 is an error.
FOUND = 3

app = typer.Typer(
    cls=SectionGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Catalogues: one file with all items, their vectors, and everything that people said about them.",
)

File = Annotated[Path, typer.Argument(help="The catalogue, .handful.")]
Person = Annotated[str | None, typer.Option(help="Who says it; by default your user name.")]


@app.command("build")
@with_options(*READING)
def build(
    examples: Annotated[
        Path,
        typer.Argument(help="Labelled examples: a folder of images with a folder per class, a table with labels."),
    ],
    out: Annotated[Path, typer.Option(help="The catalogue to make, .handful.")],
    person: Person = None,
    **reading: Any,
) -> None:
    """Make a catalogue of labelled examples: each is an item that has an answer.

    `handful classify` and `handful review` take the file where they take the folder or the table.

    \b
    Examples:
      handful catalogue build photos/ --out birds.handful
      handful catalogue build intents.csv --labels intent --text question --out intents.handful
    """
    from handful.catalogue.file import CatalogueFile
    from handful.errors import OptionError
    from handful.items import import_labelled
    from handful.machine.outputs import refuse_overwriting

    if out.suffix.lower() != ENDING:
        raise OptionError(f"a catalogue is a file that ends in {ENDING}, got {out}; change the ending")
    refuse_overwriting({"examples": examples}, {"catalogue": out})
    if out.exists():
        raise OptionError(f"{out} is there already; add to it with handful catalogue add, or choose another name")
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with CatalogueFile.open(out) as file, bars(f"building {out}") as on_progress:
            found = import_labelled(file, examples, person=_name(person), on_progress=on_progress, **reading)
            _print_about(file)
    finally:
        _remove_if_empty(out)
    _print_skipped(found.skipped)
    data(f"Written: {out}")


@app.command("show")
def show(catalogue: File) -> None:
    """Print what is in a catalogue: classes with their numbers of items, batches, people, dates, and the encoder.

    \b
    Example:
      handful catalogue show birds.handful
    """
    from handful.items.summary import summary

    with opened(catalogue) as file:
        for line in summary(file):
            data(line)


@app.command("check")
def check(
    catalogue: File,
    fewest: Annotated[int, typer.Option(help="Classes with fewer examples than this are listed.")] = 2,
    report: Annotated[Path | None, typer.Option(help="A page with pictures or texts of the examples, .html.")] = None,
) -> None:
    """List what should be looked at; the exit status is 3 if there is anything, 0 if not.

    Items that people disagree on, labels that look wrong, examples in two classes, names that differ by case or blanks,
    classes that cannot be told apart or have few examples, files that are gone, and another version of the encoder.

    \b
    Examples:
      handful catalogue check birds.handful
      handful catalogue check birds.handful --report birds.html
    """
    from handful.classification.check_page import write_check_page
    from handful.classification.checking import check_file
    from handful.classification.findings import KINDS
    from handful.machine.outputs import refuse_overwriting
    from handful.machine.untrusted import printable

    refuse_overwriting({"catalogue": catalogue}, {"page": report})
    with opened(catalogue) as file, bars(f"checking {catalogue}"):
        checked = check_file(file, fewest=fewest, installed=_installed(file))
        _print_about(file)
        if report is not None:
            write_check_page(checked, file, report, catalogue.stem)
    found = checked.findings
    for kind, heading in KINDS.items():
        some = [finding for finding in found if finding.kind == kind]
        if some:
            data(f"{heading} ({len(some):,}):")
            for finding in some[:MOST_PRINTED]:
                data(f"  {printable(finding.message)}")
            if len(some) > MOST_PRINTED:
                data(f"  and {len(some) - MOST_PRINTED:,} more{'' if report else '; --report lists them'}")
    if report is not None:
        data(f"Written: {report}")
    if found:
        raise typer.Exit(FOUND)
    data("Nothing looks wrong.")


@app.command("add")
@with_options(*READING)
def add(
    catalogue: File,
    batch: Annotated[Path, typer.Argument(help="Items: a folder of images, a table.")],
    labelled: Annotated[
        bool,
        typer.Option("--labelled", help="Its labels are a person's answers: folders per class, a column of labels."),
    ] = False,
    name: Annotated[str | None, typer.Option(help="Name of the batch; by default that of its folder or file.")] = None,
    person: Person = None,
    **reading: Any,
) -> None:
    """Bring a batch into a catalogue; only what is new in it is embedded.

    Labels of a table may be a model's, so they are left alone, unless --labelled or --labels says that they are a
    person's. What has an answer already keeps it.

    \b
    Examples:
      handful catalogue add birds.handful monday/
      handful catalogue add birds.handful more_photos_by_class/ --labelled --person Ada
      handful catalogue add intents.handful checked.csv --labels intent
    """
    from handful.items import bring, import_labelled
    from handful.items.bringing import name_in

    with (
        opened(catalogue) as file,
        bars(f"adding to {catalogue}") as on_progress,
    ):
        called = name or name_in(file, batch)
        if labelled or reading.get("labels"):
            found = import_labelled(file, batch, called, person=_name(person), on_progress=on_progress, **reading)
        else:
            found = bring(file, called, batch, person=_name(person), on_progress=on_progress, **reading)
        data(f"{called}: {found}.")
        _print_about(file)
    _print_skipped(found.skipped)


@app.command("remove")
def remove(
    catalogue: File,
    labels: Annotated[list[str] | None, typer.Argument(help="Classes to give up; their items have no class then.")] = (
        None
    ),
    item: Annotated[
        list[int] | None,
        typer.Option(help="Number of an item to leave open, as `check` prints it. Repeat for several."),
    ] = None,
    person: Person = None,
) -> None:
    """Give up classes, or what was said about single items; the items stay.

    \b
    Examples:
      handful catalogue remove birds.handful "house sparrow" "tree sparrow"
      handful catalogue remove birds.handful --item 17 --item 230
    """
    from handful.errors import OptionError
    from handful.items import classes

    if not labels and not item:
        raise OptionError("name the classes to remove, or give the numbers of items with --item")
    with opened(catalogue) as file:
        classes.remove(file, labels or (), item or (), person=_name(person))
        _print_about(file)


@app.command("rename")
def rename(
    catalogue: File,
    label: Annotated[str, typer.Argument(help="The class.")],
    new: Annotated[str, typer.Argument(help="Its new name.")],
    person: Person = None,
) -> None:
    """Give a class another name.

    \b
    Example:
      handful catalogue rename birds.handful tit "great tit"
    """
    from handful.items import classes

    with opened(catalogue) as file:
        classes.rename(file, label, new, person=_name(person))
        _print_about(file)


@app.command("merge")
def merge(
    catalogue: File,
    labels: Annotated[list[str], typer.Argument(help="The classes.")],
    into: Annotated[str, typer.Option(help="Name of the one class that they become.")],
    person: Person = None,
) -> None:
    """Make one class of several.

    \b
    Example:
      handful catalogue merge birds.handful Sparrow sparrow --into sparrow
    """
    from handful.items import classes

    with opened(catalogue) as file:
        classes.merge(file, labels, into, person=_name(person))
        _print_about(file)


@app.command("join")
def join(
    catalogue: File,
    copy: Annotated[Path, typer.Argument(help="A copy of it that somebody else worked on; it stays as it is.")],
    person: Person = None,
) -> None:
    """Add everything that was said in a copy of a catalogue.

    Where the two disagree about an item, both answers are kept, and the item is disputed until somebody says what it
    is.

    \b
    Example:
      handful catalogue join birds.handful from_ada/birds.handful
    """
    from handful.arguments import counted
    from handful.catalogue.join import join
    from handful.machine.outputs import refuse_overwriting

    refuse_overwriting({"copy": copy}, {"catalogue": catalogue})
    with opened(catalogue) as file, opened(copy) as other:
        found = join(file, other, person=_name(person))
        disputed = len(found.disputed)
        still = f" {counted(disputed, 'item')} {'is' if disputed == 1 else 'are'} disputed now; check lists them."
        data(
            f"{counted(found.n_events, 'event')} and {counted(found.n_items, 'item')} came from {copy}."
            f"{still if disputed else ''}"
        )
        _print_about(file)


def _print_about(file: CatalogueFile) -> None:
    from handful.items.summary import summary

    data(summary(file)[0])


def _print_skipped(skipped: Any) -> None:
    from handful.arguments import counted

    if skipped:
        data(f"{counted(len(skipped), 'item')} skipped, the first is {skipped[0]}")


def _remove_if_empty(out: Path) -> None:
    """Remove a new catalogue into which nothing came."""
    from handful.catalogue.file import CatalogueFile, is_catalogue_file

    if is_catalogue_file(out):
        with CatalogueFile.open(out, create=False) as file:
            empty = not file.history.events
        if empty:
            out.unlink()


def _name(person: str | None) -> str:
    return getpass.getuser() if person is None else person


def _installed(file: CatalogueFile) -> str:
    """Return the encoder of a catalogue as it is installed here; empty if it is not."""
    from handful.errors import HandfulError
    from handful.items.embedding import encoder_of
    from handful.items.fitting import made_by

    encoder = encoder_of(file)
    if encoder is None:
        return ""
    try:
        from handful.extraction.options import load_network

        network = load_network("image", encoder.name, "cpu")
    except (HandfulError, ImportError):
        return ""
    if network.has_weights(encoder.weights):
        return made_by(file)
    return f"{network.name}, weights {network.numbers_hash}"
