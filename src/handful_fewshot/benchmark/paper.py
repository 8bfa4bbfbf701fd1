"""Plans for every table and figure of the paper, as functions of the available banks; and the numbers it printed.

Banks have the names in `PAPER_BANKS`; a plan has the columns of the banks that are given. If a bank has a split `test`,
tasks are drawn from it, and its split `base` centres the features of methods that ask for it. Every row follows what
produced the paper's tables, the public code with its configurations; `docs/understand/paper_to_code.md` says how far
that is from each method's own paper.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from handful_fewshot.benchmark.plan import Banks, Cell, Plan, named_bank
from handful_fewshot.errors import PlanError
from handful_fewshot.methods import METHODS
from handful_fewshot.methods.method import PUBLISHED
from handful_fewshot.tasks import Dirichlet, FixedSupport, ShotsPerClass, TaskSpec, UniformOverPool
from handful_fewshot.tasks.rules import SupportRule

# Names of banks, and what the paper's tables call them: data set and network.
PAPER_BANKS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "mini": ("mini-ImageNet", "ResNet-18"),
        "tiered": ("tiered-ImageNet", "ResNet-18"),
        "mini_wrn": ("mini-ImageNet", "WRN28-10"),
        "tiered_wrn": ("tiered-ImageNet", "WRN28-10"),
        "inat": ("iNat", "ResNet-18"),
    }
)
# Test classes of the data, and numbers in a vector of the network: what a bank of this name has in the paper.
TEST_CLASSES: Mapping[str, int] = MappingProxyType({"mini-ImageNet": 20, "tiered-ImageNet": 160, "iNat": 227})
# Images of these classes, all of which the public features have. For iNat the number is not stated.
TEST_IMAGES: Mapping[str, int] = MappingProxyType({"mini-ImageNet": 12_000, "tiered-ImageNet": 206_209})
DIMENSIONS: Mapping[str, int] = MappingProxyType({"ResNet-18": 512, "WRN28-10": 640})
INAT = "inat"
INAT_SUPPORT = "inat_support"
TABLE_1_METHODS = ("baseline", "ici", "bd_cspn", "pt_map", "laplacian_shot", "tim", "alpha_tim", "paddle")
# LR+ICI is not in Table 2: it was intractable.
TABLE_2_METHODS = tuple(method for method in TABLE_1_METHODS if method != "ici")
SHOTS = (5, 10, 20)
K_EFF = 5
N_QUERY = 75
N_TASKS = 10_000
SEED = 2020

# Where the public configurations differ from the defaults of our methods. The transform comes first, if not the
# method's own.
TRANSFORMS: Mapping[str, str] = MappingProxyType({"baseline": "l2", "bd_cspn": "raw"})
OPTIONS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "baseline": {"head": "prototypes"},
        "bd_cspn": {"public_code": True, "sharpness": 50.0},
        "pt_map": {"step_size": 0.02},
        "ici": {"n_components": 5},
    }
)
# Where a bank differs from that.
OPTIONS_OF_BANK: Mapping[tuple[str, str], Mapping[str, Any]] = MappingProxyType(
    {
        ("bd_cspn", "tiered"): {"sharpness": 30.0},
        ("pt_map", "mini_wrn"): {"step_size": 0.01},
        ("ici", "mini"): {"n_components": 2},
        ("ici", "mini_wrn"): {"n_components": 2},
    }
)
# The paper only plots accuracy against K_eff and does not list the values. These are the values for which the public
# code keeps results, in files whose entries at K_eff = 5 are those of Table 1, and up to which its script plots.
K_EFFS = tuple(range(2, 11))
# The studies of λ: the paper states tiered-ImageNet, ResNet-18, |Q| = 75 where λ varies alone, and three values of
# K_eff, of which its text names 2 and 10. The third, the shots and the values of λ and |Q| are not stated: we use the
# tables' K_eff, the shots of the paper's other ablation, and grids around λ = |Q| = 75, with λ in multiples of |Q|.
WEIGHT_K_EFFS = (2, K_EFF, 10)
WEIGHT_SHOTS = 20
WEIGHTS = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
N_QUERIES = (25, 50, 75, 100, 150)
# Splits that options are chosen on, and tested on afterwards.
VALIDATION = "validation"
TEST = "test"
# Tasks of the tuning; their seed is not that of the plans.
TUNING_WAYS = 5
TUNING_TASKS = 1000
TUNING_SEED = 1


def _points(name: str, *values: float) -> tuple[Mapping[str, float], ...]:
    return tuple({name: value} for value in values)


# The grids of the public code. α-TIM was swept with equal orders, although the orders behind the tables differ.
GRIDS: Mapping[str, tuple[Mapping[str, float], ...]] = MappingProxyType(
    {
        "alpha_tim": tuple(
            {"tsallis_alpha_marginal": k / 2, "tsallis_alpha_conditional": k / 2} for k in range(10, 20)
        ),
        "bd_cspn": _points("sharpness", 5.0, 8.0, 10.0, 15.0, 20.0, 30.0, 50.0, 70.0, 100.0, 120.0),
        "ici": _points("n_components", *range(2, 12)),
        "laplacian_shot": _points("smoothness", 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2),
        "pt_map": _points("step_size", 0.002, 0.005, 0.008, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4),
        "tim": _points("marginal_weight", 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5),
    }
)


def table1(banks: Banks, **sizes: Any) -> Plan:
    """Eight methods on mini- and tiered-ImageNet, both networks, 5, 10 and 20 shots, K_eff = 5.

    Like all plans here it takes `n_tasks`, `seed` and `cpu_budget` of its cells.
    """
    columns = _columns(banks, ("mini", "tiered", "mini_wrn", "tiered_wrn"))
    return tuple(_cell(banks, *column, method, **sizes) for column in columns for method in TABLE_1_METHODS)


def table2(banks: Banks, **sizes: Any) -> Plan:
    """Seven methods on iNat with its fixed support, given as a separate bank named `inat_support`."""
    return tuple(_cell(banks, INAT, _inat_support(banks), method, **sizes) for method in TABLE_2_METHODS)


def accuracy_against_k_eff(banks: Banks, **sizes: Any) -> Plan:
    """Return the methods of Table 2 on the columns of both tables, with 2, 3, … 10 classes in the query.

    The paper's text does not say which methods the figure has; LR+ICI is left out because it is intractable on most
    columns.
    """
    return tuple(
        _cell(banks, *column, method, k_eff=k, **sizes)
        for column in _columns(banks, tuple(PAPER_BANKS))
        for k in K_EFFS
        for method in TABLE_2_METHODS
    )


def partition_term(banks: Banks, **sizes: Any) -> Plan:
    """PADDLE without and with its partition term, on the columns of both tables."""
    columns = _columns(banks, ("mini", "tiered", INAT))
    return tuple(_cell(banks, *column, method, **sizes) for column in columns for method in ("soft_kmeans", "paddle"))


def optimisation(banks: Banks, **sizes: Any) -> Plan:
    """Seconds and accuracy of α-TIM, projected gradient and PADDLE; tiered-ImageNet, 20 shots, K_eff = 5."""
    methods = ("alpha_tim", "paddle_gd", "paddle")
    return tuple(_cell(banks, "tiered", ShotsPerClass(20), method, **sizes) for method in methods)


def accuracy_against_weight(banks: Banks, **sizes: Any) -> Plan:
    """PADDLE at several λ; tiered-ImageNet, |Q| = 75, K_eff = 2, 5 and 10; see `WEIGHTS` for what the paper states."""
    return _weights(banks, (N_QUERY,), sizes)


def best_weight_against_n_query(banks: Banks, **sizes: Any) -> Plan:
    """PADDLE at several λ for several |Q|; tiered-ImageNet, K_eff = 2, 5 and 10; see `WEIGHTS` for the rest."""
    return _weights(banks, N_QUERIES, sizes)


def tuning(banks: Banks, **sizes: Any) -> Plan:
    """Every point of the published grids on the validation classes of each bank; reports find the best ones.

    The paper tunes its competitors on 5-way 5-shot tasks of 75 queries, after Veilleux et al. (NeurIPS 2021), whose
    queries are spread over the five classes by a Dirichlet distribution. All classes of such a task occur in its query,
    so the target setting, in which few of many occur, is not seen. The values behind the tables are added to each grid.
    """
    spec = TaskSpec(ShotsPerClass(5), Dirichlet(TUNING_WAYS), N_QUERY, TUNING_WAYS)
    sizes = {"seed": TUNING_SEED, "n_tasks": TUNING_TASKS, **sizes}
    cells = []
    for bank in (name for name in banks if name != INAT_SUPPORT):
        _refuse_without_splits(banks, bank)
        for method, grid in GRIDS.items():
            public = public_options(method, bank, spec)
            points = [*grid, published_point(method, public, list(grid[0]))]
            scale = TRANSFORMS.get(method, PUBLISHED)
            cells += [
                Cell(bank, spec, method, split=VALIDATION, transform=scale, options={**public, **point}, **sizes)
                for k, point in enumerate(points)
                if point not in points[:k]
            ]
    return tuple(cells)


def published_point(method: str, public: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Values of these options behind the paper's tables: those of the public configurations, else the defaults."""
    known = {**dataclasses.asdict(METHODS[method].make_options()), **public}
    return {name: known[name] for name in names}


