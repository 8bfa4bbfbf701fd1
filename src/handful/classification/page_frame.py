"""The frame of a page in HTML, which its program fills: a report shows a batch, a review also asks about it."""

from __future__ import annotations

from html import escape

SHARED_KEYS = (
    ("↓ ↑ → ←", "next and previous item, of a list or a sheet"),
    ("/", "search in all items; Enter opens the first, Esc goes back"),
    ("m", "the map: arrows go from item to item, space chooses one, + and - choose more or fewer around it"),
    ("?", "these keys"),
)
REVIEW_KEYS = (
    ("Enter", "what is shown is right; of a sheet: all that you did not mark"),
    ("1 … 9", "it is this class"),
    ("c", "another class: type its name"),
    ("n", "a class that the catalogue does not have: give its name"),
    ("x", "none of these: it belongs to no class of the catalogue"),
    ("p", "leave it open"),
    ("b", "bad item: it cannot be labelled"),
    ("letter, space", "on a sheet: mark an exception, or take the mark back"),
    ("z", "the picture at full size"),
    ("u", "undo, as often as you like"),
    ("g", "one class for a whole group: exceptions, a new group, or all items chosen on the map"),
    ("r t", "without a catalogue, of the class that is listed: another name, or that of another class; it is two"),
    ("a", "accept the label of all items listed"),
    ("s", "finish: write the labels"),
    ("Esc", "back to what is asked; out of a field, so that keys answer again"),
    *SHARED_KEYS,
)
REPORT_BAR = """
<div class='bar-top' role='region' aria-label='Search'>
<button type='button' id='filters-toggle'>Filters</button>
<span class='grow'></span>
<input id='search' type='search' placeholder='Search' aria-label='Search in all items'>
<button type='button' id='help-open' aria-label='Keys'>?</button>
</div>
"""
REVIEW_BAR = """
<div class='bar-top' role='region' aria-label='Progress'>
<div id='progress' hidden><div id='progress-bar' class='meter'><span></span><span></span></div>
<p role='status'><b id='progress-left'></b><span id='progress-said'></span></p></div>
<button type='button' id='filters-toggle'>Filters</button>
<input id='search' type='search' placeholder='Search' aria-label='Search in all items'>
<button type='button' id='help-open' aria-label='Keys'>?</button>
<span class='grow'></span>
<button type='button' id='undo'>Undo<kbd>u</kbd></button>
<button type='button' id='finish' class='main'>Finish<kbd>s</kbd></button>
</div>
<p id='note' role='status' hidden></p>
"""
WORK = """
<div id='work'>
<nav id='side' aria-label='Filters'>
<div id='groups-filter' hidden><h2>Group</h2><select id='group' aria-label='Group'></select></div>
<h2>Show</h2><div id='views'></div>
<div id='proposals' hidden><h2>New groups</h2><div id='proposal-list'></div></div>
<h2 id='classes-title'>Classes</h2>
<input id='class-words' type='search' placeholder='Find a class' aria-label='Find a class' hidden>
<div id='class-list'></div>
</nav>
<main>
<section id='asked' aria-label='What is asked' hidden></section>
<details id='map-box' hidden><summary>Map</summary>
<svg id='map' tabindex='0' role='application' aria-label='Map of the items' aria-describedby='map-how'></svg>
<div id='map-key'></div>
<p class='quiet'><small><span id='map-how'>Items lie beside those that look alike; hollow: in doubt, <span
id='map-marks'></span>. Click an item, or draw around several.</span>
<span id='map-part'></span></small></p>
<p><button type='button' id='map-draw' aria-pressed='false'>Draw around items</button>
<small id='map-said' class='quiet' role='status'></small></p>
</details>
<div id='about' hidden></div>
<div id='listed'>
<div id='chosen'><small id='matches' class='quiet' role='status'></small><span id='chips'></span>
<button type='button' id='accept' hidden></button></div>
<ul id='list' role='listbox' aria-label='Items' tabindex='0'></ul>
<p id='nothing' class='quiet' hidden>No item matches.</p>
<div id='more' hidden><button type='button' id='more-button'></button></div>
</div>
</main>
<aside id='panel' aria-label='The chosen item' tabindex='0'></aside>
</div>
"""
REVIEW_DIALOGS = """
<dialog id='ask' aria-labelledby='question'><form method='dialog'><label for='words' id='question'></label>
<input id='words' autocomplete='off' role='combobox' aria-controls='options' aria-expanded='true' dir='auto'>
<ul id='options' class='options' role='listbox' aria-labelledby='question'></ul></form></dialog>
<dialog id='sure' aria-labelledby='sure-said'><p id='sure-said'></p><div id='sure-more'></div>
<p class='buttons'><button type='button' id='sure-yes' class='main'></button>
<button type='button' id='sure-no'>Back</button></p></dialog>
<dialog id='picture' aria-labelledby='picture-name'><div id='picture-shown'></div>
<p><span id='picture-name'></span> <button type='button' autofocus>Close<kbd>z</kbd></button></p></dialog>
"""
NEEDS_SCRIPT = (
    "<noscript><p class='alarm'>This page needs JavaScript to show the items. The labels are in the table of "
    "predictions.</p></noscript>"
)


def report_frame(title: str, head: str, top: str, program: str) -> str:
    """Return the page of a report: what its head says, what stands above the items, and its data and program."""
    return _frame(title, head, f"{top}{NEEDS_SCRIPT}", REPORT_BAR + WORK + _keys(SHARED_KEYS) + program)


def review_frame(title: str, head: str, top: str, program: str) -> str:
    """Return the page of a review."""
    return _frame(
        title, head, f"{top}{NEEDS_SCRIPT}", REVIEW_BAR + WORK + REVIEW_DIALOGS + _keys(REVIEW_KEYS) + program
    )


def _frame(title: str, head: str, top: str, rest: str) -> str:
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<meta name='color-scheme' content='light dark'><title>{escape(title)}</title>{head}</head>"
        f"<body><header>{top}</header>{rest}</body></html>"
    )


def _keys(keys: tuple[tuple[str, str], ...]) -> str:
    rows = "".join(f"<tr><th scope='row'><kbd>{escape(key)}</kbd></th><td>{what}</td></tr>" for key, what in keys)
    return (
        f"<dialog id='keys' aria-labelledby='keys-title'><h2 id='keys-title'>Keys</h2><table>{rows}</table>"
        "<form method='dialog'><button>Close</button></form></dialog>"
    )
