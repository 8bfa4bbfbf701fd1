"""AnnData files: labels go in, everything else comes back as it was, as anndata itself reads it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from handful.classification import classify, write_groups, write_predictions
from handful.cli.main import main
from handful.errors import BankError, MissingLabelWarning, OptionError, StorageError
from handful.exchange.cells import read_cells, read_labelled_cells

anndata = pytest.importorskip("anndata", reason="anndata is not installed")
h5py = pytest.importorskip("h5py")
pd = pytest.importorskip("pandas")
sparse = pytest.importorskip("scipy.sparse")
pytestmark = pytest.mark.filterwarnings("ignore:.*infer_string")
LUNG = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "lung-two-atlases"


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


@pytest.fixture
def files(tmp_path):
    rng, types = np.random.default_rng(0), np.repeat([1, 4], 20)
    with text_that_anndata_can_write():
        sample(rng, np.repeat(np.arange(6), 8), labelled=True).write_h5ad(tmp_path / "atlas.h5ad")
        sample(rng, types, labelled=False).write_h5ad(tmp_path / "sample.h5ad")
    return tmp_path, np.array([f"type {t}" for t in types])


def run(capsys, *arguments):
    code = main(["classify", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def assert_kept(before, after):
    """Check that all of `before` is in `after`, in its order."""
    ours = [name for name in after.obs if name.startswith("handful_")]
    pd.testing.assert_frame_equal(after.obs.drop(columns=ours), before.obs)
    pd.testing.assert_frame_equal(after.var, before.var)
    for a, b in ((after.X, before.X), (after.layers["raw"], before.layers["raw"])):
        assert (a != b).nnz == 0
    assert (after.obsp["graph"] != before.obsp["graph"]).nnz == 0
    for key in before.obsm:
        np.testing.assert_array_equal(after.obsm[key], before.obsm[key])
    assert after.uns["notes"]["by"] == "us"
    assert after.uns["notes"]["colours"].tolist() == ["#ff0000"]


def test_one_command_labels_a_sample_by_donor(files, capsys):
    folder, truth = files
    code, out, err = run(
        capsys, "--catalogue", folder / "atlas.h5ad", "--labels", "cell_type", "--batch", folder / "sample.h5ad",
        "--group-by", "donor", "--out", folder / "labelled.h5ad",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "d1" in out
    found = anndata.read_h5ad(folder / "labelled.h5ad")
    assert_kept(anndata.read_h5ad(folder / "sample.h5ad"), found)
    assert found.obs["handful_label"].dtype == "category"
    assert (found.obs["handful_label"].to_numpy() == truth).mean() > 0.95
    assert found.obs["handful_probability"].between(0.3, 1).all()
    table = found.obsm["handful_probabilities"]
    classes = found.uns["handful"]["classes"].tolist()
    np.testing.assert_allclose(table.sum(1), 1, atol=1e-4)
    assert [classes[k] for k in table.argmax(1)] == found.obs["handful_label"].tolist()
    assert found.uns["handful"]["group_by"].tolist() == ["donor"]
    assert found.uns["handful"]["vectors"] == "obsm X_pca"
    groups = pd.read_csv(folder / "labelled.groups.csv")
    assert set(groups["donor"]) == {"d1", "d2"}


def test_in_place_and_again_the_answers_are_replaced(files):
    folder, truth = files
    before = anndata.read_h5ad(folder / "sample.h5ad")
    for _ in range(2):
        found = classify(folder / "atlas.h5ad", folder / "sample.h5ad")
        write_predictions(found, folder / "sample.h5ad")
    after = anndata.read_h5ad(folder / "sample.h5ad")
    assert_kept(before, after)
    assert (after.obs["handful_label"].to_numpy() == truth).mean() > 0.95
    assert list(after.obs).count("handful_label") == 1
    assert "donor" in found.predictions()
    assert "handful_label" not in found.predictions()


@pytest.mark.parametrize("missing", [None, "", "Unknown"])
def test_cells_without_a_label_are_the_batch_of_one_file(files, missing):
    folder, truth = files
    with text_that_anndata_can_write():
        atlas, batch = (anndata.read_h5ad(folder / f"{name}.h5ad") for name in ("atlas", "sample"))
        both = anndata.concat([batch, atlas], join="outer", index_unique="-")
        both.obs["cell_type"] = pd.Categorical([missing] * len(truth) + atlas.obs["cell_type"].tolist())
        both.write_h5ad(folder / "both.h5ad")
    with pytest.warns(MissingLabelWarning, match="column 'cell_type' of obs: 40 of 88 rows have no label"):
        found = classify(folder / "both.h5ad", folder / "both.h5ad", group_by="donor", labels="cell_type")
    write_groups(found, folder / "out.h5ad")
    after = anndata.read_h5ad(folder / "out.h5ad")
    labels = after.obs["handful_label"]
    assert (labels[: len(truth)].to_numpy() == truth).mean() > 0.95
    assert labels[len(truth) :].isna().all()
    assert np.isnan(after.obsm["handful_probabilities"][len(truth) :]).all()


def test_other_outputs_carry_the_columns_of_obs(files):
    folder, _ = files
    found = classify(folder / "atlas.h5ad", folder / "sample.h5ad")
    write_predictions(found, folder / "p.csv")
    table = pd.read_csv(folder / "p.csv")
    assert list(table)[:6] == ["row", "item", "donor", "n_genes", "pct", "doublet"]
    assert table["item"][0] == "cell-0"
    np.savez(folder / "b.npz", features=np.eye(12))
    with pytest.raises(OptionError, match="would be a copy of the batch, which is not an"):
        write_predictions(classify(folder / "atlas.h5ad", folder / "b.npz"), folder / "x.h5ad")


def test_vectors_are_found_or_named(files):
    folder, _ = files
    assert read_labelled_cells(folder / "atlas.h5ad").dim == 12
    assert read_cells(folder / "sample.h5ad", features="X_umap").features.shape == (40, 2)
    with pytest.raises(BankError, match="no vectors 'X_scVI' in obsm; it has X_pca, X_umap"):
        read_cells(folder / "sample.h5ad", features="X_scVI")
    with pytest.raises(BankError, match="no column 'clade' for the groups; it has donor, n_genes, pct, doublet"):
        read_cells(folder / "sample.h5ad", groups=("clade",))
    with pytest.raises(BankError, match="no column that looks like labels"):
        read_labelled_cells(folder / "sample.h5ad")


def test_a_file_that_is_no_anndata_is_refused(files, capsys):
    folder, _ = files
    (folder / "text.h5ad").write_text("no cells")
    (folder / "short.h5ad").write_bytes((folder / "sample.h5ad").read_bytes()[:3000])
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "other.h5ad", "w") as file:
        file["x"] = 1
    for name, sentence in (
        ("text", "cannot be read as AnnData"),
        ("short", "cannot be read as AnnData"),
        ("other", "has no group 'obs'"),
        ("missing", "does not exist"),
    ):
        with pytest.raises(BankError, match=sentence):
            read_cells(folder / f"{name}.h5ad")
    code, _, err = run(
        capsys, "--catalogue", folder / "atlas.h5ad", "--batch", folder / "text.h5ad", "--out", folder / "p.h5ad"
    )
    assert code == 1
    assert err.startswith("handful: ")
    assert not (folder / "p.h5ad").exists()


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
        read_cells(with_other_donors(files, how))


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
    with pytest.raises(BankError, match=r"the file of /obsm/X_pca has .* bytes and would expand to 3200"):
        read_cells(folder / "sample.h5ad")


def test_a_sparse_matrix_of_usual_size_is_read(files):
    folder, _ = files
    with text_that_anndata_can_write():
        data = anndata.read_h5ad(folder / "sample.h5ad")
        dense = data.obsm["X_pca"]
        data.obsm["X_pca"] = sparse.csr_matrix(dense)
        data.write_h5ad(folder / "sparse.h5ad")
    np.testing.assert_array_equal(read_cells(folder / "sparse.h5ad").features, dense)


def test_a_column_that_expands_is_refused_before_it_is_read(files):
    folder, _ = files
    with h5py.File(folder / "sample.h5ad", "r+") as file:
        del file["obs/donor"]
        column = file["obs"].create_dataset("donor", (10**14,), "<i8", chunks=(10**6,), compression="gzip")
        column.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    with pytest.raises(BankError, match=r"the file of /obs has .* bytes and would expand to"):
        read_cells(folder / "sample.h5ad")


def test_fewer_vectors_than_cells_are_refused(files):
    folder, _ = files
    with h5py.File(folder / "sample.h5ad", "r+") as file:
        few = file["obsm/X_pca"][:5]
        del file["obsm/X_pca"]
        file["obsm/X_pca"] = few
        file["obsm/X_pca"].attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    with pytest.raises(BankError, match=r"one vector for each of 40 cells, got float32 of shape \(5, 12\)"):
        read_cells(folder / "sample.h5ad")


def test_a_folder_is_no_place_for_the_copy(files):
    folder, _ = files
    (folder / "out.h5ad").mkdir()
    found = classify(folder / "atlas.h5ad", folder / "sample.h5ad")
    with pytest.raises(StorageError, match=r"out\.h5ad is a folder, and a file is to be written there"):
        write_predictions(found, folder / "out.h5ad")


@pytest.mark.skipif(not LUNG.is_dir(), reason="the cells of two lung atlases are not here")
def test_a_real_sample_of_another_laboratory(tmp_path, capsys):
    """Cells of six batches against a reference of another atlas: one command, no fewer right than each cell alone."""

    def load(name):
        return np.load(LUNG / f"{name}.npy")

    known, labels, cells, truth, batches = map(
        load, ("reference", "reference_labels", "query", "query_labels", "query_batches")
    )
    with text_that_anndata_can_write():
        for name, cells_of, obs in (
            ("atlas", known, {"cell_type": [f"t{k}" for k in labels]}),
            ("sample", cells, {"donor": [f"d{b}" for b in batches]}),
        ):
            data = anndata.AnnData(obs=pd.DataFrame(obs, index=[str(i) for i in range(len(cells_of))]))
            data.obsm["X_pca"] = cells_of
            data.write_h5ad(tmp_path / f"{name}.h5ad")
    code, _, _ = run(
        capsys, "--catalogue", tmp_path / "atlas.h5ad", "--labels", "cell_type", "--batch", tmp_path / "sample.h5ad",
        "--group-by", "donor", "--out", tmp_path / "labelled.h5ad",
    )  # fmt: skip
    assert code == 0
    found = anndata.read_h5ad(tmp_path / "labelled.h5ad").obs["handful_label"].to_numpy()
    of_known = truth < 31
    right = (found == np.array([f"t{k}" for k in truth]))[of_known].mean()
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (known, cells)]
    nearest = np.array([unit[0][labels == k].mean(0) for k in range(31)])
    alone = (((unit[1][:, None] - nearest[None]) ** 2).sum(-1).argmin(1) == truth)[of_known].mean()
    print(f"joint {right:.3f}, each cell alone {alone:.3f}")
    assert right > max(0.88, alone - 0.02)


def test_a_class_with_half_a_character_is_written_as_an_escape(files):
    folder, _ = files
    found = classify(folder / "atlas.h5ad", folder / "sample.h5ad")
    names = tuple(f"{name} \ud800" for name in found.class_names)
    write_predictions(replace(found, class_names=names), folder / "out.h5ad")
    labels = anndata.read_h5ad(folder / "out.h5ad").obs["handful_label"]
    assert labels.tolist() == [rf"{name} \ud800" for name in found.predictions()["label"]]
