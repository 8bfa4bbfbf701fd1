"""Items of a catalogue: what a folder, a table or an array has now, and the vectors of what is new in it."""

from handful.items.bringing import Brought, bring, source_of
from handful.items.given_vectors import measurements_of
from handful.items.imports import import_labelled
from handful.items.listing import Listing, listed
from handful.items.looking_up import pictures_of, vectors_of, with_vectors

__all__ = [
    "Brought",
    "Listing",
    "bring",
    "import_labelled",
    "listed",
    "measurements_of",
    "pictures_of",
    "source_of",
    "vectors_of",
    "with_vectors",
]
