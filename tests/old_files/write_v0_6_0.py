"""Write `v0_6_0.handful` with handful 0.6.0 on Python 3.11: python tests/old_files/write_v0_6_0.py FILE."""

import sys

import numpy as np

from handful.catalogue.events import EventItem
from handful.catalogue.file import CatalogueFile
from handful.catalogue.vectors import EncoderId
from handful.items import bring, import_labelled, vectors_of


def main(path):
    rng = np.random.default_rng(60)
    with CatalogueFile.open(path) as file:
        import_labelled(file, (rng.normal(size=(4, 6)), ["fox", "owl", "fox", "Käuzchen"]), "examples")
        bring(file, "monday", rng.normal(size=(5, 6)), person="ada")
        said = {"batch": "monday", "label": "foks"}
        shown = EventItem(6, answered=False, offered="owl", risk=0.25, wrong=0.5, support=2.0)
        file.append("named", said, [EventItem(5, offered="owl", risk=0.125), shown], person="ada")
        back = file.append("bad", {"batch": "monday"}, [EventItem(7)], person="ada")
        file.take_back(back.event, person="ada")
        file.append("renamed", {"batch": "monday", "label": "foks", "into": "fox"}, person="bob")
        file.append("none", {"batch": "monday"}, [EventItem(8)], person="bob")
        numbers = file.contents_of(range(1, 10))
        file.put_vectors(EncoderId("made up", "1", "5d41"), list(numbers.values()), vectors_of(file, list(numbers)))
        file.cache("a cache", b"0123")


if __name__ == "__main__":
    main(sys.argv[1])
