"""Lists of species and weights of a place, found by either name."""

import numpy as np
import pytest

from handful.errors import FileFormatError
from handful.reading.class_lists import common_names, names_of, read_candidates, read_weights
from tests.fields.tool_files import BLANK, DEER, MOOSE

BIRDS = ["Turdus merula_Eurasian Blackbird", "Parus major_Great Tit", "Pica pica_Eurasian Magpie"]


def test_names_of_a_species():
    assert names_of(MOOSE) == {"alces alces", "moose"}
    assert names_of(BLANK) == {"blank"}
    assert names_of("Great Tit") == {"great tit"}


def test_what_people_call_a_class():
    assert common_names([MOOSE, DEER, BLANK]) == ("moose", "white-tailed deer", "blank")
    assert common_names([*BIRDS[:1], "Engine_Engine", "Great Tit", "book_flight"]) == (
        "Eurasian Blackbird",
        "Engine",
        "Great Tit",
        "book_flight",
    )
    assert common_names(["1;aves;;;turdus;merula;", "2;;;;;;"]) == ("turdus merula", "2;;;;;;")


def test_classes_of_one_common_name_are_told_apart():
    robins = ["1;aves;;;turdus;migratorius;robin", "2;aves;;;erithacus;rubecula;robin", "3;aves;;;;;bird"]
    assert common_names(robins) == ("robin (turdus migratorius)", "robin (erithacus rubecula)", "bird")
    # Nothing but the identifier differs, or the longer name is that of another class.
    twice = ["1;aves;;;turdus;merula;robin", "2;aves;;;turdus;merula;robin"]
    assert common_names(twice) == tuple(twice)
    taken = [*robins[:2], "robin (turdus migratorius)"]
    assert len(set(common_names(taken))) == 3


def test_a_list_of_species(tmp_path):
    (tmp_path / "list.txt").write_text("Parus major_Kohlmeise\n\nCorvus corax_Raven\npica pica\n")
    assert read_candidates(tmp_path / "list.txt", BIRDS) == BIRDS[1:]
    (tmp_path / "deer.txt").write_text("White-tailed deer\n")
    assert read_candidates(tmp_path / "deer.txt", [MOOSE, DEER]) == [DEER]
    with pytest.raises(FileFormatError, match="names none of the 1 classes"):
        read_candidates(tmp_path / "deer.txt", [MOOSE])


def test_weights(tmp_path):
    (tmp_path / "w.csv").write_text(
        "Species,Weight\nParus major_Great Tit,0.5\nTurdus merula,0.02\nCorvus corax,0.01\n"
    )
    np.testing.assert_array_equal(read_weights(tmp_path / "w.csv", BIRDS), [0.02, 0.5, 0.01])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\nParus major,1\n", "a column of species and one of weights"),
        ("species,weight\nParus major,-1\n", "row 0 of .* a weight of at least zero"),
        ("species,weight\nParus major,x\n", "row 0 of .* a weight of at least zero"),
        ("species,weight\nCorvus corax,1\n", "for none of the 3 classes"),
        ("", "is empty"),
        ("weight,species\n0.5\n", "row 0 of .* has 1 values, its header 2"),
        ("species,weight\nParus major," + "9" * 200_000, "cannot be read as a table .field larger"),
    ],
)
def test_malformed_weights_are_refused(tmp_path, text, sentence):
    (tmp_path / "w.csv").write_text(text)
    with pytest.raises(FileFormatError, match=sentence):
        read_weights(tmp_path / "w.csv", BIRDS)
