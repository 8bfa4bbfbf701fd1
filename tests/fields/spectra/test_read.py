"""Mass spectra: the same vectors from every kind of file, and broken spectra named with their line."""

import base64
import re
import zlib

import numpy as np
import pytest

from handful.errors import BankError
from handful.fields.spectra.read import binned
from handful.reading import read
from tests.hostile_at_hand import outcomes
from tests.spectra_at_hand import mgf, msp, mzml

PEAKS = [(60.5, 4.0), (110.07, 9.0), (110.4, 1.0), (138.06, 16.0), (194.0, 900.0), (300.0, 7.0), (1200.0, 7.0)]
SPECTRA = [(f"s{k}", 195.0877 + k, PEAKS) for k in range(3)]


def put(folder, name, text):
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / name


def test_a_vector_is_what_the_page_says():
    vector = binned(PEAKS, 195.0877)
    assert vector.shape == (950,)
    assert vector.dtype == np.float32
    assert vector.nonzero()[0].tolist() == [10, 60, 88]
    np.testing.assert_allclose(vector[[10, 60, 88]], np.array([2, 3, 4]) / np.sqrt(29), rtol=1e-6)
    assert binned(PEAKS).nonzero()[0].tolist() == [10, 60, 88, 144, 250]
    assert binned(PEAKS, 195.0877, 2).nonzero()[0].tolist() == [10, 60, 88, 250]
    assert not binned([]).any()
    assert not binned([(100.0, 0.0)]).any()
    assert binned([(100.0, 1e308), (120.0, 1e308)])[50] == pytest.approx(0.5**0.5)


def test_every_kind_of_file_gives_the_same_vectors(tmp_path):
    run, library = read(put(tmp_path, "a.mgf", mgf(SPECTRA))), read(put(tmp_path, "a.msp", msp(SPECTRA)))
    np.testing.assert_array_equal(run.vectors, library.vectors)
    assert run.names == library.names == ("s0", "s1", "s2")
    for table in (run, library):
        assert table.columns["precursor_mz"] == [195.0877, 196.0877, 197.0877]
    assert run.columns["charge"] == [1, 1, 1]
    assert library.columns["energy"] == ["20 eV"] * 3
    scans = read(put(tmp_path, "a.mzML", mzml(SPECTRA)))
    assert scans.columns["precursor_mz"] == run.columns["precursor_mz"]
    assert (scans.columns["charge"], scans.columns["energy"]) == ([2] * 3, ["35.0"] * 3)
    np.testing.assert_array_equal(scans.vectors[0], binned(PEAKS, 195.0877, 2))
    with pytest.raises(BankError, match="has no spectra"):
        read(put(tmp_path, "survey.mzML", mzml(SPECTRA, level=1)))


def test_a_run_with_groups_of_terms_and_plain_single_precision(tmp_path):
    text = mzml(SPECTRA[:1])
    term = '<cvParam cvRef="MS" accession="MS:1000511" name="ms level" value="2"/>'
    group = f'<referenceableParamGroup id="g">{term}</referenceableParamGroup><run'
    text = text.replace(term, '<referenceableParamGroupRef ref="g"/>').replace("<run", group, 1)
    text = text.replace("MS:1000574", "MS:1000576").replace("MS:1000523", "MS:1000521")
    arrays = iter([np.array(values, "<f4").tobytes() for values in zip(*PEAKS, strict=True)])
    text = re.sub(r"<binary>[^<]*", lambda _: f"<binary>{base64.b64encode(next(arrays)).decode()}", text)
    found = read(put(tmp_path, "a.mzML", text))
    np.testing.assert_allclose(found.vectors[0], binned(PEAKS, 195.0877, 2), rtol=1e-6)
    with pytest.raises(BankError, match="has no spectra"):
        read(put(tmp_path, "a.mzML", text.replace('level" value="2"', 'level" value="1"')))


def test_what_programs_write_differently(tmp_path):
    text = (
        "# from somewhere\nCHARGE=2+\nBEGIN IONS\r\nTITLE=a=b\nPEPMASS=0\nRTINSECONDS=12\n100.5\n\nEND IONS\n"
        "begin ions\ntitle=c\ncharge=1-\n100.5 2 1+\nend ions\n"
    )
    run = read(put(tmp_path, "a.mgf", text))
    assert run.columns == {
        "title": ["a=b", "c"],
        "precursor_mz": [None, None],
        "rtinseconds": ["12", None],
        "charge": [2, -1],
    }
    text = "NAME: x\nNum peaks: 4\n60 1; 70 2;\n80,3\n90:4\nNAME: y\nprecursor m/z: 90.5\nNum Peaks: 1\n60.0 1\n"
    library = read(put(tmp_path, "a.msp", text.encode("cp1252")))
    assert library.columns["name"] == ["x", "y"]
    assert library.columns["precursor_mz"] == [None, 90.5]
    assert [vector.nonzero()[0].tolist() for vector in library.vectors] == [[10, 20, 30, 40], [10]]


def test_a_broken_spectrum_is_left_out_and_named(tmp_path):
    many = mgf((f"s{k}", 195.0, PEAKS) for k in range(30))
    found = read(put(tmp_path, "a.mgf", many.replace("60.5000 4.00", "60.5 much", 1)))
    assert found.n_rows == 29
    assert str(found.skipped[0]) == "line 1: line 5 must have a mass and an intensity, got '60.5 much'"
    assert found.rows[0] == 1
    library = msp((f"s{k}", 195.0, PEAKS) for k in range(30))
    found = read(put(tmp_path, "a.msp", library.replace("Peaks: 7", "Peaks: 9", 1)))
    assert str(found.skipped[0]) == "line 1: it has 2 peaks less than it says"
    scans = mzml([("bad", 195.0, [(60.5, -1.0)]), *((f"s{k}", 195.0, PEAKS) for k in range(30))])
    found = read(put(tmp_path, "a.mzML", scans))
    assert str(found.skipped[0]) == "line 0: peak 0 must have a mass and an intensity, got 60.5 and -1.0"


