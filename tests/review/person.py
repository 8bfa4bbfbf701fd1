"""Someone at the page of a review who knows the truth, with the keyboard alone."""

from collections import Counter

# What the page shows of what is asked.
SHOWN = """() => {
  const asked = document.getElementById('asked');
  const texts = (place) => [...asked.querySelectorAll(place)].map((element) => element.textContent);
  const names = (place) => [...asked.querySelectorAll(place)].map((element) => element.alt);
  return {
    kind: asked.className,
    labels: texts('.tile .label'),
    marked: [...asked.querySelectorAll('.tile')].map((tile) => tile.ariaPressed === 'true'),
    items: [...names('.tile img'), ...texts('.tile > .words'), ...names('.large img'), ...texts('blockquote')],
    keys: texts('.tile kbd'),
    title: texts('h2')[0],
    label: texts('h2 b')[0] ?? texts('.choose.main .of bdi')[0],
    choices: texts('.choose .of bdi'),
    naming: document.getElementById('name-field') !== null,
    said: document.getElementById('progress-said').textContent,
  };
}"""


class Person:
    """Someone at the keyboard who knows the truth; `known` are the classes of the catalogue."""

    def __init__(self, browser, address, truth, known, **options):
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | options)
        self.context.set_default_timeout(20_000)  # a busy machine takes its time
        self.truth, self.known, self.n_decisions, self.wrong = truth, set(known), 0, []
        self.open(address)

    def open(self, address):
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]")

    def shown(self):
        return self.page.evaluate(SHOWN)

    def text(self, place):
        return self.page.locator(place).inner_text()

    def settled(self, number):
        """Wait for the answer of the server."""
        self.page.wait_for_selector(f"html:not([data-busy]):not([data-number='{number}'])")

    def decides(self, key, words=None):
        """Press a key, type the name of a class, and wait for the answer of the server."""
        number = self.page.evaluate("document.documentElement.dataset.number")
        self.page.keyboard.press(key)
        if words is not None:
            self.page.wait_for_selector("#ask[open]")
            self.page.keyboard.type(words)
            self.page.keyboard.press("Enter")
            self.known.add(words)
        self.settled(number)
        self.n_decisions += 1

    def names(self, shown):
        """Give items that look alike one name: the key of one that was said before, or its letters."""
        labels = [self.truth[item] for item in shown["items"]]
        label = Counter(labels).most_common(1)[0][0]
        wrong = [key for key, one in zip(shown["keys"], labels, strict=False) if one != label]
        if wrong:
            self.page.keyboard.press("Escape")
            for key in wrong:
                self.page.keyboard.press(key)
            self.page.keyboard.press("Enter")
        number = self.page.evaluate("document.documentElement.dataset.number")
        if label in shown["choices"]:
            self.page.keyboard.press(str(shown["choices"].index(label) + 1))
        else:
            self.page.keyboard.type(label)
            self.page.keyboard.press("Enter")
            self.page.wait_for_selector(f"html:not([data-number='{number}']), #sure[open]")
            if self.page.locator("#sure[open]").count():  # it looks like another name, and is none
                self.page.keyboard.press("Tab")
                self.page.keyboard.press("Enter")
        self.settled(number)
        self.n_decisions += 1

    def answers(self, shown):
        if shown["naming"]:
            return self.names(shown)
        if shown["kind"] == "one":
            label = self.truth[shown["items"][0]]
            if label == shown["label"]:
                return self.decides("Enter")
            if label in shown["choices"]:
                return self.decides(str(shown["choices"].index(label) + 1))
            return self.decides("c" if label in self.known or not self.known else "n", label)
        labels = [self.truth[item] for item in shown["items"]]
        if shown["labels"]:
            tiles = zip(shown["keys"], shown["labels"], shown["marked"], labels, strict=True)
            for key, label, is_marked, one in tiles:
                if (label != one) != is_marked:
                    self.page.keyboard.press(key)
            return self.decides("Enter")
        named = "none of your classes" not in shown["title"]
        label = shown["label"] if named else Counter(labels).most_common(1)[0][0]
        for key, one in zip(shown["keys"], labels, strict=True):
            if one != label:
                self.page.keyboard.press(key)
        if all(one != label for one in labels):
            return self.decides("Enter")  # each of them is asked
        if named:
            return self.decides("Enter")
        return self.decides("c" if label in self.known else "n", label)

    def sees(self, most):
        """Answer until everything has been seen, or for so many decisions; return whether everything has been seen."""
        while (shown := self.shown())["kind"] != "end":
            if self.n_decisions == most:
                return False
            self.answers(shown)
        return True

    def finishes(self):
        self.page.keyboard.press("Escape")  # out of a field, where letters are typed
        self.page.keyboard.press("s")
        self.page.wait_for_selector("#sure[open]", timeout=20_000)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("html[data-finished]")
