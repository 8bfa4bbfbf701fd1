"""`handful classify`: one command from files to labels."""

import csv
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from handful.classification import task
from handful.cli import printed
from handful.cli.main import main
from handful.datasets import load_clinc150


@pytest.fixture
def files(tmp_path):
    bank = load_clinc150()
    catalogue = np.concatenate([np.flatnonzero(bank.labels == k)[:5] for k in range(150)])
    batch = np.concatenate([np.flatnonzero(bank.labels == k)[10:30] for k in (3, 17)])
    names = np.array(bank.class_names)[bank.labels]
    np.savez(tmp_path / "catalogue.npz", features=bank.take(catalogue), intent=names[catalogue])
    np.savez(tmp_path / "batch.npz", features=bank.take(batch))
    return tmp_path, names[batch]


def run(capsys, *arguments):
    code = main(["classify", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_labels_a_page_and_the_classes_present(files, capsys):
    folder, truth = files
    code, out, err = run(
        capsys, folder / "catalogue.npz", folder / "batch.npz",
        "--out", folder / "p.csv", "--out", folder / "p.html",
    )  # fmt: skip
    assert (code, err) == (0, "")
    with (folder / "p.csv").open() as stream:
        labels = [row["label"] for row in csv.DictReader(stream)]
    assert (np.array(labels) == truth).mean() > 0.9
    lines = out.splitlines()
    assert lines[0] == "40 items, labelled jointly, with a catalogue of 150 classes and 750 examples"
    assert lines[2].startswith("2 classes present")
    rows = [line.split() for line in lines[3:6]]
    assert rows[0] == ["items", "expected", "chance", "class"]
    assert {row[3]: int(row[0]) for row in rows[1:]} == Counter(labels)
    assert {row[3] for row in rows[1:]} == set(truth)
    assert float(rows[1][0]) >= float(rows[2][0]) > 15
    assert [line.split()[0] for line in lines[-2:]] == [str(folder / "p.csv"), str(folder / "p.html")]
    assert "batch: " in (folder / "p.html").read_text()


@pytest.mark.parametrize("mixed", [True, False])
def test_items_of_missing_classes_are_counted_and_written(files, capsys, mixed):
    folder, _ = files
    bank, rng = load_clinc150(), np.random.default_rng(0)
    of_class = [np.flatnonzero(bank.labels == k) for k in range(150)]
    of_class = [rng.permutation(rows) for rows in of_class] if mixed else of_class
    gone = [40, 90]
    catalogue = np.concatenate([of_class[k][:5] for k in range(150) if k not in gone])
    batch = np.concatenate([of_class[k][10:25] for k in (3, 17, 60, *gone)])
    names = np.array(bank.class_names)[bank.labels]
    np.savez(folder / "fewer.npz", features=bank.take(catalogue), intent=names[catalogue])
    np.savez(folder / "more.npz", features=bank.take(batch))
    code, out, _ = run(
        capsys, folder / "fewer.npz", folder / "more.npz",
        "--out", folder / "p.csv", "--out", folder / "p.html",
    )  # fmt: skip
    assert code == 0
    (last,) = (line for line in out.splitlines() if "none of your" in line)
    assert re.fullmatch(
        r"\d+ items look like none of your 148 classes; (they|\d+ of them) fall into \d groups?\.", last
    )
    with (folder / "p.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    chances = np.array([float(row["unknown"]) for row in rows])
    strange = np.isin(bank.labels[batch], gone)
    assert chances[strange].mean() > 0.4
    assert chances[~strange].mean() < 0.3
    assert int(last.split()[0]) == (chances > 0.5).sum() == sum(row["rejected"] == "True" for row in rows)
    assert {row["proposal"] for row, new in zip(rows, strange, strict=True) if not new} <= {"", "1", "2"}
    page = (folder / "p.html").read_text()
    assert last.split(";")[0] in page
    assert "New group 1" in page


def test_a_large_batch_has_the_same_labels(files, capsys, monkeypatch):
    folder, _ = files
    texts = []
    for limit in (2**28, 0):
        monkeypatch.setattr(task, "MOST_DENSE_BYTES", limit)
        code, out, err = run(
            capsys, folder / "catalogue.npz", folder / "batch.npz",
            "--out", folder / f"{limit}.csv", "--out", folder / f"{limit}.html",
        )  # fmt: skip
        assert (code, err) == (0, "")
        with (folder / f"{limit}.csv").open() as stream:
            told = out.replace(str(folder / str(limit)), "out")
            texts.append(([(row["item"], row["label"]) for row in csv.DictReader(stream)], told.split()))
    assert texts[0] == texts[1]


def test_what_looks_wrong_is_said_on_standard_error(files, capsys):
    folder, _ = files
    np.save(folder / "noise.npy", np.random.default_rng(0).standard_normal((30, 384)))
    code, out, err = run(capsys, folder / "catalogue.npz", folder / "noise.npy", "--out", folder / "p.csv")
    assert code == 0
    assert "warning: The mean probability of an item's class is " in err
    assert "warning: " not in out


def test_an_unknown_ending_is_refused_before_any_work(tmp_path, capsys):
    code, _, err = run(capsys, tmp_path / "c", tmp_path / "b", "--out", tmp_path / "p.ods")
    assert code == 1
    assert "written as .parquet, .csv" in err


@pytest.fixture
def sites(files):
    """The batch with two columns of groups, its rows in mixed order: at each site one class, on each day both sites."""
    folder, truth = files
    order = np.random.default_rng(1).permutation(len(truth))
    batch = np.load(folder / "batch.npz")["features"][order]
    site = np.where(truth == truth[0], "wood", "marsh")[order]
    np.savez(folder / "sites.npz", features=batch, site=site, day=np.arange(len(truth)) % 2)
    return folder, truth[order], site


def test_every_group_is_a_batch(sites, capsys):
    folder, truth, site = sites
    code, out, err = run(
        capsys, folder / "catalogue.npz", folder / "sites.npz", "--group-by", "site",
        "--out", folder / "p.csv", "--out", folder / "p.html",
    )  # fmt: skip
    assert (code, err) == (0, "")
    with (folder / "p.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["site"] for row in rows] == site.tolist()
    assert (np.array([row["label"] for row in rows]) == truth).mean() > 0.9
    lines = out.splitlines()
    assert lines[0] == "40 items, each group labelled as one batch, with a catalogue of 150 classes and 750 examples"
    assert lines[2] == "2 groups by site"
    for line, name in zip(lines[4:6], ("marsh", "wood"), strict=True):
        (expected,) = set(truth[site == name])
        assert re.match(rf"  {name} +20  {expected} \d+\.\d", line)
    assert [Path(line.split()[0]).name for line in lines[-3:]] == ["p.csv", "p.groups.csv", "p.html"]
    with (folder / "p.groups.csv").open() as stream:
        table = list(csv.DictReader(stream))
    assert [(row["site"], row["items"]) for row in table if float(row["expected_count"]) > 10] == [
        ("marsh", "20"), ("wood", "20"),
    ]  # fmt: skip
    assert "<h1>sites: 2 groups</h1>" in (folder / "p.html").read_text()
    assert not list(folder.glob("*.run"))


def test_many_groups_are_printed_in_part(sites, capsys, monkeypatch):
    monkeypatch.setattr(printed, "MOST_GROUPS", 3)
    folder, _, _ = sites
    code, out, _ = run(
        capsys, folder / "catalogue.npz", folder / "sites.npz", "--out", folder / "p.parquet",
        "--group-by", "site", "--group-by", "day",
    )  # fmt: skip
    assert code == 0
    lines = out.splitlines()
    assert lines[2] == "4 groups by site, day"
    assert [line.split("  ")[1] for line in lines[4:7]] == ["marsh, 0", "marsh, 1", "wood, 0"]
    assert lines[7] == "  and 1 more"


def test_a_column_that_is_not_there_and_rows_without_a_group_are_sentences(sites, capsys):
    folder, _, _ = sites
    arguments = ("--out", folder / "p.csv", "--group-by", "plot")
    code, out, err = run(capsys, folder / "catalogue.npz", folder / "sites.npz", *arguments)
    assert (code, out) == (1, "")
    assert err == f"handful: {folder / 'sites.npz'} has no column 'plot' for the groups; it has site, day\n"
    np.savez(folder / "gaps.npz", features=np.eye(3), plot=["a", "", "b"])
    code, out, err = run(capsys, folder / "catalogue.npz", folder / "gaps.npz", *arguments)
    assert (code, out) == (1, "")
    assert "1 row has no 'plot' and so no group, the first is row 1; fill in or drop such rows" in err
    assert not (folder / "p.csv").exists()


def test_warnings_of_groups_are_said_once_each_kind(sites, capsys):
    folder, _, _ = sites
    noise = np.random.default_rng(0).standard_normal((60, 384))
    np.savez(folder / "noise.npz", features=noise, site=np.arange(60) % 3)
    code, out, err = run(
        capsys, folder / "catalogue.npz", folder / "noise.npz", "--group-by", "site",
        "--out", folder / "p.csv",
    )  # fmt: skip
    assert code == 0
    assert err.startswith("warning: 3 of 3 groups, for example 0: The mean probability of an item's class is ")
    assert err.count("warning") == 1
    assert "warning: " not in out


def test_a_table_comes_back_with_its_columns_and_labels(files, capsys):
    """One column per dimension, as pandas writes it; the other columns come back as they were, in order."""
    pd = pytest.importorskip("pandas")
    folder, truth = files
    known, batch = np.load(folder / "catalogue.npz"), np.load(folder / "batch.npz")["features"]
    pd.DataFrame(known["features"]).assign(intent=known["intent"]).to_csv(folder / "c.csv", index=False)
    tickets = [f"T{i:03}" for i in range(len(truth))]
    frame = pd.DataFrame(batch, columns=[f"emb_{k}" for k in range(batch.shape[1])])
    frame.insert(0, "ticket", tickets)
    frame["price"], frame["label"] = "1.50", "old"
    frame.to_csv(folder / "b.csv", index=False)
    frame.to_parquet(folder / "b.parquet")
    for ending in ("csv", "parquet"):
        arguments = ("--id-column", "ticket", "--out", folder / f"p.{ending}")
        assert run(capsys, folder / "c.csv", folder / f"b.{ending}", *arguments)[0] == 0
        found = getattr(pd, f"read_{ending}")(folder / f"p.{ending}", **({"dtype": str} if ending == "csv" else {}))
        assert list(found)[:6] == ["row", "item", "ticket", "price", "given_label", "label"]
        assert found["item"].tolist() == found["ticket"].tolist() == tickets
        assert found["price"].tolist() == ["1.50"] * len(truth)
        assert found["given_label"].tolist() == ["old"] * len(truth)
        assert (found["label"].to_numpy() == truth).mean() > 0.9


def test_an_empty_folder_is_called_empty_and_a_wide_table_names_three_columns(files, capsys):
    folder, _ = files
    (folder / "nothing").mkdir()
    for catalogue, batch in (("nothing", "batch.npz"), ("catalogue.npz", "nothing")):
        code, out, err = run(capsys, folder / catalogue, folder / batch, "--out", folder / "p.csv")
        assert (code, out, err) == (1, "", f"handful: {folder / 'nothing'} is an empty folder; check the path\n")
    header = ",".join([*(f"emb_{i}" for i in range(384)), "kind"])
    (folder / "wide.csv").write_text(header + "\n" + ",".join(["0.5"] * 384 + ["x"]) + "\n")
    code, out, err = run(
        capsys, folder / "wide.csv", folder / "batch.npz", "--labels", "intent",
        "--out", folder / "p.csv",
    )  # fmt: skip
    assert (code, out) == (1, "")
    assert err == f"handful: {folder / 'wide.csv'} has no column 'intent' for the labels; it has kind\n"
    (folder / "wide.csv").write_text(header.replace("emb_", "emb") + "\n" + ",".join(["0.5"] * 384 + ["x"]) + "\n")
    code, _, err = run(
        capsys, folder / "catalogue.npz", folder / "wide.csv", "--out", folder / "p.csv",
        "--group-by", "site",
    )  # fmt: skip
    assert code == 1
    assert len(err) < 400


def test_bad_rows_are_left_out_on_request_and_counted(files, capsys):
    folder, _ = files
    rows = [f"{k % 2},{(k + 1) % 2},{'ab'[k % 2]}" for k in range(20)]
    (folder / "c.csv").write_text("\n".join(["e0,e1,label", *rows, "1,0, ", "1,x,a"]) + "\n")
    (folder / "b.csv").write_text("id,e0,e1\nT1,1,0\nT2,one,0\nT3,two,0\nT4,0,1\n,,\n")
    arguments = (folder / "c.csv", folder / "b.csv", "--out", folder / "p.csv")
    code, _, errors = run(capsys, *arguments)
    assert (code, "2 of 4 rows cannot be read, more than 5%" in errors, "--skip-bad" in errors) == (1, True, True)
    code, _, errors = run(capsys, *arguments, "--skip-bad", "--out", folder / "p.html")
    assert code == 0
    assert "c.csv: 2 of 22 items are skipped: 1 unreadable, 1 without a label: line 22: it has no label" in errors
    assert (
        "\n2 of 4 items are skipped: 2 unreadable\n  line 3: it must have a number in column 'e0', got 'one'\n"
        in errors
    )
    assert [line.split(",")[:2] for line in (folder / "p.csv").read_text().splitlines()[1:]] == [
        ["0", "T1"],
        ["3", "T4"],
    ]
    page = (folder / "p.html").read_text(encoding="utf-8")
    assert "Catalogue: 2 of 22 items are skipped" in page
    assert "Batch: 2 of 4 items are skipped" in page


def test_without_an_output_the_summary_is_printed(tmp_path, capsys):
    np.savez(tmp_path / "c.npz", features=np.eye(4).repeat(3, 0), labels=list("aaabbbcccddd"))
    np.savez(tmp_path / "b.npz", features=np.eye(4)[[0, 0, 1]])
    assert main(["classify", str(tmp_path / "c.npz"), str(tmp_path / "b.npz")]) == 0
    said = capsys.readouterr().out
    assert "2 classes present" in said
    assert "Nothing is written" in said
    assert sorted(one.name for one in tmp_path.iterdir()) == ["b.npz", "c.npz"]
