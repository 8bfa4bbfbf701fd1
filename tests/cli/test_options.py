"""No option is ignored: each option of each command changes what the command does, or is refused with a sentence.

A mode is one way to give a command. `applied` has another value of each option that the mode takes: with it, the
command must make other calls or print something else. `refused` has the options that do not go with the mode. An option
that is in neither table fails, and so does a command without a mode.
"""

import inspect
import pickle
import shutil
from dataclasses import dataclass, field, is_dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("matplotlib")
import typer

from handful.banks import FeatureBank
from handful.cli.main import main, make_app
from handful.extraction.items import Items
from handful.fewshot.benchmark.journal import Journal
from tests.banks_at_hand import random_bank
from tests.cli.test_main import leaves
from tests.items_at_hand import image_folder

# The functions that do the work of commands. Here they only note what they are called with.
WORK = (
    "handful.classification.label.classify",
    "handful.classification.tables.write_predictions",
    "handful.classification.label_studio.write_label_studio",
    "handful.classification.page.write_page",
    "handful.cli.printed.print_batch",
    "handful.classification.scores.classify_scores",
    "handful.classification.scores.write_scores",
    "handful.classification.scores.write_annotations",
    "handful.large.on_ray.on_ray",
    "handful.fewshot.benchmark.completion.complete",
    "handful.fewshot.benchmark.local.in_process",
    "handful.fewshot.benchmark.on_ray.on_ray",
    "handful.fewshot.reports.page.write_report",
    "handful.extraction.backbones.load_backbone",
    "handful.extraction.extract.extract",
    "handful.extraction.extract.in_process",
    "handful.extraction.extract.skipped_items",
    "handful.extraction.on_ray.on_ray",
    "handful.cli.printed.print_bank",
    "handful.fewshot.training.hold_out",
    "handful.fewshot.training.read_benchmark",
    "handful.fewshot.training.train",
)
# These do their work as well.
WATCHED = ("handful.cli.banks.open_bank", "handful.fewshot.reports.summary.verdict")
# In place of a value: the option is no longer given; or it makes the command one of another mode.
LEFT_OUT, ANOTHER_MODE = object(), object()


class Done:
    """What the work returns here."""

    streamed, base, validation = False, "base classes", None

    def __len__(self):
        return 0

    def __repr__(self):
        return "done"


@dataclass(frozen=True)
class Mode:
    """A command that works, other values of its options, the options it refuses, and commands that are given before."""

    command: str
    base: dict
    applied: dict
    refused: dict = field(default_factory=dict)
    before: tuple = ()

    def __str__(self):
        return f"{self.command} {' '.join(self.base)}"


FILES = {
    **{"--out": "out.csv", "--report": "page.html", "--candidates": "list.txt", "--prior": "weights.csv"},
    **{"--given": "said.json", "--sequence": "seq_id", "--pool": "region", "--order": "day"},
}
SIDES = {"--catalogue": "d.npz", "--names": "names.txt", "--batch": "a.npz"}
OF_A_BATCH = {
    **{"--backbone": "minilm", "--features": "emb", "--labels": "intent", "--id": "ticket", "--unknown": "other"},
    **{
        "--text": "said",
        "--trust-pickle": True,
        "--tasks": "tasks.json",
        "--device": "cuda",
    },
}
OF_SCORES = {"--sites": "sites.csv", "--annotate": "noted.json"}
BATCH = {"--catalogue": "c.npz", "--batch": "b.npz", "--out": "p.csv"}

ABOUT = {"--dataset": "d", "--licence": "l", "--backbone": "b", "--preprocessing": "p", "--notes": "n"}
TABLE_COLUMNS = {"--features": "more", "--labels": "kind"}
TRUSTED = {"--trust-pickle": True}
NOT_TRUSTED = {"--trust-pickle": LEFT_OUT}
EXTRACT = {"--items": "photos.csv", "--backbone": "minilm", "--out": "new"}
OF_AN_EXTRACTION = {
    **{"--items": "photos2.csv", "--backbone": "timm:x", "--out": "newer", "--split": "one", "--batch-size": 2},
    **{
        "--shard-size": 3,
        "--dtype": "float32",
        "--dataset": "d",
        "--licence": "l",
        "--labels": "split",
        "--id": "kind",
    },
}
OF_A_FOLDER = {**OF_AN_EXTRACTION, "--items": "few"}
NOT_OF_A_FOLDER = {name: OF_A_FOLDER.pop(name) for name in ("--split", "--labels", "--id")} | {"--text": "said"}

