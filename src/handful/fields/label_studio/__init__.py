"""Label Studio: tasks with predictions to import there, and the labels that it exports; see `docs/do/files.md`."""

from handful.fields.label_studio.tasks import read_export
from handful.fields.label_studio.write import write_label_studio
from handful.reading.field import Field, Reader, Writer

FIELD = Field(
    tasks={
        ".json": Writer(
            write_label_studio,
            written="tasks for Label Studio; its interface is beside them, with the ending .xml",
            beside={".xml": "interface of the tasks"},
        )
    },
    readers={".json": Reader(read_export, columns=False)},
)
