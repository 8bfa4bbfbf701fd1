"""Names of classes in files: texts and vectors, what is refused, and batches labelled with them."""

import json

import numpy as np
import pytest
import torch

from handful.classification.labelled import class_names, predictions
from handful.classification.names import NamedClasses, read_names, spoken
from handful.classification.steps import classify
from handful.errors import BankError, HandfulError, LabelError, OptionError
from handful.extraction.encoder import Encoder


def written(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("book_flight", "book flight"),
        ("BookFlight", "book flight"),
        ("bookFlight", "book flight"),
        ("HTTPError", "HTTP error"),
        ("what is this?", "what is this?"),
        ("Felis silvestris", "Felis silvestris"),
    ],
)
def test_labels_become_words(label, words):
    assert spoken(label) == words


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("n.txt", "book_flight\nweather\twill it rain\thow hot is it\n"),
        ("n.json", json.dumps({"book_flight": [], "weather": ["will it rain", "how hot is it"]})),
    ],
)
def test_texts_in_two_formats(tmp_path, name, text):
    named = read_names(written(tmp_path, name, text))
    assert named.labels == ("book_flight", "weather")
    assert named.texts == (("book flight",), ("will it rain", "how hot is it"))


def test_a_table_has_one_text_per_row(tmp_path):
    rows = [{"label": "weather", "text": "will it rain"}, {"label": "alarm", "text": "wake me"}]
    rows.append({"label": "weather", "text": "how hot is it"})
    named = read_names(written(tmp_path, "n.jsonl", "\n".join(map(json.dumps, rows))))
    assert dict(zip(named.labels, named.texts, strict=True)) == {
        "weather": ("will it rain", "how hot is it"),
        "alarm": ("wake me",),
    }


def test_a_list_of_labels_is_enough(tmp_path):
    assert read_names(written(tmp_path, "n.json", '["a_b", "c"]')).texts == (("a b",), ("c",))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("n.txt", "", "has no names"),
        ("n.txt", "cat\n\ndog\n", "line 2 of .* is empty"),
        ("n.txt", "cat\ncat\n", "'cat' twice"),
        ("n.txt", "cat\t \n", "empty name or text"),
        ("n.json", "{}", "has no names"),
        ("n.json", "{", "must be names of classes in JSON"),
        ("n.json", '["a", "a"]', "distinct labels"),
        ("n.json", '{"a": [1]}', "'a' a text or a list of texts"),
        ("n.json", "3", "must be an object"),
    ],
)
def test_what_is_refused(tmp_path, name, text, said):
    with pytest.raises(BankError, match=said):
        read_names(written(tmp_path, name, text))


def vectors_at_hand(folder):
    """Vectors of the names of six classes, and of a batch of two of them."""
    rng = np.random.default_rng(0)
    places = rng.normal(size=(6, 16)).astype(np.float32)
    labels = [f"class_{k}" for k in range(6)]
    np.savez(folder / "names.npz", features=places + 0.3 * rng.normal(size=places.shape), labels=labels)
    truth = np.array([1] * 9 + [4] * 9)
    np.save(folder / "batch.npy", (places[truth] + 0.4 * rng.normal(size=(18, 16))).astype(np.float32))
    return places, labels, [labels[k] for k in truth]


def test_vectors_of_names_label_vectors(tmp_path):
    places, _, truth = vectors_at_hand(tmp_path)
    found = classify(None, tmp_path / "batch.npy", names=tmp_path / "names.npz")
    assert predictions(found)["label"] == truth
    assert found.about.n_examples == 0
    # Examples of one class under another spelling, and of one that has no name.
    np.savez(tmp_path / "few.npz", features=np.stack([places[4], -places[1]]), labels=["Class 4", "other"])
    found = classify(tmp_path / "few.npz", tmp_path / "batch.npy", names=tmp_path / "names.npz")
    assert set(class_names(found)) == {"Class 4", "other", *(f"class_{k}" for k in (0, 1, 2, 3, 5))}
    assert predictions(found)["label"] == [name.replace("class_4", "Class 4") for name in truth]


