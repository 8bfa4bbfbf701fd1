"""No option is ignored: one that does not go with the others is refused with a sentence, before anything is done."""

import numpy as np
import pytest

pytest.importorskip("typer")
from handful.cli.main import main
from tests.banks_at_hand import random_bank
from tests.items_at_hand import image_folder

BATCH = "classify c.npz b.npz --out p.csv"
EXTRACT = "extract --encoder minilm --out new --items"
DRAW = "tasks draw --bank toy --n-query 8 --k-eff 2"
GRID = "bench run --bank toy --method paddle --n-query 8 --k-eff 2 --out run"
TRAIN = "train --items photos --out run"
OF_A_GRID = (
    *("--shots 3", "--k-eff 3", "--n-query 9", "--split left", "--unknown-classes 2 --unknown-share 0.1"),
    *("--n-classes 4", "--query balanced", "--scale l2", "--option max_iter=20", "--support-bank other"),
    *("--query dirichlet --concentration 0.5", "--query stream --slots 3 --batches 2", "--k-eff 2-3"),
)
# A command that would work, and the options that do not go with it.
REFUSED = {
    BATCH: ("--skip-bad", "third.npz"),
    "rescore s.json --out p.csv": ("--annotate noted.json",),
    f"{EXTRACT} photos.csv": ("--text said",),
    f"{EXTRACT} photos.csv --on ray": ("--device cuda", "--text said"),
    f"{EXTRACT} photos": ("--split one", "--labels split", "--id-column kind", "--text said", "--skip-bad"),
    DRAW: ("--concentration 0.5", "--query dirichlet --slots 3"),
    f"{DRAW} --support-bank other": ("--shots 3",),
    GRID: ("plan.toml", "--paper table1", "--concentration 0.5", "--batches 2"),
    f"{GRID} --support-bank other": ("--shots 3",),
    "bench run plan.toml --out run": (*OF_A_GRID, "--paper table1", "--method tim"),
    "bench run --paper table1 --bank mini --out run": OF_A_GRID,
    TRAIN: ("--benchmark inat", "--lists lists"),
    f"{TRAIN} --benchmark inat --lists lists": ("--validation few",),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of every kind."""
    place = tmp_path_factory.mktemp("files")
    for seed, name in enumerate(("toy", "mini", "other")):
        random_bank(seed, n_classes=6, least=20, most=25, splits={"test": range(6)}).save(place / name)
    np.savez(place / "c.npz", features=np.eye(6), labels=np.arange(6) % 3)
    np.savez(place / "b.npz", features=np.eye(6), site=np.arange(6) % 2)
    image_folder(place / "photos", n_classes=2, each=2)
    rows = [f"photos/class{k}/0{i}.png,{k},one" for k in (0, 1) for i in (0, 1)]
    (place / "photos.csv").write_text("\n".join(["path,label,split", *rows]))
    (place / "plan.toml").write_text('banks = {toy = "toy"}\n[[cells]]\nbank = "toy"\nmethod = "paddle"\nn_query = 8\n')
    return place


@pytest.mark.parametrize(("command", "option"), [(base, option) for base, given in REFUSED.items() for option in given])
def test_an_option_that_does_not_go_with_the_others_is_refused(command, option, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    before = set(folder.rglob("*"))
    assert main([*command.split(), *option.split()]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("handful: ")
    said = [word.strip("-").removesuffix(".toml") for word in option.split()]  # the option, or the value it has
    said += [word.replace("-", "_") for word in said]  # or the argument
    assert any(word in printed.err for word in said if len(word) > 1)
    assert set(folder.rglob("*")) == before
