"""Made-up spectra: a library of compounds, other spectra of some of them, and their files."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Sequence

import numpy as np

Peaks = list[tuple[float, float]]


def compounds(n: int, rng: np.random.Generator) -> list[tuple[float, Peaks]]:
    """Precursor and peaks of each compound; every second one has the precursor of the one before it."""
    found = list[tuple[float, Peaks]]()
    for k in range(n):
        precursor = found[-1][0] if k % 2 else 300.0 + 5 * k
        masses = rng.choice(np.arange(60, 280), 12, replace=False) + 0.1
        found.append((precursor, [(float(mass), float(rng.uniform(5, 100))) for mass in masses]))
    return found


def noisy(peaks: Peaks, rng: np.random.Generator) -> Peaks:
    """Another spectrum of the same compound."""
    return [(mass, intensity * float(rng.uniform(0.5, 1.5))) for mass, intensity in peaks if rng.random() < 0.9]


def msp(spectra: Iterable[tuple[str, float, Peaks]]) -> str:
    """Name, precursor and peaks as a library."""
    return "\n".join(
        f"Name: {name}\nPrecursorMZ: {precursor}\nCollision_energy: 20 eV\nNum Peaks: {len(peaks)}\n"
        + "".join(f'{mass:.4f}\t{intensity:.2f}\t"a remark; of it"\n' for mass, intensity in peaks)
        for name, precursor, peaks in spectra
    )


def mgf(spectra: Iterable[tuple[str, float, Peaks]]) -> str:
    """Title, precursor and peaks as a run."""
    return "".join(
        f"BEGIN IONS\nTITLE={title}\nPEPMASS={precursor} 1000.0\nCHARGE=1+\n"
        + "".join(f"{mass:.4f} {intensity:.2f}\n" for mass, intensity in peaks)
        + "END IONS\n\n"
        for title, precursor, peaks in spectra
    )


def mzml(spectra: Sequence[tuple[str, float, Peaks]], level: int = 2) -> str:
    """Identifier, precursor and peaks as a run; the precursor has no say in survey spectra."""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<mzML xmlns="http://psi.hupo.org/ms/mzml" version="1.1.0">'
        f'<run id="r"><spectrumList count="{len(spectra)}">'
        + "".join(_scan(place, *one, level) for place, one in enumerate(spectra))
        + "</spectrumList></run></mzML>\n"
    )


def _scan(place: int, title: str, precursor: float, peaks: Peaks, level: int) -> str:
    kinds = (("MS:1000514", "m/z array"), ("MS:1000515", "intensity array"))
    arrays = "".join(
        "<binaryDataArray>"
        '<cvParam cvRef="MS" accession="MS:1000523" name="64-bit float" value=""/>'
        '<cvParam cvRef="MS" accession="MS:1000574" name="zlib compression" value=""/>'
        f'<cvParam cvRef="MS" accession="{accession}" name="{name}" value=""/>'
        f"<binary>{base64.b64encode(zlib.compress(np.array(values, '<f8').tobytes())).decode()}</binary>"
        "</binaryDataArray>"
        for (accession, name), values in zip(kinds, zip(*peaks, strict=True), strict=True)
    )
    return (
        f'<spectrum index="{place}" id="{title}" defaultArrayLength="{len(peaks)}">'
        f'<cvParam cvRef="MS" accession="MS:1000511" name="ms level" value="{level}"/>'
        '<precursorList count="1"><precursor><selectedIonList count="1"><selectedIon>'
        f'<cvParam cvRef="MS" accession="MS:1000744" name="selected ion m/z" value="{precursor}"/>'
        '<cvParam cvRef="MS" accession="MS:1000041" name="charge state" value="2"/>'
        "</selectedIon></selectedIonList><activation>"
        '<cvParam cvRef="MS" accession="MS:1000045" name="collision energy" value="35.0"/>'
        '</activation></precursor></precursorList><binaryDataArrayList count="2">'
        f"{arrays}</binaryDataArrayList></spectrum>"
    )
