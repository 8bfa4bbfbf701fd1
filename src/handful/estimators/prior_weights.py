"""What users know about the classes of a batch, in the forms they have it in, as one table of weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.arguments import did_you_mean, some_of
from handful.errors import LabelError, OptionError
from handful.estimators.containers import values_of
from handful.fitted.labels import objects, places_of, same_kind
from handful.model.knowledge import Prior
from handful.model.settings import DEFAULT, Settings
from handful.reading.class_names import plain_label
from handful.shapes import Bool, Float, Int

CLASS = "class"
WEIGHT = "weight"
GROUP = "group"
# What these arguments are called in messages.
PRIOR = "prior or candidates"
# What stands for several classes, and so cannot be one.
NOT_CLASSES = (list, set, frozenset, dict, np.ndarray)


def weights_of(
    prior: Any,
    candidates: Any,
    classes: npt.NDArray[Any],
    groups: npt.NDArray[Any] | None,
    new: Bool[np.ndarray, "class"] | None = None,
) -> Float[np.ndarray, "row class"] | None:
    """Return one row of weights for all groups, or one row for each; None if nothing is known.

    Parameters
    ----------
    prior : array [class], mapping, table or None
        Weights: an array in the order of the classes; a mapping from classes to weights, or from groups to such
        mappings; a frame with the columns `class` and `weight`, and `group` if groups differ. What is not mentioned has
        the weight one.
    candidates : list of classes, mapping from groups to lists, or None
        All other classes have the weight zero. Groups that are not mentioned have no list.
    classes, groups
        All classes, and the distinct groups; None for a single batch.
    new
        Classes that a person named in this batch. They are always possible, and have the mean weight if none is given.
    """
    if prior is None and candidates is None:
        return None
    new = np.zeros(len(classes), bool) if new is None else new
    tables = [np.ones((1, len(classes)))]
    if prior is not None:
        tables.append(_prior_table(prior, classes, groups, new))
    if candidates is not None:
        tables.append(np.where(new, 1.0, _candidate_table(candidates, classes, groups)))
    weights: Float[np.ndarray, "row class"] = np.prod(np.broadcast_arrays(*tables), axis=0)
    if np.isnan(weights).any():
        known = np.where(np.nan_to_num(weights) > 0, weights, np.nan)
        weights = np.where(np.isnan(weights), np.nanmean(known, 1, keepdims=True), weights)
    empty = np.flatnonzero(~weights.any(1))
    if len(empty):
        where = "" if groups is None or len(weights) == 1 else f" in group {groups.tolist()[empty[0]]!r}"
        raise OptionError(f"no class is left{where}: all weights are zero; give at least one class a positive weight")
    return weights


def _prior_table(
    prior: Any, classes: npt.NDArray[Any], groups: npt.NDArray[Any] | None, new: Bool[np.ndarray, "class"]
) -> Float[np.ndarray, "row class"]:
    """Return the weights; NaN for new classes that are not mentioned."""
    usual = np.where(new, np.nan, 1.0)
    columns = _columns(prior)
    if columns is not None:
        return _of_columns(columns, classes, groups, usual)
    if isinstance(prior, Mapping):
        if prior and all(isinstance(value, Mapping) for value in prior.values()):
            weights = np.tile(usual, (n_groups(PRIOR, groups), 1))
            for place, name in known_groups(PRIOR, prior, groups):
                _assign(weights, np.full(len(prior[name]), place), prior[name].keys(), prior[name].values(), classes)
            return weights
        weights = usual[None].copy()
        _assign(weights, np.zeros(len(prior), np.int64), prior.keys(), prior.values(), classes)
        return weights
    given = np.asarray(values_of(prior))
    if given.shape == (int((~new).sum()),):
        weights = usual[None].copy()
        weights[0, ~new] = _numbers(given)
        return weights
    if given.shape != (len(classes),):
        raise OptionError(
            f"prior must have one weight for each of the {len(classes)} classes, in the order of `classes` in the "
            f"answer, got shape {given.shape}; to name classes use a mapping, and candidates for a list of classes"
        )
    return _numbers(given)[None]


def _of_columns(
    columns: Mapping[str, list[Any]],
    classes: npt.NDArray[Any],
    groups: npt.NDArray[Any] | None,
    usual: Float[np.ndarray, "class"],
) -> Float[np.ndarray, "row class"]:
    missing = [name for name in (CLASS, WEIGHT) if name not in columns]
    if missing:
        raise OptionError(f"prior must have the columns class and weight, got {some_of(columns)}")
    if GROUP not in columns:
        weights = usual[None].copy()
        _assign(weights, np.zeros(len(columns[CLASS]), np.int64), columns[CLASS], columns[WEIGHT], classes)
        return weights
    weights = np.tile(usual, (n_groups(PRIOR, groups), 1))
    place_of = {name: place for place, name in known_groups(PRIOR, dict.fromkeys(columns[GROUP]), groups)}
    rows = [row for row, group in enumerate(columns[GROUP]) if group in place_of]
    places = np.array([place_of[columns[GROUP][row]] for row in rows])
    _assign(weights, places, [columns[CLASS][row] for row in rows], [columns[WEIGHT][row] for row in rows], classes)
    return weights


def _candidate_table(
    candidates: Any, classes: npt.NDArray[Any], groups: npt.NDArray[Any] | None
) -> Float[np.ndarray, "row class"]:
    if isinstance(candidates, Mapping):
        weights = np.ones((n_groups(PRIOR, groups), len(classes)))
        for place, name in known_groups(PRIOR, candidates, groups):
            weights[place] = _listed(candidates[name], classes)
        return weights
    return _listed(candidates, classes)[None]


def _listed(candidates: Any, classes: npt.NDArray[Any]) -> Float[np.ndarray, "class"]:
    if isinstance(candidates, (str, bytes)):
        raise OptionError(f"candidates must be a list of classes, got the text {candidates!r}; put it in a list")
    if not isinstance(candidates, Iterable):
        raise OptionError(f"candidates must be a list of classes, got {candidates!r}")
    values = sorted(candidates, key=repr) if isinstance(candidates, (set, frozenset)) else list(candidates)
    odd = next((value for value in values if value is None or isinstance(value, NOT_CLASSES)), values)
    if odd is not values:
        raise OptionError(
            "candidates must be one list of classes, or one list per row, with None for all classes; "
            f"got {odd!r:.60}, which is not a class, and not every row has a list"
        )
    values = list(values_of(values))
    weights = np.zeros(len(classes))
    weights[class_places(values, classes)] = 1
    return weights


def _assign(
    weights: Float[np.ndarray, "row class"], rows: npt.NDArray[Any], names: Any, values: Any, classes: npt.NDArray[Any]
) -> None:
    weights[rows, class_places(list(names), classes)] = _numbers(np.array(list(values)))


def class_places(names: list[Any], classes: npt.NDArray[Any]) -> Int[np.ndarray, "name"]:
    """Return the places of some classes among all, which may come in any order and must include them."""
    if not names:
        return np.zeros(0, np.int64)
    names = [plain_label(name) for name in names]
    given = objects(names) if classes.dtype.kind == "O" else same_kind(np.asarray(names), classes)
    order = np.argsort(classes, kind="stable")
    places = places_of(given, classes[order])
    if (places < 0).any():
        unknown = names[int(np.flatnonzero(places < 0)[0])]
        known = did_you_mean(unknown, classes.tolist())
        raise LabelError(f"class {unknown!r} is not in the catalogue{known}; see classes_ for those that are")
    return order[places]


def _numbers(values: npt.NDArray[Any]) -> Float[np.ndarray, "value"]:
    if values.dtype.kind not in "biuf" or not np.isfinite(values).all() or (values < 0).any():
        raise OptionError("prior weights must be numbers of at least zero; give zero only to classes that cannot occur")
    return values.astype(np.float64)


def n_groups(what: str, groups: npt.NDArray[Any] | None) -> int:
    """Return the number of groups; refuse an argument that differs by group where there are none."""
    if groups is None:
        raise OptionError(f"{what} by group need groups, and there are none; give the argument groups")
    return len(groups)


def known_groups(what: str, names: Mapping[Any, Any], groups: npt.NDArray[Any] | None) -> list[tuple[int, Any]]:
    """Return place and name of those of the groups that are mentioned; others may be mentioned as well."""
    assert groups is not None
    found = [(place, name) for place, name in enumerate(groups.tolist()) if name in names]
    if not found:
        raise OptionError(
            f"{what} mention none of the groups, for instance {next(iter(names), None)!r}, while there is "
            f"a group {groups.tolist()[0]!r}; the names must be the same"
        )
    return found


def _columns(prior: Any) -> dict[str, list[Any]] | None:
    """Return the columns of a frame of pandas, polars or Arrow; None if it is no frame."""
    if hasattr(prior, "column_names") and hasattr(prior, "to_pydict"):
        return dict(prior.to_pydict())
    if hasattr(prior, "columns") and hasattr(prior, "to_numpy"):
        return {str(name): prior[name].to_numpy().tolist() for name in prior.columns}
    return None


def prior_of(weights: Float[np.ndarray, "row class"], n_batches: int, settings: Settings = DEFAULT) -> Prior:
    """Return the prior of every batch; one row of weights is that of all."""
    of_batches = np.broadcast_to(weights, (n_batches, weights.shape[1]))
    return Prior.of(of_batches, np.full(n_batches, settings.prior_concentration))
