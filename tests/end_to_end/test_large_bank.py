"""A bank of ten million rows opens at once, and tasks of it fit in a gigabyte."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

N_ROWS, DIM, N_CLASSES = 10_000_000, 384, 200

PROGRAM = textwrap.dedent(
    r"""
    import json, re, sys
    import torch
    import handful
    import handful_fewshot as fewshot
    torch.set_num_threads(1)
    bank = handful.FeatureBank.load(sys.argv[1])
    spec = fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.UniformOverPool(5), 75)
    task, truth = fewshot.gather(bank, fewshot.draw(bank.labels, spec, 0, range(100)))
    # Not ru_maxrss, which begins with what the process that started this one has.
    peak = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
    print(json.dumps({"peak": peak, "rows": bank.n_rows, "shape": list(task.support.shape)}))
    """
)


@pytest.mark.skipif(sys.platform != "linux", reason="sparse files and peak memory in kilobytes are Linux's")
def test_ten_million_rows(tmp_path):
    folder = tmp_path / "large"
    folder.mkdir()
    # Zeros that are not on disk: the file has its whole length and next to no blocks.
    np.lib.format.open_memmap(folder / "features.npy", "w+", "float16", (N_ROWS, DIM))
    np.save(folder / "labels.npy", np.arange(N_ROWS, dtype=np.int32) % N_CLASSES)
    manifest = {
        "format": "handful feature bank",
        "format_version": 1,
        "content_hash": "0" * 64,
        "features": {"file": "features.npy", "shape": [N_ROWS, DIM], "dtype": "float16"},
        "labels": {"file": "labels.npy", "shape": [N_ROWS], "dtype": "int32"},
        "provenance": {},
        "splits": {},
        "class_names": [str(k) for k in range(N_CLASSES)],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    ran = subprocess.run([sys.executable, "-c", PROGRAM, str(folder)], capture_output=True, text=True, check=True)
    measured = json.loads(ran.stdout)
    assert measured["rows"] == N_ROWS
    assert measured["shape"] == [100, 1000, DIM]
    assert measured["peak"] < 2**20  # kilobytes