def _refuse_without_splits(banks: Banks, name: str) -> None:
    splits = named_bank(banks, name).splits
    if absent := [split for split in (VALIDATION, TEST) if split not in splits]:
        raise PlanError(
            f"the bank {name!r} has no split {' and no split '.join(map(repr, absent))}: options are chosen on some "
            f"classes and tested on others; its splits are {', '.join(splits) or 'none'}. Give it some "
            "with dataclasses.replace(bank, splits={...}), and save it"
        )
    if both := set(splits[VALIDATION]) & set(splits[TEST]):
        raise PlanError(
            f"the splits {VALIDATION!r} and {TEST!r} of the bank {name!r} have {len(both)} classes in common; options "
            "must be chosen on classes that are not tested"
        )


_PLANS = (table1, table2, accuracy_against_k_eff, partition_term, optimisation, accuracy_against_weight)
PAPER_PLANS: Mapping[str, Callable[..., Plan]] = MappingProxyType(
    {plan.__name__: plan for plan in (*_PLANS, best_weight_against_n_query, tuning)}
)


def public_options(method: str, bank: str, spec: TaskSpec) -> dict[str, Any]:
    """Options of a method in the public configurations that differ from our defaults."""
    options = {**OPTIONS.get(method, {}), **OPTIONS_OF_BANK.get((method, bank), {})}
    if method == "pt_map":
        options["column_mass"] = float(
            spec.n_query // spec.query.possible[-1]
        )  # the public code tells the method K_eff
    return options


