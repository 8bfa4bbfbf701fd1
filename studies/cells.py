"""Cells of one laboratory labelled with the atlas of another, from `.h5ad` to `.h5ad`, by one command.

    python studies/cells.py lung-two-atlases

The folder has `reference.npy` and `query.npy` (principal components of cells), `reference_labels.npy`,
`query_labels.npy` and `query_batches.npy`. They are written as two AnnData files in a temporary folder; then

    handful classify --catalogue atlas.h5ad --labels cell_type --batch sample.h5ad --group-by donor --out labelled.h5ad

and accuracies are read off the labels in `labelled.h5ad`, over the cells whose type the atlas has. `nearest mean` and
`logistic regression` label each cell alone, on the same vectors at unit length. Intervals are of 95 %, from 2,000
resamples of the cells within batches. `unknown` is the area under the curve of the column `handful_unknown`, for cells
of types that the atlas lacks.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from handful.cli.main import main as command


def write_cells(path: Path, vectors: np.ndarray[Any, Any], name: str, values: list[str]) -> None:
    """Write vectors and one column of `obs`, all text as objects, which every anndata can write."""
    index = pd.Index([f"cell-{i}" for i in range(len(vectors))], dtype=object)
    obs = pd.DataFrame({name: pd.Categorical(pd.Series(values, dtype=object))}).set_index(index)
    no_genes = pd.DataFrame(index=pd.Index([], dtype=object))
    anndata.AnnData(obs=obs, var=no_genes, obsm={"X_pca": vectors}).write_h5ad(path)


def labelled(
    folder: Path, known: np.ndarray[Any, Any], types: list[str], cells: np.ndarray[Any, Any], donors: list[str]
) -> Any:
    """Run the command, and return the columns of `obs` that it leaves."""
    write_cells(folder / "atlas.h5ad", known, "cell_type", types)
    write_cells(folder / "sample.h5ad", cells, "donor", donors)
    arguments = ["--catalogue", "atlas.h5ad", "--batch", "sample.h5ad", "--out", "labelled.h5ad"]
    paths = [text if text.startswith("--") else str(folder / text) for text in arguments]
    if command(["classify", *paths, "--labels", "cell_type", "--group-by", "donor"]) != 0:
        raise RuntimeError("the command failed")
    return anndata.read_h5ad(folder / "labelled.h5ad").obs


def interval(right: np.ndarray[Any, Any], donors: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Return the 95 % interval of the mean, from resamples of cells within donors."""
    rng = np.random.default_rng(0)
    places = [np.flatnonzero(donors == donor) for donor in np.unique(donors)]
    means = [right[np.concatenate([rng.choice(p, len(p)) for p in places])].mean() for _ in range(2000)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    files = ("reference", "reference_labels", "query", "query_labels", "query_batches")
    known, labels, cells, truth, batches = (np.load(data / f"{name}.npy") for name in files)
    n_types = int(labels.max()) + 1
    with tempfile.TemporaryDirectory() as place:
        obs = labelled(Path(place), known, [f"t{k}" for k in labels], cells, [f"d{b}" for b in batches])
    unit, one = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (known, cells))
    means = np.array([unit[labels == k].mean(0) for k in range(n_types)])
    answers = {
        "each cell alone, nearest mean": ((one[:, None] - means[None]) ** 2).sum(-1).argmin(1),
        "each cell alone, logistic regression": LogisticRegression(C=30, max_iter=5000).fit(unit, labels).predict(one),
        "jointly, by donor": np.array([int(label[1:]) for label in obs["handful_label"]]),
    }
    of_atlas = truth < n_types
    print("\n| labels | right, cells of types of the atlas |\n|---|---|")
    for name, answer in answers.items():
        right = (answer == truth)[of_atlas]
        low, high = interval(right, batches[of_atlas])
        print(f"| {name} | {100 * right.mean():.1f} ({100 * low:.1f} to {100 * high:.1f}) |")
    ahead = (answers["jointly, by donor"] == truth)[of_atlas].astype(float)
    for name in list(answers)[:2]:
        low, high = interval(ahead - (answers[name] == truth)[of_atlas], batches[of_atlas])
        mean = (ahead - (answers[name] == truth)[of_atlas]).mean()
        print(f"| jointly, ahead of {name} | {100 * mean:+.1f} ({100 * low:+.1f} to {100 * high:+.1f}) |")
    print(f"\nunknown: {roc_auc_score(~of_atlas, obs['handful_unknown']):.3f}")


if __name__ == "__main__":
    main()
