"""`handful catalogue`: catalogues in files, built once and changed as more becomes known."""

from __future__ import annotations

import getpass
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handful.cli.options import READING, SectionGroup, with_options
from handful.cli.terminal import data
from handful.progress import bars

if TYPE_CHECKING:
    from handful.fitted import Catalogue

# Findings of each kind, and classes, that are printed.
MOST_PRINTED = 10
# Status of a check that found something; 1 is an error.
FOUND = 3

app = typer.Typer(
    cls=SectionGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Catalogues in files: embedded and fitted once, used many times.",
)

File = Annotated[Path, typer.Argument(help="The catalogue, .handful.")]


@app.command("build")
@with_options(*READING)
def build(
    examples: Annotated[
        Path,
        typer.Argument(help="Labelled examples, as for `handful classify`: a folder of images, a table."),
    ],
    out: Annotated[Path, typer.Option(help="The catalogue to write, .handful; an older one is replaced.")],
    **reading: Any,
) -> None:
    """Embed and fit labelled examples once, and write them as one file.

    `handful classify` takes the file where it takes a folder or a table, and says the same.

    \b
    Examples:
      handful catalogue build photos/ --out birds.handful
      handful catalogue build intents.csv --labels intent --text question --out intents.handful
    """
    from handful.classification.building import build_catalogue
    from handful.errors import OptionError
    from handful.fitted.files import is_catalogue

    if not is_catalogue(out):
        raise OptionError(f"a catalogue is a file that ends in .handful, got {out}; change the ending")
    with bars(f"building {out}") as on_progress:
        made = build_catalogue(examples, out, on_progress=on_progress, **reading)
    _print_about(made)
    data(f"Written: {out}")


@app.command("show")
def show(catalogue: File) -> None:
    """Print what is in a catalogue: classes, examples, where they came from, and what made their vectors.

    \b
    Example:
      handful catalogue show birds.handful
    """
    from handful.fitted import load_catalogue
    from handful.machine.untrusted import printable

    there = load_catalogue(catalogue)
    _print_about(there)
    record = there.record
    for heading, field in (("From", "file"), ("Said by", "person"), ("In", "session")):
        counts = Counter(getattr(source, field) for source in record.sources.values())
        named = [(name, n) for name, n in counts.most_common() if name]
        if named:
            data(f"{heading}: {', '.join(f'{printable(name)} ({n:,})' for name, n in named[:MOST_PRINTED])}")
    if record.dates:
        data(f"Added: {record.dates[0]} to {record.dates[1]}")
    order = sorted(zip(there.shots.tolist(), map(str, there.classes.tolist()), strict=True), key=lambda one: -one[0])
    for shots, name in order:
        data(f"{int(shots):7,}  {printable(name)}")


@app.command("check")
def check(
    catalogue: File,
    fewest: Annotated[int, typer.Option(help="Classes with fewer examples than this are listed.")] = 2,
    report: Annotated[Path | None, typer.Option(help="A page with pictures or texts of the examples, .html.")] = None,
) -> None:
    """List what should be looked at; the exit status is 3 if there is anything, 0 if not.

    Labels that look wrong, examples that occur twice or in two classes, names that differ by case or blanks, classes
    that cannot be told apart or have few examples, files that are gone, and a model other than the one installed.

    \b
    Examples:
      handful catalogue check birds.handful
      handful catalogue check birds.handful --report birds.html
    """
    from handful.fitted import load_catalogue
    from handful.fitted.check import KINDS, check_catalogue
    from handful.fitted.page import write_check_page
    from handful.machine.outputs import linked_file, refuse_overwriting
    from handful.machine.untrusted import printable

    refuse_overwriting({"catalogue": catalogue}, {"page": report})
    there = load_catalogue(catalogue)
    with bars(f"checking {catalogue}"):
        found = check_catalogue(there, linked_file(catalogue).parent, fewest=fewest, model=_installed(there))
    _print_about(there)
    for kind, heading in KINDS.items():
        some = [finding for finding in found if finding.kind == kind]
        if some:
            data(f"{heading} ({len(some):,}):")
            for finding in some[:MOST_PRINTED]:
                data(f"  {printable(finding.message)}")
            if len(some) > MOST_PRINTED:
                data(f"  and {len(some) - MOST_PRINTED:,} more{'' if report else '; --report lists them'}")
    if report is not None:
        write_check_page(there, found, report, catalogue.stem)
        data(f"Written: {report}")
    if found:
        raise typer.Exit(FOUND)
    data("Nothing looks wrong.")


