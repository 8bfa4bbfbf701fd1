"""Names of species as BirdNET writes them: `Scientific name_Common name`."""

from __future__ import annotations

from handful.reading.field import ClassName

# How often `;` stands in a taxonomy of SpeciesNet, which is no such name.
IN_TAXONOMY = 6


def species_name(label: str) -> ClassName | None:
    """Return both names of a species, and its genus; None for any other label.

    Examples
    --------
    >>> species_name("Turdus merula_Eurasian Blackbird")
    ClassName(scientific='Turdus merula', common='Eurasian Blackbird', taxa={'genus': 'turdus'})
    >>> species_name("Engine_Engine").common, species_name("book_flight")
    ('Engine', None)
    """
    first, _, second = (part.strip() for part in label.partition("_"))
    # A scientific name has two words; what is no animal has the same name twice, such as Engine_Engine.
    if not second or label.count(";") == IN_TAXONOMY or not (" " in first or first.lower() == second.lower()):
        return None
    return ClassName(first, second, {"genus": first.split()[0].lower()} if " " in first else {})
