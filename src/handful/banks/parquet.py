"""Write banks in Parquet: one column of vectors, one of labels and one of class names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from handful.banks.bank import FeatureBank
from handful.errors import BankError
from handful.machine.extras import import_pyarrow
from handful.machine.outputs import written_whole

# What a bank knows beyond its columns travels in the metadata of the schema, under this key.
METADATA_KEY = b"handful"


def write_parquet(bank: FeatureBank, path: str | os.PathLike[str]) -> None:
    """Write columns `features` (fixed-size lists of float32), `label` and `class_name`, for DuckDB, pandas and others.

    float16 becomes float32, which every reader knows; reading turns it back. The file appears complete or not
    at all.

    Parameters
    ----------
    bank : FeatureBank
        The bank.
    path : path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from handful import FeatureBank, read_bank
    >>> bank = FeatureBank.from_arrays([[0.0, 1.0], [1.0, 0.0]], [0, 1], ["ant", "bee"])
    >>> file = tempfile.mkdtemp() + "/bank.parquet"
    >>> write_parquet(bank, file)
    >>> read_bank(file).class_names
    ('ant', 'bee')
    """
    pa, parquet = import_pyarrow()
    final = Path(path)
    if final.exists():
        raise BankError(f"{final} already exists; remove it, or choose another name")
    extra = {
        "class_names": bank.class_names,
        "provenance": bank.provenance.to_mapping(),
        "splits": dict(bank.splits),
        "dtype": bank.dtype,
    }
    schema = pa.schema(
        [("features", pa.list_(pa.float32(), bank.dim)), ("label", pa.int32()), ("class_name", pa.string())],
        metadata={METADATA_KEY: json.dumps(extra)},
    )
    names = np.array(bank.class_names, dtype=object)
    with written_whole(final) as place, parquet.ParquetWriter(place, schema, write_page_checksum=True) as writer:
        start = 0
        for block in bank.blocks():
            labels = bank.labels[start : start + len(block)]
            flat = pa.array(block.astype(np.float32, copy=False).reshape(-1))
            vectors = pa.FixedSizeListArray.from_arrays(flat, bank.dim)
            columns = [vectors, pa.array(labels), pa.array(names[labels], pa.string())]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            start += len(block)
