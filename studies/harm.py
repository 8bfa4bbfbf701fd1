"""What labelling a batch jointly gains and costs, on clean data and under real conditions.

    python studies/harm.py DATA --group tuning [--only clean shots ...] [--tasks 100] [--clean-tasks 500] [--again]
    python studies/harm.py DATA --group confirmation
    python studies/harm_page.py

The default, `roll_call`, was tuned on the data of one group alone; the other group confirms. It labels as
if every item had one of the classes: `open_batches.py` measures batches with items of no class. DATA is
a folder that holds the data of the group. Rules and intervals: `side_by_side.py`. A head is fitted once per catalogue
and used for all its batches. Five examples per class and batches of 75 items unless said; where classes have fewer rows
left, a batch has all of them, and results say how many items that is on average.

- **emq** (tuning alone): the sharpness of the two EMQs with the highest mean accuracy over banks, 5 and 10 shots, 5 and
  20 classes present, on other batches than *clean* has. The ridge of the head is the catalogue's own, C = 30.
- **clean**: 1, 5 and 10 shots; 5, 20 and all classes present. 10 catalogues (5 where K is 500 or more, or K is 200 or
  more at 10 shots) share `--clean-tasks` batches.
- **shots**: the number of examples per class is log-uniform from 1 to 50 (or as many as leave 6 rows of the class).
- **requests** (`hint3-*-minilm`): the catalogue is what a company wrote, the batch what people really asked, in natural
  shares. `original_split.npy` is 1 for the catalogue and 0 for the requests; a label that only requests have is no
  intent. Ten shuffles, each cut into batches.
- **laboratories** (`lung-two-atlases`): cells of one laboratory as the catalogue, batches of donors of another.
  `query_batches.npy` numbers the batches. Larger labels than the reference has are types it lacks. Ten draws of the
  catalogue where examples are capped.
- **shifted** (`*-shifted`): row i of `<kind>.npy` is row `rows.npy[i]` of the clean bank after a change. The catalogue
  is clean, the batch is not, and no item is in both.
- **wrong_labels**: a share of the examples has the label of another class.
- **confusable**: the classes present are a class and those with the nearest means.
- **stray**: 74 items of five classes and one of a sixth; accuracy is that of the one.
- **sizes**: 1 to 5,000 items. No item comes twice: batches of 5 or 20 classes end where the rows do, so one more cell
  has 5,000 items of as many classes as hold them.
- **unknown**: half the classes are taken out of the catalogue; batches of 60 from 4 classes that were kept and 4 that
  were taken out.

`--tasks` sets the number of batches of a cell, over 5 catalogues, from *shots* on (fewer of large batches). One thread.
Results are saved part by part in `studies/results/harm/GROUP/CONDITION.json`; what is there is not measured again
without `--again`. `harm_page.py` writes the documents from it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

import handful
from handful.estimators import BatchClassifier
from harm_conditions import CONDITIONS
from harm_data import GROUPS, RESULTS, Study, read
from pages import keep


def main() -> None:
    """Measure the conditions asked for and keep them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that holds the data")
    parser.add_argument("--group", choices=list(GROUPS), required=True)
    parser.add_argument("--only", nargs="+", choices=list(CONDITIONS), default=list(CONDITIONS))
    parser.add_argument("--tasks", type=int, default=100, help="batches per cell, except in clean cells")
    parser.add_argument("--clean-tasks", type=int, default=500, help="batches per clean cell")
    parser.add_argument("--again", action="store_true", help="measure again what is there")
    given = parser.parse_args()
    torch.set_num_threads(1)
    study = Study(given.data, GROUPS[given.group], given.tasks, given.clean_tasks)
    for condition in given.only:
        if condition == "emq" and given.group != "tuning":
            continue
        file = RESULTS / given.group / f"{condition}.json"
        kept = {} if given.again else read(file)
        for name, measure in CONDITIONS[condition](study):
            if name in kept:
                continue
            began = time.process_time()
            rows = measure()
            seconds = round(time.process_time() - began)
            by = f"handful {handful.__version__}, {BatchClassifier().method}"
            kept[name] = {"by": by, "seconds": seconds, "rows": rows}
            keep(file, kept, levels=3)
            print(f"{given.group}, {condition}, {name}: {len(rows)} rows, {seconds} s", flush=True)


if __name__ == "__main__":
    main()
