"""Options that several commands have; those that do not apply are refused with a sentence, none is ignored."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from handful.cli.terminal import data
from handful.errors import OptionError
from handful.extensions import what_to_install
from handful.version import __version__

if TYPE_CHECKING:
    from handful.workers import Workers


Command = TypeVar("Command", bound=Callable[..., None])
SkipBad = Annotated[
    bool,
    typer.Option("--skip-bad", help="Leave out any number of rows that cannot be read; by default at most 5%."),
]


Missing = Annotated[
    str | None,
    typer.Option(
        metavar="mean",
        help="Fill missing numbers of vectors with the mean of the examples' column; by default they are refused.",
    ),
]


HeaderRow = Annotated[
    int | None,
    typer.Option(
        metavar="LINE", help="Line of tables with the names of their columns, counted from 1, if there is more above."
    ),
]


def given_options(context: typer.Context) -> list[str]:
    """Return the options on the command line, in the order of the help."""
    sources = {one.opts[0]: context.get_parameter_source(one.name or "") for one in context.command.params}
    return [option for option, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def given_values(context: typer.Context) -> dict[str, Any]:
    """Return what was given on the command line, by the names of parameters; several values are a list."""
    names = [one.name for one in context.command.params if one.name and one.opts[0] in given_options(context)]
    values = {name: context.params[name] for name in names}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def refuse(context: typer.Context, options: Collection[str], reason: str) -> None:
    """Raise an error if any of these options is given; `reason` says why they do not apply."""
    if found := [option for option in given_options(context) if option in options]:
        raise OptionError(f"{reason}; leave out {', '.join(found)}")


On: TypeAlias = Annotated[
    str,
    typer.Option(
        help="Where to run: here, here:4 (four tasks at a time), ray (a cluster started here) or ray:ADDRESS."
    ),
]
HERE = "here"


def workers_at(on: str) -> Workers:
    """Return the workers that `--on` asks for."""
    from handful.workers import here, on_ray

    place, colon, which = on.partition(":")
    if place == "ray" and (which or not colon):
        return on_ray(which or None)
    return here(number_here(on, 1))


def number_here(on: str, default: int) -> int:
    """Return how many tasks at a time `--on` asks for on this machine; refuse what is no place."""
    place, colon, which = on.partition(":")
    number = int(which) if which.isdecimal() else 0
    if place != HERE or (colon and not number):
        raise OptionError(f"--on must be here, here:NUMBER, ray or ray:ADDRESS, got {on!r}")
    return number or default


def is_here(on: str) -> bool:
    """Whether the work is done in this process."""
    return on.partition(":")[0] == HERE


def _print_version(asked: bool) -> None:
    if asked:
        data(f"handful {__version__}")
        raise typer.Exit


BEGIN = """\
handful labels many items at once when only a few of your many classes occur among them.

Photographs in a folder, without any example:

  handful review photos/

Messages or numbers in a table, .csv or .xlsx, where some rows have a label:

  handful classify table.xlsx table.xlsx --labels category --out labelled.csv

A data frame, in Python:

  frame = handful.label(frame, text="message", label="category")

handful demo shows what it does with sentences that come with it. handful --help lists all commands.
"""


def without_command(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Say how to begin, if no command is named."""
    if context.invoked_subcommand is None:
        typer.echo(BEGIN, nl=False)


# How both sides are read and embedded, and what is known about the batch: arguments of the same name.
READING = (
    *("features", "labels", "text", "id_column", "encoder", "device", "missing", "header_row"),
    "skip_bad",
)
KNOWN = ("candidates", "prior", "sequence", "pool", "order", "coarse")
# The value of `--expect-unknown` without one.
TRUE = "true"
# Headings of the help, and the options below them.
PANELS = {
    "Reading": (*READING, "names", "sites", "pictures", "group_by"),
    "What you know": (*KNOWN, "unknown", "expect_unknown"),
    "Output": ("out", "annotate"),
}
# Characters of the sentence about a command: it is never cut.
MOST_HELP = 1_000
# What the help calls the value of an option, by what recent versions of typer call it.
VALUES = {
    "<path>": "PATH",
    "<list[Path]>": "PATH",
    "<str>": "TEXT",
    "<list[str]>": "TEXT",
    "<int>": "NUMBER",
    "<int range>": "NUMBER",
    "<list[int]>": "NUMBER",
    "<float>": "NUMBER",
    "<float range>": "NUMBER",
    "<list[float]>": "NUMBER",
}
WHAT_IS_LABELLED = (
    "A catalogue (.handful, see `handful catalogue --help`) or labelled examples, and the items to label. Examples "
    "are a bank, .npz or .h5ad with vectors and labels; a table (.parquet, .csv, .tsv, .xlsx or book.xlsx/SHEET, "
    ".jsonl) with labels, and vectors, a column 'text', or a column 'path' of images; or images, one folder per class "
    "(also in a .zip). A batch is a file of the same kinds without labels, or .npy; images may be anywhere in a folder "
    "or .zip."
)


