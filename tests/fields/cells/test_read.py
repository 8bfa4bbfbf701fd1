"""AnnData files: vectors, labels and columns are found; damaged and hostile files are refused."""

import numpy as np
import pytest

from handful.classification.batch import Batch
from handful.errors import BankError
from handful.reading import read, read_bank
from tests.cells_at_hand import anndata, h5py, sparse, text_that_anndata_can_write, write_files

pytestmark = pytest.mark.filterwarnings("ignore:.*infer_string")


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


def test_vectors_are_found_or_named(files):
    folder, _ = files
    assert read_bank(folder / "atlas.h5ad").dim == 12
    assert read(folder / "sample.h5ad", features="X_umap").vectors.shape == (40, 2)
    with pytest.raises(BankError, match="must have 'X_scVI' in obsm, got X_pca, X_umap; choose one"):
        read(folder / "sample.h5ad", features="X_scVI")
    for kept, sentence in (
        (
            {"X_first": "X_pca", "X_second": "X_umap"},
            "must have one of X_scANVI, .* in obsm, got X_first, X_second; choose",
        ),
        ({}, "has no vectors in obsm; compute some first"),
    ):
        with h5py.File(folder / "sample.h5ad") as old, h5py.File(folder / "other.h5ad", "w") as new:
            for key in old:
                old.copy(key, new) if key != "obsm" else new.create_group("obsm")
            for name, key in kept.items():
                old.copy(f"obsm/{key}", new["obsm"], name)
        with pytest.raises(BankError, match=sentence):
            read(folder / "other.h5ad")
    with pytest.raises(BankError, match="no column 'clade' for the groups; it has donor, n_genes, pct, doublet"):
        Batch.of(read(folder / "sample.h5ad"), group_by=("clade",))
    with pytest.raises(BankError, match="no column that looks like labels"):
        read_bank(folder / "sample.h5ad")


def test_a_file_that_is_no_anndata_is_refused(files):
    folder, _ = files
    (folder / "text.h5ad").write_text("no cells")
    (folder / "short.h5ad").write_bytes((folder / "sample.h5ad").read_bytes()[:3000])
    with h5py.File(folder / "other.h5ad", "w") as file:
        file["x"] = 1
    for name, sentence in (
        ("text", "cannot be read as AnnData"),
        ("short", "cannot be read as AnnData"),
        ("other", "has no group 'obs'"),
        ("missing", "does not exist"),
    ):
        with pytest.raises(BankError, match=sentence):
            read(folder / f"{name}.h5ad")


SECRET = b"a secret of another file, 0123456789" * 40


def with_other_donors(files, how):
    """Return the sample with a column `donor` that lies in another file."""
    folder, _ = files
    place, other = folder / "sample.h5ad", folder / "other"
    with h5py.File(place, "r+") as file:
        attributes = {"encoding-type": "array", "encoding-version": "0.2.0"}
        n = len(file["obsm/X_pca"])
        del file["obs/donor"]
        if how == "storage":
            other.write_bytes(SECRET)
            file["obs"].create_dataset("donor", (n,), "<i8", external=[(str(other), 0, 8 * n)])
        else:
            with h5py.File(other, "w") as second:
                second["x"] = np.arange(n) + 777_000
                second["x"].attrs.update(attributes)
        if how == "link":
            file["obs/donor"] = h5py.ExternalLink(str(other), "/x")
        if how in ("virtual", "reference"):
            layout = h5py.VirtualLayout((n,), "<i8")
            layout[:] = h5py.VirtualSource(str(other), "x", (n,))
            file.create_virtual_dataset("obs/donor" if how == "virtual" else "elsewhere", layout)
        if how == "reference":
            file["obs/donor"] = h5py.SoftLink("/elsewhere")
        if how != "link":
            file["obs/donor"].attrs.update(attributes)
    return place


@pytest.mark.parametrize("how", ["storage", "link", "virtual", "reference"])
def test_contents_in_other_files_are_refused(files, how):
    with pytest.raises(BankError, match="is stored in another file, which is not followed"):
        read(with_other_donors(files, how))


def test_a_small_file_with_a_large_sparse_matrix_is_refused_before_it_is_read(files):
    folder, _ = files
    with h5py.File(folder / "sample.h5ad", "r+") as file:
        n = len(file["obsm/X_pca"])
        del file["obsm/X_pca"]
        group = file["obsm"].create_group("X_pca")
        shape = np.array([n, 10**12])  # no machine could hold it
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": shape})
        group["data"], group["indices"] = np.zeros(0), np.zeros(0, np.int32)
        group["indptr"] = np.zeros(n + 1, np.int32)
    with pytest.raises(BankError, match=r"sample.h5ad has [\d,]+ bytes and would expand to more than 67,108,864"):
        read(folder / "sample.h5ad")


def test_a_sparse_matrix_of_usual_size_is_read(files):
    folder, _ = files
    with text_that_anndata_can_write():
        data = anndata.read_h5ad(folder / "sample.h5ad")
        dense = data.obsm["X_pca"]
        data.obsm["X_pca"] = sparse.csr_matrix(dense)
        data.write_h5ad(folder / "sparse.h5ad")
    np.testing.assert_array_equal(read(folder / "sparse.h5ad").vectors, dense)


def test_a_column_that_expands_is_refused_before_it_is_read(files):
    folder, _ = files
    with h5py.File(folder / "sample.h5ad", "r+") as file:
        del file["obs/donor"]
        column = file["obs"].create_dataset("donor", (10**14,), "<i8", chunks=(10**6,), compression="gzip")
        column.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    with pytest.raises(BankError, match="bytes and would expand to"):
        read(folder / "sample.h5ad")


def test_fewer_vectors_than_cells_are_refused(files):
    folder, _ = files
    with h5py.File(folder / "sample.h5ad", "r+") as file:
        few = file["obsm/X_pca"][:5]
        del file["obsm/X_pca"]
        file["obsm/X_pca"] = few
        file["obsm/X_pca"].attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    with pytest.raises(BankError, match=r"one vector for each of 40 cells, got float32 of shape \(5, 12\)"):
        read(folder / "sample.h5ad")
