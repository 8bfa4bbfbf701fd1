import sys
from dataclasses import replace

import pytest

from handful.errors import MissingExtraError
from handful_fewshot import UniformOverPool
from handful_fewshot.benchmark.plan import Cell
from handful_fewshot.reports import plots
from handful_fewshot.reports.summary import columns_of, results
from tests.fewshot.reports.runs_at_hand import made_up_run, noisy
from tests.plans_at_hand import SPEC

pytest.importorskip("matplotlib")


def columns(tmp_path, cells):
    return columns_of(
        results(made_up_run(tmp_path / "run", tuple(cells), [noisy(0.5, seed=k) for k in range(len(cells))]))
    )


def test_a_line_for_each_method_and_a_point_for_each_k_eff(tmp_path):
    cells = [
        Cell("toy", replace(SPEC, query=UniformOverPool(k)), method)
        for k in (5, 2, 3)
        for method in ("paddle", "soft_kmeans")
    ]
    figure = plots.accuracy_against_k_eff(columns(tmp_path, cells))
    (axis,) = figure.axes
    assert [list(line.get_xdata()) for line in axis.lines] == [[2.0, 3.0, 5.0]] * 2
    assert {line.get_label() for line in axis.lines} == {"paddle (found scale)", "soft_kmeans (found scale)"}
    # Told apart without colour.
    assert len({(line.get_marker(), line.get_linestyle()) for line in axis.lines}) == 2
    svg = plots.as_svg(figure, "a name")
    assert svg.startswith("<svg")
    assert ">soft_kmeans (found scale)<" in svg
    assert plots.as_svg(figure, "a name") == svg
    paths = plots.save(figure, tmp_path, "figure")
    assert [path.suffix for path in paths] == [".svg", ".pdf", ".png"]
    assert all(path.stat().st_size > 1000 for path in paths)


def test_nothing_is_drawn_of_what_does_not_vary(tmp_path):
    found = columns(tmp_path, [Cell("toy", SPEC, "paddle")])
    assert plots.accuracy_against_k_eff(found) is None
    assert plots.accuracy_against_n_query(found) is None
    assert plots.accuracy_against_weight(found) is None
    assert plots.best_weight_against_n_query(found) is None


def test_weights_are_drawn_against_accuracy_and_the_best_against_n_query(tmp_path):
    cells = [
        Cell("toy", replace(SPEC, n_query=n), "paddle", options={"complexity_weight": w})
        for n in (6, 8)
        for w in (2.0, 6.0)
    ]
    numbers = [noisy(0.5), noisy(0.6), noisy(0.7), noisy(0.4)]
    found = columns_of(results(made_up_run(tmp_path / "run", tuple(cells), numbers)))
    assert [len(axis.lines) for axis in plots.accuracy_against_weight(found).axes] == [2, 2]  # the curve, and λ = |Q|
    (axis,) = plots.best_weight_against_n_query(found).axes
    assert axis.lines[1].get_ydata().tolist() == [6.0, 2.0]


def test_the_label_cost_is_two_inside_and_one_at_the_ends():
    (axis,) = plots.label_cost().axes
    ends, inside, _, entropy = axis.lines
    assert list(ends.get_ydata()) == [1, 1]
    assert list(inside.get_ydata()) == [2, 2]
    assert entropy.get_ydata().max() == pytest.approx(0.6931, abs=1e-4)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"\[plots\]"):
        plots.label_cost()
