"""Label Studio: tasks with predictions to import there, and the labels that it exports; see `docs/do/files.md`."""

from handful.fields.label_studio.tasks import KIND, annotated
from handful.fields.label_studio.write import write_label_studio
from handful.reading.field import Field, GivenFormat, Writer

FIELD = Field(
    tasks={
        ".json": Writer(
            write_label_studio,
            written="tasks for Label Studio; its interface is beside them, with the ending .xml",
            beside={".xml": "interface of the tasks"},
        )
    },
    # No other file of labels is a list.
    given=GivenFormat(KIND, lambda content: isinstance(content, list), annotated),
)
