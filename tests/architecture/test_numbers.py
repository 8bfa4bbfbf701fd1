"""Numbers that an answer can depend on: each has a name, a meaning and an origin, and the page lists them all."""

import ast
import importlib
from dataclasses import fields

import pytest

import numbers_page
from handful.model.settings import DEFAULT, Settings
from numbers_page import MODEL, ORIGINS, SOURCE, WALKED

HANDFUL = SOURCE / "handful"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("x = 0.3 * y", [(1, 0.3)]),
        ("def f(x, n=2**23): pass", [(1, 23)]),
        ("def f(x, *, n: int = 7): pass", [(1, 7)]),
        ("x = y[:, None].sum(-1) / 2 + 0.5", []),
        ("x = y[3]", [(1, 3)]),
        ("x = True", []),
        ("x = -4", [(1, 4)]),
        ("x = 3j", [(1, 3j)]),
        ("class A:\n    n = 5", [(2, 5)]),
        ("class A:\n    n: int = 5", [(2, 5)]),
        ("class A:\n    N = 5", [(2, 5)]),
        ("x = np.array([0, 1, 0.15])", [(1, 0.15)]),
        ("x = {'a': (1, 6)}", [(1, 6)]),
        ("f = lambda x: 9 * x", [(1, 9)]),
        ("match x:\n    case 4: pass", [(2, 4)]),
        ("x = f'{y:.3f} {8 * y}'", [(1, 8)]),
        ("x = float('0.3') + float('inf') + int('2') + float('a')", [(1, 0.3)]),
        ("warn(x, stacklevel=3)", []),
        # Constants have a name, and what they are made of needs none; it is different where they are not at the top.
        ("N = 5", []),
        ("N: Final = 5", []),
        ("_N = np.array([0.003, 0.01])", []),
        ("A, B = 3, 4", [(1, 3), (1, 4)]),
        ("def f():\n    N = 5", [(2, 5)]),
        ("if x:\n    N = 5", [(2, 5)]),
        ("N = lambda x: 5 * x", [(1, 5)]),
    ],
)
def test_numbers_without_a_name_are_found(code, found):
    assert numbers_page.strays(code) == found


def test_fields_of_settings_have_a_name_and_all_else_of_their_module_needs_one():
    code = "class Settings:\n    n: int = _number(5, 'items')\n    m: int = 6\n\nx = 7\n"
    assert numbers_page.strays(code, has_settings=True) == [(3, 6), (5, 7)]
    assert numbers_page.strays(code) == [(2, 5), (3, 6), (5, 7)]


def test_constants_are_listed_with_what_comments_say_about_them():
    code = """
# How many
# there are. [items; work: a day]
MOST = 2**20
LEAST = (1, 5)

ALONE = 3
BESIDE: int = 4  # Beside it. [chance; tuned]
TEXT = "no number"
FIRST = TEXT[3]
# Plain ones too.
HALF = np.array([
    0.5,
])
x = f(MOST)
"""
    found = [one[:5] for one in numbers_page.named_numbers(code, "a")]
    assert found == [
        ("MOST", "2**20", "items", "How many there are.", "work: a day"),
        ("LEAST", "(1, 5)", "items", "see `MOST`", "work: a day"),
        ("ALONE", "3", "", "", ""),
        ("BESIDE", "4", "chance", "Beside it.", "tuned"),
        ("HALF", "array([ 0.5, ])", "", "Plain ones too.", ""),
    ]


def test_imports_are_followed_through_packages_and_into_functions(tmp_path):
    package = tmp_path / "a"
    package.mkdir()
    (package / "__init__.py").write_text("from a.door import f", encoding="utf-8")
    (package / "door.py").write_text("def f():\n    from a import one\n    import os", encoding="utf-8")
    (package / "one.py").write_text("import a.two", encoding="utf-8")
    (package / "two.py").write_text("import a.one", encoding="utf-8")
    (package / "three.py").write_text("import a.two", encoding="utf-8")
    assert numbers_page.reached(["a.door"], tmp_path) == {"a.door", "a", "a.one", "a.two"}


