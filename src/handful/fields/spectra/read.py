"""Mass spectra, `.mgf`, `.msp` and `.mzML`: peaks in bins of 1 Da as vectors, what is said about a spectrum as columns.

A vector has the square root of the largest intensity in each bin from 50 to 1,000 Da, and length one. Peaks nearer than
1.5 Da to the precursor are left out, and so are those above it unless it has several charges: they say little about the
structure, and depend on the instrument. A spectrum of which nothing is left is a vector of zeros.
"""

from __future__ import annotations

import base64
import io
import re
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import ArrayLike

from handful.banks.bank import Provenance
from handful.errors import BankError, HandfulError
from handful.machine.untrusted import Budget, finite, opened_bytes, unreadable, with_type
from handful.reading.delimited import encoding_of
from handful.reading.header import LABEL_NAMES, Asked
from handful.reading.table import Skipped, Table
from handful.shapes import Float

LOWEST = 50
HIGHEST = 1000
NEAR = 1.5
MADE_BY = "peaks in bins of 1 Da from 50 to 1,000, square root"
PRECURSOR = "precursor_mz"
CHARGE = "charge"
NAME = "name"
TITLE = "title"
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
BEGIN = "BEGIN IONS"
END = "END IONS"
# Terms of mzML by their accession.
LEVEL = "MS:1000511"
SELECTED = "MS:1000744"
STATE = "MS:1000041"
ENERGY = "MS:1000045"
MASSES = "MS:1000514"
INTENSITIES = "MS:1000515"
SINGLE = "MS:1000521"
ZLIB = "MS:1000574"
PLAIN = "MS:1000576"
# Bytes of mzML that are parsed at once, and what a peak takes in memory.
BLOCK_BYTES = 2**16
PEAK_BYTES = 16


@dataclass(eq=False)
class Spectrum:
    """What a file says about a spectrum: the line where it begins, its parameters, its peaks, and what is wrong.

    Masses and intensities of the peaks alternate.
    """

    line: int
    metadata: dict[str, str] = field(default_factory=dict)
    peaks: ArrayLike = field(default_factory=lambda: array("d"))
    wrong: str = ""

    def note(self, key: str, value: str) -> None:
        """Keep a parameter under the name of its column; the first one counts."""
        self.metadata.setdefault(_column(key), value.strip())

    def add(self, mass: str, intensity: str, line: int) -> None:
        """Keep a peak; what is no peak is the reason why the spectrum cannot be read."""
        try:
            numbers = finite(mass), finite(intensity)
        except ValueError:
            numbers = -1.0, -1.0
        if numbers[0] > 0 and numbers[1] >= 0:
            self.peaks.extend(numbers)  # type: ignore[union-attr]
        else:
            self.wrong = (
                self.wrong or f"line {line} must have a mass and an intensity, got {f'{mass} {intensity}'!r:.60}"
            )


def _column(key: str) -> str:
    """Return the name of the column of a parameter."""
    return SAME.get(re.sub(r"[^a-z0-9]", "", key.lower()), key.strip().lower().replace(" ", "_"))


def read_mgf(path: Path, asked: Asked) -> Table:
    """Read all spectra of an `.mgf` file."""
    return _table(path, _mgf(path), Budget.of(path))


def read_msp(path: Path, asked: Asked) -> Table:
    """Read all spectra of an `.msp` file, as NIST, MassBank, MoNA and GNPS have them."""
    return _table(path, _msp(path), Budget.of(path))


def read_mzml(path: Path, asked: Asked) -> Table:
    """Read the spectra of fragments (MS2 and on) of an `.mzML` file; arrays are plain or compressed by zlib."""
    budget = Budget.of(path)
    return _table(path, _mzml(path, budget), budget)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with io.TextIOWrapper(opened_bytes(path), encoding=encoding_of(path), errors="replace") as text:
        for number, line in enumerate(text, 1):
            yield number, line.strip()


