"""Voices: segments of recordings and who speaks in them, `.rttm`; see `docs/do/voices.md`."""

from handful.fields.voices.segments import with_segments
from handful.fields.voices.write import write_voices
from handful.reading.field import Field, Writer

FIELD = Field(
    writers={".rttm": Writer(write_voices, written="segments with the names of their voices")},
    segments={".rttm": with_segments},
)
