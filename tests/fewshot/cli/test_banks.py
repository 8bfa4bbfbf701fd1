import pytest

from handful.errors import BankError
from handful_fewshot.cli.task_options import find_bank, open_bank
from tests.banks_at_hand import random_bank


def test_a_path_comes_before_a_shipped_name(tmp_path):
    mine = random_bank().save(tmp_path / "clinc150")
    assert open_bank(str(tmp_path / "clinc150")).content_hash == mine.content_hash
    assert open_bank(str(tmp_path / "elsewhere" / "clinc150")).n_classes == 150
    with pytest.raises(BankError, match="nowhere does not exist"):
        open_bank(str(tmp_path / "nowhere"))


def test_a_bank_that_is_gone_is_not_found(tmp_path):
    random_bank().save(tmp_path / "mine")
    places = {name: str(tmp_path / name) for name in ("mine", "gone", "clinc150")}
    found = {name: find_bank(places, name) for name in (*places, "unheard of")}
    assert {name: bank and bank.n_classes for name, bank in found.items()} == {
        **{"mine": 4, "clinc150": 150},
        **{"gone": None, "unheard of": None},
    }