def _mgf(path: Path) -> Iterator[Spectrum]:
    shared = dict[str, str]()
    one = None
    for number, line in _lines(path):
        if line.upper() == BEGIN:
            if one is not None:
                raise BankError(f"{path}, line {number}: {BEGIN} before the {END} of line {one.line}; write it again")
            one = Spectrum(number)
        elif line.upper() == END:
            if one is None:
                raise BankError(f"{path}, line {number}: {END} without {BEGIN}; write it again")
            one.metadata = {**shared, **one.metadata}
            yield one
            one = None
        elif not line or line[0] in "#;!/":
            continue
        elif line[0] in "0123456789" and "=" not in (fields := line.split(None, 2))[0] and one is not None:
            one.add(fields[0], fields[1] if len(fields) > 1 else "1", number)
        elif "=" in line:
            key, _, value = line.partition("=")
            if one is None:
                shared[_column(key)] = value.strip()
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
            found = _msp_peaks(line)
            for mass, intensity in found:
                one.add(mass, intensity, number)
            left -= len(found)
            continue
        key, colon, value = line.partition(":")
        letters = key.replace(" ", "").lower()
        if not line or letters == "name":
            if one is not None and one.metadata:
                if left > 0:
                    one.wrong = one.wrong or f"it has {left} peaks less than it says"
                yield one
            one = None
            left = 0
        if not line or line[0] == "#":
            continue
        if not colon:
            raise BankError(f"{path}, line {number}: expected KEY: value, got {line!r:.60}; it is of another kind")
        one = one or Spectrum(number)
        if letters == "numpeaks":
            left = _count(value) or 0
            one.wrong = one.wrong or ("" if left else f"line {number} must have the number of peaks, got {value!r:.60}")
        else:
            one.note(key, value)
    if one is not None and one.metadata:
        if left > 0:
            one.wrong = one.wrong or f"it has {left} peaks less than it says"
        yield one


def _msp_peaks(line: str) -> list[tuple[str, str]]:
    """Return the peaks of a line: two numbers, and perhaps a remark, also in quotes; `;` stands between peaks.

    Examples
    --------
    >>> _msp_peaks('60 1 "a remark; of it"; 70:2;')
    [('60', '1'), ('70', '2')]
    """
    unquoted = " ".join(line.split('"')[::2])
    parts = [part.replace(",", " ").replace(":", " ").split(None, 2) for part in unquoted.split(";")]
    return [(part[0], part[1] if len(part) > 1 else "") for part in parts if part] or [(line, "")]


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch("[0-9]{1,9}", text := text.strip()) else None


def _mzml(path: Path, budget: Budget) -> Iterator[Spectrum]:
    scans = _Scans(path, budget)
    try:
        with opened_bytes(path) as stream:
            while block := stream.read(BLOCK_BYTES):
                scans.parser.Parse(block)
                yield from scans.taken()
            scans.parser.Parse(b"", True)
            yield from scans.taken()
    except HandfulError:
        raise
    except (expat.ExpatError, ValueError, zlib.error) as error:
        raise unreadable(path, "mzML", with_type(error)) from error


