"""Methods: a file for each idea, none imports another. `METHODS` has them all, and those you register."""

from handful.arguments import did_you_mean
from handful.errors import OptionError, UnknownNameError
from handful.machine.registry import Registry
from handful_fewshot.methods import (
    baseline,
    batch_classifier,
    bd_cspn,
    em_dirichlet,
    ici,
    ilpc,
    laplacian_shot,
    nearest_prototype,
    oslo,
    ostim,
    paddle,
    paddle_gd,
    prior_em,
    proto_lp,
    prototype_threshold,
    pt_map,
    sparse_em,
    tim,
    transclip,
    unem,
    zero_shot,
)
from handful_fewshot.methods.method import Method


def _check(name: str, method: Method) -> None:
    if not isinstance(method, Method):
        raise OptionError(f"a method must be a handful_fewshot.Method, got {type(method).__name__}")
    if method.name != name:
        raise OptionError(f"the entry point {name!r} has a method that is called {method.name!r}; use one name")


_OWN = (
    *(
        batch_classifier.METHOD,
        sparse_em.METHOD,
        paddle.PADDLE,
        paddle.SOFT_KMEANS,
        paddle_gd.METHOD,
        nearest_prototype.METHOD,
    ),
    *(baseline.BASELINE, baseline.BASELINE_PP, prior_em.METHOD, bd_cspn.METHOD, laplacian_shot.METHOD),
    *(pt_map.METHOD, proto_lp.METHOD, tim.TIM, tim.TIM_ADM, tim.ALPHA_TIM, ici.METHOD, ilpc.METHOD),
    *(prototype_threshold.METHOD, oslo.METHOD, ostim.OSTIM, ostim.EOL),
    *(em_dirichlet.METHOD, transclip.TRANSCLIP, transclip.STATA, unem.METHOD),
    *(zero_shot.METHOD, baseline.NAMES_PROBE),
)
METHODS: Registry[Method] = Registry("handful_fewshot.methods", {method.name: method for method in _OWN}, _check)


def register(method: Method) -> Method:
    """Add a method of your own to `METHODS`, for this program.

    Afterwards `solve`, `MethodClassifier` and benchmarks know it by its name. A method of the same name that was
    registered before is replaced; the names of handful's own methods are refused. To have a method in every program,
    name it in the entry points of your package, group `handful_fewshot.methods`.

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


def no_method(name: object) -> UnknownNameError:
    """Return the error for a method that does not exist, with the nearest name."""
    return UnknownNameError(
        f"no method is called {name!r}{did_you_mean(name, METHODS)}; choose from {', '.join(METHODS)}"
    )


__all__ = ["METHODS", "Method", "no_method", "register"]
