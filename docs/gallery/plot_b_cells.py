"""
Cells of a new sample
=====================

An atlas has cells of 20 types. A sample from another laboratory has cells of a few of them, all shifted by a common
offset. One call labels the sample, from ``.h5ad`` to ``.h5ad``. The cells are made up: 30 principal components, unequal
types, two donors.
"""

import tempfile
from pathlib import Path

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from handful.classification import classify, write_predictions
from handful_fewshot import MethodClassifier

rng = np.random.default_rng(4)
N_TYPES, DIM = 20, 30
spread = np.linspace(2.2, 0.4, DIM)  # of the axes, the first the widest, as in a PCA
centres = rng.normal(size=(N_TYPES, DIM)) * spread
TYPES = [f"type {k + 1}" for k in range(N_TYPES)]


def text(values):
    """Plain objects, which every version of anndata can write."""
    return pd.Series(list(values), dtype=object)


def cells(types, offset=0.0, **columns):
    """AnnData with principal components of cells of these types, and columns of ``obs``."""
    names = pd.Index([f"cell-{i}" for i in range(len(types))], dtype=object)
    obs = pd.DataFrame({name: pd.Categorical(text(values)) for name, values in columns.items()})
    points = centres[types] + offset + rng.normal(size=(len(types), DIM)) * 1.3 * spread
    no_genes = pd.DataFrame(index=pd.Index([], dtype=object))
    return anndata.AnnData(obs=obs.set_index(names), var=no_genes, obsm={"X_pca": points.astype(np.float32)})


# %%
# The atlas has between 4 and 60 cells of each type. Each donor's sample has four types; none has all.

sizes = rng.integers(4, 60, N_TYPES)
in_atlas = np.repeat(np.arange(N_TYPES), sizes)
in_sample = np.concatenate([rng.choice([2, 7, 11, 16], 120, p=[0.5, 0.3, 0.15, 0.05]), rng.choice([3, 7, 12, 18], 90)])
folder = Path(tempfile.mkdtemp())
cells(in_atlas, cell_type=[TYPES[k] for k in in_atlas]).write_h5ad(folder / "atlas.h5ad")
offset = 0.5 * rng.normal(size=DIM) * spread
donors = np.repeat(["donor 1", "donor 2"], [120, 90])
cells(in_sample, offset, donor=donors).write_h5ad(folder / "sample.h5ad")

# %%
# In a terminal: ``handful classify atlas.h5ad sample.h5ad --labels cell_type --group-by donor --out
# labelled.h5ad``. The same in Python:

found = classify(folder / "atlas.h5ad", folder / "sample.h5ad", labels="cell_type", group_by="donor")
write_predictions(found, folder / "labelled.h5ad")
labelled = anndata.read_h5ad(folder / "labelled.h5ad")
labelled.obs.head()

# %%
# The types in each donor's sample, with the expected number of cells:

print(found.by_class()[["group", "class", "expected_count", "presence"]].round(2))

# %%
# The first two axes, coloured by label: each cell alone (left), all cells of a donor jointly (middle), and the truth
# (right). Crosses are cells labelled with a type that does not occur in the sample.

atlas = anndata.read_h5ad(folder / "atlas.h5ad")
alone = MethodClassifier("nearest_prototype").fit(atlas.obsm["X_pca"], atlas.obs["cell_type"].astype(str))
truth = np.array(TYPES)[in_sample]
answers = {
    "each cell alone": np.asarray(alone.predict(labelled.obsm["X_pca"])),
    "jointly, by donor": labelled.obs["handful_label"].astype(str).to_numpy(),
    "truth": truth,
}
there = sorted(set(truth), key=TYPES.index)
figure, panels = plt.subplots(1, 3, figsize=(9, 3.4), sharex=True, sharey=True, layout="constrained")
first, second = labelled.obsm["X_pca"][:, :2].T
for panel, (name, labels) in zip(panels, answers.items(), strict=True):
    absent = ~np.isin(labels, there)
    panel.scatter(first[absent], second[absent], s=22, color="0.2", marker="x")
    for number, one in enumerate(there):
        mine = labels == one
        panel.scatter(first[mine], second[mine], s=10, color=f"C{number}", label=one)
    right = 100 * (labels == truth).mean()
    panel.set(title=name if name == "truth" else f"{name}: {right:.0f}% right", xlabel="PC 1", xticks=[], yticks=[])
panels[0].set_ylabel("PC 2")
panels[2].legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5), markerscale=1.5)