class _Scans:
    """Spectra of fragments in mzML. Nothing else is kept, so memory does not depend on what else the file has."""

    def __init__(self, path: Path, budget: Budget) -> None:
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse  # it can name other files and grow without end
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self._path = path
        self._budget = budget
        self._number = -1
        self._found = list[Spectrum]()
        self._begun = False
        self._groups: dict[str, dict[str, str]] = {}
        # What is open: the terms of a group, of a spectrum and of an array in it, and the text of that array.
        self._group: dict[str, str] | None = None
        self._spectrum: dict[str, str] | None = None
        self._array: dict[str, str] | None = None
        self._binary: list[str] | None = None
        self._title = ""
        self._arrays = dict[str, np.ndarray]()

    def taken(self) -> list[Spectrum]:
        """Return the spectra that were found since the last call."""
        found = self._found
        self._found = []
        return found

    def _refuse(self, *_: object) -> None:
        raise BankError(f"{self._path} does not begin as mzML does; it is of another kind")

    def _start(self, tag: str, about: dict[str, str]) -> None:
        kind = tag.rpartition(":")[2]
        if not self._begun and kind not in ("mzML", "indexedmzML"):
            self._refuse()
        self._begun = True
        terms = next((one for one in (self._array, self._spectrum, self._group) if one is not None), None)
        if kind == "cvParam" and terms is not None:
            terms.setdefault(about.get("accession", ""), about.get("value", ""))
        elif kind == "referenceableParamGroupRef" and terms is not None:
            group = self._groups.get(about.get("ref", ""), {})
            self._budget.spend(cells=len(group))
            for accession, value in group.items():
                terms.setdefault(accession, value)
        elif kind == "referenceableParamGroup":
            self._group = self._groups[about.get("id", "")] = {}
        elif kind == "spectrum":
            self._number += 1
            self._spectrum = {}
            self._title = about.get("id", "")
            self._arrays = {}
        elif kind == "binaryDataArray" and self._spectrum is not None:
            self._array = {}
        elif kind == "binary" and self._array is not None:
            self._binary = []

    def _text(self, text: str) -> None:
        if self._binary is not None:
            self._binary.append(text)

    def _end(self, tag: str) -> None:
        kind = tag.rpartition(":")[2]
        if kind == "binary" and self._array is not None and self._binary is not None:
            data = "".join(self._binary)
            self._binary = None
            if (what := next((one for one in (MASSES, INTENSITIES) if one in self._array), None)) and self._wanted():
                self._arrays[what] = _unpacked(data, self._array, self._budget)
        elif kind == "binaryDataArray":
            self._array = None
        elif kind == "referenceableParamGroup":
            self._group = None
        elif kind == "spectrum" and self._spectrum is not None:
            if self._wanted():
                self._found.append(self._scan(self._spectrum))
            self._spectrum = self._array = self._binary = None

    def _wanted(self) -> bool:
        level = (self._spectrum or {}).get(LEVEL, "2")
        if (number := _count(level)) is None:
            raise ValueError(f"spectrum {self._number} must have a level, got {level!r:.40}")
        return number > 1

    def _scan(self, terms: dict[str, str]) -> Spectrum:
        masses = self._arrays.get(MASSES)
        intensities = self._arrays.get(INTENSITIES)
        if masses is None or intensities is None or len(masses) != len(intensities):
            sizes = ["no" if values is None else len(values) for values in (masses, intensities)]
            raise ValueError(f"spectrum {self._number} has {sizes[0]} masses and {sizes[1]} intensities")
        one = Spectrum(self._number, peaks=np.stack([masses, intensities], axis=1, dtype=np.float64))
        wrong = ~(np.isfinite(masses) & (masses > 0) & np.isfinite(intensities) & (intensities >= 0))
        if wrong.any():
            k = int(wrong.argmax())
            one.wrong = f"peak {k} must have a mass and an intensity, got {masses[k]} and {intensities[k]}"
        one.note(TITLE, self._title)
        for accession, column in ((SELECTED, PRECURSOR), (STATE, CHARGE), (ENERGY, "energy")):
            if accession in terms:
                one.note(column, terms[accession])
        return one


def _unpacked(text: str, about: dict[str, str], budget: Budget) -> np.ndarray:
    """Return the numbers of an array of mzML, and no more of them than the budget allows."""
    data = base64.b64decode("".join(text.split()), validate=True)
    if ZLIB in about:
        stream = zlib.decompressobj()
        data = stream.decompress(data, budget.left + 1)
        budget.spend(len(data))
        if not stream.eof:
            raise ValueError("a compressed array is cut short")
    elif PLAIN not in about:
        raise ValueError("an array is compressed in a way that is not known; write the file with zlib or without")
    numbers = np.frombuffer(data, "<f4" if SINGLE in about else "<f8")
    budget.spend(PEAK_BYTES * len(numbers))
    return numbers


