"""Where a method is printed: the scale of its features, a mark for few tasks, an interval beside the paper's number."""

import re
from dataclasses import replace
from html import unescape

import pytest

pytest.importorskip("matplotlib")
from handful_fewshot import ShotsPerClass, TaskSpec, UniformOverPool, UnknownClasses
from handful_fewshot.benchmark.plan import Cell
from handful_fewshot.reports import plots
from handful_fewshot.reports.page import write_report
from handful_fewshot.reports.summary import columns_of, results
from handful_fewshot.reports.tables import accuracy_latex, differences_table
from handful_fewshot.transforms import TRANSFORMS
from tests.fewshot.reports.runs_at_hand import made_up_run, noisy

SPEC = TaskSpec(ShotsPerClass(5), UniformOverPool(5))
PAPER = {"split": "test", "bank_shape": (20, 512, 12_000)}
SCALES = {"range_scale_public_code": "published scale", "found_scale": "found scale"}
METHODS = ("paddle", "soft_kmeans", "paddle_gd")
NAMES = {f"{method} ({scale})" for method in METHODS for scale in SCALES.values()}
FEW = "† Measured on fewer than 100 tasks, too few to rank methods that are close."


def report(folder, specs, n_tasks):
    """Report made-up results of all methods at both scales; return its folder."""
    plan = tuple(
        Cell("mini", spec, method, transform=name, **PAPER) for spec in specs for method in METHODS for name in SCALES
    )
    accuracies = [noisy(0.5 + 0.01 * k, n_tasks, seed=k) for k in range(len(plan))]
    return write_report(made_up_run(folder / "run", plan, accuracies, unknown_auroc=0.9), folder / "report").parent


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    specs = [replace(SPEC, query=UniformOverPool(k)) for k in (2, 5)]
    unknown = replace(SPEC, unknown=UnknownClasses(3, 0.2))
    return report(tmp_path_factory.mktemp("few"), [*specs, unknown], 40)


def names_in(text: str) -> set[str]:
    """Return the names of methods in a text, with what follows in brackets."""
    plain = unescape(text).replace(r"\_", "_")
    return set(re.findall(rf"\b(?:{'|'.join(METHODS)})\b(?: \([^)]*\))?", plain))


def test_the_table_in_latex_names_the_scale_and_explains_the_mark_of_few_tasks(few):
    text = (few / "accuracy.tex").read_text(encoding="utf-8")
    assert names_in(text) == NAMES
    assert FEW in text.replace(r"\textdagger{}", "†")
    figures = re.findall(r"\\pm [\d.]+", text)
    marks = re.findall(r"\\pm [\d.]+\}\$\\textdagger", text)
    assert len(figures) == len(marks) > 0


def test_every_table_of_the_page_names_the_scale_and_explains_the_mark(few):
    page = (few / "index.html").read_text(encoding="utf-8")
    tables = re.findall(r"<table>.*?</table></div>(.{0,150})", page, re.DOTALL)
    texts = [table for table in re.findall(r"<table>.*?</table>", page, re.DOTALL) if names_in(table)]
    assert len(texts) > 5
    for text in texts:
        assert names_in(text) <= NAMES
    assert len([after for after in tables if FEW in after]) == len(texts) - 1  # the plan has no figures
    # Text of the figures: a legend that names both scales, and what a hollow mark means.
    drawn = "\n".join(re.findall(r"<text[^>]*>(.*?)</text>", page))
    assert names_in(drawn) == NAMES
    assert "hollow: fewer than 100 tasks" in drawn


def test_a_hundred_tasks_are_not_marked(tmp_path):
    folder = report(tmp_path, [SPEC, replace(SPEC, query=UniformOverPool(2))], 100)
    for file in ("accuracy.tex", "index.html"):
        text = (folder / file).read_text(encoding="utf-8")
        assert not any(mark in text for mark in ("†", "textdagger", "hollow"))


@pytest.mark.parametrize("n_tasks", [1, 2, 40])
def test_the_papers_number_is_only_beside_an_interval(tmp_path, n_tasks):
    folder = report(tmp_path, [SPEC], n_tasks)
    page = (folder / "index.html").read_text(encoding="utf-8")
    entries = [entry for entry in re.findall(r"<td>.*?</td>", page) if "class='paper'" in entry]
    assert all(" ± " in entry for entry in entries)
    assert bool(entries) == (n_tasks > 1)
    latex = (folder / "accuracy.tex").read_text(encoding="utf-8")
    assert ("(63.2)" in latex) == (n_tasks > 1)
    said = "The paper's numbers are not beside figures of one task" in latex
    assert said == (n_tasks == 1)


