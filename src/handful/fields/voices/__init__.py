"""Voices: segments of recordings and who speaks in them, `.rttm`; see `docs/do/voices.md`."""

from handful.fields.voices.segments import files_of_segments, read_segments
from handful.fields.voices.write import write_voices
from handful.reading.field import Field, Reader, Writer

FIELD = Field(
    readers={".rttm": Reader(read_segments, files=files_of_segments)},
    writers={".rttm": Writer(write_voices, written="segments with the names of their voices")},
)