def test_every_part_of_the_package_is_walked_or_left_out_for_a_reason():
    parts = {path.stem for path in HANDFUL.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    parts |= {path.name for path in HANDFUL.iterdir() if any(path.glob("*.py"))}
    assert parts - {"__init__"} == {*WALKED, *numbers_page.OTHERS}
    assert set(numbers_page.DOORS) <= set(WALKED)


def test_every_module_of_a_package_that_is_walked_is_reached_or_left_out_for_a_reason():
    files = [path for package in WALKED for path in (HANDFUL / package).rglob("*.py")]
    modules = {
        ".".join(path.relative_to(HANDFUL).with_suffix("").parts).removesuffix(".__init__")
        for path in files
        if path.read_text(encoding="utf-8").strip()
    }
    found = {*numbers_page.walked(), *numbers_page.LEFT_OUT}
    # A folder whose `__init__` has nothing but a docstring is not imported by its own name.
    assert modules - found <= {package for package in WALKED if package not in found}
    assert found <= modules
    for package in modules - found:
        assert len(ast.parse((HANDFUL / package / "__init__.py").read_text(encoding="utf-8")).body) == 1


def test_every_number_that_an_answer_can_depend_on_has_a_name():
    assert not numbers_page.all_strays(), "make each a field of Settings, or a constant in capitals with a comment"


@pytest.mark.parametrize("module", list(numbers_page.all_numbers()))
def test_every_number_says_what_it_means_its_unit_and_where_it_comes_from(module):
    for one in numbers_page.all_numbers()[module]:
        assert one.meaning, f"{module}.{one.name}: a comment above it says what it means"
        assert one.unit, f"{module}.{one.name}: its comment ends with [unit; origin]"
        assert one.origin.partition(":")[0] in ORIGINS, f"{module}.{one.name}: its comment ends with [unit; origin]"


def test_what_half_and_twice_a_number_change_is_told_in_words():
    study = numbers_page.sensitivity()
    same = dict.fromkeys([*study.FIGURES, study.MOVED], 0.0)
    assert numbers_page.effect(None) == "not measured"
    assert numbers_page.effect(same) == "nothing"
    assert numbers_page.effect(same | {study.MOVED: 0.25}) == "no figure; a probability by 0.25"
    assert numbers_page.effect(same | {"open": -2.5, "closed": 1.0}) == "-2.5 right, open"


def test_numbers_that_have_another_value_than_when_they_were_measured_are_not_measured(monkeypatch):
    values = numbers_page.measured_values()
    (name, *_) = numbers_page.measured_changes()
    monkeypatch.setattr(numbers_page, "measured_values", lambda: values | {name: "another"})
    assert name not in numbers_page.measured_changes()


def test_the_page_has_every_number_and_is_as_the_code_is():
    assert not numbers_page.is_behind(), "behind the code: python tools/numbers_page.py"
    page = numbers_page.PAGE.read_text(encoding="utf-8")
    print(page)
    for module, numbers in numbers_page.all_numbers().items():
        section = page.partition(f"\n### {module}\n")[2].partition("\n### ")[0]
        for one in numbers:
            assert f"\n| `{one.name}` | " in section, f"{module}.{one.name}"
    for module in numbers_page.LEFT_OUT | numbers_page.OTHERS:
        assert f"\n- `handful.{module}` " in page


def test_every_setting_says_what_it_means_its_unit_and_where_it_comes_from():
    for field in fields(Settings):
        assert field.metadata["meaning"], field.name
        assert field.metadata["unit"], field.name
        assert field.metadata["origin"].partition(":")[0] in {"tuned", "measured", "convention", "work"}, field.name


def test_every_setting_and_limit_is_used():
    source = "\n".join(path.read_text(encoding="utf-8") for path in HANDFUL.rglob("*.py"))
    unused = [field.name for field in fields(Settings) if f".{field.name}" not in source]
    limits = ast.parse((HANDFUL / MODEL / "limits.py").read_text(encoding="utf-8"))
    names = [node.targets[0].id for node in limits.body if isinstance(node, ast.Assign)]
    unused += [name for name in names if source.count(name) < 3]  # set, imported and used
    assert not unused


def test_settings_are_whole_numbers_chances_and_lists_of_what_they_say():
    for field in fields(Settings):
        value = getattr(DEFAULT, field.name)
        if field.metadata["unit"] == "chance":
            assert 0 < value < 1, field.name
        if isinstance(value, tuple):
            assert all(isinstance(one, float) for one in value), field.name


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_the_study_of_sensitivity_changes_every_setting_and_no_other(factor):
    study = importlib.import_module("sensitivity")
    for field in fields(Settings):
        settings = study.changed(field.name, factor)
        different = [one.name for one in fields(Settings) if getattr(settings, one.name) != getattr(DEFAULT, one.name)]
        assert different in ([field.name], []), field.name
        assert different or getattr(DEFAULT, field.name) == 1, field.name
