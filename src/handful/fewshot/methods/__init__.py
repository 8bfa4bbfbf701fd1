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

_IN_ORDER = (
    *(roll_call, paddle, soft_kmeans, paddle_gd, nearest_prototype, baseline, baseline_pp, prior_em),
    *(bd_cspn, laplacian_shot, pt_map, tim, tim_adm, alpha_tim, ici),
    *(oslo, ostim, eol, em_dirichlet, transclip, stata),
)
METHODS: Mapping[str, Method] = MappingProxyType({module.METHOD.name: module.METHOD for module in _IN_ORDER})

__all__ = ["METHODS", "Method"]
