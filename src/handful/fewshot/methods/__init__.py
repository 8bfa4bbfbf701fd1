"""Methods: one paper, one file; they do not import one another. `METHODS` is the whole registry."""

from collections.abc import Mapping
from types import MappingProxyType

from handful.fewshot.methods import (
    alpha_tim,
    baseline,
    baseline_pp,
    bd_cspn,
    em_dirichlet,
    eol,
    ici,
    laplacian_shot,
    nearest_prototype,
    oslo,
    ostim,
    paddle,
    paddle_gd,
    prior_em,
    pt_map,
    roll_call,
    soft_kmeans,
    stata,
    tim,
    tim_adm,
    transclip,
)
from handful.fewshot.methods.method import Method

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "roll_call": roll_call.METHOD,
        "paddle": paddle.METHOD,
        "soft_kmeans": soft_kmeans.METHOD,
        "paddle_gd": paddle_gd.METHOD,
        "nearest_prototype": nearest_prototype.METHOD,
        "baseline": baseline.METHOD,
        "baseline_pp": baseline_pp.METHOD,
        "prior_em": prior_em.METHOD,
        "bd_cspn": bd_cspn.METHOD,
        "laplacian_shot": laplacian_shot.METHOD,
        "pt_map": pt_map.METHOD,
        "tim": tim.METHOD,
        "tim_adm": tim_adm.METHOD,
        "alpha_tim": alpha_tim.METHOD,
        "ici": ici.METHOD,
        "oslo": oslo.METHOD,
        "ostim": ostim.METHOD,
        "eol": eol.METHOD,
        "em_dirichlet": em_dirichlet.METHOD,
        "transclip": transclip.METHOD,
        "stata": stata.METHOD,
    }
)

__all__ = ["METHODS", "Method"]