DRAW = {"bank": "toy", "--n-query": 8, "--k-eff": 2, "--tasks": "0:2", "--unknown-classes": 1, "--unknown-share": 0.5}
OF_A_DRAW = {
    **{"bank": "other", "--k-eff": 3, "--n-query": 9, "--unknown-classes": 2, "--unknown-share": 0.1},
    **{"--seed": 1, "--tasks": "0:3", "--preview": True},
}

GRID = {
    **{"--bank": "toy", "--method": "paddle", "--n-query": 8, "--k-eff": 2, "--out": "run", "--unknown-classes": 1},
    **{"--unknown-share": 0.5},
}
OF_A_GRID = {
    **{"--shots": 3, "--k-eff": 3, "--n-query": 9, "--split": "left", "--unknown-classes": 2, "--unknown-share": 0.1},
}
SIZES = {"--tasks": 7, "--seed": 3, "--budget": 60}
WHERE = {"--out": "elsewhere", "--on": "ray:there", "--workers": 2}
CONTINUED = {**WHERE, "--resume": LEFT_OUT, "--mix-versions": True}
NEW = {**WHERE, "--resume": True}
A_RUN = {"--bank": "toy", "--method": "tim", "--n-query": 8, "--k-eff": 2, "--out": "run"}
RUNS = (A_RUN, {**A_RUN, "--out": "elsewhere"})

TRAIN = {"--items": "photos", "--out": "run"}
OF_A_TRAINING = {
    **{"--items": "few", "--out": "elsewhere", "--network": "conv4", "--side": 12, "--epochs": 3, "--batch-size": 7},
    **{"--learning-rate": 0.2, "--drop-at": 2, "--momentum": 0.8, "--weight-decay": 0.1, "--label-smoothing": 0.2},
    **{"--smallest-area": 0.5, "--jitter": 0.1, "--flip": False, "--rotations": True, "--enlarge": False},
    **{"--mean": (1, 1, 1), "--std": (1, 1, 1), "--seed": 3, "--accelerator": "cpu", "--devices": 2},
    **{"--precision": "16-mixed", "--workers": 2},
}

