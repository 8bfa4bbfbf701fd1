"""CPU time of EfficientNet-Lite0 per image, by batch size, on one thread: python perf/extraction.py."""

from __future__ import annotations

import time

import numpy as np
from PIL import Image

from handful.extraction.encoders import load_encoder
from handful.machine.threads import one_thread

N_IMAGES = 32


def main() -> None:
    """Print one line per batch size, the best of three."""
    noise = np.random.default_rng(0)
    images = [Image.fromarray(noise.integers(0, 256, (240, 320, 3), dtype=np.uint8)) for _ in range(N_IMAGES)]
    encoder = load_encoder("efficientnet-lite0")
    print("batch size  ms an image")
    with one_thread():
        for size in (1, 4, 8, 16, 32):
            spent = []
            for _ in range(3):
                start = time.process_time()
                for first in range(0, N_IMAGES, size):
                    encoder.embed(images[first : first + size])
                spent.append(time.process_time() - start)
            print(f"{size:10d}  {1000 * min(spent) / N_IMAGES:11.1f}")


if __name__ == "__main__":
    main()
