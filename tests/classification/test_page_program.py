"""The program of a page: every module after those that it needs, in one scope; no text is read as markup."""

import re

import pytest

from handful.classification.page_program import REPORT, REVIEW, modules_of, packaged, page_program, page_style

# What a module names at its top.
DECLARED = re.compile(r"^(?:export )?(?:async )?(?:function|const|let) (\w+)", re.MULTILINE)
IMPORTED = re.compile(r'^import \{([^}]*)\} from "\./(\w+\.js)";', re.MULTILINE)


@pytest.mark.parametrize("start", [REPORT, REVIEW])
def test_modules_come_after_what_they_import_and_import_what_is_there(start):
    modules = modules_of(start)
    assert modules[-1] == start
    for place, name in enumerate(modules):
        for names, needed in IMPORTED.findall(packaged(name)):
            exported = set(
                re.findall(r"^export (?:async )?(?:function|const|let) (\w+)", packaged(needed), re.MULTILINE)
            )
            assert {one.strip() for one in names.split(",") if one.strip()} <= exported, (name, needed)
            assert needed in modules[:place] or name in modules_of(needed), (name, needed)


@pytest.mark.parametrize("start", [REPORT, REVIEW])
def test_a_program_is_one_module_without_imports_and_no_two_names_are_the_same(start):
    program = page_program(start)
    assert not re.search(r"^\s*(import|export)\b", program, re.MULTILINE)
    names = DECLARED.findall(program)
    assert len(names) == len(set(names)), sorted(one for one in set(names) if names.count(one) > 1)
    assert "</script" not in program


def test_a_report_has_nothing_that_answers_or_speaks_to_a_server():
    assert not {"server.js", "answers.js", "sheet.js", "asked.js", "dialogs.js"} & set(modules_of(REPORT))
    assert 'method: "POST"' not in page_program(REPORT)
    assert 'method: "POST"' in page_program(REVIEW)


def test_no_text_becomes_markup_and_the_style_loads_nothing():
    for start in (REPORT, REVIEW):
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|\beval\(", page_program(start))
    assert not re.search(r"url\(|@import", page_style(REVIEW))
