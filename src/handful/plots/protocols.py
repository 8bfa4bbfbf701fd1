"""What can be drawn: the attributes that pictures and tables need of an answer, a catalogue and an explanation.

Pictures lie below what they show, so `Answer.plot` can call them, and nothing here imports an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from handful.shapes import Bool, Float, Int

if TYPE_CHECKING:
    from handful.model.head import LinearHead


class AnswerLike(Protocol):
    """The labels of a batch, or of every group of a table."""

    @property
    def classes(self) -> npt.NDArray[Any]: ...

    @property
    def codes(self) -> Int[np.ndarray, "item two"]: ...

    @property
    def certainty(self) -> Float[np.ndarray, "item"]: ...

    @property
    def unknown(self) -> Float[np.ndarray, "item"]: ...

    @property
    def rejected(self) -> Bool[np.ndarray, "item"]: ...

    @property
    def doubtful(self) -> Bool[np.ndarray, "item"]: ...

    @property
    def alone(self) -> Int[np.ndarray, "item"] | None: ...

    @property
    def presence(self) -> npt.NDArray[np.float64]: ...

    @property
    def present_classes(self) -> npt.NDArray[Any]: ...

    @property
    def expected_counts(self) -> npt.NDArray[np.float64]: ...

    @property
    def unknown_interval(self) -> Any: ...

    @property
    def unknown_reason(self) -> str | None: ...

    @property
    def proposals(self) -> tuple[Any, ...]: ...

    @property
    def diagnostics(self) -> tuple[Any, ...]: ...

    @property
    def groups(self) -> npt.NDArray[Any] | None: ...

    @property
    def coarse(self) -> Any: ...

    def __getitem__(self, which: Any, /) -> Any: ...

    def summary(self) -> str: ...

    def __len__(self) -> int: ...


class CatalogueLike(Protocol):
    """A fitted catalogue."""

    @property
    def classes(self) -> npt.NDArray[Any]: ...

    @property
    def shots(self) -> Int[np.ndarray, "class"]: ...

    @property
    def dim(self) -> int: ...

    @property
    def head(self) -> LinearHead: ...

    def report(self) -> Any: ...


class ExplanationLike(Protocol):
    """Why an item has its label."""

    @property
    def item(self) -> int: ...

    @property
    def label(self) -> Any: ...

    @property
    def certainty(self) -> float: ...

    @property
    def alone(self) -> Any: ...

    @property
    def alone_certainty(self) -> float: ...

    @property
    def rival(self) -> Any: ...

    @property
    def rival_certainty(self) -> float: ...

    @property
    def unknown(self) -> float: ...
