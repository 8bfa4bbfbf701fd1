"""Methods: one paper, one file; they do not import one another. `METHODS` has them all, and those you register."""

from importlib import import_module

from handful.errors import OptionError
from handful.fewshot.methods.method import Method
from handful.machine.registry import Registry

_NAMES = (
    *("roll_call", "paddle", "soft_kmeans", "paddle_gd", "nearest_prototype", "baseline", "baseline_pp", "prior_em"),
    *("bd_cspn", "laplacian_shot", "pt_map", "proto_lp", "tim", "tim_adm", "alpha_tim", "ici", "ilpc"),
    *("oslo", "ostim", "eol", "em_dirichlet", "transclip", "stata", "unem"),
)


def _check(name: str, method: Method) -> None:
    if not isinstance(method, Method):
        raise OptionError(f"a method must be a handful.fewshot.Method, got {type(method).__name__}")
    if method.name != name:
        raise OptionError(f"the entry point {name!r} has a method that is called {method.name!r}; use one name")


METHODS: Registry[Method] = Registry(
    "handful.methods", {name: import_module(f"{__name__}.{name}").METHOD for name in _NAMES}, _check
)


def register(method: Method) -> Method:
    """Add a method of your own to `METHODS`, for this program.

    Afterwards `solve`, `MethodClassifier` and benchmarks know it by its name. A method of the same name that was
    registered before is replaced; the names of handful's own methods are refused. To have a method in every program,
    name it in the entry points of your package, group `handful.methods`.

    Parameters
    ----------
    method : Method
        The method.

    Returns
    -------
    Method
        The same.
    """
    METHODS.register(getattr(method, "name", ""), method)
    return method


__all__ = ["METHODS", "Method", "register"]
