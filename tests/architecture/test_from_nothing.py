"""What the tool that follows the first pages finds on them."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = """# Page

```
pip install 'handful[cli]'   # with a comment
handful classify --catalogue a \\
  --batch b
not a command
```

Text with `handful demo`, `handful classify` alone, `handful report x
--out y` and `pip install 'handful[text]'`.

```python
>>> 1 + 1
2

```

```
handful demo
```

```python
>>> 3
3

```
"""


@pytest.fixture
def tool():
    found = importlib.util.spec_from_file_location("from_nothing", ROOT / "tools" / "from_nothing.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_steps_are_in_the_order_of_the_page_and_each_is_done_once(tool):
    assert tool.steps_of(PAGE) == [
        "pip install 'handful[cli]' # with a comment",
        "handful classify --catalogue a --batch b",
        "handful demo",
        "handful report x --out y",
        "pip install 'handful[text]'",
        "Python",
    ]


def test_the_wheel_is_handful_and_the_repository_its_source(tool, tmp_path):
    (tmp_path / "wheel").mkdir()
    wheel = tmp_path / "wheel" / "handful-9-py3-none-any.whl"
    wheel.touch()
    newcomer = tool.Newcomer(tmp_path)
    assert newcomer.command(["pip", "install", "handful[cli]"])[-1] == f"{wheel}[cli]"
    assert newcomer.command(["pip", "install", "handful"])[-1] == str(wheel)
    assert newcomer.command(["pip", "install", "torch", "--index-url", "x"])[-2:] == ["--quiet", "torch"]
    assert newcomer.command(["git", "clone", "https://example.org/handful"]) == ["git", "clone", str(ROOT)]
    assert newcomer.command(["handful", "demo"]) == [str(newcomer.bin / "handful"), "demo"]


def test_every_first_page_asks_for_something(tool):
    for page in ("README.md", "docs/install.md", "docs/first_steps.md", "docs/tutorials/images.md"):
        assert page in tool.PAGES
        assert any(step.startswith("pip install") for step in tool.steps_of((ROOT / page).read_text()))
