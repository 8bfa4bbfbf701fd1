import re

import numpy as np
import pytest

pytest.importorskip("typer")
from handful import FeatureBank
from handful.cli.main import main
from handful.datasets import load_clinc150
from handful_fewshot import (
    METHODS,
    Dirichlet,
    FixedSupport,
    MethodClassifier,
    ShotsPerClass,
    TaskSpec,
    UniformOverPool,
    UnknownClasses,
    draw,
    gather,
    solve,
)
from handful_fewshot import transform as fewshot_transform
from handful_fewshot.benchmark import plan as plans
from handful_fewshot.benchmark.completion import progress
from handful_fewshot.benchmark.journal import Journal
from handful_fewshot.benchmark.paper import PAPER_PLANS, TABLE_1_METHODS, published_accuracy
from handful_fewshot.cli import bench
from handful_fewshot.reports.control import CONTROL
from handful_fewshot.reports.summary import FEW_NOTE, TaskMean
from tests.banks_at_hand import random_bank


@pytest.fixture
def bank(tmp_path):
    random_bank(n_classes=6, least=20, most=25).save(tmp_path / "toy")
    return tmp_path / "toy"


TASK_OPTIONS = ("--shots", "--k-eff", "--n-query", "--n-classes", "--split", "--unknown-classes", "--unknown-share")
CELL_OPTIONS = (*TASK_OPTIONS, "--tasks", "--seed", "--budget")


def run(capsys, *arguments) -> list[str]:
    assert main(["bench", *map(str, arguments)]) == 0
    streams = capsys.readouterr()
    assert all(re.match(r"run \d+ cells?: ", line) for line in streams.err.splitlines())
    return streams.out.splitlines()


def grid(bank, out, *more):
    methods = ("--method", "paddle", "--method", "soft_kmeans")
    return ("run", "--bank", bank, *methods, "--k-eff", 2, "--k-eff", 3, "--n-query", 6, "--out", out, *more)


def test_a_grid_is_run_and_its_status_printed(bank, tmp_path, capsys):
    lines = run(capsys, *grid(bank, tmp_path / "run", "--tasks", 10))
    assert lines[0] == "toy, 5-shot, K_eff=2, |Q|=6"
    assert lines[1].startswith("  paddle ")
    assert " 10/10 " in lines[1]
    assert len(lines) == 7
    assert lines[-1] == FEW_NOTE
    assert run(capsys, "status", tmp_path / "run") == lines
    journal = Journal(tmp_path / "run")
    assert [(cell.method, cell.spec.query.k_eff) for cell in journal.plan] == [
        *(("paddle", 2), ("soft_kmeans", 2)),
        *(("paddle", 3), ("soft_kmeans", 3)),
    ]


