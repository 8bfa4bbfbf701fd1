"""Measurements are kept as they were measured, and scaled by the examples when they are labelled."""

import numpy as np
import pandas as pd
import pytest

from handful.catalogue.file import CatalogueFile
from handful.classification.measured import scaled
from handful.errors import BankError, OptionError
from handful.items import bring, measurements_of, vectors_of
from handful.reading import read

FLOWERS = pd.DataFrame({"height": [1.5, 2.25, 3.5, 4.5], "width": [105.5, 300.25, 200.5, 150.5]})


def test_scaled_they_are_what_scaling_the_tables_gives(tmp_path):
    catalogue = CatalogueFile.open(tmp_path / "a.handful")
    other = pd.DataFrame({"width": [100.5, 250.5], "height": [2.5, 3.25], "more": [0.5, 0.25]})
    _ = bring(catalogue, "examples", FLOWERS)
    _ = bring(catalogue, "monday", other)
    examples, batch = (measurements_of(catalogue, list(catalogue.said.places[of])) for of in ("examples", "monday"))
    assert np.array_equal(vectors_of(catalogue, [1, 5]), np.array([[1.5, 105.5], [2.5, 100.5]], np.float32))
    found = scaled(examples, batch, ())
    expected = scaled(read(FLOWERS), read(other), ())
    for side in ("catalogue", "batch"):
        assert np.array_equal(found[side].vectors, expected[side].vectors)


def test_a_measurement_that_is_missing_stays_missing(tmp_path):
    catalogue = CatalogueFile.open()
    gaps = FLOWERS.assign(width=[105.5, np.nan, 200.5, 150.5])
    _ = bring(catalogue, "examples", gaps, missing="mean")
    found = measurements_of(catalogue, [2, 1]).vectors
    assert np.array_equal(found, np.array([[2.25, np.nan], [1.5, 105.5]], np.float32), equal_nan=True)
    assert str(bring(catalogue, "examples", gaps, missing="mean")) == "4 rows, nothing has changed"


def test_vectors_of_a_model_are_filled_with_the_mean():
    catalogue = CatalogueFile.open()
    _ = bring(catalogue, "a", np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 4.0]]), missing="mean")
    assert vectors_of(catalogue, [2]).tolist() == [[3.0, 3.0]]


def test_other_columns_are_refused():
    catalogue = CatalogueFile.open()
    with pytest.raises(OptionError, match="no measurements"):
        measurements_of(catalogue, [])
    _ = bring(catalogue, "examples", FLOWERS)
    with pytest.raises(
        BankError, match="no numbers in the column 'width', which the catalogue has; it has height, depth"
    ):
        bring(catalogue, "monday", FLOWERS.rename(columns={"width": "depth"}))
    with pytest.raises(BankError, match=r"height, width, and .* has none; name the features"):
        bring(catalogue, "monday", np.eye(2))
    model = CatalogueFile.open()
    _ = bring(model, "a", np.eye(2))
    with pytest.raises(OptionError, match="has measurements, and this catalogue has vectors of a model"):
        bring(model, "monday", FLOWERS)
    with pytest.raises(BankError, match="single precision"):
        bring(CatalogueFile.open(), "a", np.array([[1e300, 1.0]]))
