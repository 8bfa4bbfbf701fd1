"""What the default does with items of no class: scores, shares, labels of the others, classes present, proposals.

    python studies/unknown.py DATA --group tuning [--only nothing removed ...] [--tasks 200] [--again]
    python studies/unknown.py DATA --group confirmation
    python studies/unknown_page.py

The method was tuned on the data of one group alone; the other group was run once, at the end. DATA is a folder that
holds the data of the group. The *closed default* is the same with the assumption that every item has a class.
Ten classes are taken out of the catalogue, the others have five examples each; 8 catalogues share the batches of a
cell. Other scores: `unknown_scores.py`.

- **nothing**: 75 items of 5, 20 or all classes of the catalogue, nothing unknown.
- **large**: the same with 300, 1,000 and 3,000 items, and fewer batches.
- **removed**: 60 items of five classes of the catalogue and three removed ones, which have 10, 30 or 60 % of the items.
- **ten**: 75 items of seven classes of the catalogue and three removed ones, which have 22.
- **scattered**: 60 items of five classes of the catalogue and 15 of all ten removed ones.
- **proposals**: 36 items of five classes of the catalogue and 12 of each of three removed ones. In some batches all
  proposals are added to the catalogue as classes, and the same batch is labelled again, and so are
  other items of its classes.
- **requests** (`hint3-*-minilm`): the catalogue is what a company wrote, the batch what people really asked. Ten
  shuffles, each cut into batches of 75; and all requests at once.
- **real** (confirmation alone): 56 items of five classes and 19 real items of none (`clinc-oos-minilm`,
  `caltech-background-efflite0`); and cells of another laboratory, 14 types of which the reference lacks, in its own
  batches (`lung-two-atlases`).

`--tasks` sets the batches of a cell, `--slow-tasks` those that OSLO, OSTIM and EOL get too, `--added-tasks` those whose
proposals are added. One thread. Results are saved part by part in `studies/results/unknown/GROUP/CONDITION.json`; what
is there is not measured again without `--again`. `unknown_page.py` writes the document from it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

import handful
from harm import keep
from harm_data import read
from unknown_conditions import CONDITIONS, GROUPS, UnknownStudy

RESULTS = Path(__file__).parent / "results" / "unknown"


def main() -> None:
    """Measure the conditions asked for and keep them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that holds the data")
    parser.add_argument("--group", choices=list(GROUPS), required=True)
    parser.add_argument("--only", nargs="+", choices=list(CONDITIONS), default=list(CONDITIONS))
    parser.add_argument("--tasks", type=int, default=200, help="batches per cell")
    parser.add_argument("--slow-tasks", type=int, default=16, help="batches per cell for OSLO, OSTIM and EOL")
    parser.add_argument("--added-tasks", type=int, default=16, help="batches per bank whose proposals are added")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the results")
    parser.add_argument("--again", action="store_true", help="measure again what is there")
    given = parser.parse_args()
    torch.set_num_threads(1)
    study = UnknownStudy(given.data, GROUPS[given.group], given.tasks, given.slow_tasks, given.added_tasks)
    for condition in given.only:
        file = given.results / given.group / f"{condition}.json"
        kept = {} if given.again else read(file)
        for name, measure in CONDITIONS[condition](study):
            if name in kept:
                continue
            began = time.process_time()
            rows = measure()
            seconds = round(time.process_time() - began)
            kept[name] = {"by": f"handful {handful.__version__}", "seconds": seconds, "rows": rows}
            keep(file, kept)
            print(f"{given.group}, {condition}, {name}: {seconds} s", flush=True)


if __name__ == "__main__":
    main()
