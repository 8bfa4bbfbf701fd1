"""Camera traps: SpeciesNet, MegaDetector, COCO Camera Traps and Camtrap DP; see `docs/do/files.md`."""

from handful.fields.camera_traps import camtrap_dp, coco_camera_traps, megadetector, speciesnet
from handful.fields.camera_traps.names import taxonomy_name
from handful.reading.field import Field, ScoreFormat, SiteFormat

FIELD = Field(
    scores=(
        ScoreFormat(f"{speciesnet.KIND} (.json)", speciesnet.holds, speciesnet.read_speciesnet),
        ScoreFormat(f"{megadetector.KIND} (.json)", megadetector.holds, megadetector.read_megadetector),
    ),
    sites=(
        SiteFormat(
            camtrap_dp.KIND,
            lambda path: camtrap_dp.package_of(path) is not None,
            camtrap_dp.read_camtrap,
            camtrap_dp.write_camtrap,
            camtrap_dp.camtrap_files,
            replaces="observations",
        ),
        SiteFormat(
            coco_camera_traps.KIND,
            lambda path: path.suffix.lower() == ".json",
            coco_camera_traps.read_coco,
            coco_camera_traps.write_coco,
            lambda path: {"sites": path},
            replaces="sites",
        ),
    ),
    name_of=taxonomy_name,
)
