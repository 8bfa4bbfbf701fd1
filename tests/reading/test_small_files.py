"""A small file stays small, and a long line takes time in proportion to its length, in every reader."""

import base64
import gzip
import io
import json
import time
import warnings
import zipfile
import zlib
from contextlib import suppress

import numpy as np
import pytest

from handful.classification.names import spoken
from handful.errors import HandfulError
from handful.fields.voices.rttm import read_rttm
from handful.machine import untrusted
from handful.machine.json_files import JsonFile
from handful.reading import read
from handful.reading.class_lists import read_candidates
from handful.reading.header import dimension_columns
from handful.reading.images import is_folder
from handful.reading.scores import read_scores
from handful.reading.sites import read_sites, rows_of
from tests.hostile_at_hand import grown
from tests.spectra_at_hand import mzml

# Bytes that a file may always take here, a sixteenth of the real ones so that the files are small too, and megabytes by
# which the process may grow.
ALLOWED, MOST_GROWTH = 2**22, 64


def sheet(rows, dimension="A1:B3", **parts):
    """A spreadsheet of these rows in XML, and other parts of its archive."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    packages = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    written = {
        "[Content_Types].xml": f'<Types xmlns="{packages}/content-types"><Default Extension="rels" ContentType="'
        'application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="'
        f'application/xml"/><Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{packages}/relationships"><Relationship Id="r" '
        f'Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>'
        '<sheet name="S" sheetId="1" r:id="r"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{packages}/relationships"><Relationship Id="r" '
        f'Type="{relations}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><dimension ref="{dimension}"/>'
        f"<sheetData>{rows}</sheetData></worksheet>",
        **parts,
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in written.items():
            archive.writestr(name, text)
    return stream.getvalue()


def cell(place, text):
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


ROWS = f'<row r="1">{cell("A1", "text")}{cell("B1", "label")}</row><row r="2">{cell("A2", "hi")}{cell("B2", "a")}</row>'
PEAKS = [(100.0, 1.0), (200.0, 2.0)]
ONE = mzml([("a", 300.0, PEAKS)])
SCAN = ONE[ONE.index("<spectrum ") : ONE.index("</spectrumList>")]


def scans(text):
    return ONE.replace(SCAN, text)


def bomb():
    """Two arrays of 4 MB each, in 11 KB."""
    packed = base64.b64encode(zlib.compress(np.full(2**20 - 4, 100.0, "<f4").tobytes(), 9)).decode()
    text = ONE.replace("MS:1000523", "MS:1000521")
    for part in ONE.split("<binary>")[1:]:
        text = text.replace(part.partition("<")[0], packed)
    return text


def without_peaks():
    text = SCAN.replace("MS:1000574", "MS:1000576")
    for part in SCAN.split("<binary>")[1:]:
        text = text.replace(part.partition("<")[0], "")
    return scans(text * 5000)


FILES = {
    "far.xlsx": (lambda: sheet(f'{ROWS}<row r="1048576">{cell("A1048576", "hi")}</row>', "A1:XFD1048576"), "returned"),
    "beyond.xlsx": (lambda: sheet(f'{ROWS}<row r="1000000000">{cell("A1", "hi")}</row>'), "row 1000000000 is beyond"),
    "wide.xlsx": (lambda: sheet(f"{ROWS}<row>{'<c/>' * 200_000}</row>"), "more elements than a genuine sheet"),
    "rows.xlsx": (lambda: sheet(ROWS + "<row/>" * 100_000), "would expand to"),
    "last.xlsx": (
        lambda: sheet(ROWS + "".join(f"<row>{cell('XFD1', 1)}</row>" for _ in range(2000))),
        "would expand to",
    ),
    "texts.xlsx": (
        lambda: sheet(ROWS, **{"xl/sharedStrings.xml": f"<sst>{'<si/>' * 100_000}</sst>"}),
        "would expand",
    ),
    "styles.xlsx": (lambda: sheet(ROWS, **{"xl/styles.xml": f"<a>{'<xf/>' * 200_000}</a>"}), "more elements than"),
    "type.xlsx": (
        lambda: sheet(ROWS, **{"xl/styles.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}),
        "document type",
    ),
    "media.xlsx": (lambda: sheet(ROWS, **{"xl/media/x": bytes(2**23)}), "would expand to"),
    "arrays.mzML": (bomb, "would expand to"),
    "spectra.mzML": (without_peaks, "returned"),
    "nothing.mzML": (lambda: scans("<x/>" * 200_000 + SCAN), "returned"),
    "deep.mzML": (lambda: scans("<x>" * 100_000 + "</x>" * 100_000 + SCAN), "returned"),
    "groups.mzML": (
        lambda: scans(
            '<referenceableParamGroup id="g">'
            + "".join(f'<cvParam accession="{k}"/>' for k in range(500))
            + "</referenceableParamGroup><spectrum>"
            + '<referenceableParamGroupRef ref="g"/>' * 500
            + "</spectrum>"
        ),
        "would expand to",
    ),
    "empty.mgf": (lambda: "BEGIN IONS\nEND IONS\n" * 100_000, "would expand to"),
    "keys.mgf": (
        lambda: "".join(f"BEGIN IONS\nK{k}={k}\n100 1\nEND IONS\n" for k in range(2000)),
        "would expand to",
    ),
    "shared.mgf": (
        lambda: "".join(f"K{k}={k}\n" for k in range(1000)) + "BEGIN IONS\n100 1\nEND IONS\n" * 1000,
        "would expand to",
    ),
    "one.msp": (lambda: "Name: x\nNum Peaks: 1\n100 1\n\n" * 10_000, "would expand to"),
    "short.csv.gz": (lambda: gzip.compress(b"text,label\n" + b"ab,cd\n" * 500_000), "would expand to"),
    "rows.csv.gz": (lambda: gzip.compress(b"text,label\n" + b"ab,cd\nx\n" * 300_000), "would expand to"),
    "objects.jsonl.gz": (lambda: gzip.compress(b'{"text":"a","b":[[],[],[],[],[]]}\n' * 50_000), "would expand to"),
    "keys.jsonl": (lambda: "".join(f'{{"text":"a","k{k}":1}}\n' for k in range(1500)), "would expand to"),
}


@pytest.mark.parametrize("name", FILES)
def test_no_file_takes_more_memory_than_it_may(tmp_path, name, monkeypatch):
    monkeypatch.setattr(untrusted, "ALWAYS_ALLOWED", ALLOWED)
    make, expected = FILES[name]
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    content = make()
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    if name.endswith("csv.gz"):  # packages count for nothing
        pytest.importorskip("pyarrow.csv", reason="pyarrow is not installed")
    outcome, megabytes = grown(read, tmp_path / name)
    assert expected in outcome
    assert megabytes < MOST_GROWTH


SITES = {
    "short.csv": (
        lambda: "file," + ",".join(map(str, range(20_000))) + "\n" + "a\n" * 5000,
        "another number of values",
    ),
    "keys.json": (
        lambda: json.dumps({"images": [{"id": k, "file_name": f"{k}", f"k{k}": 1} for k in range(2000)]}),
        "would expand to",
    ),
    "deep.csv": (lambda: "file,site\n" + "a/" * 20_000 + "b.jpg,1\n", "returned [0]"),
}


@pytest.mark.parametrize("name", SITES)
def test_no_file_of_sites_takes_more_memory_than_it_may(tmp_path, name, monkeypatch):
    monkeypatch.setattr(untrusted, "ALWAYS_ALLOWED", ALLOWED)
    make, expected = SITES[name]
    (tmp_path / name).write_text(make())
    outcome, megabytes = grown(lambda path: rows_of(["b.jpg"], read_sites(path)["file"], "x"), tmp_path / name)
    assert expected in outcome
    assert megabytes < MOST_GROWTH


def placed(name, text):
    def attempt(folder, line):
        (folder / name).write_text(text.replace("LINE", line))
        return folder / name

    return attempt


def reading(name, text, reader=read):
    place = placed(name, text)
    return lambda folder, line: reader(place(folder, line))


# Everything that applies a regular expression, or cuts by hand, to a line of a stranger.
LINES = {
    "msp peak": reading("a.msp", "Name: x\nNum Peaks: 1\nLINE\n\nName: y\nNum Peaks: 1\n100 1\n"),
    "msp key": reading("a.msp", "Name: x\nLINE: 1\nNum Peaks: 1\n100 1\n"),
    "mgf peak": reading("a.mgf", "BEGIN IONS\n1LINE\nEND IONS\n"),
    "mgf key": reading("a.mgf", "BEGIN IONS\nTLINE=1\n100 1\nEND IONS\n"),
    "mgf charge": reading("a.mgf", "BEGIN IONS\nCHARGE=LINE\n100 1\nEND IONS\n"),
    "mgf precursor": reading("a.mgf", "BEGIN IONS\nPEPMASS=LINE\n100 1\nEND IONS\n"),
    "csv header": reading("a.csv", "text,LINE\na,b\n"),
    "csv value": reading("a.csv", "text,label\nLINE,b\n"),
    "csv number": reading("a.csv", "e0,e1\n1,LINE\n"),
    "json line": reading("a.jsonl", '{"text": LINE}\n'),
    "json file": reading("a.json", "LINE", lambda path: JsonFile.read(path, "anything")),
    "rttm": reading("a.rttm", "SPEAKER a 1 LINE 1 <NA> <NA> b\n", read_rttm),
    "scores": reading("a.csv", "Start (s),End (s),Common name,Confidence,LINE\n", read_scores),
    "list": reading("a.txt", "LINE\n", lambda path: read_candidates(path, ["a"])),
    "column": lambda _, line: dimension_columns([line, line + "1"], None, "a table"),
    "folder": lambda _, line: is_folder(f"folder:{line}"),
    "label": lambda _, line: spoken(line),
}


def seconds(attempt, folder, line):
    begun = time.process_time()
    with suppress(HandfulError):
        attempt(folder, line)
    return time.process_time() - begun


@pytest.mark.parametrize("name", LINES)
def test_time_grows_with_the_length_of_a_line_and_no_faster(tmp_path, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for unit in ("1", " ", "1 ", '"', '";', ";", "1_", "a", "aB", "[", "\\", "\t", ",", ":"):
            short = min(seconds(LINES[name], tmp_path, unit * (8_000 // len(unit))) for _ in range(3))
            # Eight times the length takes 8 times as long, or 64 times if a pattern is tried again at every place.
            times = [seconds(LINES[name], tmp_path, unit * (64_000 // len(unit)))]
            while min(times) > 24 * max(short, 0.002) and len(times) < 4:  # a busy machine
                times.append(seconds(LINES[name], tmp_path, unit * (64_000 // len(unit))))
            assert min(times) < 24 * max(short, 0.002), unit
