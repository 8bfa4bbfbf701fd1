"""Mass spectra, `.mgf`, `.msp` and `.mzML`: peaks in bins of 1 Da as vectors, what is said about a spectrum as columns.

A vector has the square root of the largest intensity in each bin from 50 to 1,000 Da, and length one. Peaks nearer than
1.5 Da to the precursor are left out, and so are those above it unless it has several charges: they say little about the
structure, and depend on the instrument. A spectrum of which nothing is left is a vector of zeros.
"""

from __future__ import annotations

import base64
import io
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from handful.banks.bank import Provenance
from handful.banks.tables import LABEL_NAMES
from handful.errors import BankError, HandfulError
from handful.machine.untrusted import ALWAYS_UNFOLDED, MOST_UNFOLDING
from handful.reading.delimited import encoding_of
from handful.reading.packed import opened_bytes
from handful.reading.records import Asked, Records, Skipped
from handful.shapes import Float

LOWEST, HIGHEST, NEAR = 50, 1000, 1.5
MADE_BY = "peaks in bins of 1 Da from 50 to 1,000, square root"
PRECURSOR, CHARGE, NAME, TITLE = "precursor_mz", "charge", "name", "title"
# What files call the same thing, in lower case and letters alone.
SAME = {
    "pepmass": PRECURSOR,
    "precursormz": PRECURSOR,
    "precursormass": PRECURSOR,
    "compoundname": NAME,
    "collisionenergy": "energy",
    "energy": "energy",
    "spectrumid": TITLE,
}
COMPOUND_NAMES = (NAME, "compound", "inchikey", *LABEL_NAMES)
BEGIN, END = "BEGIN IONS", "END IONS"
# Terms of mzML by their accession.
LEVEL, SELECTED, STATE, ENERGY = "MS:1000511", "MS:1000744", "MS:1000041", "MS:1000045"
MASSES, INTENSITIES, SINGLE, ZLIB, PLAIN = "MS:1000514", "MS:1000515", "MS:1000521", "MS:1000574", "MS:1000576"
# A peak of an .msp file: two numbers, and perhaps a remark in quotes; several may share a line.
MSP_PEAK = re.compile(r'\s*([^\s;,:"]+)[\s,:]+([^\s;,:"]+)\s*(?:"[^"]*"|[^;]*)(?:;|$)')


@dataclass(eq=False)
class Spectrum:
    """What a file says about a spectrum: the line where it begins, its parameters, its peaks, and what is wrong."""

    line: int
    said: dict[str, str] = field(default_factory=dict)
    peaks: list[tuple[float, float]] = field(default_factory=list)
    wrong: str = ""

    def note(self, key: str, value: str) -> None:
        """Keep a parameter under the name of its column; the first one counts."""
        letters = re.sub(r"[^a-z0-9]", "", key.lower())
        self.said.setdefault(SAME.get(letters, key.strip().lower().replace(" ", "_")), value.strip())

    def add(self, numbers: tuple[str, str], line: int) -> None:
        """Keep a peak; what is no peak is the reason why the spectrum cannot be read."""
        try:
            mass, intensity = float(numbers[0]), float(numbers[1])
        except ValueError:
            mass = intensity = math.nan
        if 0 < mass < math.inf and 0 <= intensity < math.inf:
            self.peaks.append((mass, intensity))
        else:
            self.wrong = self.wrong or f"line {line} must have a mass and an intensity, got {' '.join(numbers)!r:.60}"


def read_mgf(path: Path, asked: Asked) -> Records:
    """Read all spectra of an `.mgf` file."""
    return _records(path, _mgf(path))


def read_msp(path: Path, asked: Asked) -> Records:
    """Read all spectra of an `.msp` file, as NIST, MassBank, MoNA and GNPS have them."""
    return _records(path, _msp(path))


def read_mzml(path: Path, asked: Asked) -> Records:
    """Read the spectra of fragments (MS2 and on) of an `.mzML` file; arrays are plain or compressed by zlib."""
    return _records(path, _mzml(path))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with io.TextIOWrapper(opened_bytes(path), encoding=encoding_of(path), errors="replace") as text:
        for number, line in enumerate(text, 1):
            yield number, line.strip()


