"""Write `v0_5_1/` with handful 0.5.1: PYTHONPATH=…/0.5.1/src python tests/old_files/write_v0_5_1.py FOLDER.

All data are drawn from a generator. `truth.json` says what the files mean, for the tests.
"""

import getpass
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import handful

N_CLASSES = 6
DIM = 12


def vectors(rng, centres, classes):
    return (centres[classes] + 0.3 * rng.normal(size=(len(classes), DIM))).astype(np.float32)


def picture(rng, kind):
    """Draw stripes, a chequer or a disc, of any colours."""
    y, x = np.mgrid[:24, :24]
    shapes = {"stripes": y // 4 % 2, "chequer": (x // 6 + y // 6) % 2, "disc": (x - 12) ** 2 + (y - 12) ** 2 < 70}
    colours = rng.integers(0, 4, (2, 3)) * 40 + np.array([[0], [120]])
    return Image.fromarray(colours[shapes[kind].astype(int)].astype(np.uint8))


def pictures(rng, folder, kinds):
    folder.mkdir()
    for number, kind in enumerate(kinds):
        picture(rng, kind).save(folder / f"{number:02}.png", optimize=True)


def say(review, items, kind, label=None):
    review.decide(review.state.number, items, kind, label)


def with_catalogue(catalogue, batch, labels, answers, add=None):
    """Open a review beside a catalogue, answer, and finish it if `add` is given."""
    from handful.classification.steps import embed
    from handful.classification.task import check, read_inputs
    from handful.review import files
    from handful.review.serve import Address

    def served(page, finish, where):
        answers(page.review)
        return None if add is None else finish(page.review, add)

    files.serve = served
    with tempfile.TemporaryDirectory() as work:
        ready = embed(check(read_inputs(catalogue, batch)), work)
    files.review_files(ready, files.Outputs(Path(labels)), batch.stem, Address())


def alone(batch, labels, answers, finishes=False):
    """Open a review without a catalogue, answer, and finish it if that is wanted."""
    from handful.classification.unlabelled import read_unlabelled
    from handful.review import files, unlabelled
    from handful.review.serve import Address

    def served(page, finish, where):
        answers(page.review)
        return finish(page.review, False) if finishes else None

    unlabelled.serve = served
    with tempfile.TemporaryDirectory() as work:
        ready = read_unlabelled(batch, work)
    unlabelled.review_unlabelled(ready, files.Outputs(Path(labels)), batch.stem, Address())


def of_every_kind(review):
    say(review, [0], "class", "kind 1")
    say(review, [1, 2], "class", "kind 2")
    say(review, [3], "new", "kind 6")
    say(review, [4, 5], "none")
    say(review, [6], "bad")
    say(review, [7], "skip")
    say(review, [8], "class", "kind 0")
    review.undo(review.state.number)
    say(review, [1], "class", "kind 3")
    say(review, [9], "class", "kind 4")
    say(review, [9], "clear")
    review.take_over({10: ("class", "kind 5"), 11: ("none", None), 12: ("bad", None)})


def of_truth(truth, n_items):
    def answers(review):
        for item in range(n_items):
            say(review, [item], "class" if truth[item] in review.first.classes else "new", truth[item])

    return answers


def merged_and_split(truth):
    def answers(review):
        by_kind = {kind: [item for item, one in enumerate(truth) if one == kind] for kind in dict.fromkeys(truth)}
        say(review, by_kind["stripes"][:3], "new", "strips")
        say(review, by_kind["disc"][:4], "new", "disc")
        say(review, by_kind["stripes"][3:5], "new", "stripes")
        review.merge(review.state.number, "strips", "stripes")
        say(review, by_kind["chequer"][:2], "new", "chequer")
        review.merge(review.state.number, "chequer", "disc")
        review.undo(review.state.number)
        say(review, by_kind["chequer"][2:4], "new", "disc")
        review.split(review.state.number, "disc")
        say(review, [by_kind["disc"][4]], "skip")

    return answers


def main(folder):
    from handful.classification.building import build_catalogue

    assert handful.__version__ == "0.5.1", handful.__version__
    getpass.getuser = lambda: "ada"
    os.chdir(folder)
    rng = np.random.default_rng(51)
    centres = rng.normal(size=(N_CLASSES + 1, DIM))
    examples = np.arange(N_CLASSES).repeat(3)
    np.savez_compressed("kinds.npz", features=vectors(rng, centres, examples), labels=[f"kind {k}" for k in examples])
    truth = {}
    for day in ("monday", "tuesday"):
        classes = rng.integers(0, N_CLASSES + 1, 20)
        truth[day] = [f"kind {k}" for k in classes]
        names = [f"{day} {row}" for row in range(20)] if day == "tuesday" else None
        np.savez_compressed(f"{day}.npz", features=vectors(rng, centres, classes), **({"id": names} if names else {}))
    build_catalogue("kinds.npz", "kinds.handful")
    with_catalogue(Path("kinds.handful"), Path("monday.npz"), "monday.labels.csv", of_every_kind)
    build_catalogue("kinds.npz", "grown.handful")
    tuesday = of_truth(truth["tuesday"], 12)
    with_catalogue(Path("grown.handful"), Path("tuesday.npz"), "tuesday.labels.csv", tuesday, add=True)

    truth["friday"] = [f"kind {k}" for k in rng.integers(0, 3, 16)]
    np.savez_compressed("friday.npz", features=vectors(rng, centres, [int(one[-1]) for one in truth["friday"]]))
    alone(Path("friday.npz"), "friday.labels.csv", of_truth(truth["friday"], 12), finishes=True)

    for name, n_items in (("patterns", 18), ("tiles", 12)):
        truth[name] = rng.permutation(np.resize(["stripes", "chequer", "disc"], n_items)).tolist()
        pictures(rng, Path(name), truth[name])
    alone(Path("patterns"), "patterns.labels.csv", merged_and_split(truth["patterns"]))
    alone(Path("tiles"), "tiles.labels.csv", of_truth(truth["tiles"], 9), finishes=True)

    words = ["red", "green", "blue", "warm", "cold", "late"]
    with Path("calls.csv").open("w", encoding="utf-8") as stream:
        stream.write("text\n" + "".join(f"it is {words[k % 6]} at number {k // 6}\n" for k in range(12)))
    alone(Path("calls.csv"), "calls.labels.csv", lambda review: say(review, [0, 6], "new", "red"))
    sizes = rng.normal(size=(12, 3)) * [1, 10, 100] + [5, 50, 500]
    sizes[3, 1] = np.nan
    with Path("sizes.csv").open("w", encoding="utf-8") as stream:
        stream.write("leaf,length,width,weight\n")
        for row, numbers in enumerate(sizes):
            stream.write(",".join([f"leaf {row}", *("" if np.isnan(one) else f"{one:.2f}" for one in numbers)]) + "\n")
    alone(Path("sizes.csv"), "sizes.labels.csv", lambda review: say(review, [0, 3], "new", "oak"))
    Path("truth.json").write_text(json.dumps(truth), encoding="utf-8")
    for lock in Path().rglob("*.lock"):
        lock.unlink()


if __name__ == "__main__":
    main(sys.argv[1])