def _table(path: Path, spectra: Iterator[Spectrum], budget: Budget) -> Table:
    lines = array("q")
    positions = array("q")
    skipped = list[Skipped]()
    names = list[str]()
    masses = list[float | None]()
    charges = list[int | None]()
    columns = dict[str, list[Any]]()
    # Bins that are not zero, one spectrum after another: a spectrum may have few peaks, or none.
    bins = array("H")
    values = array("f")
    sizes = array("q")
    for position, one in enumerate(spectra):
        budget.spend(4 * (HIGHEST - LOWEST), cells=1 + len(one.metadata))
        lines.append(one.line)
        mass = _precursor(one)
        charge = _charge(one)
        if one.wrong:
            skipped.append(Skipped(position, f"line {one.line}", one.wrong))
            continue
        for name, value in one.metadata.items():
            column = columns.setdefault(name, [])
            _fill(column, len(positions), budget)
            column.append(value)
        names.append(one.metadata.get(TITLE) or one.metadata.get(NAME) or f"spectrum {position}")
        positions.append(position)
        masses.append(mass)
        charges.append(charge)
        vector = binned(one.peaks, mass, charge)
        filled = vector.nonzero()[0]
        bins.frombytes(filled.astype(np.uint16).tobytes())
        values.frombytes(vector[filled].tobytes())
        sizes.append(len(filled))
    if not lines:
        raise BankError(f"{path} has no spectra; check that it is complete")
    if not positions:
        raise BankError(f"{path}: no spectrum can be read; the first is {skipped[0]}")
    for column in columns.values():
        _fill(column, len(positions), budget)
    vectors = np.zeros((len(positions), HIGHEST - LOWEST), np.float32)
    vectors[np.repeat(np.arange(len(sizes)), sizes), np.asarray(bins)] = values
    return Table(
        str(path),
        len(positions),
        vectors=vectors,
        columns={**columns, PRECURSOR: masses, CHARGE: charges},
        names=tuple(names),
        skipped=tuple(skipped),
        label_names=COMPOUND_NAMES,
        provenance=Provenance(dataset=path.name, encoder=MADE_BY),
        positions=positions,
        lines=lambda: lines,
    )


def _fill(column: list[Any], n_rows: int, budget: Budget) -> None:
    """Fill a column with missing values up to a row."""
    budget.spend(8 * (n_rows - len(column)))
    column.extend([None] * (n_rows - len(column)))


def _precursor(one: Spectrum) -> float | None:
    """Mass of the precursor; None if it is not said. An intensity may stand behind it."""
    text = (one.metadata.get(PRECURSOR) or "").split()
    if not text:
        return None
    try:
        mass = finite(text[0])
    except ValueError:
        mass = -1.0
    if mass > 0:
        return mass
    if mass != 0:  # zero stands for a mass that is not known
        one.wrong = one.wrong or f"its precursor must be a mass, got {text[0]!r:.40}"
    return None


def _charge(one: Spectrum) -> int | None:
    """`2+`, `+2` and `2` are 2, `1-` is -1; None for anything else, such as `2+ and 3+`."""
    match = re.fullmatch(r"([+-]?)([0-9]{1,3})([+-]?)", (one.metadata.get(CHARGE) or "").strip())
    if match is None:
        return None
    return int(match[2]) * (-1 if "-" in (match[1], match[3]) else 1)


def binned(peaks: ArrayLike, precursor: float | None = None, charge: int | None = None) -> Float[np.ndarray, "dim"]:
    """Return the vector of a spectrum, of which masses and intensities are given in pairs, or alternate.

    Examples
    --------
    >>> vector = binned([(110.07, 4.0), (110.4, 9.0), (138.06, 16.0), (195.09, 900.0)], precursor=195.0877)
    >>> vector.nonzero()[0].tolist(), [f"{part:.1f}" for part in vector[vector > 0]]
    ([60, 88], ['0.6', '0.8'])
    """
    vector = np.zeros(HIGHEST - LOWEST, np.float32)
    mass, intensity = np.asarray(peaks, np.float64).reshape(-1, 2).T
    if not len(mass):
        return vector
    kept = (mass >= LOWEST) & (mass < HIGHEST)
    if precursor is not None:
        several = charge is not None and abs(charge) > 1
        kept &= (np.abs(mass - precursor) >= NEAR) & (several | (mass < precursor))
    if not kept.any() or intensity[kept].max() == 0:
        return vector
    # Relative to the largest one first: intensities can be as large as numbers are.
    np.maximum.at(vector, mass[kept].astype(np.int64) - LOWEST, np.sqrt(intensity[kept] / intensity[kept].max()))
    return np.asarray(vector / np.linalg.norm(vector))