MODES = (
    Mode(
        "classify",
        BATCH,
        {**FILES, **SIDES, **OF_A_BATCH, "--group-by": "site", "--on": "ray"},
        {**OF_SCORES, "--scores": "s.json"},
    ),
    Mode(
        "classify",
        {**BATCH, "--group-by": "site"},
        {**FILES, **SIDES, **OF_A_BATCH, "--group-by": "day"},
        {**OF_SCORES, "--scores": "s.json", "--on": "ray"},
    ),
    Mode(
        "classify",
        {"--scores": "s.json", "--out": "p.csv", "--sites": "cct.json"},
        {**FILES, **OF_SCORES, "--scores": "t.json", "--group-by": "folder"},
        {**SIDES, **OF_A_BATCH, "--on": "ray"},
    ),
    Mode("report", {"run": "run", "--out": "page"}, {"run": "elsewhere", "--out": "other"}, before=RUNS),
    Mode("demo", {"--out": "demo"}, {"--out": "other", "--tasks": 3}),
    Mode("doctor", {}, {}),
    Mode(
        "features import",
        {"source": "t.pkl", "bank": "new", **TRUSTED},
        {"source": "t.npz", "bank": "newer", **TABLE_COLUMNS, **ABOUT, **NOT_TRUSTED},
    ),
    Mode(
        "features import",
        {"source": "toy", "bank": "new"},
        {"source": "t.npz", "bank": "newer", **ABOUT},
        {**TABLE_COLUMNS, **TRUSTED},
    ),
    Mode(
        "features export",
        {"source": "toy", "file": "new.parquet"},
        {"source": "other", "file": "newer.parquet"},
        TRUSTED,
    ),
    Mode(
        "features info",
        {"source": "t.pkl", **TRUSTED},
        {"source": "t.npz", "--json": True, **TABLE_COLUMNS, **NOT_TRUSTED},
    ),
    Mode("features info", {"source": "toy"}, {"source": "other", "--json": True}, {**TABLE_COLUMNS, **TRUSTED}),
    Mode("features verify", {"bank": "toy"}, {"bank": "other"}),
    Mode(
        "features extract",
        EXTRACT,
        {**OF_AN_EXTRACTION, "--on": "ray", "--workers": 2, "--device": "cuda"},
        {"--text": "said"},
    ),
    Mode(
        "features extract",
        {**EXTRACT, "--on": "ray"},
        {**OF_AN_EXTRACTION, "--on": "ray:there"},
        {"--workers": 2, "--device": "cuda", "--text": "said"},
    ),
    Mode(
        "features extract",
        {**EXTRACT, "--items": "photos"},
        {**OF_A_FOLDER, "--on": "ray", "--workers": 2, "--device": "cuda"},
        NOT_OF_A_FOLDER,
    ),
    Mode(
        "tasks draw",
        DRAW,
        {**OF_A_DRAW, "--shots": 3, "--n-classes": 4, "--query": "balanced", "--support-bank": ANOTHER_MODE},
        {"--k-eff-least": 2, "--concentration": 0.5},
    ),
    Mode(
        "tasks draw",
        {**DRAW, "--query": "range", "--k-eff": 4},
        {
            **OF_A_DRAW,
            "--shots": 3,
            "--n-classes": 4,
            "--query": "uniform",
            "--k-eff-least": 4,
            "--support-bank": ANOTHER_MODE,
        },
        {"--concentration": 0.5},
    ),
    Mode(
        "tasks draw",
        {**DRAW, "--query": "dirichlet"},
        {
            **OF_A_DRAW,
            "--shots": 3,
            "--n-classes": 4,
            "--query": "uniform",
            "--concentration": 0.1,
            "--support-bank": ANOTHER_MODE,
        },
        {"--k-eff-least": 2},
    ),
    Mode(
        "tasks draw",
        {**DRAW, "--support-bank": "other"},
        {**OF_A_DRAW, "bank": "third", "--query": "balanced", "--support-bank": "third", "--n-classes": 4},
        {"--shots": 3, "--k-eff-least": 2, "--concentration": 0.5},
    ),
    Mode(
        "bench run",
        GRID,
        {**OF_A_GRID, **SIZES, **NEW, "--bank": "mini", "--method": "tim", "--resume": ANOTHER_MODE},
        {"plan": "plan.toml", "--paper": "table1", "--mix-versions": True},
    ),
    Mode(
        "bench run",
        {**GRID, "--resume": True},
        {**OF_A_GRID, **SIZES, **CONTINUED, "--bank": "mini", "--method": "oslo"},
        {"plan": "plan.toml", "--paper": "table1"},
        before=RUNS,
    ),
    Mode(
        "bench run",
        {"plan": "plan.toml", "--resume": True, "--out": "run"},
        {**SIZES, **CONTINUED, "plan": "plan2.toml", "--bank": "toy=moved"},
        {**OF_A_GRID, "--paper": "table1", "--method": "tim"},
        before=RUNS,
    ),
    Mode(
        "bench run",
        {"--paper": "table1", "--bank": "mini", "--resume": True, "--out": "run"},
        {**SIZES, **CONTINUED, "--paper": "accuracy_against_k_eff", "--bank": "mini=toy", "--method": "paddle"},
        {**OF_A_GRID, "plan": "plan.toml"},
        before=RUNS,
    ),
    Mode(
        "bench run",
        {"--resume": True, "--out": "run"},
        {**CONTINUED, "plan": ANOTHER_MODE, "--paper": ANOTHER_MODE, "--bank": "toy=moved", "--method": ANOTHER_MODE},
        {**OF_A_GRID, **SIZES},
        before=RUNS,
    ),
    Mode(
        "bench status",
        {"run": "run"},
        {"run": "other_run"},
        before=(A_RUN, {**A_RUN, "--method": "paddle", "--out": "other_run"}),
    ),
    Mode(
        "bench compare",
        {"run": "run", "--methods": "tim,paddle"},
        {"run": "other_run", "--methods": "paddle,tim"},
        before=(
            {**A_RUN, "--method": ["tim", "paddle"]},
            {**A_RUN, "--method": ["tim", "paddle"], "--k-eff": 3, "--out": "other_run"},
        ),
    ),
    Mode(
        "train",
        TRAIN,
        {**OF_A_TRAINING, "--validation": "few", "--hold-out": 1},
        {"--benchmark": "inat", "--lists": "lists"},
    ),
    Mode(
        "train",
        {**TRAIN, "--benchmark": "inat", "--lists": "lists"},
        {**OF_A_TRAINING, "--hold-out": 1, "--benchmark": "mini-imagenet", "--lists": "other"},
        {"--validation": "few"},
    ),
)


