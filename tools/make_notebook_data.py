"""Make the small parts of four data sets that come with the notebooks.

    python tools/make_notebook_data.py DATA

DATA is a folder that holds `audiomnist-speakers` and `grocery-efflite0`, in which `features.npy` and `labels.npy` have
one row per item; `images/omniglot.zip`, with `base/ALPHABET/CHARACTER/DRAWING.png`; and `pbmc68k` with the file
`10x_pbmc68k_reduced.h5ad`, which the wheel of scanpy has in `scanpy/datasets`. What is kept is drawn by a generator
with seed 0, the first and only draw. Clusters of voices are made up like those of `studies/voices.py`.
`docs/learn/notebooks/data/README.md` says what the files hold.
"""

from __future__ import annotations

import argparse
import json
import sys
import zipfile
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
ALPHABET, DRAWINGS, LETTERS, ON_PAGE = "Greek", 3, 4, 10
GREEK = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu"),
    *("nu", "xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
)
STRANGE = ("Tagalog", "character02")  # a letter that the catalogue lacks
CELLS, TYPES, LEAST, IN_SAMPLE = 8, 3, 40, 32
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


def letters(data: Path, target: Path) -> None:
    """Write drawings of all letters of an alphabet, and a page with a few of them and a letter of another one."""
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(data / "omniglot.zip") as source:
        drawn: dict[tuple[str, str], list[str]] = {}
        for name in sorted(source.namelist()):
            part, alphabet, letter, _ = name.split("/")
            if part == "base":
                drawn.setdefault((alphabet, letter), []).append(name)
        greek = [key for key in drawn if key[0] == ALPHABET]
        mixed = {key: rng.permutation(drawn[key]).tolist() for key in [*greek, STRANGE]}
        there = [greek[k] for k in rng.choice(len(greek), LETTERS, replace=False)]
        catalogue = {
            f"{letter_name(key)}/{i}.png": name for key in greek for i, name in enumerate(mixed[key][:DRAWINGS])
        }
        page = rng.permutation([n for key in [*there, STRANGE] for n in mixed[key][DRAWINGS : DRAWINGS + ON_PAGE]])
        of_page = {name: "strange" if key == STRANGE else letter_name(key) for key in mixed for name in mixed[key]}
        truth = [f"{i:02}.png,{of_page[name]}\n" for i, name in enumerate(page.tolist())]
        for file, chosen in (
            ("catalogue", catalogue),
            ("page", {f"{i:02}.png": name for i, name in enumerate(page.tolist())}),
        ):
            with zipfile.ZipFile(target / f"{file}.zip", "w") as out:
                for inside, name in chosen.items():
                    out.writestr(zipfile.ZipInfo(inside, (1980, 1, 1, 0, 0, 0)), source.read(name))
    (target / "truth.csv").write_text("".join(["item,letter\n", *truth]), encoding="utf-8")


def letter_name(key: tuple[str, str]) -> str:
    """Return the name of a Greek letter; its characters are numbered in alphabetical order."""
    return GREEK[int(key[1].removeprefix("character")) - 1]


def cells(data: Path, target: Path) -> None:
    """Write a few cells of each type, and a sample with three of the types."""
    import anndata
    import pandas as pd
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(0)
    source = anndata.read_h5ad(data / "10x_pbmc68k_reduced.h5ad")
    labels = source.obs["bulk_labels"].astype(str).to_numpy()
    rows = {name: rng.permutation(np.flatnonzero(labels == name)) for name in np.unique(labels)}
    many = [name for name, of_type in rows.items() if len(of_type) >= LEAST]
    there = rng.choice(many, TYPES, replace=False)
    for file, column, chosen in (
        ("atlas", "cell_type", np.concatenate([of_type[:CELLS] for of_type in rows.values()])),
        ("sample", "truth", rng.permutation(np.concatenate([rows[name][CELLS:][:IN_SAMPLE] for name in there]))),
    ):
        obs = pd.DataFrame({column: pd.Categorical(labels[chosen])}, index=source.obs_names[chosen].astype(object))
        counts = csr_matrix(np.asarray(source.raw.X[chosen].todense(), np.float32))
        kept = anndata.AnnData(counts, obs=obs, var=pd.DataFrame(index=source.raw.var_names.astype(object)))
        kept.write_h5ad(target / f"{file}.h5ad", compression="gzip")


def _save(path: Path, features: npt.NDArray[Any], **columns: npt.NDArray[Any]) -> None:
    np.savez_compressed(path, features=features.astype(np.float16), **columns)  # type: ignore[arg-type]


def main() -> None:
    """Write everything, and print the sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    sources = ((voices, "audiomnist-speakers"), (shelf, "grocery-efflite0"), (letters, "images"), (cells, "pbmc68k"))
    for make, source in sources:
        target = TARGET / make.__name__
        target.mkdir(parents=True, exist_ok=True)
        make(data / source, target)
        print(f"{target.name}: {sum(path.stat().st_size for path in target.iterdir()):,} bytes")


if __name__ == "__main__":
    main()