@app.command("compare")
@with_options(*(name for name in READING if name not in {"encoder", "features"}))
def compare(
    examples: Annotated[
        Path,
        typer.Argument(help="Labelled examples, as `handful classify` takes them: a folder of images, a table."),
    ],
    encoder: Annotated[
        list[str] | None,
        typer.Option(help="An encoder of images or sentences, see `handful features extract --help`. Repeat it."),
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(help="An encoder whose vectors are in a table: their column, or prefix of columns. Repeat it."),
    ] = None,
    sequence: Annotated[
        list[str] | None,
        typer.Option(
            help="Column that marks examples made together, such as frames of a burst: they are left out together. "
            "Repeat it for several columns."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of what is left out together, and with which other classes.")] = 0,
    **reading: Any,
) -> None:
    """Compare encoders: leave examples out, and label them in batches of few classes.

    Prints for each encoder the labels right, items alone and jointly, how well items of classes that the catalogue
    lacks are ranked, and the time per item, with 95 % intervals; which encoders are worse than the best, and where that
    cannot be told; and what twice as many examples would add.

    \b
    Examples:
      handful catalogue compare photos/ --encoder efficientnet-lite0 --encoder efficientnet-lite2
      handful catalogue compare intents.parquet --encoder minilm --features tfidf --text question
      handful catalogue compare photos/ --encoder efficientnet-lite0 --encoder timm:vit_small_patch16_224
    """
    from handful.classification.comparing import compare_encoders
    from handful.machine.untrusted import printable

    with bars(f"comparing encoders of {examples}") as on_progress:
        found = compare_encoders(
            examples,
            encoder=encoder or (),
            features=features or (),
            sequence=sequence or (),
            seed=seed,
            on_progress=on_progress,
            **reading,
        )
    for line in str(found).splitlines():
        data(printable(line))


@app.command("add")
@with_options(*(name for name in READING if name != "encoder"))
def add(
    catalogue: File,
    said: Annotated[
        Path,
        typer.Option(
            "--from",
            help="What a person said: labelled examples; or, with a batch, its corrections (.json), a table with the "
            "columns 'item' and 'label', or predictions with a column 'person'.",
        ),
    ],
    batch: Annotated[Path | None, typer.Argument(help="The batch that it is about.")] = None,
    person: Annotated[str | None, typer.Option(help="Who said it; by default your user name.")] = None,
    session: Annotated[str, typer.Option(help="In which review, as it shall be recorded.")] = "",
    by_model: Annotated[
        float | None,
        typer.Option(
            metavar="CERTAINTY",
            help="Add labels of the model instead, of predictions with at least this certainty. Its mistakes stay in "
            "the catalogue.",
        ),
    ] = None,
    **reading: Any,
) -> None:
    """Add what a person confirmed, corrected or named; never what only the model said, unless that is asked for.

    Only these items are embedded, and only their classes are fitted again. Items that are there already are left out.

    \b
    Examples:
      handful catalogue add birds.handful --from monday.corrections.json monday/
      handful catalogue add birds.handful --from more_photos/ --person Ada
      handful catalogue add intents.handful --from labels.csv today.csv
    """
    from handful.arguments import counted
    from handful.classification.building import add_to_catalogue

    with bars(f"adding to {catalogue}") as on_progress:
        added = add_to_catalogue(
            catalogue,
            said,
            batch,
            person=getpass.getuser() if person is None else person,
            session=session or (said.name if batch is not None else ""),
            by_model=by_model,
            on_progress=on_progress,
            **reading,
        )
    new = f", {len(added.new_classes):,} of them new: {', '.join(map(str, added.new_classes))}"
    data(
        f"{counted(added.n_added, 'example')} added"
        f"{f'; {added.n_known:,} were there already' if added.n_known else ''}. The catalogue has "
        f"{counted(added.catalogue.n_classes, 'class')}{new if added.new_classes else ''}."
    )


@app.command("remove")
def remove(
    catalogue: File,
    labels: Annotated[list[str] | None, typer.Argument(help="Classes to remove, with all their examples.")] = None,
    example: Annotated[
        list[int] | None, typer.Option(help="Number of an example to remove, as `check` prints it. Repeat for several.")
    ] = None,
) -> None:
    """Remove classes or single examples, and fit the rest again.

    \b
    Examples:
      handful catalogue remove birds.handful "house sparrow" "tree sparrow"
      handful catalogue remove birds.handful --example 17 --example 230
    """
    from handful.errors import OptionError
    from handful.fitted import remove

    if not labels and not example:
        raise OptionError("name the classes to remove, or give the numbers of examples with --example")
    _print_about(remove(catalogue, labels or (), example or ()))


@app.command("rename")
def rename(
    catalogue: File,
    label: Annotated[str, typer.Argument(help="The class.")],
    new: Annotated[str, typer.Argument(help="Its new name.")],
) -> None:
    """Give a class another name.

    \b
    Example:
      handful catalogue rename birds.handful tit "great tit"
    """
    from handful.fitted import rename

    _print_about(rename(catalogue, label, new))


@app.command("merge")
def merge(
    catalogue: File,
    labels: Annotated[list[str], typer.Argument(help="The classes.")],
    into: Annotated[str, typer.Option(help="Name of the one class that they become.")],
) -> None:
    """Make one class of several, and fit all again.

    \b
    Example:
      handful catalogue merge birds.handful Sparrow sparrow --into sparrow
    """
    from handful.fitted import merge

    _print_about(merge(catalogue, labels, into))


def _print_about(catalogue: Catalogue) -> None:
    from handful.fitted.page import about

    data(about(catalogue))


def _installed(catalogue: Catalogue) -> str:
    """Return the encoder of the catalogue as it is installed here; empty if it is not."""
    from handful.errors import HandfulError

    record = catalogue.record
    if not record.encoder or not record.kind:
        return ""
    try:
        from handful.extraction.encoders import load_encoder

        network = load_encoder(record.encoder.partition(", weights ")[0])
    except (HandfulError, ImportError):
        return ""
    return f"{network.name}, weights {network.weights_hash}"
