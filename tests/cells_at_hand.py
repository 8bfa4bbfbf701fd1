"""AnnData files for tests."""

import numpy as np
import pytest

anndata = pytest.importorskip("anndata", reason="anndata is not installed")
h5py = pytest.importorskip("h5py")
pd = pytest.importorskip("pandas")
sparse = pytest.importorskip("scipy.sparse")


def text_that_anndata_can_write():
    """Make text objects: the text arrays of pandas 3 are not known to every anndata."""
    return pd.option_context("future.infer_string", False)


def sample(rng, types, n_types=6, *, labelled, seed_of_types=0):
    """Cells in twelve dimensions around the centres of their types, with counts, a layer, a graph and notes."""
    centres = np.random.default_rng(seed_of_types).standard_normal((n_types, 12)) * 4
    n = len(types)
    counts = sparse.random(n, 30, 0.2, format="csr", random_state=1, dtype=np.float32)
    obs = pd.DataFrame(
        {
            "donor": pd.Categorical(np.where(np.arange(n) % 3 == 0, "d1", "d2")),
            "n_genes": np.arange(n),
            "pct": np.linspace(0, 1, n),
            "doublet": np.arange(n) % 2 == 0,
        },
        index=[f"cell-{i}" for i in range(n)],
    )
    if labelled:
        obs["cell_type"] = pd.Categorical([f"type {t}" for t in types])
    data = anndata.AnnData(counts, obs=obs)
    data.obsm["X_pca"] = (centres[types] + rng.standard_normal((n, 12))).astype(np.float32)
    data.obsm["X_umap"] = rng.standard_normal((n, 2))
    data.layers["raw"] = counts.copy()
    data.obsp["graph"] = sparse.eye(n, format="csr")
    data.uns["notes"] = {"by": "us", "colours": np.array(["#ff0000"])}
    return data


def write_files(folder):
    """Write an atlas with labels and a sample without, and return the folder and the types of the sample's cells."""
    rng, types = np.random.default_rng(0), np.repeat([1, 4], 20)
    with text_that_anndata_can_write():
        sample(rng, np.repeat(np.arange(6), 8), labelled=True).write_h5ad(folder / "atlas.h5ad")
        sample(rng, types, labelled=False).write_h5ad(folder / "sample.h5ad")
    return folder, np.array([f"type {t}" for t in types])
