"""Plans: a cell says which tasks are solved with which method, and a plan is a tuple of cells.

A row of results is a function of the cell and the number of its task. The content hash of a cell covers all that the
row depends on: features (by the bank's own hash), split, spec, method, transform, options and seed. It leaves out how
many tasks are wanted, how long they may take, what is kept of them and what stands beside them in a table, so a run can
be extended by asking for more.

A method may come from a file: `file.py:name` is the `Method` that a Python file calls `name`. The file is run as it is
when its hash is taken, so a plan can record what its rows were computed with. It is run only if a program or a command
line names it. A plan that is read from a file runs nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from handful import FeatureBank
from handful.errors import OptionError
from handful.machine.untrusted import read_bytes, read_text
from handful_fewshot.errors import PlanError
from handful_fewshot.methods import METHODS, Method, no_method, register
from handful_fewshot.methods.method import FOUND, PUBLISHED
from handful_fewshot.tasks import (
    Balanced,
    CorrelatedStream,
    Dirichlet,
    FixedSupport,
    ShotsPerClass,
    TaskSpec,
    UniformOverPool,
    UnknownClasses,
)
from handful_fewshot.tasks.rules import QueryRule, SupportRule
from handful_fewshot.transforms import parameters_of

Banks: TypeAlias = Mapping[str, FeatureBank]

QUERY_RULES: Mapping[str, type[QueryRule]] = {
    "uniform": UniformOverPool,
    "balanced": Balanced,
    "dirichlet": Dirichlet,
    "stream": CorrelatedStream,
}
# What only some rules have.
OF_SOME_RULES = ("concentration", "slots", "batches")
RANGE = re.compile(r"\d+-\d+")
# Keys of an entry of a TOML plan, and their defaults.
ENTRY_DEFAULTS: Mapping[str, Any] = {
    **{"bank": None, "method": None, "split": "", "scale": "", "parameters": {}, "options": {}},
    **{"shots": 5, "support_bank": "", "query": "uniform", "k_eff": 5},
    **dict.fromkeys(OF_SOME_RULES),
    **{"n_query": 75, "n_classes": 0, "unknown_classes": 0, "unknown_share": None},
    **{"seed": 0, "tasks": 1000, "cpu_budget": 0.0, "keep": "", "as_published": False},
}
# What a row may keep besides its scores.
PREDICTIONS = "predictions"
KEEP = ("", PREDICTIONS)

PLACE = re.compile(r"(?P<path>.+\.py):(?P<name>[^:]+)")
# Hash of the file of each method that came from one, by the method's name.
_hashes: dict[str, str] = {}


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
        A key of `TRANSFORMS`, `published` or `found`; empty means the method's default, see `Method.transform_at`.
    parameters : Mapping[str, object]
        What the transform needs in addition to the task. By default, `base_mean` is the mean of the bank's split
        `base`, see `handful_fewshot.benchmark.run`.
    options : Mapping[str, object]
        Options of the method that are not its defaults.
    seed, n_tasks : int
        Tasks 0 … n_tasks-1 of this seed: the same for every method.
    cpu_budget : float, optional
        Seconds of processor time after which no further tasks are started. The tasks done are the first of the list.
    keep : str
        `predictions` for the labels and probabilities of every query in each row, or nothing.
    as_published : bool
        Whether somebody says that the bank is the one of the paper, so that tables print the paper's number beside.
    support_bank : str
        Name of the bank that a `FixedSupport` with labels takes its rows from.
    bank_hash : str
        Content hash of the features, once the cell is bound to banks.
    bank_shape : tuple of three int
        Classes that take part, dimension of their vectors and number of these, once the cell is bound to banks.
    method_hash : str
        Hash of the file that the method came from; empty if it came from none.
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
    keep: str = ""
    as_published: bool = False
    support_bank: str = ""
    bank_hash: str = ""
    bank_shape: tuple[int, int, int] = (0, 0, 0)
    method_hash: str = ""

    def __post_init__(self) -> None:
        if is_place(self.method):
            object.__setattr__(self, "method", load_method(self.method))
        if not self.method_hash:
            object.__setattr__(self, "method_hash", file_hash(self.method))
        if self.method_hash == file_hash(self.method):  # else it is of a run that is only read, not continued
            if self.method not in METHODS:
                raise PlanError(str(no_method(self.method)))
            METHODS[self.method].make_options(**self.options)
        if self.transform in ("", PUBLISHED, FOUND):
            object.__setattr__(self, "transform", METHODS[self.method].transform_at(self.transform))
        unknown = set(self.parameters) - set(parameters_of(self.transform))
        if unknown:
            raise PlanError(f"transform {self.transform!r} has no parameter {', '.join(sorted(unknown))}; leave it out")
        if self.n_tasks < 1 or (self.cpu_budget is not None and self.cpu_budget <= 0):
            raise PlanError(
                f"a cell needs at least one task and a budget above 0 s, got {self.n_tasks} and {self.cpu_budget}"
            )
        if self.keep not in KEEP:
            raise PlanError(f"a row can keep {PREDICTIONS!r} or nothing, got {self.keep!r}")
        if bool(self.support_bank) != (isinstance(self.spec.support, FixedSupport) and self.spec.support.elsewhere):
            raise PlanError("support_bank goes with a FixedSupport that has labels: give both or neither")

    @cached_property
    def content_hash(self) -> str:
        """First 16 hex digits of the SHA-256 of all that a row of results depends on."""
        entries = self.to_mapping()
        for name in ("n_tasks", "cpu_budget", "keep", "as_published", "bank_shape"):  # the bank's hash covers its shape
            del entries[name]
        return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()[:16]

    def bound(self, banks: Banks) -> Cell:
        """Return the cell with the content hash of the bank or banks that it names, and with the shape of its bank."""
        names = [self.bank, *([self.support_bank] if self.support_bank else [])]
        hashes = "+".join(named_bank(banks, name).content_hash for name in names)
        bank = banks[self.bank]
        used = bank.splits.get(self.split, ()) if self.split else range(bank.n_classes)
        n_rows = int(bank.class_sizes[list(used)].sum())
        return replace(self, bank_hash=hashes, bank_shape=(len(used), bank.dim, n_rows))

    @property
    def rule(self) -> str:
        """Name of the rule that spreads queries over their classes."""
        return next(name for name, kind in QUERY_RULES.items() if type(self.spec.query) is kind)

    @property
    def protocol(self) -> str:
        """The rule, with what it has besides the number of classes, and with the range that this is drawn from.

        Examples
        --------
        >>> Cell("birds", TaskSpec(ShotsPerClass(5), Dirichlet(k_eff=5)), "paddle").protocol
        'dirichlet (concentration=2)'
        >>> Cell("birds", TaskSpec(ShotsPerClass(5), UniformOverPool((2, 10))), "paddle").protocol
        'uniform (k_eff=2-10)'
        """
        query = self.spec.query
        drawn = [f"k_eff={query.k_eff_text}"] if len(query.possible) > 1 else []
        rest = (f.name for f in dataclasses.fields(query) if f.name != "k_eff")
        stated = ", ".join([*drawn, *(f"{name}={_short(getattr(query, name))}" for name in rest)])
        return f"{self.rule} ({stated})" if stated else self.rule

    def class_counts(self, tasks: Sequence[int]) -> list[int]:
        """Return the number of classes that the query of each task is drawn from."""
        query = self.spec.query
        counts: list[int] = query.class_counts(self.seed, query.catalogue_of(np.asarray(tasks, np.int64))).tolist()
        return counts

    def to_mapping(self) -> dict[str, Any]:
        """Return all fields as plain values, fit for JSON."""
        entries = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        entries["spec"] = dataclasses.asdict(self.spec)
        entries["spec"]["query"]["rule"] = self.rule
        plain: dict[str, Any] = json.loads(json.dumps(entries, default=_plain))
        return plain

    @classmethod
    def from_mapping(cls, entries: Mapping[str, Any]) -> Cell:
        """Make a cell from what `to_mapping` returned."""
        spec = entries["spec"]
        query = dict(entries["spec"]["query"])
        kind = ShotsPerClass if "shots" in spec["support"] else FixedSupport
        unknown = UnknownClasses(**spec["unknown"]) if spec.get("unknown") else None
        rule = QUERY_RULES[query.pop("rule")](**query)
        tasks = TaskSpec(kind(**spec["support"]), rule, spec["n_query"], spec["n_classes"], unknown)
        return cls(**{**entries, "spec": tasks, "bank_shape": tuple(entries["bank_shape"])})


def _short(value: Any) -> str:
    return format(value, "g") if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """Return an array as a list, or a mapping of any kind as a dictionary."""
    return dict(value) if isinstance(value, Mapping) else value.tolist()


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
    """Read a plan in TOML: its entries, and the paths of banks it names under `[banks]`.

    Each table `[[cells]]` is a grid: where a key has a list, each value is used in turn, and all combinations are
    cells. `[defaults]` apply to every table that does not override them. `grid(entries, banks)` makes the cells. Paths
    are relative to the file.
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

    Scales that are one transform for a method make one cell: `found` and `published` of `unem`, for instance.
    """
    cells = []
    for entry in entries:
        if unknown := set(entry) - set(ENTRY_DEFAULTS):
            raise PlanError(
                f"a cell has no key {', '.join(map(repr, sorted(unknown)))}; it may have {', '.join(ENTRY_DEFAULTS)}"
            )
        values = (value if isinstance(value, list) else [value] for value in entry.values())
        first: dict[tuple[str, str], str] = {}  # scale of each transform, with the other values of its cell
        for combination in product(*values):
            given = dict(zip(entry, combination, strict=True))
            cell = _cell(given, banks)
            scale = given.pop("scale", "")
            if first.setdefault((repr(given), cell.transform), scale) == scale:
                cells.append(cell)
    return tuple(cells)


def _cell(given: Mapping[str, Any], banks: Banks) -> Cell:
    entry = {**ENTRY_DEFAULTS, **given}
    for name in ("bank", "method"):
        if not isinstance(entry[name], str):
            raise PlanError(f"every cell needs a {name}, given as a name, got {entry[name]!r}")
    as_they_are = ("bank", "method", "split", "parameters", "options", "seed", "support_bank", "keep", "as_published")
    return Cell(
        spec=task_spec(entry, banks),
        n_tasks=entry["tasks"],
        cpu_budget=entry["cpu_budget"] or None,
        transform=entry["scale"],
        **{name: entry[name] for name in as_they_are},
    )


def task_spec(given: Mapping[str, Any], banks: Banks) -> TaskSpec:
    """Make the spec of an entry's tasks from its keys; those that it lacks have the defaults of a plan."""
    entry = {**ENTRY_DEFAULTS, **given}
    rule = entry["query"]
    if rule not in QUERY_RULES:
        raise PlanError(f"no query rule is called {rule!r}; choose from {', '.join(QUERY_RULES)}")
    options = {name: entry[name] for name in OF_SOME_RULES if entry[name] is not None}
    for name in options:
        having = [other for other, kind in QUERY_RULES.items() if name in kind.__dataclass_fields__]
        if rule not in having:
            raise PlanError(f"query = {rule!r} has no {name}; leave it out, or set query to {' or '.join(having)}")
    support: SupportRule = ShotsPerClass(entry["shots"])
    if entry["support_bank"]:
        other = named_bank(banks, entry["support_bank"])
        support = FixedSupport.whole((other.split(entry["split"]) if entry["split"] else other).labels)
    count = entry["unknown_classes"]
    share = entry["unknown_share"]
    if bool(count) != (share is not None):
        raise PlanError(
            f"unknown_classes and unknown_share go together, got {count!r} and {share!r}: give how many classes the "
            "support lacks, and their share of the query"
        )
    unknown = UnknownClasses(count, float(share)) if count else None
    query = QUERY_RULES[rule](read_k_eff(entry["k_eff"]), **options)
    return TaskSpec(support, query, entry["n_query"], entry["n_classes"] or None, unknown)