def test_a_row_whose_features_have_two_scales_names_both_and_their_banks(tmp_path):
    plan = tuple(Cell(bank, SPEC, "nearest_prototype") for bank in ("with_base", "without"))
    journal = made_up_run(tmp_path / "run", plan, [noisy(0.6), []])
    rows = journal.table().to_pylist()
    journal.append([{**row, "cell": plan[1].content_hash, "transform": "l2"} for row in rows])
    text = accuracy_latex(columns_of(results(journal))).replace(r"\_", "_")
    assert "nearest_prototype (centred on base classes: with_base; unit length: without) & " in text
    assert "not in the plan" not in text


def test_features_of_two_lengths_are_two_rows(tmp_path):
    plan = tuple(
        Cell("toy", SPEC, "paddle", transform="l2_times", parameters={"factor": factor}) for factor in (4.0, 8.0)
    )
    columns = columns_of(results(made_up_run(tmp_path / "run", plan, [noisy(0.5), noisy(0.7, seed=1)])))
    lines = [line for line in accuracy_latex(columns).splitlines() if line.startswith("paddle")]
    assert [line.split(" & ")[0] for line in lines] == [rf"paddle (unit length $\times$ {n})" for n in (4, 8)]
    assert [label for label, _ in differences_table(columns[0])] == [
        "paddle (unit length × 8) − paddle (unit length × 4)"
    ]


def test_the_best_weight_is_found_at_each_scale(tmp_path):
    plan = tuple(
        Cell("toy", replace(SPEC, n_query=n), "paddle", transform=name, options={"complexity_weight": weight})
        for n in (6, 8)
        for name in SCALES
        for weight in (2.0, 6.0)
    )
    accuracies = [noisy(mean, 40, seed=k) for k, mean in enumerate([0.5, 0.6, 0.9, 0.8, 0.5, 0.6, 0.9, 0.8])]
    columns = columns_of(results(made_up_run(tmp_path / "run", plan, accuracies)))
    (axis,) = plots.best_weight_against_n_query(columns).axes
    drawn = {line.get_label(): list(line.get_ydata()) for line in axis.lines if line.get_label()[0] != "_"}
    assert drawn == {
        "λ = |Q|": [6, 8],
        "best λ, paddle (published scale)": [6.0, 6.0],
        "best λ, paddle (found scale)": [2.0, 2.0],
    }
    hollow = [line for line in axis.lines if line.get_markerfacecolor() == "white"]
    assert [list(line.get_ydata()) for line in hollow] == [[6.0, 6.0], [2.0, 2.0]]
    labels = {line.get_label() for panel in plots.accuracy_against_weight(columns).axes for line in panel.lines}
    assert {"paddle (published scale)", "paddle (found scale)"} <= labels


@pytest.mark.parametrize("banks", [1, 2])
def test_the_legend_of_long_names_is_inside_the_figure(tmp_path, banks):
    plan = tuple(
        Cell(f"bank {k}", replace(SPEC, query=UniformOverPool(k_eff)), method, transform=name)
        for k in range(banks)
        for k_eff in (2, 5)
        for method in ("nearest_prototype", "laplacian_shot")
        for name in ("cl2n", "pt_map_preprocess", "found_scale")
    )
    figure = plots.accuracy_against_k_eff(
        columns_of(results(made_up_run(tmp_path / "r", plan, [[0.5, 0.6]] * len(plan))))
    )
    canvas = pytest.importorskip("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    canvas.draw()
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 7
    box = legend.get_window_extent(canvas.get_renderer())
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width
    assert all(axis.get_window_extent().y0 > box.y1 for axis in figure.axes)
    assert all(axis.get_window_extent().height > 0.5 * 72 * plots.HEIGHT for axis in figure.axes)


def test_every_transform_has_a_name_of_its_own_to_print():
    from handful_fewshot.transforms import SCALES as PRINTED

    assert set(PRINTED) == set(TRANSFORMS)
    assert len({*PRINTED.values()} - {PRINTED["l2_times"]}) == len(PRINTED) - 2  # l2_times has its factor beside it
