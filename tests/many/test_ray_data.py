"""The lines for users of Ray Data, with a stand-in that moves rows as Ray does; tests/end_to_end has the real one."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.groups_at_hand import lines_for_ray_data, table_of_sites

pytest.importorskip("pyarrow", reason="the lines read Parquet")
from pyarrow import parquet


class Blocks:
    """Rows in blocks, each a mapping of columns; what is done to the last ones is kept in `written`."""

    written = None

    def __init__(self, blocks):
        self.blocks = blocks

    def map_batches(self, function):
        return Blocks([function(dict(block)) for block in self.blocks])

    def groupby(self, column):
        rows = {name: np.concatenate([block[name] for block in self.blocks]) for name in self.blocks[0]}
        keys = np.unique(rows[column])
        return Blocks([{name: values[rows[column] == key] for name, values in rows.items()} for key in keys])

    map_groups = map_batches

    def drop_columns(self, names):
        return Blocks([{name: block[name] for name in block if name not in names} for block in self.blocks])

    def write_parquet(self, _):
        Blocks.written = self.blocks


def read_parquet(folder):
    tables = [parquet.read_table(path) for path in sorted(Path(folder).iterdir())]
    return Blocks([{name: table[name].to_numpy() for name in table.column_names} for table in tables])


def test_every_row_has_the_label_of_infer(tmp_path, monkeypatch):
    classifier, sites, expected = table_of_sites(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(data=SimpleNamespace(read_parquet=read_parquet)))
    exec(lines_for_ray_data(tmp_path), {"classifier": classifier})
    found = {name: np.concatenate([block[name] for block in Blocks.written]) for name in Blocks.written[0]}
    order = found["row"].argsort()
    assert list(found) == ["row", "site", "label", "certainty"]
    assert len(Blocks.written) == 5
    assert found["site"][order].tolist() == sites.tolist()
    assert found["label"][order].tolist() == expected.labels.tolist()
    np.testing.assert_allclose(found["certainty"][order], expected.certainty, atol=1e-4)
