"""A file of a fitted catalogue as version 0.5 wrote it: with where its examples came from, and how they look."""

import io
from pathlib import Path

from PIL import Image

from handful.catalogue.file import CatalogueFile
from handful.extraction.options import load_network
from handful.fitted import FittedModel, Record, Source, save_model
from handful.items import import_labelled
from handful.items.fitting import model_of
from handful.items.looking_up import pictures_of


def write_older_file(path: Path, source: Path, encoder: str) -> FittedModel:
    """Write a catalogue of a folder of photographs, or of a table of texts, and return it."""
    with CatalogueFile.open() as file:
        import_labelled(file, source, encoder=encoder)
        rows = file.rows(list(file.said.answers))
        places = file.said.places[source.stem]
        network = load_network(rows[0].kind, encoder, "cpu")
        shown = pictures_of(file, [row.item for row in rows])
        sources = [Source(places[row.item], source.name, row.hash.hex()[:16], date="2026-11-17") for row in rows]
        columns = {name: {at: row.columns[name] for at, row in enumerate(rows)} for name in rows[0].columns or {}}
        model = model_of(file).with_record(
            Record(
                f"{encoder}, weights {network.weights_hash}",
                rows[0].kind,
                sources=dict(enumerate(sources)),
                previews={at: one if isinstance(one, str) else jpeg(one) for at, one in enumerate(shown)},
                columns=columns,
            )
        )
    save_model(model, path)
    return model


def jpeg(image: bytes) -> bytes:
    content = io.BytesIO()
    Image.open(io.BytesIO(image)).convert("RGB").save(content, "JPEG")
    return content.getvalue()
