"""Names of species as SpeciesNet writes them: `identifier;class;order;family;genus;species;common name`."""

from __future__ import annotations

from handful.reading.field import TAXA, ClassName

PARTS = 7


def taxonomy_name(label: str) -> ClassName | None:
    """Return both names of a class, and its taxa; None for any other label.

    Examples
    --------
    >>> found = taxonomy_name("b1352069;mammalia;cetartiodactyla;cervidae;alces;alces;moose")
    >>> found.scientific, found.common, found.taxa["family"], taxonomy_name("moose")
    ('alces alces', 'moose', 'cervidae', None)
    """
    parts = [part.strip() for part in label.split(";")]
    if len(parts) != PARTS:
        return None
    taxa = {level: part.lower() for level, part in zip(TAXA, parts[1:5], strict=True)}
    return ClassName(f"{parts[4]} {parts[5]}".strip(), parts[6], taxa)
