"""Keywords next to photographs: read back by another program, merged with what is there, and never in a photograph."""

import hashlib
import json
import shutil
import subprocess

import pytest

from handful.catalogue.file import CatalogueFile
from handful.errors import OptionError
from handful.items import bring
from handful.review.exporting import export_keywords
from handful.review.files import Outputs, finish
from handful.review.keywords import with_keyword
from handful.review.opening import open_batch
from handful.review.server import Wanted, offers_of
from tests.items.photographs import ENCODER, photographs, register

N_PHOTOGRAPHS = 12
# As digiKam and darktable write them: other name spaces, a list of another kind, a comment, and a wrapping.
SIDECAR = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="XMP Core 4.4.0-Exiv2">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:darktable="http://darktable.sf.net/"
    xmp:Rating="3" darktable:xmp_version="4" xmlns:dc="http://purl.org/dc/elements/1.1/">
   <dc:subject><rdf:Seq><rdf:li>holiday</rdf:li></rdf:Seq></dc:subject>
   <!-- kept -->
   <darktable:history><rdf:Seq/></darktable:history>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>
"""


@pytest.fixture
def file(tmp_path):
    """A catalogue with photographs, all of which are of two classes."""
    register()
    photographs(tmp_path / "photos", N_PHOTOGRAPHS)
    with CatalogueFile.open(tmp_path / "photos.handful") as made:
        bring(made, "photos", tmp_path / "photos", encoder=ENCODER)
        review = open_batch(made, "photos", person="Ada")
        half = N_PHOTOGRAPHS // 2
        review.decide(review.number, list(range(half)), "new", "Füchse & Co <b>")
        review.decide(review.number, list(range(half, N_PHOTOGRAPHS)), "new", "owl")
        yield made


def contents(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.png")}


def names_of(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".xmp")


def test_another_program_reads_the_keywords_and_no_photograph_is_changed(file, tmp_path):
    if shutil.which("exiftool") is None:
        pytest.skip("exiftool is not installed: apt-get install libimage-exiftool-perl")
    folder = tmp_path / "photos"
    before = contents(folder)
    assert str(export_keywords(file)).endswith(f"photos: {N_PHOTOGRAPHS} keywords")
    sidecars = sorted(folder.glob("*.xmp"))
    assert len(sidecars) == N_PHOTOGRAPHS
    command = ["exiftool", "-json", "-charset", "UTF8", "-XMP-dc:Subject", *map(str, sidecars)]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert {one["Subject"] if isinstance(one["Subject"], str) else tuple(one["Subject"]) for one in found} == {
        "Füchse & Co <b>",
        "owl",
    }
    assert contents(folder) == before
    assert bring(file, "photos").new == ()  # sidecars are no items


def test_what_other_programs_wrote_stays_and_an_old_keyword_of_ours_goes(file, tmp_path):
    folder = tmp_path / "photos"
    first = folder / names_of(folder)[-1]
    sidecar = first.with_name(first.name + ".xmp")
    sidecar.write_text(SIDECAR, encoding="utf-8")
    broken = folder / (names_of(folder)[0] + ".xmp")
    broken.write_text("<x:xmpmeta")
    found = export_keywords(file)
    assert "not XML" in found.lost[0]
    assert broken.read_text() == "<x:xmpmeta"
    text = sidecar.read_text(encoding="utf-8")
    assert "<rdf:li>holiday</rdf:li>" in text
    assert all(kept in text for kept in ('xmp:Rating="3"', 'darktable:xmp_version="4"', "<!-- kept -->", "<?xpacket"))
    assert "<rdf:li>owl</rdf:li>" in text
    review = open_batch(file, "photos")
    review.merge(review.number, "owl", "tawny owl")
    export_keywords(file)
    text = sidecar.read_text(encoding="utf-8")
    assert "<rdf:li>tawny owl</rdf:li>" in text
    assert "<rdf:li>owl</rdf:li>" not in text
    written = sidecar.stat().st_mtime_ns
    export_keywords(file)
    assert sidecar.stat().st_mtime_ns == written  # nothing to write
    review.remove(review.number, "tawny owl")
    assert "tawny owl" in with_keyword(text, "tawny owl")
    assert "tawny owl" not in with_keyword(text, None)


@pytest.mark.parametrize("text", ["", "<a/>", "<!DOCTYPE a><a/>", "words", '<x:xmpmeta xmlns:x="adobe:ns:meta/"/>'])
def test_what_is_no_sidecar_is_refused(text):
    with pytest.raises(ValueError, match="it "):
        with_keyword(text, "fox")


def test_a_finished_review_writes_what_was_wanted(file, tmp_path):
    review = open_batch(file, "photos")
    assert offers_of(review) == ["folder", "keywords"]
    done = finish(review, Outputs(tmp_path / "photos.labels.csv"), "photos", Wanted(folder=True, keywords=True))
    assert [one.rpartition("/")[2] for one in done.written] == [
        f"photos.labels.csv: {N_PHOTOGRAPHS} rows",
        f"photos.by_class: {N_PHOTOGRAPHS} images",
        f"photos: {N_PHOTOGRAPHS} keywords",
    ]
    assert len(list((tmp_path / "photos.by_class" / "owl").iterdir())) == N_PHOTOGRAPHS // 2
    assert Outputs(tmp_path / "photos.labels.csv").folder.name == "photos.by_class_2"


def test_rows_have_no_keywords():
    with CatalogueFile.open() as file:
        bring(file, "rows", [[1.0, 2.0], [2.0, 1.0]])
        with pytest.raises(OptionError, match="next to photographs"):
            export_keywords(file)
