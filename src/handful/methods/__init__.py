"""Methods: one paper, one file. `METHODS` is the whole registry."""

from collections.abc import Mapping
from types import MappingProxyType

from handful.methods import paddle, paddle_gd, soft_kmeans
from handful.methods.method import Method

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "paddle": paddle.METHOD,
        "soft_kmeans": soft_kmeans.METHOD,
        "paddle_gd": paddle_gd.METHOD,
    }
)

__all__ = ["METHODS", "Method"]
