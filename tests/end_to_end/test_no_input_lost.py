"""No output of any command, nor of Python, destroys what was read; a copy replaces its input whole or not at all."""

import json
import os
import shutil
import signal
import typing
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
from handful import classify
from handful.classification import rescore, write_page, write_predictions, write_tasks
from handful.classification.scores import write_annotations
from handful.cli.main import main, make_app
from handful.errors import OptionError
from handful.machine.outputs import UNFINISHED
from handful.scale import run
from tests.killed_commands import label_and_die
from tests.kills_at_hand import PROCESSES, start_server
from tests.spectra_at_hand import compounds, mgf, msp, noisy

# Parameters of all commands that are paths. A new one must be put here, and then the tests below try it.
READ = {
    "classify": ("paths", "names", "candidates", "prior"),
    "rescore": ("scores", "sites", "candidates", "prior", "pictures"),
    "review": ("paths", "names", "candidates", "prior"),
    "catalogue build": ("examples",),
    "catalogue show": ("catalogue",),
    "catalogue check": ("catalogue",),
    "catalogue add": ("catalogue", "batch"),
    "catalogue remove": ("catalogue",),
    "catalogue rename": ("catalogue",),
    "catalogue merge": ("catalogue",),
    "catalogue join": ("catalogue", "copy"),
    "run": ("prior", "candidates"),
    "export": ("catalogue",),
    "extract": ("items",),
    "tasks draw": (),
    "bench run": ("plan",),
    "bench status": ("run",),
    "bench compare": ("run",),
    "report": ("run",),
    "train": ("items", "validation", "lists"),
    "demo": (),
    "doctor": (),
}
WRITTEN = {
    "classify": ("out",),
    "rescore": ("out", "annotate"),
    "review": ("out",),
    "catalogue build": ("out",),
    "catalogue check": ("report",),
    "export": ("out",),
    "extract": ("out",),
    "bench run": ("out",),
    "report": ("out",),
    "train": ("out",),
    "demo": ("out",),
}

# Commands without the paths in question: `{read}` is the input and `{write}` the output that would destroy it.
CLASSIFY = "classify c.csv b.csv"
SCORES = "rescore s.json --sites sites.json"
INPUTS = {
    CLASSIFY: (
        *("c.csv", "b.csv", "--names {}", "--candidates {}", "--prior {}"),
        *("--coarse {}", "--encoder checkpoint:{}"),
    ),
    SCORES: ("s.json", "--sites {}", "--candidates {}", "--prior {}", "--coarse {}"),
}
# An output, the option that makes it be written, and the path that this option is given for it.
OUTPUTS = {
    CLASSIFY: (
        ("p.csv", "--out p.csv"),
        ("p.parquet", "--out p.parquet"),
        ("p.groups.csv", "--group-by site --out p.csv"),
        ("p.html", "--out p.html"),
        ("p.json", "--out o.csv --out p.json"),
        ("p.xml", "--out p.json"),
    ),
    SCORES: (
        ("p.csv", "--out p.csv"),
        ("p.groups.csv", "--group-by folder --out p.csv"),
        ("p.html", "--out p.html"),
        ("p.txt", "--out o.csv --annotate p.txt"),
    ),
}
OTHERS = (
    ("p.handful", "catalogue build p.handful --out p.handful"),
    ("p.html", "catalogue check p.html --report p.html"),
    ("p.handful", "export p.handful p.handful"),
    ("p.handful", "catalogue join p.handful p.handful"),
    ("p", "run p --model m.model --group-by site --out p"),
    ("p", "run rows --model p --group-by site --out p"),
    ("p", "run rows --model m.model --prior p --group-by site --out p"),
    ("p", "run rows --model m.model --candidates p --group-by site --out p"),
    ("p", "extract --items p --encoder minilm --out p"),
    (".p.shards", "extract --items .p.shards --encoder minilm --out p"),
    ("p", "extract --items images --encoder checkpoint:p --out p"),
    ("p", "bench run p --out p"),
    ("p", "bench run --bank p --method paddle --out p"),
    ("p", "bench run --bank x=p --method paddle --resume --out p"),
    ("p", "bench run --bank x --support-bank y=p --method paddle --out p"),
    ("p.py", "bench run --bank x --method p.py:METHOD --out p.py"),
    ("p", "train --items p --out p"),
    ("p", "train --items images --validation p --out p"),
    ("p", "train --items images --benchmark mini-imagenet --lists p --out p"),
)


