"""Benchmarks in miniature: the lists' own form and the folders' own layout, with the published counts made small."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from handful.extraction.items import list_items
from handful_fewshot.errors import TrainingError
from handful_fewshot.training import splits
from handful_fewshot.training.splits import (
    BASE,
    BENCHMARKS,
    QUERY,
    SUPPORT,
    TEST,
    VALIDATION,
    benchmark_rows,
    check_disjoint,
    hold_out,
    only_classes,
    read_benchmark,
)
from tests.items_at_hand import image_bytes, image_folder


@pytest.fixture
def photos(tmp_path):
    return list_items(image_folder(tmp_path / "photos", n_classes=6, each=4))


def test_held_out_classes_are_whole_and_a_function_of_the_seed(photos):
    split = hold_out(photos, 2, seed=0)
    assert len(split.base.class_names) == 4
    assert len(split.validation.class_names) == 2
    assert {*split.base.class_names, *split.validation.class_names} == set(photos.class_names)
    assert {*split.base.names, *split.validation.names} == set(photos.names)
    assert hold_out(photos, 2, seed=0).base.data_hash == split.base.data_hash
    others = {hold_out(photos, 2, seed).validation.class_names for seed in range(10)}
    assert len(others) > 1


@pytest.mark.parametrize("n_classes", [1, 5, 6])
def test_too_few_classes_on_either_side_are_refused(photos, n_classes):
    with pytest.raises(TrainingError, match="of 6 classes cannot be held out"):
        hold_out(photos, n_classes, seed=0)


def test_a_class_on_both_sides_is_refused(photos):
    with pytest.raises(TrainingError, match="1 classes are both trained on and validated with, the first is 'class2'"):
        check_disjoint(only_classes(photos, [0, 1, 2]), only_classes(photos, [2, 3]))
    check_disjoint(only_classes(photos, [0, 1]), only_classes(photos, [2, 3]))


def shrunk(monkeypatch, name, classes, **images):
    small = replace(BENCHMARKS[name], classes=classes, **{"images_a_class": (0, 100), "images": None} | images)
    monkeypatch.setattr(splits, "BENCHMARKS", MappingProxyType({**BENCHMARKS, name: small}))


def mini_imagenet(root, header="filename,label\n"):
    """All images in one folder, `nXXXXXXXX00000001.jpg`; a list a split, with a header."""
    (root / "images").mkdir(parents=True)
    (root / "split").mkdir()
    for file, classes in {"train.csv": (1, 2, 3), "val.csv": (4, 5), "test.csv": (6, 7)}.items():
        lines = []
        for k in classes:
            for i in range(6):
                name = f"n0000000{k}0000000{i}.png"
                (root / "images" / name).write_bytes(image_bytes(10 * k + i))
                lines.append(f"{name},n0000000{k}\n")
        (root / "split" / file).write_text(header + "".join(lines))
    return root / "split", root / "images"


MINI = {BASE: 3, VALIDATION: 2, TEST: 2}


@pytest.mark.parametrize("header", ["filename,label\n", "filename,class\n", ""])
def test_mini_imagenet(tmp_path, monkeypatch, header):
    shrunk(monkeypatch, "mini-imagenet", MINI)
    lists, images = mini_imagenet(tmp_path, header)
    split = read_benchmark("mini-imagenet", lists, images, tmp_path / "run" / "items.csv")
    assert split.base.class_names == ("n00000001", "n00000002", "n00000003")
    assert split.validation.class_names == ("n00000004", "n00000005")
    assert np.bincount(split.base.labels).tolist() == [6, 6, 6]
    # The table closes the loop: test classes can be extracted from it.
    assert len(list_items(tmp_path / "run" / "items.csv", split="test")) == 12


def test_tiered_imagenet_as_lists_of_images_numbered_within_each_split(tmp_path, monkeypatch):
    shrunk(monkeypatch, "tiered-imagenet", {BASE: 2, VALIDATION: 2, TEST: 2})
    (tmp_path / "split").mkdir()
    (tmp_path / "data").mkdir()
    for file, tag in {"train.csv": "train", "val.csv": "val", "test.csv": "test"}.items():
        names = [f"{tag}_0_{k}_{10 * k + i}.png" for k in range(2) for i in range(3)]
        for name in names:
            (tmp_path / "data" / name).write_bytes(image_bytes(len(name)))
        (tmp_path / "split" / file).write_text("".join(f"{name},{name.split('_')[2]}\n" for name in names))
    split = read_benchmark("tiered-imagenet", tmp_path / "split", tmp_path / "data", tmp_path / "items.csv")
    assert split.base.class_names == ("base/0", "base/1")
    assert split.validation.class_names == ("validation/0", "validation/1")
    assert len(split.base) == 6


def test_tiered_imagenet_as_lists_of_classes(tmp_path, monkeypatch):
    shrunk(monkeypatch, "tiered-imagenet", {BASE: 2, VALIDATION: 1, TEST: 1})
    image_folder(tmp_path / "data", n_classes=4, each=3)
    (tmp_path / "split").mkdir()
    (tmp_path / "split" / "train.csv").write_text("class0,above\nclass1,above\n")
    (tmp_path / "split" / "val.csv").write_text("class2,beside\n")
    (tmp_path / "split" / "test.csv").write_text("class3,below\n")
    split = read_benchmark("tiered-imagenet", tmp_path / "split", tmp_path / "data", tmp_path / "items.csv")
    assert split.base.class_names == ("class0", "class1")
    assert len(split.validation) == 3
    (tmp_path / "split" / "test.csv").write_text("class9,below\n")
    with pytest.raises(TrainingError, match=r"class class9 has no folder .*few-shot-ssl-public"):
        benchmark_rows("tiered-imagenet", tmp_path / "split", tmp_path / "data")


def inat(root, query_classes=("30", "31")):
    (root / "split").mkdir(parents=True)
    lists = {
        "train.csv": ("train", ("7", "12")),
        "repr.csv": ("repr", ("30", "31")),
        "query.csv": ("query", query_classes),
    }
    for file, (tag, classes) in lists.items():
        lines = []
        for k in classes:
            (root / "data" / tag / k).mkdir(parents=True)
            for i in range(3):
                (root / "data" / tag / k / f"{i}.jpg").write_bytes(image_bytes(i))
                lines.append(f"{tag}/{k}/{i}.jpg,{k}\n")
        (root / "split" / file).write_text("".join(lines))
    return root / "split", root / "data"


def test_inat_has_one_support_for_all_tasks_and_no_validation(tmp_path, monkeypatch):
    shrunk(monkeypatch, "inat", {BASE: 2, SUPPORT: 2, QUERY: 2})
    split = read_benchmark("inat", *inat(tmp_path), tmp_path / "items.csv")
    assert split.base.class_names == ("7", "12")
    assert split.validation is None
    assert len(list_items(tmp_path / "items.csv", split="support")) == 6
    assert len(list_items(tmp_path / "items.csv", split="query")) == 6


def test_inat_classes_have_a_support_and_a_query(tmp_path, monkeypatch):
    shrunk(monkeypatch, "inat", {BASE: 2, SUPPORT: 2, QUERY: 2})
    with pytest.raises(TrainingError, match="class 31 has a support or a query, not both"):
        benchmark_rows("inat", *inat(tmp_path, query_classes=("30", "32")))


def gone(lists, images):
    next(images.glob("n00000004*")).unlink()


def changed(file, change):
    def apply(lists, images):
        (lists / file).write_text(change((lists / file).read_text()))

    return apply


REFUSED = {
    r"1 of 42 images are not in .*n00000004": gone,
    r"the list .*val.csv is missing": lambda lists, images: (lists / "val.csv").unlink(),
    r"class n00000001 is in base and in vali": changed("val.csv", lambda t: t.replace(",n00000005", ",n00000001")),
    r"is listed twice": changed("val.csv", lambda text: text + text.splitlines()[-1]),
    r"line 14 of .*val.csv must have two entries": changed("val.csv", lambda text: text + "a.png,b,c\n"),
    r"cannot be read as text in UTF-8": lambda lists, images: (lists / "val.csv").write_bytes(b"\xff\xfe\x00"),
    r"has 2 validation classes, but the lists have 1": changed(
        "val.csv", lambda text: "".join(line for line in text.splitlines(True) if "n00000005" not in line)
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_lists_and_images_that_do_not_fit_are_refused(tmp_path, monkeypatch, sentence):
    lists, images = mini_imagenet(tmp_path)
    shrunk(monkeypatch, "mini-imagenet", MINI)
    REFUSED[sentence](lists, images)
    with pytest.raises(TrainingError, match=sentence):
        benchmark_rows("mini-imagenet", lists, images)


def test_what_is_no_benchmark_or_no_folder_is_refused(tmp_path):
    with pytest.raises(TrainingError, match="no benchmark is called 'imagenet'"):
        benchmark_rows("imagenet", tmp_path, tmp_path)
    with pytest.raises(TrainingError, match=r"expected in a folder, but .* is not a folder; images and lists .*TIM"):
        benchmark_rows("mini-imagenet", tmp_path, tmp_path / "gone")


@pytest.mark.parametrize(
    ("name", "classes", "made", "message"),
    [
        ("mini-imagenet", MINI, mini_imagenet, "600 to 600 images of each class, but 6 of n00000001"),
        ("tiered-imagenet", MINI, mini_imagenet, "779,165 images, but the lists lead to 42"),
        ("inat", {BASE: 2, SUPPORT: 2, QUERY: 2}, inat, "50 to 1,000 images of each class, but 3 of 7"),
    ],
)
def test_image_counts_are_checked(tmp_path, monkeypatch, name, classes, made, message):
    published = BENCHMARKS[name]
    shrunk(monkeypatch, name, classes, images_a_class=published.images_a_class, images=published.images)
    with pytest.raises(TrainingError, match=message):
        benchmark_rows(name, *made(tmp_path))