FUNCTIONS = {
    name: getattr(import_module(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in (*WORK, *WATCHED)
}


APP = typer.main.get_command(make_app())
COMMANDS = leaves(APP)


def test_every_command_has_a_mode():
    assert {mode.command for mode in MODES} == set(COMMANDS)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_every_option_is_in_one_table_of_the_mode(mode):
    options = {parameter.opts[0] for parameter in COMMANDS[mode.command].params}
    assert set(mode.applied) | set(mode.refused) == options
    assert not set(mode.applied) & set(mode.refused)
    others = {option for other in MODES if other.command == mode.command and other is not mode for option in other.base}
    assert {option for option, value in mode.applied.items() if value is ANOTHER_MODE} <= others


@pytest.fixture
def effect(tmp_path, monkeypatch, capsys):
    """Give a command in a folder with files of every kind; return exit code, standard error, and what it did."""
    bank = random_bank(n_classes=6, least=20, most=25, splits={"left": range(5), "test": range(6)})
    for name in ("toy", "mini", "moved"):
        bank.save(tmp_path / name)
    random_bank(1, n_classes=6, least=20, most=25, splits={"test": range(6)}).save(tmp_path / "other")
    random_bank(2, n_classes=6, least=20, most=25).save(tmp_path / "third")
    columns = {"labels": np.arange(6) % 2, "kind": np.arange(6) % 3, "more": np.ones((6, 3))}
    np.savez(tmp_path / "t.npz", features=np.eye(6), **columns)
    (tmp_path / "t.pkl").write_bytes(pickle.dumps({"features": 2 * np.eye(6), **columns}))
    image_folder(tmp_path / "photos", n_classes=4, each=2)
    image_folder(tmp_path / "few", n_classes=2, each=2)
    rows = [
        "path,label,split,kind",
        *(f"photos/class{k}/0{i}.png,{k},{('one', 'two')[i]},x" for k in (0, 1) for i in (0, 1)),
    ]
    (tmp_path / "photos.csv").write_text("\n".join(rows))
    (tmp_path / "photos2.csv").write_text("\n".join(rows[:-1]))
    cell = 'banks = {toy = "toy"}\n[[cells]]\nbank = "toy"\nmethod = "paddle"\nn_query = '
    (tmp_path / "plan.toml").write_text(f"{cell}8\n")
    (tmp_path / "plan2.toml").write_text(f"{cell}9\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("handful.cli.main.make_app", lambda: APP)  # made once, which saves most of the time
    calls, watched = [], [FUNCTIONS[name] for name in WATCHED]

    def note(function, *arguments, **named):
        given = inspect.signature(function).bind(*arguments, **named).arguments
        calls.append((function.__name__, {name: noted(value) for name, value in given.items()}))
        if function in watched:
            return function(*arguments, **named)
        return None if function.__name__ == "train" else Done()

    for name, function in FUNCTIONS.items():
        monkeypatch.setattr(name, partial(note, function))

    def give(command, options):
        calls.clear()
        code = main([*command.split(), *words(options)])
        printed = capsys.readouterr()
        written = {str(file): file.read_bytes() for file in Path().rglob("*") if file.is_file() and "new" in str(file)}
        return code, printed.err, (list(calls), printed.out, written)

    return give


def words(options):
    """Write options as a command line; arguments come in their order, and a list is a repeated option."""
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            if one is LEFT_OUT:
                continue
            if isinstance(one, bool):
                yield name if one else name.replace("--", "--no-")
            else:
                yield from ([name] if name.startswith("-") else [])
                yield from map(str, one if isinstance(one, tuple) else [one])


def noted(value):
    """Return what stays the same from one call to the next, and differs where the call does."""
    if isinstance(value, Journal):
        return str(value.folder), repr(value.plan), dict(value.bank_places)
    if isinstance(value, FeatureBank):
        return value.content_hash
    if isinstance(value, Items):
        return value.data_hash
    if isinstance(value, dict):
        return {name: noted(one) for name, one in value.items()}
    if is_dataclass(value):
        return {name: noted(one) for name, one in vars(value).items()}
    return "a function" if callable(value) else repr(value)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_an_option_changes_what_is_done_or_is_refused(mode, effect):
    for before in mode.before:
        assert effect("bench run", before)[0] == 0
        shutil.move(before["--out"], f"kept {before['--out']}")

    def given(changes):
        for made in ("new", "newer", "demo", "run", "elsewhere", "other_run"):
            shutil.rmtree(made, ignore_errors=True)
            Path(f"{made}.parquet").unlink(missing_ok=True)
        for before in mode.before:
            shutil.copytree(f"kept {before['--out']}", before["--out"])
        return effect(mode.command, {**mode.base, **changes})

    code, said, done = given({})
    assert (code, given({})) == (0, (0, said, done))
    for option, value in mode.applied.items():
        if value is not ANOTHER_MODE:
            code, said, other = given({option: value})
            assert other != done, option
            assert code == 0 or value is LEFT_OUT, (option, said)
    for option, value in mode.refused.items():
        code, said, (calls, printed, _) = given({option: value})
        work = [name for name, _ in calls if name not in ("in_process", "on_ray", "open_bank")]
        assert (code, work, printed) == (1, [], ""), option
        assert said.startswith("handful: "), option
        assert option.strip("-") in said or repr(value) in said, (option, said)
