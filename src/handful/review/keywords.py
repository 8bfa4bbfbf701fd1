"""Keywords that photo programs read: next to each photograph a file `photo.jpg.xmp`, whose `dc:subject` has its class.

digiKam and darktable read and write such files, called sidecars; a photograph itself is never changed. What other
programs wrote into a sidecar stays. Which keyword is ours is said in the sidecar, too, so that a class that gets
another name takes the old keyword away.
"""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from handful.catalogue.file import CatalogueFile
from handful.errors import OptionError, StorageError
from handful.items.looking_up import pictures_of
from handful.machine.outputs import written_whole
from handful.reading.contents import FolderFiles
from handful.review.item_rows import SaidRow, label_of

ENDING = ".xmp"
# Bytes of a sidecar that is read; those of programs have a few thousand. [bytes; limit]
MOST_BYTES = 2**22
# Name spaces of XMP, and that of the keyword which is ours.
META = "adobe:ns:meta/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
DC = "http://purl.org/dc/elements/1.1/"
OURS = "urn:handful:1"
PREFIXES = {"x": META, "rdf": RDF, "dc": DC, "handful": OURS}
LABEL = f"{{{OURS}}}label"
SUBJECT = f"{{{DC}}}subject"
DESCRIPTION = f"{{{RDF}}}Description"
LISTS = (f"{{{RDF}}}Bag", f"{{{RDF}}}Seq", f"{{{RDF}}}Alt")
ITEM = f"{{{RDF}}}li"
EMPTY = f'<x:xmpmeta xmlns:x="{META}"><rdf:RDF xmlns:rdf="{RDF}"><rdf:Description rdf:about=""/></rdf:RDF></x:xmpmeta>'


class Sidecars(NamedTuple):
    """What was written: how many sidecars, and which photographs have none, and why."""

    n_items: int
    lost: list[str]


def write_keywords(file: CatalogueFile, rows: Sequence[SaidRow]) -> Sidecars:
    """Write the label of each photograph into its sidecar; one without a label has no keyword of ours."""
    labels = {row.item: label_of(row) for row in rows}
    places = {row.item: row.place for row in rows}
    items = [row.item for row in file.rows(list(labels)) if row.kind == "image"]
    pictures = pictures_of(file, items) if items else None
    if not isinstance(pictures, FolderFiles):
        raise OptionError("keywords are written next to photographs in folders, and there are none; name a table")
    lost = []
    n_items = 0
    for item, name in zip(items, pictures.names, strict=True):
        photograph = pictures.root / name
        sidecar = photograph.with_name(photograph.name + ENDING)
        if not photograph.is_file():
            lost.append(f"{places[item]}: it is gone")
            continue
        try:
            before = _read(sidecar)
            after = with_keyword(before, labels[item])
        except ValueError as error:
            lost.append(f"{sidecar.name}: {error}; it stays as it is")
            continue
        if after is not None and after != before:
            with written_whole(sidecar) as place:
                place.write_text(after, encoding="utf-8")
        n_items += labels[item] is not None
    if items and len(lost) == len(items):
        raise StorageError(f"none of the {len(items):,} photographs can have a keyword, the first is {lost[0]}")
    return Sidecars(n_items, lost)


def _read(sidecar: Path) -> str | None:
    """Return what a sidecar has; None if there is none."""
    if not sidecar.exists():
        return None
    if sidecar.stat().st_size > MOST_BYTES:
        raise ValueError("it is too long for a sidecar")
    return sidecar.read_bytes().decode("utf-8-sig")


def with_keyword(sidecar: str | None, label: str | None) -> str | None:
    """Return a sidecar with a keyword instead of the one that was ours; None if there is nothing to write.

    Examples
    --------
    >>> made = with_keyword(None, "fox")
    >>> made[made.index("<dc:subject>") : made.index("</dc:subject>")]
    '<dc:subject><rdf:Bag><rdf:li>fox</rdf:li></rdf:Bag>'
    >>> with_keyword(made, "fox") == made, with_keyword(None, None)
    (True, None)
    """
    if sidecar is None and label is None:
        return None
    text = EMPTY if sidecar is None else sidecar
    start, root, end = _parsed(text)
    description = root.find(f".//{DESCRIPTION}")
    if description is None:
        raise ValueError("it has no description")
    ours = next((one for one in root.iter(DESCRIPTION) if LABEL in one.attrib), description)
    before = ours.attrib.pop(LABEL, None)
    subject = root.find(f".//{SUBJECT}")
    listed = None if subject is None else next((one for one in subject if one.tag in LISTS), None)
    if before == label and (label is None or (listed is not None and _has(listed, label))):
        return sidecar
    if listed is not None and before is not None and before != label:
        for one in [one for one in listed if one.text == before]:
            listed.remove(one)
    if label is not None:
        ours.set(LABEL, label)
        if listed is None:
            subject = ET.SubElement(description, SUBJECT) if subject is None else subject
            listed = ET.SubElement(subject, LISTS[0])
        if not _has(listed, label):
            ET.SubElement(listed, ITEM).text = label
    return start + ET.tostring(root, encoding="unicode") + end


def _has(listed: ET.Element, label: str) -> bool:
    return any(one.text == label for one in listed)


def _parsed(text: str) -> tuple[str, ET.Element, str]:
    """Return what stands before the root, the root with all that is in it, and what stands after it."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("it declares entities, which a sidecar does not need")
    for prefix, name in PREFIXES.items():
        ET.register_namespace(prefix, name)
    builder = ET.TreeBuilder(insert_comments=True, insert_pis=True)
    try:
        for _, (prefix, name) in ET.iterparse(io.StringIO(text), events=("start-ns",)):
            if prefix and name not in PREFIXES.values():
                ET.register_namespace(prefix, name)
        parser = ET.XMLParser(target=builder)
        parser.feed(text)
        root = parser.close()
    except ET.ParseError as error:
        raise ValueError(f"it is not XML ({error})") from None
    tag = _prefixed(text, root)
    first = text.index(f"<{tag}")
    last = text.rindex(">", 0, text.rindex(f"</{tag}") + len(tag) + 4) if f"</{tag}" in text else text.rindex(">")
    return text[:first], root, text[last + 1 :]


def _prefixed(text: str, root: ET.Element) -> str:
    """Return the name of the root as the text has it."""
    name = root.tag.rpartition("}")[2]
    for part in text.split("<")[1:]:
        found = part.split(">")[0].split()[0].rstrip("/")
        if found.rpartition(":")[2] == name:
            return found
    raise ValueError("it has no root")
