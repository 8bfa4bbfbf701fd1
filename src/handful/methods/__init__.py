"""Methods: one paper, one file. `METHODS` is the whole registry."""

from collections.abc import Mapping
from types import MappingProxyType

from handful.methods import alpha_tim, ici, paddle, paddle_gd, soft_kmeans, tim, tim_adm
from handful.methods.method import Method

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "paddle": paddle.METHOD,
        "soft_kmeans": soft_kmeans.METHOD,
        "paddle_gd": paddle_gd.METHOD,
        "tim": tim.METHOD,
        "tim_adm": tim_adm.METHOD,
        "alpha_tim": alpha_tim.METHOD,
        "ici": ici.METHOD,
    }
)

__all__ = ["METHODS", "Method"]
