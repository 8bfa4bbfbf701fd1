"""Words: what people read says each thing by one word, and words that readers stumbled over do not come back.

What people read are the documents, the fragments of the changelog, the help and the messages of commands, and the
pages in the browser. `docs/understand/glossary.md` has the words.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "understand" / "glossary.md"
# Words that a reader has to learn.
MOST_WORDS = 20

# What is not said any more, as a regular expression, and what is said instead.
GONE = {
    # One idea, one word.
    r"in doubt\b": "doubtful",
    r"sibling": "the other batches, or groups, of a pool",
    r"label\w*(?: (?:a|the|this|such a|one))?(?: batch(?:es)?)? as a whole": "labelled as a batch, or just labelled",
    r"joint answers?\b": "the labels of the batch, or its result",
    r"backbones?\b": "encoder",
    r"left-out examples?\b|can be left out to calibrate": "held out",
    r"(?:items?|rows?) (?:is|are|was|were) left out(?! of)": "skipped",
    r"if left out\b": "default: 5",
    r"Repeatable\b|Repeat it\b": "Repeat for several",
    r"unsure\b": "doubtful",
    # English.
    r"(?<=\d) %": "5%",
    r"10\^\d": "10⁶",
    r"on the mean(?=[.,:;]| and\b)": "on average",
    r"by an interval(?=[.,;])": "beyond the 95% interval",
    r"(?<!there )(?:is|was) no (?:number|class|catalogue|table|journal|event|answer|batch|method|type)\b": "is not a",
    r"are no (?:numbers|classes|features|files|part)\b": "are not",
    r"pressed into\b": "forced into",
    r"anew\b|whoever\b|wherein\b|so many\b|mends?\b": "again, anyone who, in which, that many, repairs",
    r"behaviors?\b|labeled\b|labeling\b|normaliz(?:ed|ation)|recogniz\w+|neighbor\w*": "British spelling",
    # Sentences that readers had to read twice.
    r"told by their name": "known by name",
    r"They are enough\b": "name what is enough, for what",
    r"what is shown (?:first|second)\b": "the most probable class, and the next",
    r"with a chance of 90%": "with a probability of 0.9",
    r"this batch cannot tell\b": "say what is missing",
    r"do not say which encoder\b": "do not name the encoder",
    r"looked at yet\b": "seen",
    r"take an item to belong\b": "say how an item is labelled",
    r"say nothing change nothing\b": "names without information change nothing",
    r"Numbers go on\b": "the numbering continues",
    r"; name one of\b": "; choose from",
    r"Files you have\b": "Other people's files",
    r"turned as their EXIF": "rotated as their EXIF data require",
}
SKIPPED_FOLDERS = {"_build", "auto_gallery", "api", "node_modules"}
CODE = re.compile(r"^(```+|~~~+).*?^\1\s*$|`[^`\n]*`|\]\([^)\s]*\)", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"\s*(?://|\*|/\*)")


def documents() -> Iterator[tuple[str, str]]:
    """Yield every document and its text without code."""
    folders = [ROOT / "docs", ROOT / "changes", ROOT / "src", ROOT / ".github"]
    for path in [*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]:
        # What was removed is named as it was.
        if not SKIPPED_FOLDERS & set(path.parts) and not path.name.endswith(".removal.md"):
            yield str(path.relative_to(ROOT)), CODE.sub(" ", path.read_text(encoding="utf-8"))


def docstrings(tree: ast.Module) -> set[ast.Constant]:
    """Return the docstrings of a file."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    first = [node.body[0] for node in ast.walk(tree) if isinstance(node, owners) and node.body]
    return {e.value for e in first if isinstance(e, ast.Expr) and isinstance(e.value, ast.Constant)}


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of what a file of Python says: messages, and the help if it is of the command line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent = set() if path.parent.name == "cli" else docstrings(tree)
    within = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            within |= set(node.values)
            yield node.lineno, "".join(part.value if isinstance(part, ast.Constant) else "1" for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in silent | within:
            yield node.lineno, node.value


@cache
def read() -> tuple[tuple[str, str], ...]:
    """Return all that people read: where it is, and its text with single blanks."""
    texts = list(documents())
    for path in (ROOT / "src").rglob("*.py"):
        texts += [(f"{path.relative_to(ROOT)}:{line}", text) for line, text in sentences(path) if " " in text]
    for path in (ROOT / "src").rglob("*.js"):
        lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        texts += [(f"{path.relative_to(ROOT)}:{number}", line) for number, line in lines if not COMMENT.match(line)]
    return tuple((place, " ".join(text.split())) for place, text in texts)


@pytest.mark.parametrize("word", GONE)
def test_a_word_that_went_does_not_come_back(word):
    pattern = re.compile(rf"(?<![\w-])(?:{word})" if word[0].isalpha() else word, re.IGNORECASE)
    found = [
        f"{place}: …{text[max(0, m.start() - 40) : m.end() + 30]}…"
        for place, text in read()
        for m in pattern.finditer(text)
    ]
    assert not found, f"say {GONE[word]!r}:\n" + "\n".join(found)


def test_documents_help_messages_and_pages_are_read():
    places = [place for place, _ in read()]
    assert len([place for place in places if place.endswith(".md")]) > 100
    assert len([place for place in places if ".py:" in place]) > 2000
    assert len([place for place in places if ".js:" in place]) > 500
    texts = [text for _, text in read()]
    assert any("may stop when at most 5% of the labels are wrong" in text for text in texts), "the help of an option"
    assert any(text.startswith("Label a batch") for text in texts), "the help of a command"


def test_the_glossary_has_few_words_and_each_once():
    text = GLOSSARY.read_text(encoding="utf-8").partition("## In the literature")[0]
    entries = re.findall(r"^([a-z].*)\n: \w", text, re.MULTILINE)
    words = [word for entry in entries for word in entry.split(", ")]
    assert 15 <= len(entries) <= MOST_WORDS
    assert len(set(words)) == len(words)
