"""Tables for notebooks: what they say, and that no name becomes markup."""

import random
from html.parser import HTMLParser

import numpy as np
import pytest

from handful.estimators import BatchClassifier, NearExample
from handful.estimators.summary import notes_on
from handful.estimators.why import Explanation
from handful.fitted import FittedModel
from tests.answers_at_hand import answer_of
from tests.worlds import Clouds

PIECES = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</td></table>", "'><b>", '"><i>', "<!--", "-->",
    "<style>*{display:none}</style>", "&lt;b&gt;", "&#60;b&#62;", "javascript:alert(1)", "<a href='x'>", "\0", "\n",
    "]]>", "<svg/onload=alert(1)>", "' onmouseover='alert(1)", "{{7*7}}", "$x$", "\u202e", "<\u0000script>", "ordinary",
]  # fmt: skip
# What forms are made of.
TAGS = {"style", "div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "span"}
ATTRIBUTES = {"class", "style"}


class Elements(HTMLParser):
    """Elements and attributes of a page, and its text."""

    def __init__(self, page):
        super().__init__()
        self.found, self.texts = [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, tuple(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    def handle_comment(self, data):
        self.found.append(("comment", data))

    def handle_decl(self, decl):
        self.found.append(("declaration", decl))

    @property
    def strange(self):
        return [
            (tag, attrs)
            for tag, attrs in self.found
            if tag not in TAGS or any(name not in ATTRIBUTES for name, _ in attrs)
        ]


def hostile_names(n):
    rng = random.Random(0)
    return [f"{i} {''.join(rng.choices(PIECES, k=rng.randint(1, 4)))}" for i in range(n)]


def forms_with(names):
    """Every form, with these names as classes, groups, labels of examples and words of sentences."""
    names = np.array(names, dtype=object)
    table = np.eye(len(names))[: len(names)]
    yield answer_of(table, names)
    yield answer_of(table, names, sites=names)
    catalogue = FittedModel.of(np.eye(len(names)).repeat(2, axis=0)[:, : len(names)], names.repeat(2).astype(str))
    yield catalogue
    for name in names:
        near = (NearExample(0, name, 0.1),)
        yield Explanation(0, name, 0.5, name, 0.5, name, 0.2, 0.0, 0.0, 1.0, 1.0, 2, 0.1, False, near)


def test_none_of_a_thousand_hostile_names_becomes_markup():
    names, became = hostile_names(1_000), []
    for start in range(0, len(names), 10):
        some = names[start : start + 10]
        for form in forms_with(some):
            page = Elements(form._repr_html_())
            became += page.strange
        shown = "".join(Elements(next(forms_with(some))._repr_html_()).texts)
        assert all(name.split(" ")[0] in shown for name in some)
    assert became == []


def test_the_check_sees_markup():
    assert Elements("<p onclick='x'>").strange
    assert Elements("<p><script>1</script>").strange


@pytest.fixture(scope="module")
def classifier():
    clouds = Clouds(20, 16)
    fitted = BatchClassifier().fit(clouds.examples(5, 0.7), np.arange(20).repeat(5))
    return fitted, clouds.around([3] * 6 + [7] * 4, 0.7)


def said(form):
    return " ".join(Elements(form._repr_html_()).texts)


def test_forms_say_what_summaries_say(classifier):
    fitted, batch = classifier
    answer = fitted.infer(batch)
    assert answer.summary().split("\n")[0] in said(answer)
    assert "Next: plot_map()" in said(answer)
    assert all(note in said(answer) for note in notes_on(answer))
    groups = fitted.infer(batch, groups=["marsh"] * 6 + ["wood"] * 4)
    assert "2 groups, 10 items" in said(groups)
    assert "marsh" in said(groups)
    assert "20 classes, 100 examples" in said(fitted.model_)
    assert str(fitted.explain(batch, 0)) in said(fitted.explain(batch, 0))


@pytest.mark.filterwarnings("ignore")
def test_warnings_are_part_of_the_form(classifier):
    fitted, batch = classifier
    answer = fitted.infer(np.concatenate([batch, np.zeros((1, 16))]))
    assert len(answer.diagnostics) > 0
    assert answer.diagnostics[0].message in said(answer)


def test_colours_are_those_of_the_page(classifier):
    fitted, batch = classifier
    page = fitted.infer(batch)._repr_html_()
    assert "color: inherit" in page
    assert "background: #fff" not in page
