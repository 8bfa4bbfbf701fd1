"""Shape annotations, `Float[Tensor, "task query class"]`: read by people, checked in the tests.

Axes are always named `task`, `support`, `query`, `class`, `dim`, in that order; `#task` may also have length
one, for what all tasks share. jaxtyping checks them while the tests run; without it they are plain `Annotated`,
so the installed package needs nothing for them.
"""

try:
    from jaxtyping import Bool, Float, Int
except ImportError:  # pragma: no cover
    from typing import Annotated as Bool
    from typing import Annotated as Float
    from typing import Annotated as Int

__all__ = ["Bool", "Float", "Int"]
