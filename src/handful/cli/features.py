"""`handful features`: extract, import, export, inspect and verify banks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handful.cli.options import HERE, HeaderRow, On, SectionGroup, SkipBad, Trust, is_here, number_here, workers_at
from handful.cli.terminal import data
from handful.errors import OptionError
from handful.progress import bars

if TYPE_CHECKING:
    from handful.banks import FeatureBank


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
      handful features extract --items photos/ --encoder efficientnet-lite0 --out photos.bank
      handful features extract --items clinc.jsonl.gz --split train --encoder minilm --out clinc.bank
      handful features extract --items omniglot.zip/base --encoder timm:resnet18 --out omniglot.bank --on ray
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


# Rows whose norms are computed; more would give the same result.
MOST_ROWS_MEASURED = 20_000

app = typer.Typer(
    cls=SectionGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Feature banks: features with labels and provenance.",
)

SourcePath = Annotated[
    Path,
    typer.Argument(
        help="A bank, a folder of arrays, a table of vectors (.parquet, .csv, .xlsx, .jsonl), .npz, .h5ad or .pt."
    ),
]
ColumnName = Annotated[str | None, typer.Option(help="Name of that column or key, if it cannot be detected.")]
AboutBank = Annotated[str | None, typer.Option(help="Recorded in the bank's provenance.")]


@app.command("import")
def import_bank(
    source: SourcePath,
    bank: Annotated[Path, typer.Argument(help="Folder to write; it must not exist yet.")],
    features: ColumnName = None,
    labels: ColumnName = None,
    trust_pickle: Trust = False,
    header_row: HeaderRow = None,
    skip_bad: SkipBad = False,
    dataset: AboutBank = None,
    licence: AboutBank = None,
    encoder: AboutBank = None,
    preprocessing: AboutBank = None,
    notes: AboutBank = None,
) -> None:
    """Turn features in another format into a bank, and print its content hash.

    \b
    Examples:
      handful features import embeddings.parquet mybank --labels intent --licence "CC BY 4.0"
      handful features import downloads/test.plk mini-test --trust-pickle --encoder "ResNet-18"
    """
    from handful.machine.outputs import refuse_overwriting
    from handful.reading import read_bank

    refuse_overwriting({"source": source}, {"bank": bank})
    found = read_bank(
        source,
        features=features,
        labels=labels,
        trust_pickle=trust_pickle,
        skip_bad=skip_bad,
        header_row=header_row,
    )
    given: dict[str, Any] = {
        "dataset": dataset,
        "licence": licence,
        "encoder": encoder,
        "preprocessing": preprocessing,
        "notes": notes,
    }
    provenance = replace(found.provenance, **{name: text for name, text in given.items() if text is not None})
    with bars(f"writing {found.n_rows:,} rows to {bank}"):
        saved = replace(found, provenance=provenance).save(bank)
    data(f"{saved.content_hash}  {bank}")


@app.command("export")
def export_bank(
    source: SourcePath,
    file: Annotated[Path, typer.Argument(help="Parquet file to write; it must not exist yet.")],
    trust_pickle: Trust = False,
    header_row: HeaderRow = None,
    skip_bad: SkipBad = False,
) -> None:
    """Write a bank as Parquet, for DuckDB, pandas and others.

    \b
    Example:
      handful features export mybank mybank.parquet
    """
    from handful.banks import write_parquet
    from handful.machine.outputs import refuse_overwriting
    from handful.reading import read_bank

    refuse_overwriting({"source": source}, {"file": file})
    bank = read_bank(source, trust_pickle=trust_pickle, skip_bad=skip_bad, header_row=header_row)
    with bars(f"writing {bank.n_rows:,} rows to {file}"):
        write_parquet(bank, file)
    data(str(file))


@app.command()
def info(
    source: SourcePath,
    features: ColumnName = None,
    labels: ColumnName = None,
    trust_pickle: Trust = False,
    header_row: HeaderRow = None,
    skip_bad: SkipBad = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the contents of a bank: rows, classes, shots available, norms, provenance.

    \b
    Examples:
      handful features info mybank
      handful features info embeddings.parquet --labels intent --json
    """
    from handful.reading import read_bank

    bank = read_bank(
        source,
        features=features,
        labels=labels,
        trust_pickle=trust_pickle,
        skip_bad=skip_bad,
        header_row=header_row,
    )
    facts = describe(bank)
    if as_json:
        data(json.dumps(facts, ensure_ascii=False))
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {v}" for k, v in value.items())
        first, *more = str(value).splitlines() or [""]
        data(f"{name:<16}{first}")
        for line in more:
            data(f"{'':<16}{line}")


@app.command()
def verify(bank: Annotated[Path, typer.Argument(help="A bank saved by handful.")]) -> None:
    """Read a whole bank and compare it with its content hash; exit with 1 if they differ.

    \b
    Example:
      handful features verify mybank
    """
    from handful.banks import FeatureBank

    opened = FeatureBank.load(bank)
    with bars(f"reading {opened.n_rows:,} rows of {bank}"):
        found = opened.verify()
    data(f"{found}  {bank}: as written")


app.command("extract")(extract_command)


def describe(bank: FeatureBank) -> dict[str, Any]:
    """Facts about a bank, as plain values."""
    import numpy as np

    from handful.banks import Provenance

    sizes = bank.class_sizes
    measured = np.unique(np.linspace(0, bank.n_rows - 1, min(bank.n_rows, MOST_ROWS_MEASURED)).astype(np.int64))
    norms = np.linalg.norm(bank.take(measured).astype(np.float32), axis=1)
    empty = Provenance()
    facts: dict[str, Any] = {
        "rows": bank.n_rows,
        "dimensions": bank.dim,
        "dtype": bank.dtype,
        "classes": bank.n_classes,
        "rows per class": {"from": int(sizes.min()), "to": int(sizes.max()), "median": float(np.median(sizes))},
        # At least one row of each class must be left for the query.
        "shots available": max(int(sizes.min()) - 1, 0),
        "norms": {
            "from": round(float(norms.min()), 4),
            "to": round(float(norms.max()), 4),
            "mean": round(float(norms.mean()), 4),
            "of rows": len(measured),
        },
        "splits": {name: f"{len(classes)} classes" for name, classes in bank.splits.items()} or "none",
        "content hash": bank.recorded_hash or "none recorded: not saved as a bank yet",
    }
    stated = bank.provenance.to_mapping()
    return facts | {name: text for name, text in stated.items() if text != getattr(empty, name)}
