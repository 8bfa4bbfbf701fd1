"""AnnData files: labels go in, everything else comes back as it was, as anndata itself reads it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from handful.classification import classify, write_predictions
from handful.classification.labelled import class_names, predictions
from handful.cli.main import main
from handful.errors import OptionError, StorageError
from tests.cells_at_hand import anndata, pd, text_that_anndata_can_write, write_files

pytestmark = pytest.mark.filterwarnings("ignore:.*infer_string")
LUNG = Path(__file__).resolve().parents[3] / ".." / "shared" / "data" / "lung-two-atlases"


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


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
        capsys, folder / "atlas.h5ad", folder / "sample.h5ad", "--labels", "cell_type",
        "--group-by", "donor", "--out", folder / "labelled.h5ad",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "d1" in out
    found = anndata.read_h5ad(folder / "labelled.h5ad")
    assert_kept(anndata.read_h5ad(folder / "sample.h5ad"), found)
    assert found.obs["handful_label"].dtype == "category"
    assert (found.obs["handful_label"].to_numpy() == truth).mean() > 0.95
    assert found.obs["handful_certainty"].between(0.3, 1).all()
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
    assert "donor" in predictions(found)
    assert "handful_label" not in predictions(found)


@pytest.mark.parametrize("missing", [None, "", "Unknown"])
def test_cells_without_a_label_are_the_batch_of_one_file(files, missing):
    folder, truth = files
    with text_that_anndata_can_write():
        atlas, batch = (anndata.read_h5ad(folder / f"{name}.h5ad") for name in ("atlas", "sample"))
        both = anndata.concat([batch, atlas], join="outer", index_unique="-")
        both.obs["cell_type"] = pd.Categorical([missing] * len(truth) + atlas.obs["cell_type"].tolist())
        both.write_h5ad(folder / "both.h5ad")
    found = classify(
        folder / "both.h5ad", folder / "both.h5ad", group_by="donor", labels="cell_type"
    )  # warns of no cell: those without a label are the batch
    write_predictions(found, folder / "out.h5ad")
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


def test_a_folder_is_no_place_for_the_copy(files):
    folder, _ = files
    (folder / "out.h5ad").mkdir()
    found = classify(folder / "atlas.h5ad", folder / "sample.h5ad")
    with pytest.raises(StorageError, match=r"out\.h5ad is a folder; name a file to write"):
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
        capsys, tmp_path / "atlas.h5ad", tmp_path / "sample.h5ad", "--labels", "cell_type",
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
    classes = np.array([f"{name} \ud800" for name in class_names(found)], dtype=object)
    write_predictions(replace(found, classes=classes), folder / "out.h5ad")
    labels = anndata.read_h5ad(folder / "out.h5ad").obs["handful_label"]
    assert labels.tolist() == [rf"{name} \ud800" for name in predictions(found)["label"]]
