"""Small trainings: noise to tell apart, a few seconds each."""

import sys
from pathlib import Path

from handful.extraction.items import list_items
from handful_fewshot.training import BaseSplit, Recipe, hold_out
from tests.items_at_hand import image_folder

RECIPE = Recipe(network="conv4", side=12, epochs=3, batch_size=8, learning_rate=0.02, smallest_area=0.5)
# The same, for the command line.
OPTIONS = [
    "--network", "conv4", "--side", "12", "--batch-size", "8", "--learning-rate", "0.02", "--smallest-area", "0.5",
    "--accelerator", "cpu",
]  # fmt: skip
PROGRAM = "import sys; from handful.cli.main import main; sys.exit(main())"


def small_split(root: Path, each: int = 8) -> BaseSplit:
    return hold_out(list_items(image_folder(root, n_classes=6, each=each)), 2, seed=0)


def command(folder: Path, *arguments: str) -> list[str]:
    """`handful …` as a program of its own, which Lightning can start a second time for a second process."""
    program = folder / "handful_program.py"
    program.write_text(PROGRAM)
    return [sys.executable, str(program), *arguments]