def _mgf(path: Path) -> Iterator[Spectrum]:
    shared, one = dict[str, str](), None
    for number, line in _lines(path):
        if line.upper() == BEGIN:
            if one is not None:
                raise BankError(f"{path}, line {number}: {BEGIN} before the {END} of line {one.line}; write it again")
            one = Spectrum(number)
        elif line.upper() == END:
            if one is None:
                raise BankError(f"{path}, line {number}: {END} without {BEGIN}; write it again")
            for key, value in shared.items():
                one.note(key, value)
            yield one
            one = None
        elif not line or line[0] in "#;!/":
            continue
        elif line[0].isdigit() and "=" not in line.split()[0] and one is not None:
            fields = line.split()
            one.add((fields[0], fields[1] if len(fields) > 1 else "1"), number)
        elif "=" in line:
            key, _, value = line.partition("=")
            if one is None:
                shared[key] = value
            else:
                one.note(key, value)
        elif one is not None:
            one.wrong = one.wrong or f"line {number} is neither KEY=value nor a peak, got {line!r:.60}"
        else:
            raise BankError(f"{path}, line {number}: expected {BEGIN}, got {line!r:.60}; it is of another kind")
    if one is not None:
        raise BankError(f"{path} ends before the {END} of line {one.line}; it is cut short")


def _msp(path: Path) -> Iterator[Spectrum]:
    one: Spectrum | None = None
    left = 0
    for number, line in _lines(path):
        if left and one is not None and line:
            found = MSP_PEAK.findall(line)
            for mass, intensity in found or [(line, "")]:
                one.add((mass, intensity), number)
            left -= max(len(found), 1)
            continue
        key, colon, value = line.partition(":")
        letters = key.replace(" ", "").lower()
        if not line or letters == "name":
            if one is not None and one.said:
                if left > 0:
                    one.wrong = one.wrong or f"it has {left} peaks less than it says"
                yield one
            one, left = None, 0
        if not line or line[0] == "#":
            continue
        if not colon:
            raise BankError(f"{path}, line {number}: expected KEY: value, got {line!r:.60}; it is of another kind")
        one = one or Spectrum(number)
        if letters == "numpeaks":
            left = int(value) if value.strip().isdecimal() and len(value) < 10 else 0
            one.wrong = one.wrong or ("" if left else f"line {number} must have the number of peaks, got {value!r:.60}")
        else:
            one.note(key, value)
    if one is not None and one.said:
        if left > 0:
            one.wrong = one.wrong or f"it has {left} peaks less than it says"
        yield one


def _mzml(path: Path) -> Iterator[Spectrum]:
    with opened_bytes(path) as stream:
        start = stream.read(2**20)
    # A document type can name other files and grow without end, and no genuine file has one.
    if b"<!DOCTYPE" in start or not (b"<mzML" in start or b"<indexedmzML" in start):
        raise BankError(f"{path} does not begin as mzML does; it is of another kind")
    left, groups = max(ALWAYS_UNFOLDED, MOST_UNFOLDING * path.stat().st_size), dict[str, dict[str, str]]()
    try:
        with opened_bytes(path) as stream:
            number = 0
            for _, element in ElementTree.iterparse(stream):
                kind = element.tag.rpartition("}")[2]
                if kind == "referenceableParamGroup":
                    groups[element.get("id", "")] = _terms(element, {})
                elif kind in ("spectrum", "chromatogram"):
                    terms = _terms(element, groups)
                    if kind == "spectrum" and int(terms.get(LEVEL, "2")) > 1:
                        one = _scan(element, terms, groups, number, left)
                        left -= 16 * len(one.peaks)
                        yield one
                    number += kind == "spectrum"
                    element.clear()  # a run has many
    except HandfulError:
        raise
    except (ElementTree.ParseError, ValueError, KeyError, zlib.error) as error:
        raise BankError(
            f"{path} cannot be read as mzML ({type(error).__name__}: {error}); it is cut short or of another kind"
        ) from error


def _scan(element: Any, terms: dict[str, str], groups: dict[str, dict[str, str]], number: int, left: int) -> Spectrum:
    """Read one spectrum; `left` is how many bytes its arrays may have."""
    one, arrays = Spectrum(number), dict[str, list[float]]()
    for array in element.iter():
        if array.tag.rpartition("}")[2] == "binaryDataArray":
            about = _terms(array, groups)
            if what := next((accession for accession in (MASSES, INTENSITIES) if accession in about), None):
                data = next((part.text or "" for part in array if part.tag.endswith("binary")), "")
                arrays[what] = _unpacked(data, about, left)
    masses, intensities = arrays[MASSES], arrays[INTENSITIES]
    if len(masses) != len(intensities):
        raise ValueError(f"spectrum {number} has {len(masses)} masses and {len(intensities)} intensities")
    for numbers in zip(map(str, masses), map(str, intensities), strict=True):
        one.add(numbers, number)
    one.note(TITLE, element.get("id", ""))
    for accession, column in ((SELECTED, PRECURSOR), (STATE, CHARGE), (ENERGY, "energy")):
        if accession in terms:
            one.note(column, terms[accession])
    return one