def test_tasks_with_unknown_classes_from_the_command_to_the_page(bank, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    methods = [word for name in ("oslo", "ostim", "eol", "nearest_prototype") for word in ("--method", name)]
    unknown = ("--unknown-classes", 2, "--unknown-share", 0.0, "--unknown-share", 0.5)
    sizes = ("--k-eff", 2, "--n-query", 12, "--shots", 3, "--tasks", 4)
    lines = run(capsys, "run", "--bank", bank, *methods, *unknown, *sizes, "--out", tmp_path / "run")
    titles = [line for line in lines[:-1] if not line.startswith(" ")]
    assert titles == [f"toy, 3-shot, K_eff=2, |Q|=12, 2 unknown at {share}%" for share in (0, 50)]
    journal = Journal(tmp_path / "run")
    assert [cell.spec.unknown for cell in journal.plan] == [
        UnknownClasses(2, share) for share in (0.0, 0.5) for _ in range(4)
    ]
    for cell in journal.plan:
        rows = journal.columns(cell)
        share = cell.spec.unknown.share
        assert len(rows["task"]) == 4
        assert all(error is None for error in rows["error"])
        assert (np.isnan(rows["unknown_auroc"]) == (share == 0)).all()
        assert (np.isnan(rows["unknown_share_error"]) == (cell.method == "nearest_prototype")).all()
        if share:
            assert ((rows["unknown_auroc"] >= 0) & (rows["unknown_auroc"] <= 1)).all()
    assert main(["report", str(tmp_path / "run"), "--out", str(tmp_path / "report")]) == 0
    capsys.readouterr()
    page = (tmp_path / "report" / "index.html").read_text()
    assert "Unknown items" in page
    assert page.count("1 − highest probability") == 2  # once in each table, for nearest_prototype
    again = run(capsys, "run", "--resume", "--out", tmp_path / "run")
    assert again == lines


def test_the_grid_takes_the_options_of_its_siblings(bank, tmp_path, capsys):
    how = ("--query", "dirichlet", "--concentration", 1.5, "--n-classes", 4, "--scale", "l2")
    options = ("--option", "max_iter=20", "--option", "tol=0,1e-3")
    small = ("--bank", bank, "--method", "paddle", "--k-eff", 3, "--n-query", 6, "--tasks", "0:4")
    run(capsys, "run", *small, *how, *options, "--out", tmp_path / "run")
    plan = Journal(tmp_path / "run").plan
    assert [dict(cell.options) for cell in plan] == [{"max_iter": 20, "tol": tol} for tol in (0, 1e-3)]
    for cell in plan:
        assert (cell.transform, cell.n_tasks) == ("l2", 4)
        assert cell.spec == TaskSpec(ShotsPerClass(5), Dirichlet(3, 1.5), 6, 4)
    for tasks in ("4", "0:4"):
        run(capsys, "run", *small[:-1], tasks, "--out", tmp_path / f"run {tasks}")
    first, second = (Journal(tmp_path / f"run {tasks}") for tasks in ("4", "0:4"))
    assert first.plan == second.plan


def test_a_grid_takes_its_support_from_another_bank(bank, tmp_path, capsys):
    library = random_bank(5, n_classes=6).save(tmp_path / "library")
    given = ("--bank", bank, "--support-bank", tmp_path / "library", "--method", "paddle", "--n-query", 6)
    run(capsys, "run", *given, "--tasks", 2, "--out", tmp_path / "run")
    (cell,) = Journal(tmp_path / "run").plan
    assert cell.spec.support == FixedSupport.whole(library.labels)
    run(capsys, "run", "--resume", "--out", tmp_path / "run")


METHOD_FILE = """
from __future__ import annotations
import dataclasses
import handful_fewshot as fewshot

@dataclasses.dataclass(frozen=True)
class Options(fewshot.METHODS["nearest_prototype"].options):
    sharpness: float = 1.0

def solve(task, options):
    return fewshot.solve("nearest_prototype", task)

mine = fewshot.Method("of_a_file", Options, "l2", solve, "Ours.")
"""


def test_a_method_in_a_file_is_named_by_its_path(bank, tmp_path, capsys, monkeypatch):
    file, out = tmp_path / "methods.py", tmp_path / "run"
    file.write_text(METHOD_FILE)
    given = ("--bank", bank, "--n-query", 6, "--method", f"{file}:mine", "--option", "sharpness=2", "--out", out)
    lines = run(capsys, "run", *given, "--tasks", 3)
    assert lines[1].startswith("  of_a_file ")
    assert " 3/3 " in lines[1]
    # A new process has not loaded the file: it can read the run, and says what it needs to continue.
    monkeypatch.setattr(plans, "_hashes", {})
    monkeypatch.delitem(METHODS._values, "of_a_file")
    assert run(capsys, "status", out) == lines
    assert main(["report", str(out), "--out", str(tmp_path / "report")]) == 0
    capsys.readouterr()
    run(capsys, "run", "--resume", "--out", out)  # nothing is left to do
    Journal(out).shards()[-1].unlink()
    assert "--method FILE.py:of_a_file" in refused(capsys, "run", "--resume", "--out", out)
    assert " 5/5 " in run(capsys, "run", *given, "--tasks", 5, "--resume")[1]
    again = run(capsys, "compare", out, "--methods", f"{file}:mine,{file}:mine (unit length)")
    assert again[0].startswith("toy, 5-shot, K_eff=5, |Q|=6: of_a_file (unit length) − of_a_file (unit length): ")
    (before,) = Journal(out).plan
    file.write_text(METHOD_FILE + "# changed\n")  # another method: its tasks are all to be solved
    assert " 2/2 " in run(capsys, "run", *given, "--tasks", 2, "--resume")[1]
    (after,) = Journal(out).plan
    assert len(Journal(out).columns(before)["task"]) == 5
    assert before.content_hash != after.content_hash
    assert "a cluster needs methods in a package" in refused(capsys, "run", *given, "--on", "ray")


def test_a_run_without_an_answer_ends_with_1_and_says_why(bank, tmp_path, capsys):
    arguments = grid(bank, tmp_path / "run", "--tasks", 3, "--n-query", 60)
    assert main(["bench", *map(str, arguments)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith("3/3, 3 failed")
    assert (
        "the first failed with: TaskError: task 0: without the support, the pool of its query's 2 classes" in lines[2]
    )


def test_a_run_goes_on_with_its_own_plan_or_a_longer_one(bank, tmp_path, capsys):
    out = tmp_path / "run"
    run(capsys, *grid(bank, out, "--tasks", 10))
    journal = Journal(out)
    before = journal.table().num_rows
    journal.shards()[-1].unlink()
    run(capsys, "run", "--resume", "--out", out)
    assert journal.table().num_rows == before == 40
    run(capsys, *grid(bank, out, "--tasks", 12, "--resume"))
    tasks = Journal(out).columns(journal.plan[0])["task"]
    assert np.array_equal(tasks, np.arange(12))


def test_a_plan_in_toml_finds_its_banks_beside_it(bank, tmp_path, capsys):
    (tmp_path / "plan.toml").write_text(
        "[banks]\ntoy = 'toy'\n[[cells]]\nbank = 'toy'\nmethod = 'paddle'\nn_query = 6\nk_eff = 2\ntasks = 9\n"
    )
    lines = run(capsys, "run", tmp_path / "plan.toml", "--out", tmp_path / "run", "--tasks", 4, "--seed", 3)
    assert " 4/4 " in lines[1]
    assert Journal(tmp_path / "run").plan[0].seed == 3


def test_methods_are_compared_on_the_same_tasks(bank, tmp_path, capsys):
    run(capsys, *grid(bank, tmp_path / "run", "--tasks", 10))
    lines = run(capsys, "compare", tmp_path / "run", "--methods", "paddle,soft_kmeans")
    assert len(lines) == 3
    assert lines[0].startswith("toy, 5-shot, K_eff=2, |Q|=6: paddle (found scale) − soft_kmeans (found scale): ")
    assert " points† on 10 tasks: " in lines[0]
    assert lines[-1] == FEW_NOTE
    assert main(["bench", "compare", str(tmp_path / "run"), "--methods", "paddle,tim"]) == 1
    assert "it has paddle (found scale), soft_kmeans (found scale)" in capsys.readouterr().err


def test_a_run_keeps_predictions_if_told(bank, tmp_path, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "run"
    run(capsys, *grid(bank, out, "--tasks", 2, "--keep", "predictions"))
    tables = [parquet.read_table(shard) for shard in out.glob("rows-*.parquet")]
    assert [len(labels) for table in tables for labels in table["predictions"].to_pylist()] == [6] * 8
    assert "leave out --keep" in refused(capsys, "run", "--resume", "--keep", "predictions", "--out", out)
    assert "has rows that keep predictions" in refused(capsys, *grid(bank, out, "--tasks", 3, "--resume"))


def test_a_method_at_two_scales_is_named_with_its_scale(bank, tmp_path, capsys):
    (tmp_path / "plan.toml").write_text(
        "[[cells]]\nbank = 'toy'\nmethod = 'paddle'\nn_query = 6\nk_eff = 2\ntasks = 4\n"
        "scale = ['published', 'found']\n"
        "[[cells]]\nbank = 'toy'\nmethod = 'soft_kmeans'\nn_query = 6\nk_eff = 2\ntasks = 4\nscale = 'published'\n"
    )
    lines = run(capsys, "run", tmp_path / "plan.toml", "--bank", bank, "--out", tmp_path / "run")
    names = ["paddle (published scale)", "paddle (found scale)", "soft_kmeans (published scale)"]
    assert [re.match(r"  (\w+ \(.*?\)) ", line)[1] for line in lines[1:4]] == names
    assert all("%†  " in line for line in lines[1:4])
    assert lines[4] == FEW_NOTE
    said = refused(capsys, "compare", tmp_path / "run", "--methods", "paddle,soft_kmeans")
    assert "this run has paddle (published scale), paddle (found scale): say which paddle is meant" in said
    line, _ = run(capsys, "compare", tmp_path / "run", "--methods", "paddle (found scale),soft_kmeans")
    assert ": paddle (found scale) − soft_kmeans (published scale): " in line


def test_a_scale_is_an_axis_of_a_grid_and_one_scale_is_one_cell(bank, tmp_path, capsys):
    methods = ("--method", "paddle", "--method", "unem", "--method", "tim", "--option", "max_iter=5")
    scales = ("--scale", "found", "--scale", "published", "--scale", "l2")
    small = ("--k-eff", 2, "--n-query", 6, "--tasks", 2)
    run(capsys, "run", "--bank", bank, *methods, *scales, *small, "--out", tmp_path / "run")
    assert [(cell.method, cell.transform) for cell in Journal(tmp_path / "run").plan] == [
        *(("paddle", "found_scale"), ("unem", "found_scale"), ("tim", "found_scale")),
        *(("paddle", "range_scale_public_code"), ("tim", "l2"), ("paddle", "l2"), ("unem", "l2")),
    ]
    both = ("--bank", bank, "--method", "paddle", *small, "--out", tmp_path / "two")
    assert "the plan has paddle on toy" in refused(capsys, "run", *both, "--scale", "found", "--scale", "found")
    assert "no transform is called 'fond'" in refused(capsys, "run", *both, "--scale", "fond")


def test_a_method_has_one_default_scale_wherever_it_is_called_by_name(bank):
    cells = {name: plans.Cell("toy", TaskSpec(ShotsPerClass(5), Dirichlet(2)), name) for name in METHODS}
    for name, cell in cells.items():
        used = MethodClassifier(name)._transform()
        assert used == ("l2" if cell.transform == "cl2n" else cell.transform)
        assert MethodClassifier(name, scale="published")._transform() in (METHODS[name].transform, "l2")
        assert MethodClassifier(name, scale="found")._transform() == "found_scale"
    assert cells["paddle"].transform == "found_scale"


@pytest.mark.parametrize("with_control", [False, True])
def test_a_published_scale_that_falls_below_the_nearest_prototype_is_told(tmp_path, capsys, with_control):
    methods = ["--method", "paddle", *(["--method", "nearest_prototype"] if with_control else [])]
    small = ("--n-query", 20, "--tasks", 40, "--shots", 1, "--scale", "published", "--scale", "found")
    lines = run(capsys, "run", "--bank", "clinc150", *methods, *small, "--out", tmp_path / "run")
    told = [line for line in lines if "does not fit" in line]
    (line,) = told
    assert re.fullmatch(
        r"clinc150, 1-shot, K_eff=5, \|Q\|=20: paddle \(published scale\) is [\d.]+ ± [\d.]+ points† below "
        r"nearest_prototype \(unit length\) on the same 40 tasks, so its scale does not fit these features; "
        r"add --scale found.",
        line,
    )
    journal = Journal(tmp_path / "run")
    assert len(journal.plan) == (4 if with_control else 2)
    paddle, control = (
        fewshot_accuracy(name, transform)
        for name, transform in (("paddle", "range_scale_public_code"), (CONTROL, "l2"))
    )
    difference = TaskMean.of(100 * (control - paddle))
    assert f" is {difference.text(unit=' points')} below " in line


def fewshot_accuracy(method, transform):
    """Accuracy of the same 40 tasks, by hand."""
    bank = load_clinc150()
    spec = TaskSpec(ShotsPerClass(1), UniformOverPool(5), n_query=20)
    task, truth = gather(bank, draw(bank.labels, spec, 0, range(40)))
    return (solve(method, fewshot_transform(transform, task)).predictions == truth).double().mean(-1).numpy()


@pytest.fixture
def stand_ins(tmp_path):
    """Banks for all columns of Table 1, of the paper's sizes: but tiered_wrn has 150 classes instead of 160."""
    whole = load_clinc150()
    features = np.pad(np.array(whole.features), ((0, 0), (0, 640 - whole.dim)))
    for name, dim in (("mini", 512), ("mini_wrn", 640)):
        splits = {"test": list(range(20)), "base": list(range(20, 60))}
        bank = FeatureBank.from_arrays(features[:, :dim], whole.labels, whole.class_names, splits=splits)
        bank.save(tmp_path / name)
    again = whole.labels < 10  # ten classes once more under other names, to make 160
    labels = np.concatenate([whole.labels, whole.labels[again] + 150])
    names = [*whole.class_names, *(f"{name} again" for name in whole.class_names[:10])]
    FeatureBank.from_arrays(np.concatenate([features, features[again]])[:, :512], labels, names).save(
        tmp_path / "tiered"
    )
    FeatureBank.from_arrays(features, whole.labels, whole.class_names).save(tmp_path / "tiered_wrn")
    places = {name: name for name in ("mini", "mini_wrn", "tiered", "tiered_wrn")}
    return [option for name, place in places.items() for option in ("--bank", f"{name}={tmp_path / place}")]


def table_1_of(tmp_path, capsys, arguments, methods):
    """Run it and report it; return the published numbers that stand beside ours."""
    pytest.importorskip("matplotlib")
    lines = run(capsys, "run", "--paper", "table1", "--as-published", *arguments, "--out", tmp_path / "run")
    titles = [
        f"{bank}, {shots}-shot, K_eff=5"
        for bank in ("mini/test", "tiered", "mini_wrn/test", "tiered_wrn")
        for shots in (5, 10, 20)
    ]
    assert [line for line in lines if not line.startswith(" ")] == [*titles, FEW_NOTE]
    assert main(["report", str(tmp_path / "run"), "--out", str(tmp_path / "report")]) == 0
    text = (tmp_path / "report" / "accuracy.tex").read_text().replace(r"\_", "_")
    head, *rows, _ = (line.removesuffix(r" \\").split(" & ") for line in text.splitlines() if line.endswith(r"\\"))
    assert head[2:] == [rf"\rotatebox{{60}}{{{title}}}" for title in titles]
    assert [name.partition(" (")[0] for name, *_ in rows] == list(methods)
    found = {
        name.partition(" (")[0]: [float(cell[:-1].split(" (")[1]) if cell.endswith(")") else None for cell in cells]
        for name, _, *cells in rows
    }
    page = (tmp_path / "report" / "index.html").read_text()
    assert page.count("class='paper'") == sum(number is not None for row in found.values() for number in row)
    return found


def test_table_1_runs_on_stand_ins_for_both_networks(tmp_path, capsys, stand_ins):
    methods = ("bd_cspn", "laplacian_shot", "paddle")
    chosen = [option for method in methods for option in ("--method", method)]
    found = table_1_of(tmp_path, capsys, [*stand_ins, *chosen, "--tasks", 2], methods)
    none = [None] * 3
    assert found["paddle"] == [63.2, 73.3, 80.0, 45.8, 62.5, 72.0, 62.5, 72.8, 79.3, *none]
    assert found["bd_cspn"] == [49.6, 54.1, 55.6, 24.0, 26.7, 26.0, 51.2, 55.5, 58.4, *none]
    assert found["laplacian_shot"] == [60.4, 65.2, 68.4, 34.7, 36.8, 39.1, 64.9, 65.3, 70.9, *none]
    for name in ("accuracy.tex", "index.html"):
        text = (tmp_path / "report" / name).read_text().replace("\\_", "_").replace("&#x27;", "'")
        assert "The paper's numbers are not beside tiered_wrn, which has 150 classes and 640 dimensions" in text
        assert "cl2n (mini, mini_wrn), l2 (tiered, tiered_wrn)" in text
        assert "laplacian_shot on tiered, tiered_wrn ran with l2 instead of cl2n" in text


def test_the_status_names_the_transform_that_was_used(tmp_path, capsys):
    options = ("--bank", "clinc150", "--method", "laplacian_shot", "--tasks", 2, "--out", tmp_path / "run")
    title, line, note = run(capsys, "run", *options)
    assert (title, note) == ("clinc150, 5-shot, K_eff=5", FEW_NOTE)
    assert line.startswith("  laplacian_shot (unit length)  ")
    assert " l2 instead of cl2n  2/2 " in line


def test_the_status_is_a_table(tmp_path, capsys):
    methods = ("--method", "paddle", "--method", "nearest_prototype")
    lines = run(capsys, "run", "--bank", "clinc150", *methods, "--tasks", 2, "--out", tmp_path / "run")
    assert len({line.index("  2/2  ") for line in lines[1:3]}) == 1


def test_a_budget_is_beside_processor_seconds_and_the_tasks_that_were_wanted(bank, tmp_path, capsys):
    lines = run(capsys, *grid(bank, tmp_path / "run", "--tasks", 60, "--budget", 1e-9))
    assert re.search(r" 1/60 \(budget of 1e-09 CPU s used up\) .* CPU s per task$", lines[1])
    state = next(iter(progress(Journal(tmp_path / "run"))))
    assert f"{state.cpu_seconds:.2g} CPU s per task" in lines[1]


@pytest.mark.slow
def test_table_1_runs_on_stand_ins_with_all_its_methods(tmp_path, capsys, stand_ins):
    found = table_1_of(tmp_path, capsys, [*stand_ins, "--tasks", 1], TABLE_1_METHODS)
    assert all(number is None for row in found.values() for number in row)  # one task has no interval
    journal = Journal(tmp_path / "run")
    for method in TABLE_1_METHODS:
        printed = [published_accuracy(cell) for cell in journal.plan if cell.method == method]
        assert printed.count(None) == (6 if method == "ici" else 3)
    assert not any(error for error in journal.columns()["error"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "nothing to run"),
        (["--paper", "table9"], "the paper has no 'table9'; choose from table1"),
        (["--paper", "table1"], "needs at least one bank named mini"),
        (["plan.toml", "--method", "paddle"], "a plan in TOML is complete; leave out --method"),
        (["plan.toml", "--paper", "table1"], "a plan in TOML is complete; leave out --paper"),
        *((["plan.toml", option, "1"], f"is complete; leave out {option}") for option in TASK_OPTIONS),
        (["plan.toml", "--shots", "1", "--k-eff", "2", "--n-query", "9"], "leave out --shots, --k-eff, --n-query"),
        *(
            (["--paper", "table1", option, "1"], f"of the paper defines its own tasks.* {option}")
            for option in TASK_OPTIONS
        ),
        *((["--resume", option, "1"], f"continues the run as it is.*leave out {option}") for option in CELL_OPTIONS),
        (["--method", "paddle"], "--method needs a bank to run on"),
        (["--paper", "table1", "--method", "paddle"], "needs at least one bank named mini"),
        (
            ["--paper", "table1", "--bank", "mini=clinc150", "--method", "prior_em"],
            "table1 has no prior_em; it has base",
        ),
        (["--bank", "clinc150", "--method", "magic"], "no method is called 'magic'"),
        (["--resume", "--on", "moon"], "--on must be here, here:NUMBER, ray or ray:ADDRESS"),
        (["--resume"], "is not a run"),
        (["--bank", "nowhere", "--method", "paddle"], "nowhere does not exist"),
    ],
)
def test_what_cannot_be_run_is_refused_with_a_sentence(tmp_path, capsys, arguments, sentence):
    assert main(["bench", "run", "--out", str(tmp_path / "run"), *arguments]) == 1
    said = capsys.readouterr().err
    assert sentence in said or re.search(sentence, said)
    assert not (tmp_path / "run").exists()


def test_a_run_that_is_there_is_not_begun_again(bank, tmp_path, capsys):
    run(capsys, *grid(bank, tmp_path / "run", "--tasks", 1))
    assert main(["bench", *map(str, grid(bank, tmp_path / "run", "--tasks", 1))]) == 1
    assert "not empty; resume it" in capsys.readouterr().err


def refused(capsys, *arguments) -> str:
    assert main(["bench", *map(str, arguments)]) == 1
    return capsys.readouterr().err


def test_a_bank_that_no_cell_uses_is_refused(bank, tmp_path, capsys):
    out = tmp_path / "run"
    (tmp_path / "plan.toml").write_text("[[cells]]\nbank = 'toy'\nmethod = 'paddle'\nn_query = 6\ntasks = 2\n")
    given = ("--bank", bank, "--bank", "clinc150")
    sentence = "no cell of the plan uses a bank named clinc150; it uses toy"
    assert sentence in refused(capsys, "run", tmp_path / "plan.toml", *given, "--out", out)
    assert not out.exists()
    run(capsys, "run", tmp_path / "plan.toml", "--bank", bank, "--out", out)
    assert sentence in refused(capsys, "run", "--resume", "--bank", "clinc150", "--out", out)
    mini = ("--bank", f"mini={bank}", "--bank", "clinc150")
    assert "named clinc150; it uses mini" in refused(capsys, "run", "--paper", "table1", *mini, "--out", tmp_path / "x")


def test_a_run_of_other_versions_does_not_go_on(bank, tmp_path, capsys, monkeypatch):
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        for place in ("run", "completion"):
            patch.setattr(f"handful_fewshot.benchmark.{place}.versions_text", lambda: "handful 0.0.9")
        run(capsys, *grid(bank, out, "--tasks", 2))
    before = (out / "plan.json").read_bytes()
    run(capsys, "run", "--resume", "--out", out)  # nothing is left to do
    more = grid(bank, out, "--tasks", 3, "--resume")
    said = refused(capsys, *more)
    assert "would mix rows of different versions: rows were made with handful 0.0.9, but this is" in said
    assert (out / "plan.json").read_bytes() == before


def without_numbers(line) -> str:
    return re.sub(r"[+-]?[0-9.]+(e-[0-9]+)?", "#", line)


def test_one_task_has_no_interval_and_no_task_no_winner(bank, tmp_path, capsys, monkeypatch):
    out = tmp_path / "run"
    lines = run(capsys, *grid(bank, out, "--tasks", 1))
    assert "% on one task†  " in lines[1]
    compared = run(capsys, "compare", out, "--methods", "paddle,soft_kmeans")
    assert without_numbers(compared[0]).endswith(
        "soft_kmeans (found scale): # points on one task†: too few tasks to tell"
    )
    for shard in Journal(out).shards():
        shard.unlink()
    lines += compared + run(capsys, "status", out) + run(capsys, "compare", out, "--methods", "paddle,soft_kmeans")
    assert lines[-1].endswith("paddle (found scale) − soft_kmeans (found scale): no task in common")
    assert not re.search(r"\b(nan|inf)\b", "\n".join(lines))


def test_results_of_a_method_are_compared_by_their_options(bank, tmp_path, capsys):
    orders = ("--option", "tsallis_alpha_marginal=2,7", "--option", "tsallis_alpha_conditional=5")
    small = ("--bank", bank, "--method", "alpha_tim", "--n-query", 10, "--tasks", 2)
    run(capsys, "run", *small, *orders, "--option", "max_iter=3", "--out", tmp_path / "run")
    names = [f"alpha_tim (tsallis_alpha_marginal={order}, tsallis_alpha_conditional=5, max_iter=3)" for order in (2, 7)]
    line, note = run(capsys, "compare", tmp_path / "run", "--methods", ",".join(names))
    assert line.endswith("too few tasks to tell")
    assert note == FEW_NOTE


def test_an_interruption_says_how_to_go_on(bank, tmp_path, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    out = tmp_path / "a run"
    with monkeypatch.context() as patch:
        patch.setattr("handful_fewshot.benchmark.completion.complete", interrupt)
        assert main(["bench", *map(str, grid(bank, out, "--tasks", 2, "--on", "here:2"))]) == 130
    assert capsys.readouterr().err == (
        "handful: interrupted; rows that were written are kept. "
        f"Continue with: handful bench run --resume --out '{out}' --on here:2\n"
    )
    assert " 2/2 " in run(capsys, "run", "--resume", "--out", out, "--on", "here:2")[1]
    with monkeypatch.context() as patch:
        patch.setattr("handful_fewshot.cli.bench.open_bank", interrupt)
        assert main(["bench", *map(str, grid(bank, tmp_path / "other"))]) == 130
    assert capsys.readouterr().err == ("handful: interrupted before anything was changed; run the same command again\n")


def test_a_run_that_was_killed_before_it_had_a_plan_is_started(bank, tmp_path, capsys):
    out = tmp_path / "run"
    out.mkdir()
    (out / ".lock").touch()
    assert " 2/2 " in run(capsys, *grid(bank, out, "--tasks", 2, "--resume"))[1]


def test_the_plans_of_the_paper_in_the_help_are_those_there_are():
    assert list(bench.PAPER_NAMES) == list(PAPER_PLANS)
