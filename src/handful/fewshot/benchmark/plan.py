"""Plans: a cell says which tasks are solved with which method, and a plan is a tuple of cells.

A row of results is a function of the cell and the number of its task. The content hash of a cell covers all that the
row depends on: features (by the bank's own hash), split, spec, method, transform, options with their defaults written
out, and seed. It leaves out how many tasks are wanted and how long they may take, so a run can be extended by asking
for more.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from handful.banks import FeatureBank
from handful.errors import PlanError
from handful.fewshot.benchmark.method_file import file_hash, is_place, load_method
from handful.fewshot.methods import METHODS
from handful.fewshot.tasks import (
    Arrivals,
    Balanced,
    Dirichlet,
    FixedSupport,
    RangeOverPool,
    ShotsPerClass,
    TaskSpec,
    UniformOverPool,
    UnknownClasses,
)
from handful.fewshot.tasks.query import QueryRule
from handful.fewshot.tasks.support import SupportRule
from handful.fewshot.transforms import parameters_of
from handful.machine.untrusted import read_text

Banks: TypeAlias = Mapping[str, FeatureBank]

QUERY_RULES: Mapping[str, type[QueryRule]] = {
    "uniform": UniformOverPool,
    "range": RangeOverPool,
    "balanced": Balanced,
    "dirichlet": Dirichlet,
    "arrivals": Arrivals,
}
# Keys of an entry of a TOML plan, and their defaults.
ENTRY_DEFAULTS: Mapping[str, Any] = {
    **{"bank": None, "method": None, "split": "", "transform": "", "parameters": {}, "options": {}},
    **{"shots": 5, "support_bank": "", "query": "uniform", "k_eff": 5, "k_eff_least": None, "concentration": None},
    **{"n_query": 75, "n_classes": 0, "unknown_classes": 0, "unknown_share": None},
    **{"seed": 0, "tasks": 1000, "cpu_budget": 0.0},
}


@dataclass(frozen=True)
class Cell:
    """One method on one list of tasks.

    Attributes
    ----------
    bank : str
        Name of a bank; the bank itself is given when the plan is run.
    spec : TaskSpec
        What tasks are drawn.
    method : str
        A key of `METHODS`, or `FILE.py:NAME` for a method in a file.
    split : str
        Split of the bank whose classes take part; empty means all classes.
    transform : str
        A key of `TRANSFORMS`; empty means the one used for the method's published results.
    parameters : Mapping[str, object]
        What the transform needs in addition to the task. By default, `base_mean` is the mean of the bank's split
        `base`, see `handful.fewshot.benchmark.run`.
    options : Mapping[str, object]
        Options of the method that are not its defaults.
    seed, n_tasks : int
        Tasks 0 … n_tasks-1 of this seed: the same for every method.
    cpu_budget : float, optional
        Seconds of processor time after which no further tasks are started. The tasks done are the first of the list.
    support_bank : str
        Name of the bank that a `FixedSupport` with labels takes its rows from.
    bank_hash : str
        Content hash of the features, once the cell is bound to banks.
    bank_shape : tuple of two int
        Classes that take part and dimension of their vectors, once the cell is bound to banks.
    method_hash : str
        Hash of the file that the method came from; empty if it came from none.

    Examples
    --------
    >>> cell = Cell("clinc150", TaskSpec(ShotsPerClass(5), UniformOverPool(k_eff=5)), "paddle", n_tasks=200)
    >>> cell.transform
    'range_scale_public_code'
    >>> cell.content_hash == replace(cell, n_tasks=1000).content_hash
    True
    """

    bank: str
    spec: TaskSpec
    method: str
    split: str = ""
    transform: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    n_tasks: int = 1000
    cpu_budget: float | None = None
    support_bank: str = ""
    bank_hash: str = ""
    bank_shape: tuple[int, int] = (0, 0)
    method_hash: str = ""

    def __post_init__(self) -> None:
        if is_place(self.method):
            object.__setattr__(self, "method", load_method(self.method))
        if not self.method_hash:
            object.__setattr__(self, "method_hash", file_hash(self.method))
        if self.method_hash == file_hash(self.method):  # else it is of a run that is only read, not continued
            if self.method not in METHODS:
                raise PlanError(f"no method is called {self.method!r}; choose from {', '.join(METHODS)}")
            METHODS[self.method].make_options(**self.options)
        if not self.transform:
            object.__setattr__(self, "transform", METHODS[self.method].transform)
        unknown = set(self.parameters) - set(parameters_of(self.transform))
        if unknown:
            raise PlanError(f"transform {self.transform!r} has no parameter {', '.join(sorted(unknown))}; leave it out")
        if self.n_tasks < 1 or (self.cpu_budget is not None and self.cpu_budget <= 0):
            raise PlanError(
                f"a cell needs at least one task and a budget above 0 s, got {self.n_tasks} and {self.cpu_budget}"
            )
        if bool(self.support_bank) != (isinstance(self.spec.support, FixedSupport) and self.spec.support.elsewhere):
            raise PlanError("support_bank goes with a FixedSupport that has labels: give both or neither")

    @property
    def content_hash(self) -> str:
        """First 16 hex digits of the SHA-256 of all that a row of results depends on."""
        entries = self.to_mapping()
        if self.method_hash:  # of a file that may not be there when rows are read; its hash covers the defaults
            entries["method_hash"] = self.method_hash
        else:
            entries["options"] = dataclasses.asdict(METHODS[self.method].make_options(**self.options))
        del entries["n_tasks"], entries["cpu_budget"], entries["bank_shape"]  # the bank's hash covers its shape
        return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()[:16]

    def bound(self, banks: Banks) -> Cell:
        """Return the cell with the content hash of the bank or banks that it names, and with the shape of its bank."""
        names = [self.bank, *([self.support_bank] if self.support_bank else [])]
        hashes = "+".join(named_bank(banks, name).content_hash for name in names)
        bank = banks[self.bank]
        n_classes = len(bank.splits.get(self.split, ())) if self.split else bank.n_classes
        return replace(self, bank_hash=hashes, bank_shape=(n_classes, bank.dim))

    def to_mapping(self) -> dict[str, Any]:
        """Return all fields as plain values, fit for JSON."""
        entries = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        if not self.method_hash:
            del entries["method_hash"]
        query = self.spec.query
        rule = next(name for name, kind in QUERY_RULES.items() if type(query) is kind)
        entries["spec"] = {
            "support": dataclasses.asdict(self.spec.support),
            "query": {"rule": rule, **dataclasses.asdict(query)},
            "n_query": self.spec.n_query,
            "n_classes": self.spec.n_classes,
        }
        if self.spec.unknown is not None:  # hashes of other cells stay what they were
            entries["spec"]["unknown"] = dataclasses.asdict(self.spec.unknown)
        for name in ("parameters", "options"):  # arrays become lists
            entries[name] = json.loads(json.dumps(dict(entries[name]), default=lambda array: array.tolist()))
        return entries

    @classmethod
    def from_mapping(cls, entries: Mapping[str, Any]) -> Cell:
        """Make a cell from what `to_mapping` returned."""
        spec = entries["spec"]
        support: SupportRule = (
            ShotsPerClass(**spec["support"]) if "shots" in spec["support"] else FixedSupport(**spec["support"])
        )
        query = dict(spec["query"])
        rule: QueryRule = QUERY_RULES[query.pop("rule")](**query)
        unknown = UnknownClasses(**spec["unknown"]) if "unknown" in spec else None
        tasks = TaskSpec(support, rule, spec["n_query"], spec["n_classes"], unknown)
        return cls(**{**entries, "spec": tasks, "bank_shape": tuple(entries.get("bank_shape", (0, 0)))})


Plan: TypeAlias = tuple[Cell, ...]


def bound_plan(plan: Iterable[Cell], banks: Banks) -> Plan:
    """Bind every cell; refuse two that are the same."""
    cells = tuple(cell.bound(banks) for cell in plan)
    seen: dict[str, Cell] = {}
    for cell in cells:
        if seen.setdefault(cell.content_hash, cell) is not cell:
            raise PlanError(
                f"the plan has {cell.method} on {cell.bank} with {cell.spec} twice; cells must differ in more "
                "than their number of tasks"
            )
    if not cells:
        raise PlanError("the plan has no cell; add at least one")
    return cells


def named_bank(banks: Banks, name: str) -> FeatureBank:
    """Return the bank of that name; otherwise raise an error that lists the names."""
    if name not in banks:
        raise PlanError(f"the plan asks for a bank named {name!r}; given were: {', '.join(banks) or 'none'}")
    return banks[name]


def read_plan(path: str | os.PathLike[str]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    r"""Read a plan in TOML: its entries, and the paths of banks it names under `[banks]`.

    Each table `[[cells]]` is a grid: where a key has a list, each value is used in turn, and all combinations are
    cells. `[defaults]` apply to every table that does not override them. `grid(entries, banks)` makes the cells. Paths
    are relative to the file.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    tuple
        The entries, and a mapping from names of banks to paths.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "plan.toml"
    >>> _ = file.write_text('[banks]\nmine = "mine.bank"\n[[cells]]\nbank = "mine"\nmethod = ["paddle", "tim"]\n')
    >>> entries, places = read_plan(file)
    >>> entries, list(places)
    ([{'bank': 'mine', 'method': ['paddle', 'tim']}], ['mine'])
    """
    file = Path(path)
    try:
        content = tomllib.loads(read_text(file, PlanError))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PlanError(f"{path} cannot be read as a TOML plan: {error}") from error
    unknown = set(content) - {"banks", "defaults", "cells"}
    if unknown or not isinstance(content.get("cells"), list):
        raise PlanError(
            f"{path} must have [[cells]] and may have [banks] and [defaults], got "
            f"{', '.join(sorted(content)) or 'nothing'}"
        )
    entries = [{**content.get("defaults", {}), **cells} for cells in content["cells"]]
    for entry in entries:
        named = entry.get("method")
        if any(is_place(str(method)) for method in (named if isinstance(named, list) else [named])):
            raise PlanError(
                f"{path} names a method in a Python file; reading a plan runs no code. Give --bank and --method "
                "FILE.py:NAME on the command line, or install the method with a package"
            )
    paths = {name: str(file.parent / Path(place).expanduser()) for name, place in content.get("banks", {}).items()}
    return entries, paths


def grid(entries: Sequence[Mapping[str, Any]], banks: Banks) -> Plan:
    """Make all combinations of the lists in entries from `read_plan` into cells; later keys vary fastest.

    Examples
    --------
    >>> plan = grid([{"bank": "clinc150", "shots": [5, 10], "method": ["paddle", "tim"], "tasks": 20}], {})
    >>> [(cell.spec.support.shots, cell.method) for cell in plan]
    [(5, 'paddle'), (5, 'tim'), (10, 'paddle'), (10, 'tim')]
    """
    return tuple(_cell(dict(zip(entry, values, strict=True)), banks) for entry in entries for values in _values(entry))


def _values(entry: Mapping[str, Any]) -> Iterable[tuple[Any, ...]]:
    unknown = set(entry) - set(ENTRY_DEFAULTS)
    if unknown:
        raise PlanError(
            f"a cell has no key {', '.join(map(repr, sorted(unknown)))}; it may have {', '.join(ENTRY_DEFAULTS)}"
        )
    return product(*(value if isinstance(value, list) else [value] for value in entry.values()))


def _cell(given: Mapping[str, Any], banks: Banks) -> Cell:
    entry = {**ENTRY_DEFAULTS, **given}
    for name in ("bank", "method"):
        if not isinstance(entry[name], str):
            raise PlanError(f"every cell needs a {name}, given as a name, got {entry[name]!r}")
    return Cell(
        entry["bank"],
        task_spec(entry, banks),
        entry["method"],
        n_tasks=entry["tasks"],
        cpu_budget=entry["cpu_budget"] or None,
        **{name: entry[name] for name in ("split", "transform", "parameters", "options", "seed", "support_bank")},
    )


def task_spec(given: Mapping[str, Any], banks: Banks) -> TaskSpec:
    """Make the spec of an entry's tasks from its keys; those that it lacks have the defaults of a plan.

    Examples
    --------
    >>> task_spec({"shots": 1, "query": "balanced", "k_eff": 3}, {})
    TaskSpec(support=ShotsPerClass(shots=1), query=Balanced(k_eff=3), n_query=75, n_classes=None, unknown=None)
    """
    entry = {**ENTRY_DEFAULTS, **given}
    if entry["query"] not in QUERY_RULES:
        raise PlanError(f"no query rule is called {entry['query']!r}; choose from {', '.join(QUERY_RULES)}")
    query = QUERY_RULES[entry["query"]](entry["k_eff"], **_rule_options(entry))
    support: SupportRule = ShotsPerClass(entry["shots"])
    if entry["support_bank"]:
        other = named_bank(banks, entry["support_bank"])
        support = FixedSupport.whole((other.split(entry["split"]) if entry["split"] else other).labels)
    return TaskSpec(support, query, entry["n_query"], entry["n_classes"] or None, _unknown(entry))


def _rule_options(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other fields of the query rule, apart from k_eff, that the entry gives."""
    fields = {"k_eff_least": "least", "concentration": "concentration"}
    given = [key for key in fields if entry[key] is not None]
    for key in given:
        rules = [name for name, one in QUERY_RULES.items() if fields[key] in one.__dataclass_fields__]
        if entry["query"] not in rules:
            raise PlanError(
                f"query = {entry['query']!r} has no {key}, got {entry[key]!r}; leave it out, or set query to "
                f"{' or '.join(map(repr, rules))}"
            )
    return {fields[key]: entry[key] for key in given}


def _unknown(entry: Mapping[str, Any]) -> UnknownClasses | None:
    count, share = entry["unknown_classes"], entry["unknown_share"]
    if bool(count) != (share is not None):
        raise PlanError(
            f"unknown_classes and unknown_share go together, got {count!r} and {share!r}: give how many classes the "
            "support lacks, and their share of the query"
        )
    return UnknownClasses(count, float(share)) if count else None
