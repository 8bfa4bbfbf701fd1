"""The frame of a page in HTML, which its program fills: a report shows a batch, a review also asks about it."""

from __future__ import annotations

from html import escape

SHARED_KEYS = (
    ("↓ ↑ → ←", "go from picture to picture"),
    ("/", "search; Enter opens the first, Esc goes back"),
    ("?", "these keys"),
)
REPORT_KEYS = (
    *SHARED_KEYS,
    ("m", "the map: arrows go from item to item, space chooses one, + and - choose more or fewer around it"),
)
REVIEW_KEYS = (
    ("Enter", "what is shown is right; of a sheet: all that you did not mark"),
    ("1 … 9", "it is this class"),
    ("c", "another class: type its name"),
    ("n", "a class that has no example yet: type its name"),
    ("x", "none of these: it belongs to no class"),
    ("p", "leave it open"),
    ("b", "bad: it cannot be labelled"),
    ("letter, space", "on a sheet: mark what does not belong, or take the mark back; in a list: choose several"),
    ("z", "full size"),
    ("+ -", "larger and smaller"),
    ("u", "undo, as often as you like"),
    ("g", "one class for several: what you marked, a group without a name, or what you chose in the list"),
    ("r", "rename the class that is listed, or merge it into another"),
    ("a", "accept the label of everything listed"),
    ("h", "history: every answer, to look at or to change"),
    ("s", "finish"),
    ("Esc", "back to what is asked; out of a field, so that keys answer again"),
    *SHARED_KEYS,
)
REPORT_BAR = """
<div class='bar-top' role='region' aria-label='Search'>
<span class='grow'></span>
<input id='search' type='search' placeholder='Search' aria-label='Search'>
<button type='button' id='help-open' aria-label='Keys'>?</button>
</div>
"""
REVIEW_BAR = """
<header class='bar-top'>
<div id='progress-bar' class='meter'><span></span><span></span></div>
<h1>{title}</h1>
<button type='button' id='progress-left' aria-haspopup='dialog'></button>
<button type='button' id='menu-toggle' aria-expanded='false' aria-controls='menu' aria-label='Menu'>☰</button>
<div id='menu'>
<nav id='places' aria-label='Places'>
<button type='button' id='to-asked' data-to='asked'>Asked now</button>
<button type='button' id='to-all' data-to='all'></button>
<button type='button' id='to-history' data-to='history'>History</button>
</nav>
<span class='grow'></span>
<input id='search' type='search' placeholder='Search' aria-label='Search'>
<button type='button' id='smaller' aria-label='Smaller'>−</button>
<button type='button' id='larger' aria-label='Larger'>+</button>
<button type='button' id='help-open' aria-label='Keys'>?</button>
<button type='button' id='finish' class='main'>Finish<kbd>s</kbd></button>
</div>
<button type='button' id='undo'>Undo<kbd>u</kbd></button>
</header>
"""
MAP = """
<details id='map-box' hidden><summary>Map</summary>
<svg id='map' tabindex='0' role='application' aria-label='Map of the items' aria-describedby='map-how'></svg>
<div id='map-key'></div>
<p class='quiet'><small><span id='map-how'>Items lie next to those that look alike; hollow: doubtful, small: examples of
the catalogue. Click an item, or draw around several.</span>
<span id='map-part'></span></small></p>
<p><button type='button' id='map-draw' aria-pressed='false'>Draw around items</button>
<small id='map-said' class='quiet' role='status'></small></p>
</details>
"""
ASKED = """
<p id='note' role='status' hidden></p>
<section id='asked' aria-label='Asked now' hidden></section>
<section id='history' aria-label='History' hidden></section>
"""
WORK = """
<div id='work'>
<nav id='side' aria-label='Filters'>
<div id='groups-filter' hidden><h2>Group</h2><select id='group' aria-label='Group'></select></div>
<h2 id='classes-title'>Classes</h2>
<input id='class-words' type='search' placeholder='Find a class' aria-label='Find a class' hidden>
<div id='class-list'></div>
<div id='proposals' hidden><h2>Without a name</h2><div id='proposal-list'></div>
<button type='button' id='more-proposals' class='choice'></button></div>
<h2>Show</h2><div id='views'></div>
</nav>
<main id='main'>{before}
<div id='about' hidden></div>
<div id='listed'>
<div id='chosen'><button type='button' id='filters-toggle'>Classes</button>
<small id='matches' class='quiet' role='status'></small><span id='chips'></span>
<button type='button' id='accept' hidden></button></div>
<ul id='list' aria-label='What is listed'></ul>
<p id='nothing' class='quiet' hidden>Nothing matches.</p>
</div>
</main>
<aside id='panel' aria-label='The one that is chosen' tabindex='0'></aside>
</div>
"""
REVIEW_DIALOGS = """
<dialog id='ask' aria-labelledby='question'><form method='dialog'><label for='words' id='question'></label>
<input id='words' autocomplete='off' role='combobox' aria-controls='options' aria-expanded='true' dir='auto'>
<ul id='options' class='options' role='listbox' aria-labelledby='question'></ul></form></dialog>
<dialog id='sure' aria-labelledby='sure-said'><p id='sure-said'></p><div id='sure-more'></div>
<p class='buttons'><button type='button' id='sure-yes' class='main'></button>
<button type='button' id='sure-no'>Back</button></p></dialog>
<dialog id='told' aria-labelledby='told-title'><h2 id='told-title'></h2><p id='progress-said'></p>
<div id='notices'></div><form method='dialog'><button>Close</button></form></dialog>
<dialog id='picture' aria-labelledby='picture-name'><div id='picture-shown'></div>
<p><span id='picture-name'></span> <button type='button' autofocus>Close<kbd>z</kbd></button></p></dialog>
"""
NEEDS_SCRIPT = (
    "<noscript><p class='alarm'>This page needs JavaScript to show the items. The labels are in the table of "
    "predictions.</p></noscript>"
)


def report_frame(title: str, head: str, top: str, program: str) -> str:
    """Return the page of a report: what its head says, what stands above the items, and its data and program."""
    rest = REPORT_BAR + WORK.format(before=MAP) + _keys(REPORT_KEYS) + program
    return _frame(title, head, f"<header>{top}{NEEDS_SCRIPT}</header>{rest}", "report")


def review_frame(title: str, head: str, program: str) -> str:
    """Return the page of a review."""
    bar = REVIEW_BAR.format(title=escape(title))
    rest = WORK.format(before=ASKED) + REVIEW_DIALOGS + _keys(REVIEW_KEYS) + program
    return _frame(title, head, f"{bar}{NEEDS_SCRIPT}{rest}", "review")


def _frame(title: str, head: str, body: str, kind: str) -> str:
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<meta name='color-scheme' content='light dark'><title>{escape(title)}</title>{head}</head>"
        f"<body class='{kind}'>{body}</body></html>"
    )


def _keys(keys: tuple[tuple[str, str], ...]) -> str:
    rows = "".join(f"<tr><th scope='row'><kbd>{escape(key)}</kbd></th><td>{what}</td></tr>" for key, what in keys)
    return (
        f"<dialog id='keys' aria-labelledby='keys-title'><h2 id='keys-title' tabindex='-1' autofocus>Keys</h2>"
        f"<table>{rows}</table><form method='dialog'><button>Close</button></form></dialog>"
    )