def _weights(banks: Banks, n_queries: tuple[int, ...], sizes: Mapping[str, Any]) -> Plan:
    support = ShotsPerClass(WEIGHT_SHOTS)
    return tuple(
        _cell(banks, "tiered", support, "paddle", k_eff, n_query, {"complexity_weight": weight * n_query}, **sizes)
        for k_eff in WEIGHT_K_EFFS
        for n_query in n_queries
        for weight in WEIGHTS
    )


def _cell(
    banks: Banks,
    name: str,
    support: SupportRule,
    method: str,
    k_eff: int = K_EFF,
    n_query: int = N_QUERY,
    options: Mapping[str, Any] = MappingProxyType({}),
    **sizes: Any,
) -> Cell:
    spec = TaskSpec(support, UniformOverPool(k_eff), n_query)
    return Cell(
        name,
        spec,
        method,
        split="test" if "test" in named_bank(banks, name).splits else "",
        transform=TRANSFORMS.get(method, PUBLISHED),
        options={**public_options(method, name, spec), **options},
        support_bank=INAT_SUPPORT if isinstance(support, FixedSupport) else "",
        **{"seed": SEED, "n_tasks": N_TASKS, **sizes},
    )


def _columns(banks: Banks, wanted: tuple[str, ...]) -> list[tuple[str, SupportRule]]:
    """Return the columns of the given banks: one for each number of shots, or for the one support of iNat."""
    names = [name for name in wanted if name in banks]
    if not names:
        raise PlanError(
            f"this plan needs at least one bank named {', '.join(wanted)}; given were: {', '.join(banks) or 'none'}"
        )
    shots = [ShotsPerClass(n) for n in SHOTS]
    return [(name, rule) for name in names for rule in ([_inat_support(banks)] if name == INAT else shots)]


