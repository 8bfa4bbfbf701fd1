"""Many groups over Ray Data: what `infer` says of each group, wherever its rows lie."""

import warnings

import numpy as np
import pytest

from handful.estimators.on_ray import labelled_dataset
from tests.groups_at_hand import WHERE, world_of_groups


def test_a_data_set_is_labelled_group_by_group(ray, tmp_path):
    """From Parquet to Parquet, over several blocks whose rows belong to the same groups."""
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    classifier, table, points, groups = world_of_groups()
    expected = classifier.infer(points, groups=groups)
    (tmp_path / "in").mkdir()
    for part in range(4):
        rows = table.slice(part * len(table) // 4, (part + 1) * len(table) // 4 - part * len(table) // 4)
        parquet.write_table(rows, tmp_path / "in" / f"{part}.parquet")
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Ray, about itself
            import ray.data

            ray.data.DataContext.get_current().enable_progress_bars = False
            read = ray.data.read_parquet(str(tmp_path / "in"))
            labelled_dataset(read, classifier, **WHERE, buckets=5, workers=1).write_parquet(str(tmp_path / "out"))
    finally:
        ray.shutdown()
    found = parquet.read_table(tmp_path / "out").sort_by("row")
    assert found.column_names == ["row", "site", "day", "label", "probability"]
    assert found.drop_columns(["label", "probability"]).equals(table.drop_columns(["vector"]))
    np.testing.assert_array_equal(found["label"].to_numpy(), expected.labels)
    np.testing.assert_allclose(found["probability"].to_numpy(), expected.probabilities.max(-1), rtol=1e-5)
