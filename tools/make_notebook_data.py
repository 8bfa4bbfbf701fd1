"""Make the small parts of two data sets that come with the notebooks.

    python tools/make_notebook_data.py DATA

DATA is a folder that holds `audiomnist-speakers` and `grocery-efflite0`, in which `features.npy` and `labels.npy` have
one row per item. What is kept is drawn by a generator with seed 0, the first and only draw. Clusters of voices are made
up like those of `studies/voices.py`. `docs/learn/notebooks/data/README.md` says what the files hold.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "studies")]
from voices import clusters_of  # noqa: E402

TARGET = ROOT / "docs" / "learn" / "notebooks" / "data"
VOICES, EXAMPLES, PRESENT = 59, 3, 5
SEGMENTS = (10, 17)  # of each voice in a recording, the second not included
PAUSE = 0.4  # seconds between two segments
COARSE = ("Apple", "Melon", "Pear", "Milk", "Yoghurt", "Pepper", "Potato", "Tomato")
PHOTOGRAPHS, KINDS, BATCH = 5, 6, 75
TRAIN, TEST = 0, 2  # parts of the authors of the groceries
Ints = npt.NDArray[np.int64]


def voices(data: Path, target: Path) -> None:
    """Write enrolled voices and two recordings, of sentences and of single words, with a stranger in both."""
    rng = np.random.default_rng(0)
    chosen = rng.permutation(60)[: VOICES + 1]
    stranger, enrolled = int(chosen[0]), np.sort(chosen[1:])
    there = np.append(rng.choice(enrolled, PRESENT - 1, replace=False), stranger)
    for kind, file, before in (("sentences", "features", ""), ("words", "short", "short_")):
        labels = np.load(data / f"{before}labels.npy").astype(np.int64)
        features, seconds = np.load(data / f"{file}.npy"), np.load(data / f"{before}seconds.npy")
        rows = {int(k): rng.permutation(np.flatnonzero(labels == k)) for k in chosen}
        examples = np.concatenate([rows[int(k)][:EXAMPLES] for k in enrolled])
        segments = rng.permutation(
            np.concatenate([rows[int(k)][EXAMPLES:][: int(rng.integers(*SEGMENTS))] for k in there])
        )
        named = np.array([f"voice_{k + 1:02}" for k in labels])
        truth = np.where(labels == stranger, "stranger", named)
        _save(target / f"enrolled_{kind}.npz", features=features[examples], labels=named[examples])
        _save(target / f"{kind}.npz", features=features[segments], truth=truth[segments])
        lines, start = [], 0.0
        for cluster, length in zip(clusters_of(labels[segments], rng), seconds[segments].tolist(), strict=True):
            lines.append(f"SPEAKER {kind} 1 {start:.3f} {length:.3f} <NA> <NA> SPEAKER_{cluster:02} <NA> <NA>\n")
            start += length + PAUSE
        (target / f"{kind}.rttm").write_text("".join(lines), encoding="utf-8")


def shelf(data: Path, target: Path) -> None:
    """Write a catalogue of photographs, one of the shop's pictures, and a batch of photographs of other shops."""
    rng = np.random.default_rng(0)
    features, labels, part = (np.load(data / f"{name}.npy") for name in ("features", "labels", "original_split"))
    names = np.array([name.replace("-", " ") for name in json.loads((data / "classes.json").read_text())])
    levels = json.loads((data / "coarse_classes.json").read_text())
    coarse = np.array(levels["coarse_classes"])[levels["coarse_of_class"]]
    kinds = np.flatnonzero(np.isin(coarse, COARSE))
    catalogue = np.concatenate(
        [rng.choice(np.flatnonzero((labels == k) & (part == TRAIN)), PHOTOGRAPHS, replace=False) for k in kinds]
    )
    there = rng.choice(kinds, KINDS, replace=False)
    batch = rng.choice(np.flatnonzero(np.isin(labels, there) & (part == TEST)), BATCH, replace=False)
    for name, rows, of in (
        ("catalogue", features[catalogue], labels[catalogue]),
        ("shop_pictures", np.load(data / "iconic_features.npy")[kinds], kinds),
    ):
        _save(target / f"{name}.npz", features=rows, labels=names[of], coarse=coarse[of])
    _save(
        target / "photographs.npz",
        features=features[batch],
        truth=names[labels[batch]],
        true_coarse=coarse[labels[batch]],
    )


def _save(path: Path, features: npt.NDArray[Any], **columns: npt.NDArray[Any]) -> None:
    np.savez_compressed(path, features=features.astype(np.float16), **columns)  # type: ignore[arg-type]


def main() -> None:
    """Write everything, and print the sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    for make, source in ((voices, "audiomnist-speakers"), (shelf, "grocery-efflite0")):
        target = TARGET / make.__name__
        target.mkdir(parents=True, exist_ok=True)
        make(data / source, target)
        print(f"{target.name}: {sum(path.stat().st_size for path in target.iterdir()):,} bytes")


if __name__ == "__main__":
    main()
