"""TaskSpec: a support rule, a query rule and sizes; the description of a task before any row is drawn."""

from __future__ import annotations

from dataclasses import dataclass

from handful.arguments import whole
from handful.errors import TaskError
from handful.fewshot.tasks.query import Balanced, QueryRule
from handful.fewshot.tasks.support import SupportRule
from handful.fewshot.tasks.unknown import UnknownClasses


@dataclass(frozen=True)
class TaskSpec:
    """Description of the tasks to draw.

    Attributes
    ----------
    support : ShotsPerClass or FixedSupport
        Which labelled rows a task has.
    query : UniformOverPool, RangeOverPool, Balanced, Dirichlet or Arrivals
        How the rows to label are spread over the classes that occur.
    n_query : int
        |Q|, number of rows to label.
    n_classes : int, optional
        K, number of classes of a task, drawn separately for each task; None means all classes.
    unknown : UnknownClasses, optional
        Classes that the query has and the support lacks, in addition to the K classes; None means that there are none.

    Examples
    --------
    The paper's protocol, all classes in the support and five in the query:

    >>> from handful.fewshot import ShotsPerClass, UniformOverPool
    >>> TaskSpec(ShotsPerClass(5), UniformOverPool(k_eff=5), n_query=75)
    TaskSpec(support=ShotsPerClass(shots=5), query=UniformOverPool(k_eff=5), n_query=75, n_classes=None, unknown=None)

    The same with three more classes in the query, which have a fifth of its rows and no examples:

    >>> from handful.fewshot import UnknownClasses
    >>> spec = TaskSpec(ShotsPerClass(5), UniformOverPool(k_eff=5), unknown=UnknownClasses(count=3, share=0.2))
    >>> spec.n_known
    60
    """

    support: SupportRule
    query: QueryRule
    n_query: int = 75
    n_classes: int | None = None
    unknown: UnknownClasses | None = None

    def __post_init__(self) -> None:
        for name in ("n_query", "n_classes"):
            if (value := getattr(self, name)) is not None or name == "n_query":
                object.__setattr__(self, name, whole(name, value, least=1, error=TaskError))
        if self.n_classes is not None and self.query.k_eff > self.n_classes:
            raise TaskError(
                f"k_eff={self.query.k_eff} classes of the query must be among the n_classes={self.n_classes} of the "
                "support; lower k_eff or raise n_classes"
            )
        if isinstance(self.query, Balanced) and self.n_known % self.query.k_eff:
            each = self.n_known // self.query.k_eff
            queries = "n_query" if self.unknown is None else "known items of the query"
            raise TaskError(
                f"{queries}={self.n_known} cannot be shared equally by k_eff={self.query.k_eff} classes; ask for "
                f"{max(each, 1) * self.query.k_eff} or {(each + 1) * self.query.k_eff} queries"
            )

    @property
    def n_known(self) -> int:
        """Number of queries whose class is in the support; the query rule spreads these over its classes."""
        return self.n_query - (0 if self.unknown is None else self.unknown.n_items(self.n_query))