def _inat_support(banks: Banks) -> FixedSupport:
    other = named_bank(banks, INAT_SUPPORT)
    return FixedSupport.whole((other.split("test") if "test" in named_bank(banks, INAT).splits else other).labels)


# ---------------------------------------------------------------------------------------------------------------------
# The paper's numbers, and which cell of a plan each belongs to.

# What the paper calls the methods whose numbers it prints.
PAPER_METHODS: Mapping[str, str] = MappingProxyType(
    {
        "baseline": "Baseline",
        "ici": "LR+ICI",
        "bd_cspn": "BD-CSPN",
        "pt_map": "PT-MAP",
        "laplacian_shot": "LaplacianShot",
        "tim": "TIM",
        "alpha_tim": "alpha-TIM",
        "paddle": "PADDLE",
        "soft_kmeans": "K-means",
    }
)


@cache
def _content() -> Any:
    return json.loads(
        resources.files("handful_fewshot.benchmark").joinpath("published.json").read_text(encoding="utf-8")
    )


def source_of_numbers() -> str:
    """Where the numbers come from."""
    return str(_content()["source"])


def published_accuracy(cell: Cell) -> float | None:
    """Accuracy in percent that the paper printed for a cell's column and method; None where it printed none.

    The column is recognised by the name of the bank, by the shots and by the protocol. The bank must have as many
    classes, dimensions and images as the paper's, or somebody says that it is the paper's, see `why_unpublished`.
    PADDLE with a λ other than the paper's has no published number.
    """
    return None if why_unpublished(cell) else _printed(cell)


def why_unpublished(cell: Cell) -> str:
    """Return why the number that the paper printed for a cell of this name is not that of its bank; empty if it is."""
    if _printed(cell) is None:
        return ""
    dataset, encoder = PAPER_BANKS[cell.bank]
    classes = TEST_CLASSES[dataset]
    dimensions = DIMENSIONS[encoder]
    images = TEST_IMAGES.get(dataset)
    split = f" in its split {cell.split!r}" if cell.split else ""
    if cell.split in ("", "test") and cell.bank_shape[:2] == (classes, dimensions):
        if cell.as_published or cell.bank_shape[2] == images:
            return ""
        stated = "a number that is not published" if images is None else f"{images:,}"
        return (
            f"has {cell.bank_shape[2]:,} vectors{split}, but the test split of {dataset} has {stated}; if it is the "
            "paper's, say so with --as-published"
        )
    return (
        f"has {cell.bank_shape[0]} classes{split} and {cell.bank_shape[1]} dimensions, but the test split of {dataset} "
        f"has {classes}, with {dimensions} from {encoder}"
    )


def _printed(cell: Cell) -> float | None:
    """Return what the paper printed for a column of this name, whatever the bank is."""
    spec = cell.spec
    known = cell.bank in PAPER_BANKS and cell.method in PAPER_METHODS and "complexity_weight" not in cell.options
    protocol = (UniformOverPool(K_EFF), N_QUERY, None, None)
    if not known or (spec.query, spec.n_query, spec.n_classes, spec.unknown) != protocol:
        return None
    shots = spec.support.shots if isinstance(spec.support, ShotsPerClass) else None
    return printed_accuracy(cell.bank, shots, cell.method)


def printed_accuracy(bank: str, shots: int | None, method: str) -> float | None:
    """Return what the paper's tables have for a bank, shots (None: the one support of iNat) and method, in percent."""
    dataset, encoder = PAPER_BANKS[bank]
    key = [encoder, dataset, shots, PAPER_METHODS[method]]
    return next((accuracy for *row, accuracy in _content()["rows"] if row == key), None)