def test_groups_are_labelled_by_names_too(tmp_path):
    _, _, truth = vectors_at_hand(tmp_path)
    features, site = np.load(tmp_path / "batch.npy"), np.repeat(["wood", "marsh"], 9)
    np.savez(tmp_path / "sites.npz", features=features, site=site)
    found = classify(None, tmp_path / "sites.npz", names=tmp_path / "names.npz", group_by="site")
    assert predictions(found["wood"])["label"] == truth[:9]


def test_neither_examples_nor_names_are_refused(tmp_path):
    with pytest.raises(OptionError, match="got neither"):
        classify(None, tmp_path / "batch.npy")


def test_texts_need_an_encoder_that_reads_them(tmp_path):
    vectors_at_hand(tmp_path)
    texts = written(tmp_path, "names.txt", "cat\ndog\n")
    with pytest.raises(OptionError, match="which encoder made the vectors"):
        classify(None, tmp_path / "batch.npy", names=texts)
    images = Encoder("eyes", "image", 4, "", "", {}, "", np.asarray, lambda images: np.zeros((len(images), 4)))
    with pytest.raises(OptionError, match="eyes reads images and has no text side"):
        NamedClasses(("cat",), (("a cat",),)).embedded(images)


def test_a_network_of_two_sides_labels_images_by_names(tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image", reason="images need Pillow")
    colours = {"red": (250, 10, 10), "green": (10, 250, 10), "blue": (10, 10, 250)}
    (tmp_path / "photos").mkdir()
    for k, colour in enumerate(["red", "red", "blue", "red", "blue", "blue"]):
        image.new("RGB", (8, 8), colours[colour]).save(tmp_path / "photos" / f"{k}.png")
    texts = {f"a photo of something {name}": np.array(rgb) for name, rgb in colours.items()}

    def eyes(pixels):
        return torch.from_numpy(np.array(pixels.resize((1, 1)), dtype=np.float32)).flatten()

    two = Encoder.of_images(torch.nn.Flatten(), eyes, name="two sides")
    read = lambda given: np.stack([texts[text] for text in given]).astype(np.float32)  # noqa: E731
    two = Encoder(**{**vars(two), "text_side": read})
    monkeypatch.setattr("handful.extraction.encoders.load_encoder", lambda name, device: two)
    lines = "\n".join(f"{name}\ta photo of something {name}" for name in colours)
    found = classify(None, tmp_path / "photos", names=written(tmp_path, "names.txt", lines), encoder="two sides")
    assert predictions(found)["label"] == ["red", "red", "blue", "red", "blue", "blue"]


def test_two_names_of_one_class_are_refused(tmp_path):
    vectors_at_hand(tmp_path)
    np.savez(tmp_path / "few.npz", features=np.eye(2, 16), labels=["book flight", "other"])
    np.savez(tmp_path / "names.npz", features=np.eye(2, 16), labels=["book_flight", "BookFlight"])
    with pytest.raises(LabelError, match="two names belong to one class"):
        classify(tmp_path / "few.npz", tmp_path / "batch.npy", names=tmp_path / "names.npz")
    assert issubclass(LabelError, HandfulError)


@pytest.mark.parametrize("letter", ["\u2028", "\x0b", "\x85", "\x1c"])
def test_names_are_cut_at_ends_of_lines_alone(tmp_path, letter):
    (tmp_path / "n.txt").write_bytes(f"a{letter}b\r\nc\n".encode())
    assert read_names(tmp_path / "n.txt").labels == (f"a{letter}b", "c")


def test_names_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "n.json").write_text('[["a"], {"b": 1}]')
    with pytest.raises(BankError, match="a list of distinct labels"):
        read_names(tmp_path / "n.json")