class SectionGroup(TyperGroup):
    """Commands with a sentence each; those of another package stand below its name."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command whose values are called by common words, not by types of Python."""
        command = super().get_command(ctx, cmd_name)
        for parameter in [] if command is None else command.params:
            record = parameter.get_help_record(ctx)
            if record is not None and parameter.param_type_name == "option" and parameter.metavar is None:
                parameter.metavar = VALUES.get(record[0].partition(" ")[2])
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; if a package with more of them is absent, say so where there is none."""
        if ctx.parent is None and args[0] not in self.commands and (said := what_to_install()):
            ctx.fail(f"No such command {args[0]!r}{said}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with the first sentence of their help."""
        sections: dict[str, list[tuple[str, str]]] = {"Commands": []}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None:
                of_section = sections.setdefault(getattr(command, "rich_help_panel", None) or "Commands", [])
                of_section.append((name, command.get_short_help_str(limit=MOST_HELP)))
        for section, commands in sections.items():
            if commands:
                with formatter.section(section):
                    formatter.write_dl(commands)


class PanelCommand(TyperCommand):
    """A command whose options stand below headings; `--expect-unknown` needs no value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give `--expect-unknown` the value true if it has none."""
        for place in reversed([place for place, one in enumerate(args) if one == "--expect-unknown"]):
            if place + 1 == len(args) or args[place + 1].startswith("-"):
                args.insert(place + 1, TRUE)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Write arguments of several paths as they are named."""
        arguments = [one for one in self.get_params(ctx) if one.param_type_name == "argument"]
        return ["[OPTIONS]", *(one.metavar or (one.name or "").upper() for one in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, and the options by what they are about."""
        panel_of = {name: panel for panel, names in PANELS.items() for name in names}
        written: dict[str, list[tuple[str, str]]] = {panel: [] for panel in ("Arguments", *PANELS, "Options")}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and parameter.param_type_name == "argument":
                written["Arguments"].append((parameter.metavar or record[0], record[1]))
            elif record is not None:
                written[panel_of.get(parameter.name or "", "Options")].append(record)
        for panel, records in written.items():
            if records:
                with formatter.section(panel):
                    formatter.write_dl(records)


