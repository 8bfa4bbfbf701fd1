"""Methods: one paper, one file; they do not import one another. `METHODS` is the whole registry."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from handful.fewshot.methods.method import Method

_NAMES = (
    *("roll_call", "paddle", "soft_kmeans", "paddle_gd", "nearest_prototype", "baseline", "baseline_pp", "prior_em"),
    *("bd_cspn", "laplacian_shot", "pt_map", "tim", "tim_adm", "alpha_tim", "ici"),
    *("oslo", "ostim", "eol", "em_dirichlet", "transclip", "stata"),
)
METHODS: Mapping[str, Method] = MappingProxyType({name: import_module(f"{__name__}.{name}").METHOD for name in _NAMES})

__all__ = ["METHODS", "Method"]
