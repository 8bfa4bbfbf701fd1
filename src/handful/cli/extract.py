"""`handful features extract`: list the items, load the backbone, call `extract`, show progress."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from handful.cli.options import HERE, On, SkipBad, executor_at


def extract_command(
    items: Annotated[
        Path,
        typer.Option(
            help="Images, one folder per class (also in a .zip, or a folder inside one), or a table (.csv, .tsv, "
            ".jsonl, .xlsx, .parquet) with a column of labels and a column 'text' or 'path'."
        ),
    ],
    backbone: Annotated[
        str,
        typer.Option(
            help="efficientnet-lite0 or minilm (no download), timm:NAME, open_clip:NAME/PRETRAINED, transformers:NAME, "
            "sentence-transformers:NAME, or checkpoint:PATH of a network trained by `handful train`."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The new bank, a folder. Run the same command again to resume.")],
    text: Annotated[str | None, typer.Option(help="Column of sentences, if not 'text'.")] = None,
    labels: Annotated[str | None, typer.Option(help="Column of labels, if it cannot be detected.")] = None,
    id_column: Annotated[str | None, typer.Option(help="Column that identifies an item.")] = None,
    split: Annotated[str | None, typer.Option(help="Only rows of a table whose column 'split' has this value.")] = None,
    skip_bad: SkipBad = False,
    on: On = HERE,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Threads with --on here; by default one per core.", show_default=False)
    ] = None,
    device: Annotated[str, typer.Option(help="Device of the backbone, as in torch: cpu, cuda.")] = "cpu",
    batch_size: Annotated[int, typer.Option(min=1, help="Items the backbone sees at once.")] = 8,
    shard_size: Annotated[int, typer.Option(min=1, help="Items saved at a time.")] = 256,
    dtype: Annotated[str, typer.Option(help="How features are stored: float16 or float32.")] = "float16",
    dataset: Annotated[str, typer.Option(help="Name of the data, stored in the bank.")] = "",
    licence: Annotated[str, typer.Option(help="Licence of the data, stored in the bank.")] = "",
) -> None:
    """Turn images or sentences into a bank; print its contents, its path and its content hash.

    \b
    Examples:
      handful features extract --items photos/ --backbone efficientnet-lite0 --out photos.bank
      handful features extract --items clinc.jsonl.gz --split train --backbone minilm --out clinc.bank
      handful features extract --items omniglot.zip/base --backbone timm:resnet18 --out omniglot.bank --on ray
    """
    from handful.banks.bank import Provenance
    from handful.cli.printed import complain_of_skipped, print_bank
    from handful.cli.terminal import passes, waiting
    from handful.extraction.extract import checkpoint_of, extract, shards_folder, skipped_items
    from handful.extraction.items import list_items
    from handful.machine.extras import import_extra
    from handful.machine.outputs import refuse_overwriting
    from handful.machine.threads import available_cores

    reads = {"items": items, "backbone": checkpoint_of(backbone)}
    refuse_overwriting(reads, {"bank": out, "unfinished bank": shards_folder(out)})
    only_here = {"--workers": workers is not None, "--device": device != "cpu"}
    executor = executor_at(on, workers or available_cores(), only_here)
    with waiting(f"listing {items}"):
        listed = list_items(items, split=split, text=text, labels=labels, id_column=id_column, skip_bad=skip_bad)
    with passes(f"extracting {items}") as on_progress:
        bank = extract(
            listed,
            import_extra("handful.extraction.backbones", "images,text").load_backbone(backbone, device=device),
            out,
            batch_size=batch_size,
            shard_size=shard_size,
            dtype=dtype,
            executor=executor,
            provenance=Provenance(dataset, licence),
            on_progress=on_progress,
        )
    complain_of_skipped(skipped_items(bank), len(listed))
    print_bank(bank, out)