def read_k_eff(given: Any) -> Any:
    """Return a number of classes, or of the text `2-10` the pair that a rule draws it from for each task.

    Examples
    --------
    >>> read_k_eff(5), read_k_eff("5"), read_k_eff("2-10")
    (5, 5, (2, 10))
    """
    if not isinstance(given, str):
        return given
    if RANGE.fullmatch(given):
        low, _, high = given.partition("-")
        return int(low), int(high)
    if given.isdecimal():
        return int(given)
    raise PlanError(f"k_eff must be a number of classes, or a range such as 2-10, got {given!r}")


def is_place(method: str) -> bool:
    """Whether this names a method in a file."""
    return PLACE.fullmatch(method) is not None


def load_method(place: str) -> str:
    """Run the file, register its method and return the method's name.

    The file may import installed packages, but no files beside it: these would not be part of its hash.
    """
    match = PLACE.fullmatch(place)
    if match is None:
        raise OptionError(f"a method in a file is named as FILE.py:NAME, got {place!r}")
    path = Path(match["path"])
    source = read_bytes(match["path"], OptionError)
    digest = hashlib.sha256(source).hexdigest()[:16]
    module = ModuleType(f"handful_method_{digest}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where the types of its options are looked up
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except Exception as error:
        raise OptionError(f"{path} cannot be run ({type(error).__name__}: {error}); correct it") from error
    method = getattr(module, match["name"], None)
    if not isinstance(method, Method):
        there = ", ".join(name for name, value in vars(module).items() if isinstance(value, Method)) or "none"
        raise OptionError(f"{path} has no handful_fewshot.Method called {match['name']!r}; it has {there}")
    register(method)
    _hashes[method.name] = digest
    return method.name


def file_hash(method: str) -> str:
    """First 16 hex digits of the SHA-256 of the file that a method came from; empty if it came from none."""
    return _hashes.get(method, "")


def refuse_another_file(method: str, expected: str) -> None:
    """Refuse to compute rows of a method whose file has not been loaded in this process, or has other content."""
    if expected and file_hash(method) != expected:
        state = "has changed since" if file_hash(method) else "is not loaded; it was given when"
        raise PlanError(
            f"the file of the method {method} {state} the run was started; repeat the whole command with --resume and "
            f"--method FILE.py:{method}, and with the same file. A cluster needs methods in a package"
        )