@pytest.mark.parametrize("number", ["1_0", "nan", "inf", "1e400", "\u0661", "0x1p3"])
def test_peaks_and_precursors_are_decimal_numbers(tmp_path, number):
    many = mgf((f"s{k}", 195.0, PEAKS) for k in range(30))
    for before, after in (("60.5000 4.00", f"60.5 {number}"), ("PEPMASS=195.0", f"PEPMASS={number}")):
        assert read(put(tmp_path, "a.mgf", many.replace(before, after, 1))).n_rows == 29
    library = msp((f"s{k}", 195.0, PEAKS) for k in range(30))
    assert read(put(tmp_path, "a.msp", library.replace("60.5000\t4.00", f"60.5 {number}", 1))).n_rows == 29


ONE = mgf(SPECTRA[:1])


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.mgf", "", "has no spectra"),
        ("a.mgf", "hello\n", "line 1: expected BEGIN IONS, got 'hello'"),
        ("a.mgf", ONE + "BEGIN IONS\n100 1\n", "ends before the END IONS of line 14"),
        ("a.mgf", "BEGIN IONS\n" + ONE, "line 2: BEGIN IONS before the END IONS of line 1"),
        ("a.mgf", ONE + "END IONS\n", "line 14: END IONS without BEGIN"),
        ("a.mgf", ONE.replace("PEPMASS=195", "PEPMASS=x"), "its precursor must be a mass, got 'x.0877'"),
        ("a.mgf", ONE.replace("60.5000 4.00", "60.5 nan"), "line 5 must have a mass and an intensity"),
        ("a.mgf", ONE.replace("60.5000 4.00", "what is it"), "line 5 is neither KEY=value nor a peak"),
        ("a.msp", "", "has no spectra"),
        ("a.msp", "hello\n", "line 1: expected KEY: value"),
        ("a.msp", "Name: x\nNum Peaks: many\n", "line 2 must have the number of peaks, got ' many'"),
        ("a.msp", "Name: x\nNum Peaks: 1\nno peak\n", "line 3 must have a mass and an intensity"),
        ("a.msp", "Name: x\nNum Peaks: 99999999999\n1 1\n", "line 3: expected KEY: value, got '1 1'"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path, name, text, sentence):
    with pytest.raises(BankError, match=re.escape(sentence)):
        read(put(tmp_path, name, text))


ZLIB = (
    'accession="MS:1000574" name="zlib compression"',
    'accession="MS:1002312" name="MS-Numpress linear prediction compression"',
)


ODD = base64.b64encode(zlib.compress(b"123")).decode()


def bomb(folder):
    packed = base64.b64encode(zlib.compress(bytes(2**28), 9)).decode()
    text = mzml([("a", 195.0, PEAKS)])
    return read(put(folder, "a.mzML", re.sub(r"<binary>[^<]*", f"<binary>{packed}", text)))


def entities(folder):
    text = mzml(SPECTRA).replace("<mzML", '<!DOCTYPE x [<!ENTITY y SYSTEM "file:///etc/hostname">]>\n<mzML', 1)
    return read(put(folder, "a.mzML", text.replace("s0", "&y;")))


def in_utf_16(folder):
    text = mzml(SPECTRA).replace("<mzML", '<!-- <mzML --><!DOCTYPE x [<!ENTITY y "s0">]>\n<mzML', 1)
    return read(put(folder, "a.mzML", text.replace('"utf-8"', '"utf-16"').replace("s0", "&y;").encode("utf-16")))


def after_a_long_remark(folder):
    text = mzml(SPECTRA).replace("<mzML", f'<!-- <mzML {"x" * 2**21} --><!DOCTYPE x [<!ENTITY y "s0">]>\n<mzML', 1)
    return read(put(folder, "a.mzML", text.replace("s0", "&y;")))


def test_a_run_in_utf_16_is_read(tmp_path):
    text = mzml(SPECTRA).replace('"utf-8"', '"utf-16"')
    assert read(put(tmp_path, "a.mzML", text.encode("utf-16"))).names == ("s0", "s1", "s2")


def test_hostile_runs_are_refused(tmp_path):
    whole = mzml(SPECTRA)
    cases = {
        "bomb": bomb,
        "entities": entities,
        "entities in UTF-16": in_utf_16,
        "entities after a long remark": after_a_long_remark,
        "cut": lambda folder: read(put(folder, "a.mzML", whole[: len(whole) // 2])),
        "other": lambda folder: read(put(folder, "a.mzML", "<html></html>")),
        "no array": lambda folder: read(put(folder, "a.mzML", whole.replace("MS:1000514", "MS:1000516"))),
        "numpress": lambda folder: read(put(folder, "a.mzML", whole.replace(*ZLIB))),
        "a level that is none": lambda folder: read(put(folder, "a.mzML", whole.replace('value="2"', 'value="x"'))),
        "half a number": lambda folder: read(put(folder, "a.mzML", re.sub(r"<binary>[^<]*", f"<binary>{ODD}", whole))),
        "not base64": lambda folder: read(put(folder, "a.mzML", re.sub(r"<binary>[^<]*", "<binary>!", whole))),
    }
    assert outcomes(cases, tmp_path) == dict.fromkeys(cases, "refused")
