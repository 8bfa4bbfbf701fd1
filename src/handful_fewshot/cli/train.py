"""`handful train`: list the images, make the recipe from the options, call `train`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handful.cli.options import given_values
from handful.cli.terminal import data
from handful.errors import OptionError
from handful.progress import bars

if TYPE_CHECKING:
    from handful_fewshot.training import BaseSplit

# The table of a benchmark's images in the folder of a run, for `handful extract`.
TABLE = "items.csv"
# Written out here because the modules that define them import torch, which help should not wait for; a test compares.
NETWORK_NAMES = ("resnet18", "wrn28-10", "conv4")
BENCHMARK_NAMES = ("mini-imagenet", "tiered-imagenet", "inat")


def train_command(
    context: typer.Context,
    items: Annotated[
        Path,
        typer.Option(
            help="Images of base classes: one folder per class, also in a .zip or a folder inside one, or a table."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the run. Run the same command again to resume.")],
    validation: Annotated[
        Path | None, typer.Option(help="Images of validation classes, none of them a base class.", show_default=False)
    ] = None,
    hold_out_classes: Annotated[
        int, typer.Option("--hold-out", min=0, help="Base classes to set aside for validation instead.")
    ] = 0,
    benchmark: Annotated[
        str | None,
        typer.Option(help=f"Split --items as a benchmark does: {', '.join(BENCHMARK_NAMES)}.", show_default=False),
    ] = None,
    lists: Annotated[Path | None, typer.Option(help="Folder with that benchmark's lists.", show_default=False)] = None,
    network: Annotated[str, typer.Option(help=f"{', '.join(NETWORK_NAMES)}.")] = "resnet18",
    side: Annotated[
        int | None, typer.Option(help="Pixels of height and width; by default 84, for conv4 28.", show_default=False)
    ] = None,
    epochs: Annotated[int, typer.Option(help="Passes over the images.")] = 90,
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Images per step, over all devices; by default 256 for resnet18, else 128.", show_default=False
        ),
    ] = None,
    learning_rate: Annotated[float, typer.Option(help="Initial learning rate of stochastic gradient descent.")] = 0.1,
    drop_at: Annotated[
        list[int] | None,
        typer.Option(
            help="Epoch from which the rate is divided by 10. Repeat for several. By default 45 and 66 of 90.",
            show_default=False,
        ),
    ] = None,
    momentum: Annotated[float, typer.Option(help="Momentum of stochastic gradient descent.")] = 0.9,
    weight_decay: Annotated[float, typer.Option(help="Weight decay of stochastic gradient descent.")] = 1e-4,
    label_smoothing: Annotated[float, typer.Option(help="Share of a label given to all other classes.")] = 0.1,
    smallest_area: Annotated[
        float, typer.Option(help="Smallest share of an image in a random crop; 1: no crop.")
    ] = 0.08,
    jitter: Annotated[float, typer.Option(help="Random factors of brightness, contrast, colour: 1 ± this.")] = 0.4,
    flip: Annotated[bool, typer.Option(help="Mirror half of the images.")] = True,
    rotations: Annotated[bool, typer.Option(help="Make each of four rotations a class of its own.")] = False,
    enlarge: Annotated[
        bool, typer.Option(help="Validate on the centre of an image resized to 8/7 of the side.")
    ] = True,
    mean: Annotated[
        tuple[float, float, float] | None,
        typer.Option(help="Mean of each channel; by default that of ImageNet.", show_default=False),
    ] = None,
    std: Annotated[
        tuple[float, float, float] | None,
        typer.Option(help="Deviation of each channel; by default that of ImageNet.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of initial weights, order, views and classes held out.")] = 0,
    accelerator: Annotated[str, typer.Option(help="auto, cpu or gpu.")] = "auto",
    devices: Annotated[int, typer.Option(min=1, help="Processes that train together, one per device.")] = 1,
    precision: Annotated[str, typer.Option(help="32-true, 16-mixed, bf16-mixed or 64-true.")] = "32-true",
    workers: Annotated[int, typer.Option(min=0, help="Processes that load images, per device.")] = 0,
) -> None:
    """Train a network on base classes, and print the epoch that is kept with its validation accuracies.

    \b
    Examples:
      handful train --items photos/base --validation photos/validation --out runs/photos
      handful train --benchmark mini-imagenet --lists split/mini --items data/mini_imagenet --out runs/mini
      handful train --items omniglot.zip/base --hold-out 22 --network conv4 --epochs 20 --rotations --out runs/omniglot
    """
    from handful.machine.outputs import refuse_overwriting
    from handful_fewshot.training import Recipe, train

    refuse_overwriting({"items": items, "validation images": validation, "lists": lists}, {"run": out})

    given = given_values(context)
    settings = dict[str, Any]()
    for name in (field.name for field in fields(Recipe) if field.name in given):
        settings[name] = tuple(given[name]) if isinstance(given[name], list) else given[name]
    recipe = Recipe(**settings)
    with bars(f"listing {items}"):
        split = _split(items, validation, hold_out_classes, benchmark, lists, out / TABLE, seed)
    kept = train(
        split,
        recipe,
        out,
        accelerator=accelerator,
        devices=devices,
        precision=precision,
        workers=workers,
    )
    if kept is not None:
        accuracies = "  ".join(f"{name} {100 * value:.1f}%" for name, value in kept.validation.items())
        data(f"{out}  epoch {kept.epoch}  {accuracies}".rstrip())


def _split(
    items: Path,
    validation: Path | None,
    n_held_out: int,
    benchmark: str | None,
    lists: Path | None,
    table: Path,
    seed: int,
) -> BaseSplit:
    from handful.extraction.items import list_items
    from handful_fewshot.training import BaseSplit, hold_out, read_benchmark

    if validation is not None and (n_held_out or benchmark):
        raise OptionError("--validation cannot be combined with --hold-out or --benchmark; leave these out")
    if (benchmark is None) != (lists is None):
        raise OptionError("--benchmark and --lists belong together: the folder of lists that come with the benchmark")
    if benchmark is not None and lists is not None:
        split = read_benchmark(benchmark, lists, items, table)
        if n_held_out and split.validation is not None:
            raise OptionError(f"{benchmark} has its own validation classes: leave out --hold-out")
        return split if split.validation is not None else hold_out(split.base, n_held_out, seed)
    if validation is not None:
        return BaseSplit(list_items(items), list_items(validation))
    return hold_out(list_items(items), n_held_out, seed)
