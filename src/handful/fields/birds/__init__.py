"""Birds: results of BirdNET and selection tables of Raven, and names of species; see `docs/do/scores.md`."""

from handful.fields.birds.birdnet import RAVEN, TABLE, layout_of, read_birdnet
from handful.fields.birds.names import species_name
from handful.reading.field import Field, ScoreFormat

FIELD = Field(
    scores=(
        ScoreFormat(
            f"{TABLE.kind} (.csv) or {RAVEN.kind} (.txt)",
            lambda content: isinstance(content, str) and layout_of(content) is not None,
            read_birdnet,
        ),
    ),
    name_of=species_name,
)