def _terms(element: Any, groups: dict[str, dict[str, str]]) -> dict[str, str]:
    """Return the values of all terms below an element, by accession; the first one counts."""
    found: dict[str, str] = {}
    for part in element.iter():
        kind = part.tag.rpartition("}")[2]
        if kind == "cvParam":
            found.setdefault(part.get("accession", ""), part.get("value", ""))
        elif kind == "referenceableParamGroupRef":
            found = {**groups.get(part.get("ref", ""), {}), **found}
    return found


def _unpacked(text: str, about: dict[str, str], most: int) -> list[float]:
    """Return the numbers of an array of mzML, and no more of them than a genuine file has."""
    data = base64.b64decode(text, validate=True)
    if ZLIB in about:
        stream = zlib.decompressobj()
        data = stream.decompress(data, max(most, 1))
        if not stream.eof:
            raise ValueError("a compressed array is cut short, or larger than any genuine one")
    elif PLAIN not in about:
        raise ValueError("an array is compressed in a way that is not known; write the file with zlib or without")
    return np.frombuffer(data, "<f4" if SINGLE in about else "<f8").astype(np.float64).tolist()  # type: ignore[no-any-return]


def _records(path: Path, spectra: Iterator[Spectrum]) -> Records:
    found, lines, vectors, skipped = list[Spectrum](), list[int](), list[np.ndarray](), list[Skipped]()
    positions, charges, masses = list[int](), list[int | None](), list[float | None]()
    for position, one in enumerate(spectra):
        lines.append(one.line)
        mass, charge = _precursor(one), _charge(one)
        if one.wrong:
            skipped.append(Skipped(position, f"line {one.line}", one.wrong))
            continue
        found.append(one)
        positions.append(position)
        masses.append(mass)
        charges.append(charge)
        vectors.append(binned(one.peaks, mass, charge))
    if not lines:
        raise BankError(f"{path} has no spectra; check that it is complete")
    if not found:
        raise BankError(f"{path}: no spectrum can be read; the first is {skipped[0]}")
    names = dict.fromkeys(name for one in found for name in one.said)
    columns: dict[str, Any] = {name: [one.said.get(name) for one in found] for name in names}
    columns |= {PRECURSOR: masses, CHARGE: charges}
    called = [
        one.said.get(TITLE) or one.said.get(NAME) or f"spectrum {p}" for one, p in zip(found, positions, strict=True)
    ]
    return Records(
        str(path),
        len(found),
        vectors=np.stack(vectors),
        columns=columns,
        names=tuple(called),
        skipped=tuple(skipped),
        label_names=COMPOUND_NAMES,
        provenance=Provenance(dataset=path.name, backbone=MADE_BY),
        positions=positions,
        lines=lambda: lines,
    ).without({})


def _precursor(one: Spectrum) -> float | None:
    """Mass of the precursor; None if it is not said. An intensity may stand behind it."""
    text = (one.said.get(PRECURSOR) or "").split()
    if not text:
        return None
    try:
        mass = float(text[0])
    except ValueError:
        mass = math.nan
    if 0 < mass < math.inf:
        return mass
    if mass != 0:  # zero stands for a mass that is not known
        one.wrong = one.wrong or f"its precursor must be a mass, got {text[0]!r:.40}"
    return None


def _charge(one: Spectrum) -> int | None:
    """`2+`, `+2` and `2` are 2, `1-` is -1; None for anything else, such as `2+ and 3+`."""
    match = re.fullmatch(r"([+-]?)(\d{1,3})([+-]?)", (one.said.get(CHARGE) or "").strip())
    if match is None:
        return None
    return int(match[2]) * (-1 if "-" in (match[1], match[3]) else 1)


def binned(
    peaks: list[tuple[float, float]], precursor: float | None = None, charge: int | None = None
) -> Float[np.ndarray, "dim"]:
    """Return the vector of a spectrum.

    Examples
    --------
    >>> vector = binned([(110.07, 4.0), (110.4, 9.0), (138.06, 16.0), (195.09, 900.0)], precursor=195.0877)
    >>> vector.nonzero()[0].tolist(), [f"{part:.1f}" for part in vector[vector > 0]]
    ([60, 88], ['0.6', '0.8'])
    """
    vector = np.zeros(HIGHEST - LOWEST, np.float32)
    if not peaks:
        return vector
    mass, intensity = np.array(peaks).T
    kept = (mass >= LOWEST) & (mass < HIGHEST)
    if precursor is not None:
        several = charge is not None and abs(charge) > 1
        kept &= (np.abs(mass - precursor) >= NEAR) & (several | (mass < precursor))
    if not kept.any() or intensity[kept].max() == 0:
        return vector
    # Relative to the largest one first: intensities can be as large as numbers are.
    np.maximum.at(vector, mass[kept].astype(np.int64) - LOWEST, np.sqrt(intensity[kept] / intensity[kept].max()))
    return np.asarray(vector / np.linalg.norm(vector))
