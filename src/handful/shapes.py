"""Shape annotations, `Float[Tensor, "task query class"]`: documentation for readers, checked in the tests.

Axes are always named `task`, `support`, `query`, `class`, `dim`, in that order. `#task` may also have length one, if
all tasks share the array. jaxtyping checks the annotations while the tests run. Without it they are plain `Annotated`,
so the installed package does not depend on it.
"""

from typing import Any, TypeAlias

try:
    from jaxtyping import Bool, Float, Int
except ImportError:  # pragma: no cover
    from typing import Annotated as Bool
    from typing import Annotated as Float
    from typing import Annotated as Int

# A number, or an array with one for each batch of a stack.
PerBatch: TypeAlias = Any

__all__ = ["Bool", "Float", "Int", "PerBatch"]
