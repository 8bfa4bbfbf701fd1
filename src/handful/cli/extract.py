"""`handful extract`: images or sentences to a bank."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from handful.cli.options import HERE, HeaderRow, On, SkipBad, is_here, number_here, workers_at
from handful.errors import OptionError
from handful.progress import bars


def extract_command(
    items: Annotated[
        Path,
        typer.Option(
            help="Images, one folder per class (also in a .zip, or a folder inside one), or a table (.csv, .tsv, "
            ".jsonl, .xlsx, .parquet) with a column of labels and a column 'text' or 'path'."
        ),
    ],
    encoder: Annotated[
        str,
        typer.Option(
            help="efficientnet-lite0, 1 or 2, or minilm (no download), timm:NAME, open_clip:NAME/PRETRAINED, "
            "transformers:NAME, sentence-transformers:NAME, or checkpoint:PATH of a network trained by `handful train`."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The new bank, a folder. Run the same command again to resume.")],
    text: Annotated[str | None, typer.Option(help="Column of sentences, if not 'text'.")] = None,
    labels: Annotated[str | None, typer.Option(help="Column of labels, if it cannot be detected.")] = None,
    id_column: Annotated[str | None, typer.Option(help="Column that identifies an item.")] = None,
    split: Annotated[str | None, typer.Option(help="Only rows of a table whose column 'split' has this value.")] = None,
    header_row: HeaderRow = None,
    skip_bad: SkipBad = False,
    on: On = HERE,
    device: Annotated[str, typer.Option(help="Device of the encoder, as in torch: cpu, cuda.")] = "cpu",
    batch_size: Annotated[int, typer.Option(min=1, help="Items the encoder sees at once.")] = 8,
    shard_size: Annotated[int, typer.Option(min=1, help="Items saved at a time.")] = 256,
    dtype: Annotated[str, typer.Option(help="How features are stored: float16 or float32.")] = "float16",
    dataset: Annotated[str, typer.Option(help="Name of the data, stored in the bank.")] = "",
    licence: Annotated[str, typer.Option(help="Licence of the data, stored in the bank.")] = "",
) -> None:
    """Turn images or sentences into a bank; print its contents, its path and its content hash.

    \b
    Examples:
      handful extract --items photos/ --encoder efficientnet-lite0 --out photos.bank
      handful extract --items clinc.jsonl.gz --split train --encoder minilm --out clinc.bank
      handful extract --items omniglot.zip/base --encoder timm:resnet18 --out omniglot.bank --on ray
    """
    from handful.banks.bank import Provenance
    from handful.cli.printed import complain_of_skipped, print_bank
    from handful.extraction.encoders import load_encoder
    from handful.extraction.extract import checkpoint_of, extract, shards_folder, skipped_items
    from handful.extraction.items import list_items
    from handful.machine.outputs import refuse_overwriting
    from handful.machine.threads import available_cores
    from handful.workers import here

    reads = {"items": items, "encoder": checkpoint_of(encoder)}
    refuse_overwriting(reads, {"bank": out, "unfinished bank": shards_folder(out)})
    if device != "cpu" and not is_here(on):
        raise OptionError("--device is for running here; a Ray cluster uses all its processors: leave it out")
    workers = here() if is_here(on) else workers_at(on)
    threads = number_here(on, available_cores()) if is_here(on) else 1
    with bars(f"listing {items}"):
        listed = list_items(
            items,
            split=split,
            text=text,
            labels=labels,
            id_column=id_column,
            skip_bad=skip_bad,
            header_row=header_row,
        )
    with bars(f"extracting {items}") as on_progress:
        bank = extract(
            listed,
            load_encoder(encoder, device=device),
            out,
            batch_size=batch_size,
            shard_size=shard_size,
            dtype=dtype,
            workers=workers,
            threads=threads,
            provenance=Provenance(dataset, licence),
            on_progress=on_progress,
        )
    complain_of_skipped(skipped_items(bank), len(listed))
    print_bank(bank, out)