def reading_from(base, reading, path):
    """Return a command that reads another path, as an option or in the place of an argument."""
    return (
        f"{base} {reading.format(path)}"
        if reading.startswith("--")
        else f"{base} ".replace(f" {reading} ", f" {path} ")
    )


REFUSED = ("would overwrite", "is inside", "contains")


def commands(app=None, name=""):
    """Yield all commands of the command line with their functions."""
    app = app or make_app()
    for one in app.registered_commands:
        yield f"{name} {one.name or one.callback.__name__}".strip(), one.callback
    for group in app.registered_groups:
        yield from commands(group.typer_instance, group.name)


def parts(hint):
    """Yield a type and all types that it is made of."""
    yield hint
    for one in typing.get_args(hint):
        yield from parts(one)


def test_every_path_of_every_command_is_known_as_read_or_written():
    found = {
        name: {key for key, hint in typing.get_type_hints(function).items() if Path in parts(hint)}
        for name, function in commands()
    }
    assert found.keys() == READ.keys()
    for name, paths in found.items():
        assert paths == {*READ[name], *WRITTEN.get(name, ())}, name
    # What is tried below is all there is.
    tried = " ".join([CLASSIFY, SCORES, *(word for part in (INPUTS, OUTPUTS) for word in map(str, part.values()))])
    for name in ("classify", "rescore"):
        for path in (*READ[name], *WRITTEN[name]):
            assert f"--{path} " in tried or path in ("paths", "scores", "pictures"), path
    tried = " ".join(command for _, command in OTHERS)
    arguments = ("source", "plan", "bank", "file", "examples", "catalogue")
    # These refuse what they would overwrite when they have read their input: see test_review.py.
    for name in WRITTEN.keys() - {"classify", "rescore", "review", "demo", "report"}:
        assert f"{name} " in tried
        assert all(f"--{path} " in tried or path in arguments for path in READ[name])


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Inputs that no reader could read: what is refused is refused before anything is read."""
    for name in ("c.csv", "b.csv", "s.json", "sites.json"):
        (tmp_path / name).write_text(name)
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "1.jpg").write_text("an image")
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder):
    """Return all that is in a folder: bytes of files, and where links lead."""
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def refused(capsys, folder, command):
    """Run a command that must be refused, without a change to any file; return what it said."""
    before = contents(folder)
    code = main(command.split())
    said = capsys.readouterr().err
    assert code == 1, (command, said)
    assert any(words in said for words in REFUSED), (command, said)
    assert contents(folder) == before, command
    return said


def spellings(folder, output):
    """Yield other paths of an output: as it is, with `..`, absolute, and through links of three kinds."""
    yield output
    yield f"deep/../{output}"
    yield str(folder / output)
    (folder / "link").symlink_to(output)
    yield "link"
    (folder / "way").symlink_to(folder)
    yield f"way/{output}"
    if (folder / output).is_file():
        os.link(folder / output, folder / "deep" / "hard")
        yield "deep/hard"


@pytest.mark.parametrize(
    ("base", "output", "writing"),
    [pytest.param(base, *one, id=f"{base.split()[1]} {one[1]} {one[0]}") for base in OUTPUTS for one in OUTPUTS[base]],
)
def test_no_output_of_classify_is_an_input(here, capsys, base, output, writing):
    (here / output).write_text("an input")
    for reading in INPUTS[base]:
        if (reading, writing) == ("s.json", "--out p.csv"):
            continue  # a labelled copy, see below; the table of groups is one of the other cases
        for path in spellings(here, output) if reading == INPUTS[base][-1] else (output, f"deep/../{output}"):
            said = refused(capsys, here, f"{reading_from(base, reading, path)} {writing}")
            assert "would overwrite" in said


@pytest.mark.parametrize("base", OUTPUTS)
def test_no_output_of_classify_is_inside_an_input_or_contains_one(here, capsys, base):
    command = reading_from(base, "c.csv" if base == CLASSIFY else "--candidates {}", "images")
    for output, writing in OUTPUTS[base]:
        words = writing.split()
        inside = " ".join([*words[:-1], f"images/{words[-1]}"])
        assert "is inside" in refused(capsys, here, f"{command} {inside}")
        (here / output).mkdir()
        (here / output / "input.csv").write_text("an input")
        assert "contains" in refused(capsys, here, f"{base} --prior {output}/input.csv {writing}")


@pytest.mark.parametrize(
    "command",
    [
        f"{SCORES} --out o.csv --annotate o.csv",
        f"{SCORES} --out o.csv --annotate p.html --out p.html",
        f"{SCORES} --group-by folder --out o.csv --annotate o.groups.csv",
    ],
)
def test_no_output_of_classify_is_another(here, capsys, command):
    refused(capsys, here, command)


@pytest.mark.parametrize(("path", "command"), OTHERS)
def test_no_output_of_another_command_is_an_input(here, capsys, path, command):
    for kind in ("file", "folder"):
        if kind == "file":
            (here / path).write_text("an input")
        else:
            (here / path).unlink()
            (here / path).mkdir()
            (here / path / "input").write_text("an input")
        assert "would overwrite" in refused(capsys, here, command)
    if path == "p":
        # The output, which comes last, is inside of the input, or contains it.
        start, _, _ = command.rpartition("p")
        assert "is inside" in refused(capsys, here, f"{start}p/new")
        assert "contains" in refused(capsys, here, f"{start}.")


def test_a_report_is_not_written_into_its_run(tmp_path, capsys):
    from handful_fewshot import ShotsPerClass, TaskSpec, UniformOverPool
    from handful_fewshot.benchmark import Cell, Journal

    Journal.create(tmp_path / "run", (Cell("x", TaskSpec(ShotsPerClass(1), UniformOverPool(2)), "paddle", 3),))
    for out in ("run", "run/report", "."):
        refused(capsys, tmp_path, f"report {tmp_path}/run --out {tmp_path}/{out}")


def test_a_demo_never_overwrites(here, capsys):
    before = contents(here)
    assert main(["demo", "--out", "images"]) == 1
    assert "images already exists" in capsys.readouterr().err
    assert contents(here) == before


# Python


@pytest.fixture
def labelled(tmp_path):
    """A batch labelled with files of every kind, in groups."""
    rng = np.random.default_rng(0)
    classes = np.arange(6).repeat(4)
    centres = rng.normal(size=(6, 8))
    np.savez(tmp_path / "c.npz", features=centres[classes] + 0.1, labels=[f"class {k}" for k in classes])
    np.savez(tmp_path / "b.npz", features=centres[[1] * 5 + [2] * 5], site=["wood"] * 5 + ["marsh"] * 5)
    (tmp_path / "here.txt").write_text("class 1\nclass 2\n")
    (tmp_path / "weights.csv").write_text("class,weight\nclass 1,2\nclass 2,1\n")
    return classify(
        tmp_path / "c.npz",
        tmp_path / "b.npz",
        group_by="site",
        candidates=tmp_path / "here.txt",
        prior=str(tmp_path / "weights.csv"),
    )


def test_no_writer_in_python_overwrites_what_was_read(tmp_path, monkeypatch, labelled):
    assert {path.name for path in labelled.about.inputs.values()} == {"c.npz", "b.npz", "here.txt", "weights.csv"}
    before = contents(tmp_path)
    monkeypatch.chdir(tmp_path)
    for found in (labelled, labelled["wood"]):
        for path in found.about.inputs.values():
            for spelling in (path, path.name, f"../{tmp_path.name}/{path.name}"):
                with pytest.raises(OptionError, match=r"the predictions .* would overwrite the"):
                    write_predictions(found, spelling)
                with pytest.raises(OptionError, match=r"the page .* would overwrite the"):
                    write_page(found, spelling, title="x")
                with pytest.raises(OptionError, match=r"the tasks .* would overwrite the"):
                    write_tasks(found, spelling)
    assert contents(tmp_path) == before


def test_files_beside_an_output_do_not_overwrite_either(tmp_path, labelled):
    shutil.move(tmp_path / "here.txt", tmp_path / "o.groups.csv")
    shutil.copy(tmp_path / "weights.csv", tmp_path / "t.xml")
    known = {"candidates": tmp_path / "o.groups.csv", "coarse": {f"class {k}": "all" for k in range(6)}}
    found = classify(tmp_path / "c.npz", tmp_path / "b.npz", group_by="site", prior=tmp_path / "t.xml", **known)
    with pytest.raises(OptionError, match=r"the table of groups .* would overwrite the candidates"):
        write_predictions(found, tmp_path / "o.csv")
    with pytest.raises(OptionError, match=r"the interface of the tasks .* would overwrite the prior"):
        write_tasks(found, tmp_path / "t.json")
    assert not (tmp_path / "o.csv").exists()
    assert not (tmp_path / "t.json").exists()


def test_a_run_of_a_large_batch_is_not_kept_in_its_input(tmp_path, labelled):
    before = contents(tmp_path)
    for folder in (tmp_path / "b.npz", tmp_path / "c.npz", tmp_path):
        with pytest.raises(OptionError, match=r"the folder of labels .* (would overwrite|contains) the"):
            run(tmp_path / "b.npz", tmp_path / "c.npz", folder, group_by="site")
    assert contents(tmp_path) == before


def scored(folder):
    """Write scores, their sites in both formats and their pictures."""
    found = {"classes": ["cow", "deer", "elk"], "scores": [0.8, 0.1, 0.05]}
    files = [f"site/{i}.jpg" for i in range(6)]
    (folder / "s.json").write_text(
        json.dumps({"predictions": [{"filepath": file, "classifications": found} for file in files]})
    )
    (folder / "sites.json").write_text(
        json.dumps({"images": [{"id": i, "file_name": file, "location": 1} for i, file in enumerate(files)]})
    )
    (folder / "site").mkdir()
    for file in files:
        (folder / file).write_bytes(b"a picture")
    (folder / "dp").mkdir()
    resources = [{"name": name, "path": f"{name}.csv"} for name in ("deployments", "media", "observations")]
    (folder / "dp" / "datapackage.json").write_text(json.dumps({"resources": resources}))
    (folder / "dp" / "deployments.csv").write_text("deploymentID,locationID\nd,1\n")
    media = "".join(f"m{i},d,{file}\n" for i, file in enumerate(files))
    (folder / "dp" / "media.csv").write_text(f"mediaID,deploymentID,filePath\n{media}")
    (folder / "dp" / "observations.csv").write_text("observationID,mediaID,scientificName\no1,m1,Bos taurus\n")
    return folder


def test_writers_of_scores_replace_copies_alone(tmp_path):
    scored(tmp_path)
    before = contents(tmp_path)
    found = rescore(tmp_path / "s.json", sites=tmp_path / "sites.json")
    for name in ("sites.json", "deep/../sites.json"):
        with pytest.raises(OptionError, match=r"the predictions .* would overwrite the sites"):
            write_predictions(found, tmp_path / name)
    with pytest.raises(OptionError, match=r"the annotations .* would overwrite the scores"):
        write_annotations(found, tmp_path / "s.json", tmp_path / "sites.json", tmp_path / "s.json")
    for picture in ("site/1.jpg", "site/../site/5.jpg"):
        with pytest.raises(OptionError, match=r"would overwrite .*jpg, a file of the items"):
            write_page(found, tmp_path / picture, title="x")
    for sites in (tmp_path / "dp", tmp_path / "dp" / "datapackage.json"):
        found = rescore(tmp_path / "s.json", sites=sites)
        for name in ("datapackage.json", "deployments.csv", "media.csv"):
            with pytest.raises(OptionError, match=r"the annotations .* would overwrite the"):
                write_annotations(found, tmp_path / "s.json", sites, tmp_path / "dp" / name)
    assert contents(tmp_path) == before
    write_annotations(found, tmp_path / "s.json", sites, tmp_path / "dp" / "observations.csv")
    assert "o1,m1,Bos taurus" in (tmp_path / "dp" / "observations.csv").read_text()
    found = rescore(tmp_path / "s.json", sites=tmp_path / "sites.json")
    write_annotations(found, tmp_path / "s.json", tmp_path / "sites.json", tmp_path / "sites.json")
    assert json.loads((tmp_path / "sites.json").read_text())["annotations"][0]["id"] == "handful-0"
    write_predictions(found, tmp_path / "s.json")
    assert json.loads((tmp_path / "s.json").read_text())["predictions"][0]["prediction"] == "cow"


# Kills


def spectra(folder):
    """Write a library and a run of spectra; return the command that labels the run in its own file."""
    rng = np.random.default_rng(0)
    found = compounds(6, rng)
    library = [(f"compound {k}", mass, noisy(peaks, rng)) for k, (mass, peaks) in enumerate(found) for _ in range(4)]
    run = [(f"scan {i}", *found[i % 2]) for i in range(40)]
    (folder / "library.msp").write_text(msp(library))
    (folder / "run.mgf").write_text(mgf(run))
    return "run.mgf", "classify library.msp run.mgf --out run.mgf"


def species(folder):
    """Write scores; return the command that writes labels into their own file."""
    scored(folder)
    return "s.json", "rescore s.json --out s.json"


def birds(folder):
    """Write the table of BirdNET; return the command that writes labels into their own file."""
    rows = "".join(f"{3 * i},{3 * i + 3},Turdus merula,Blackbird,0.8,a.wav\n" for i in range(60))
    (folder / "birds.csv").write_text(f"Start (s),End (s),Scientific name,Common name,Confidence,File\n{rows}")
    return "birds.csv", "rescore birds.csv --out birds.csv"


def cells(folder):
    """Write cells; return the command that labels them in their own file."""
    from tests.cells_at_hand import write_files

    write_files(folder)
    return "sample.h5ad", "classify atlas.h5ad sample.h5ad --labels cell_type --out sample.h5ad"


def killed(*arguments):
    process = PROCESSES.Process(target=label_and_die, args=arguments)
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL, -signal.SIGXFSZ), process.exitcode
    return process.exitcode != 0


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="there is no limit of the size of a file")
@pytest.mark.parametrize(
    "kind", [birds, *(pytest.param(kind, marks=pytest.mark.slow) for kind in (species, spectra, cells))]
)
def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path, monkeypatch, capsys, kind):
    start_server()
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    name, command = kind(tmp_path / "whole")
    kind(tmp_path / "killed")
    monkeypatch.chdir(tmp_path / "whole")
    old = (tmp_path / "whole" / name).read_bytes()
    assert main(command.split()) == 0, capsys.readouterr().err
    new = (tmp_path / "whole" / name).read_bytes()
    assert old != new
    place, others = tmp_path / "killed", contents(tmp_path / "killed").keys()
    first = (place / name).read_bytes()
    sizes = [round(share * len(new)) for share in (0, 0.01, 0.2, 0.5, 0.8, 0.99)]
    moments = [*((None, size) for size in sizes), *((step, None) for step in range(1, 5))]
    n_killed, found = 0, set()
    for moment in moments:
        (place / name).write_bytes(first)
        n_killed += killed(place, command, *moment)
        now = (place / name).read_bytes()
        assert now in (first, new) or (kind is cells and _labelled(place / name)), moment
        found.add(now == first)
        left = contents(place).keys() - others
        assert all(one.startswith(f".{name}.") and one.endswith(UNFINISHED) for one in left), left
    assert n_killed == len(moments) == 10
    assert found == {True, False}, "some kills came before the file had its name, and some after"
    monkeypatch.chdir(place)
    assert main(command.split()) == 0
    assert kind is cells or (place / name).read_bytes() == new


def _labelled(path):
    from tests.cells_at_hand import anndata

    data = anndata.read_h5ad(path)
    return len(data.obs) == 40 and data.obs["handful_label"].notna().all()
