"""Shape annotations, `Float[Tensor, "task query class"]`: documentation for readers, checked in the tests.

Axes are always named `task`, `support`, `query`, `class`, `dim`, in that order. `#task` may also have length one, if
all tasks share the array. jaxtyping checks the annotations while the tests run. Without it they are plain `Annotated`,
so the installed package does not depend on it.
"""

try:
    from jaxtyping import Bool, Float, Int
except ImportError:  # pragma: no cover
    from typing import Annotated as Bool
    from typing import Annotated as Float
    from typing import Annotated as Int

__all__ = ["Bool", "Float", "Int"]
