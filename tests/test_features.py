import handful.banks
import handful.features


def test_every_public_name_of_the_banks_is_there_under_the_old_name():
    assert handful.features.__all__ == handful.banks.__all__
    for name in handful.banks.__all__:
        assert getattr(handful.features, name) is getattr(handful.banks, name)