class JobOptions:
    """Options of `classify`, `review` and `rescore`; each has those of its job, word for word."""

    names: Annotated[
        Path | None,
        typer.Option(
            help="Names of the classes, instead of or in addition to examples: .txt with one per line (and texts "
            "about it after tabs), .json, or a table with the columns 'label' and 'text'; or their vectors, .npz or "
            ".parquet."
        ),
    ] = None
    sites: Annotated[
        Path | None,
        typer.Option(
            help="Sites and times of scored files: COCO Camera Traps, datapackage.json of Camtrap DP, or .csv."
        ),
    ] = None
    sequence: Annotated[
        list[str] | None,
        typer.Option(
            help="Column that marks items of the same class: a sequence of photographs, a voice. Repeat for several "
            "columns, for example if numbers start again at every site."
        ),
    ] = None
    pool: Annotated[
        str | None,
        typer.Option(help="Column with the same value for similar groups, which then help each other."),
    ] = None
    order: Annotated[
        str | None, typer.Option(help="Column with the time of a group, for --pool: only earlier groups help.")
    ] = None
    coarse: Annotated[
        str | None,
        typer.Option(
            help="Column of the catalogue with a coarse class, such as the genus of a species; a table (.csv) with the "
            "columns 'class' and 'coarse'; or a level of SpeciesNet's taxa: genus, family, order. Where classes cannot "
            "be told apart, the column 'sure_label' has the coarse one."
        ),
    ] = None
    candidates: Annotated[
        Path | None,
        typer.Option(
            help="List of the classes that can occur, one per line; all others are ruled out. Or a table (.csv) with "
            "the column 'class' and a column of the batch, to list the classes of each item or group. Or, for mass "
            "spectra, precursor:0.01: the compounds of the catalogue with a precursor this close, in Da; a spectrum "
            "without one is unknown."
        ),
    ] = None
    prior: Annotated[
        Path | None,
        typer.Option(
            help="Table (.csv) with the columns 'class' and 'weight': how likely classes are before the batch is seen. "
            "Missing classes get the smallest weight in the table. With the column of --group-by, weights are per "
            "group."
        ),
    ] = None
    method: Annotated[
        str | None,
        typer.Option(
            help="A method of the few-shot literature instead of the default, such as 'paddle' (needs the extra "
            "'fewshot'). It says neither how likely a class is present nor which items are unknown.",
        ),
    ] = None
    unknown: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="Label of items that look like none of the classes, for example 'other'; by default, the closest "
            "class.",
        ),
    ] = None
    expect_unknown: Annotated[
        str | None,
        typer.Option(
            metavar="[SHARE]",
            help="Expect items of no class: any share of the batch if none is named; a share such as 0.3; a range such "
            "as 0.1-0.5; as many as in the predictions of an earlier batch (.csv, .parquet), best corrected; or 0.",
        ),
    ] = None
    annotate: Annotated[
        Path | None,
        typer.Option(
            help="Copy of --sites with labels: COCO Camera Traps (.json), or observations of Camtrap DP (.csv)."
        ),
    ] = None
    pictures: Annotated[
        Path | None,
        typer.Option(
            help="Folder that the paths of scored images start from, for the page; by default that of the scores."
        ),
    ] = None
    group_by: Annotated[
        list[str] | None,
        typer.Option(
            help="Column that splits the batch, for example by site or day; each value is labelled as a separate "
            "batch. For files, 'folder' is where they are, and 'folder:1' the first folder of their paths. Repeat for "
            "several columns."
        ),
    ] = None
    encoder: Annotated[
        str | None,
        typer.Option(
            help="What turns items into vectors, see `handful extract --help`. By default the one that made "
            "the vectors of the catalogue; else efficientnet-lite0 for images and minilm for sentences."
        ),
    ] = None
    features: Annotated[
        str | None, typer.Option(help="Column of vectors, prefix of their columns, or height,width.")
    ] = None
    labels: Annotated[str | None, typer.Option(help="Column of labels, if it cannot be detected.")] = None
    text: Annotated[
        str | None,
        typer.Option(help="Column of sentences, if not 'text'; with --features, what the page shows."),
    ] = None
    id_column: Annotated[str | None, typer.Option(help="Column that identifies an item, for example a ticket.")] = None
    missing: Missing = None
    header_row: HeaderRow = None
    skip_bad: SkipBad = False
    device: Annotated[str, typer.Option(help="Device of the encoder, as in torch: cpu, cuda.")] = "cpu"


def with_options(*names: str, of: type = JobOptions) -> Callable[[Command], Command]:
    """Give a command these options beside its own, as a class has them; it takes them as keyword arguments."""

    def add(command: Command) -> Command:
        own = inspect.signature(command)
        hints = get_type_hints(command, include_extras=True)
        shared = {name: hint for name, hint in get_type_hints(of, include_extras=True).items() if name in names}
        parameters = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=getattr(of, name)) for name in shared
        ]
        hints |= shared
        parameters = [one.replace(annotation=hints[one.name]) for one in parameters]
        vars(command)["__signature__"] = own.replace(parameters=parameters)
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return add


def reading_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return how both sides are read and embedded."""
    return {name: options[name] for name in READING if name in options}


def known_of(options: Mapping[str, Any]) -> Any:
    """Return what is known about the batch; a list without entries is nothing."""
    named = {name: options[name] for name in KNOWN if name in options}
    found = {name: None if value == [] else value for name, value in named.items()}
    if "expect_unknown" in options:
        found["expect_unknown"] = expected_unknown(options["expect_unknown"])
    return found


def expected_unknown(said: str | None) -> Any:
    """Return what --expect-unknown says: nothing, True, a share, a range, or the path of predictions."""
    if said is None or said == TRUE:
        return None if said is None else True
    try:
        found = tuple(map(float, re.split(r"(?<=[\d.])[-,]\s*", said)))
    except ValueError:
        return Path(said)
    return found[0] if len(found) == 1 else found
