"""The record that stands for a method."""

import math
import typing

import numpy as np
import pytest

from handful.errors import OptionError
from handful.fewshot import METHODS


def test_the_table_is_read_only():
    with pytest.raises(TypeError):
        METHODS["mine"] = METHODS["paddle"]


@pytest.mark.parametrize("method", METHODS)
def test_values_of_another_type_are_refused_with_a_sentence(method):
    words = {int: "a whole number", float: "a finite number", bool: "True or False", str: "text"}
    wrong = {int: ["3", 2.5, True, None], float: ["3", True, math.nan, math.inf], bool: [1, "yes"], str: [3, None]}
    for name, hint in typing.get_type_hints(METHODS[method].options).items():
        kind = next(k for k in (bool, int, float, str) if k is hint or k in typing.get_args(hint))
        for value in wrong[kind]:
            with pytest.raises(OptionError, match=f"{name} must be {words[kind]}.*, got "):
                METHODS[method].make_options(**{name: value})


def test_numbers_of_numpy_become_pythons():
    options = METHODS["paddle"].make_options(max_iter=np.int64(3), tol=np.float32(0.5), record=np.True_)
    assert options == METHODS["paddle"].make_options(max_iter=3, tol=0.5, record=True)
    assert [type(options.max_iter), type(options.tol), type(options.record)] == [int, float, bool]
    assert METHODS["paddle"].make_options(complexity_weight=None).complexity_weight is None


# Values outside the range of each option; "head", "ties" and "geometry" are names.
OUTSIDE = {
    "alpha_tim": {"tsallis_alpha_marginal": 0.0, "tsallis_alpha_conditional": 0.0},
    "baseline": {"head": "cosine", "max_iter": -1, "learning_rate": 0.0, "batch_size": 0, "weight_decay": -1.0},
    "baseline_pp": {"max_iter": -1, "learning_rate": 0.0, "scale": 0.0},
    "bd_cspn": {"sharpness": -1.0},
    "em_dirichlet": {"temperature": 0.0, "expected_classes": 0, "max_iter": 0, "max_bounds": 0},
    "eol": {"unknown_share": 1.0, "temperature": 0.0, "support_weight": -1.0},
    "ici": {"n_components": 0, "step": 0, "inverse_penalty": 0.0, "max_iter": -1, "ties": "random"},
    "ilpc": {"n_neighbours": 0, "alpha": 1.0, "sharpness": 0.0, "step": 0, "training_steps": 0},
    "laplacian_shot": {"smoothness": -1.0, "n_neighbours": 0, "max_iter": 0, "tol": -1.0},
    "oslo": {"inlier_temperature": 0.0, "label_temperature": -1.0, "max_iter": 0},
    "ostim": {"marginal_weight": -1.0, "learning_rate": 0.0},
    "paddle": {"complexity_weight": -1.0, "proportion_floor": -1e-9, "max_iter": 0, "geometry": "sphere"},
    "paddle_gd": {"proportion_floor": 0.0},
    "prior_em": {"max_iter": 0, "tol": -1.0},
    "proto_lp": {"cost_weight": 0.0, "smoothness": -1.0, "propagated_share": 1.5, "step_size": -0.1, "max_iter": -1},
    "pt_map": {"step_size": 2.0, "cost_weight": 0.0, "column_mass": 0.0, "max_sweeps": 0},
    "soft_kmeans": {"max_iter": 0},
    "stata": {"anchor_weight": 0.0, "n_neighbours": 0},
    "tim": {"temperature": 0.0, "conditional_weight": -1.0, "max_iter": -1},
    "tim_adm": {"support_weight": 0.0},
    "transclip": {"temperature": 0.0, "max_iter": 0},
}


@pytest.mark.parametrize("method", OUTSIDE)
def test_options_outside_their_range_are_refused(method):
    for name, value in OUTSIDE[method].items():
        with pytest.raises(OptionError, match=f"{name} must be .*got {value!r}"):
            METHODS[method].make_options(**{name: value})
