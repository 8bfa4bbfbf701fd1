"""Columns of numbers that are no measurements: told by their values, and by their names where these do not tell."""

import numpy as np
import pytest

from handful.reading import read
from handful.reading.measurements import COUNTED, DATES, FEWEST_COUNTED, NUMBERED, YEARS, kind_of_numbers


@pytest.mark.parametrize(
    ("name", "numbers", "kind"),
    [
        ("Nr", range(1, 30), COUNTED),
        ("a", range(1, 6), COUNTED),
        ("a", range(812, 830), COUNTED),
        ("a", [20_240_003, 20_240_001, 20_240_005, 20_240_002, 20_240_004], COUNTED),
        ("a", [*range(1, 12), *range(13, 31)], COUNTED),  # somebody deleted a row
        ("a", [1, 2, np.nan, 4, 5, 6], COUNTED),
        ("a", [3, 4, 5, 6], None),  # four can be consecutive by chance
        ("a", [1, 1, 2, 2, 3, 3, 4, 4], None),
        ("a", [1, 2, 3, 4, 5.5], None),
        ("a", range(0, 60, 2), None),
        ("Nr", [4, 90], NUMBERED),
        ("Proben-Nr.", [7, 7, 8, 8, 30], NUMBERED),
        ("Probennummer", [7, 7, 80], NUMBERED),
        ("sampleID", [7, 19, 400], NUMBERED),
        ("atomic number", [1, 6, 8, 6], None),
        ("sample number", [1, 6, 8, 60], NUMBERED),
        ("refractive index", [1.33, 1.5], None),
        ("width", [7, 19, 400], None),
        ("a", [1999, 2024, 2024], YEARS),
        ("a", [1999, 2024, 3024], None),
        ("a", [1999.5, 2024, 2024], None),
        ("Jahr", [22, 23, 22], YEARS),
        ("year built", [1784, 1890, 1890], YEARS),
        ("Baujahr", [1784, 1890, 1890], YEARS),
        ("cost per year", [17_840, 18_900, 1_890], None),
        ("years of service", [3, 9, 3], None),
        ("Datum", [45_123.5, 45_200.25], DATES),
        ("sampling_date", [45_123, 45_123], DATES),
        ("candidate", [5, 9, 9], None),
        ("a", [20_240_131, 20_231_231], DATES),
        ("a", [20_240_131, 20_240_199], None),
        ("a", [np.nan, np.nan], None),
    ],
)
def test_what_numbers_are(name, numbers, kind):
    assert kind_of_numbers(name, np.array(list(numbers), float)) == kind


def test_rows_that_cannot_be_read_are_missing_in_a_count():
    numbers = np.array([1.0, 2, 3, 5, 6])
    assert len(numbers) == FEWEST_COUNTED
    assert (kind_of_numbers("a", numbers), kind_of_numbers("a", numbers, 1)) == (None, COUNTED)


def test_a_shuffled_count_is_told_beyond_the_first_rows(tmp_path):
    count = np.random.default_rng(0).permutation(3000)
    rows = "".join(f"{n},{n * 7 % 13}.5,{n * 3 % 17}.25\n" for n in count)
    (tmp_path / "x.csv").write_text(f"sample,height,width\n{rows}")
    table = read(tmp_path / "x.csv")
    assert (table.features, table.measured) == (("height", "width"),) * 2
    assert table.not_measured["sample"].kind == COUNTED
    assert table.values("sample") == list(map(str, count))
    assert table.values("height")[0] == f"{count[0] * 7 % 13}.5"


def test_what_is_left_may_be_too_little(tmp_path):
    (tmp_path / "x.csv").write_text("Nr,height\n1,2.5\n2,7\n3,8\n")
    with pytest.raises(Exception, match="neither vectors"):
        read(tmp_path / "x.csv")
    assert read(tmp_path / "x.csv", features="Nr,height").vectors.shape == (3, 2)
    assert read(tmp_path / "x.csv", features="height").vectors.shape == (3, 1)


def test_a_gap_in_a_column_that_is_no_feature_costs_no_row(tmp_path):
    (tmp_path / "x.csv").write_text("Nr,height,width\n1,2.5,3\n,7,4\n,8,1\n4,2,2\n")
    table = read(tmp_path / "x.csv")
    assert (table.n_rows, table.values("Nr")) == (4, ["1", "", "", "4"])
