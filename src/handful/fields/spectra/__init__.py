"""Mass spectra: `.mgf`, `.msp` and `.mzML`, and candidates by the mass of the precursor; see `docs/do/spectra.md`."""

from handful.fields.spectra.precursor import by_precursor
from handful.fields.spectra.read import read_mgf, read_msp, read_mzml
from handful.fields.spectra.write import write_spectra
from handful.reading.field import Field, Reader, Writer

FIELD = Field(
    readers={
        ".mgf": Reader(read_mgf, columns=False, rows=True),
        ".msp": Reader(read_msp, columns=False, rows=True),
        ".mzml": Reader(read_mzml, columns=False, rows=True),
    },
    writers={".mgf": Writer(write_spectra, into_copy=True)},
    candidates={"precursor": by_precursor},
)
