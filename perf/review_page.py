"""Time the page of a batch of 5,000 items in headless Chromium: python perf/review_page.py [--out results.json].

For items with vectors alone, sentences and pictures: size of the page, first paint, time until it can be used, and the
time from a click on a filter to the new list, the median and the longest over all filters; and the processor time of
the page's main thread, which other programs do not change. Needs Playwright and Chromium.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from handful.classification import About, Batch, write_page
from handful.estimators import Answer, Proposal
from handful.estimators.answer import best_two
from handful.estimators.certainty import certainty_of
from handful.extraction.items import list_items

# A busy machine takes its time.
MOST_MILLISECONDS = 180_000
N_ITEMS, N_CLASSES, N_PRESENT = 5_000, 150, 60
# In the browser: click on every filter of the page in turn, and wait until the new list is laid out.
CLICK_ALL = """() => {
  const times = [];
  for (const list of ["views", "class-list", "proposal-list"]) {
    const n = document.getElementById(list).children.length;
    for (let place = 0; place < n; place++) {
      const start = performance.now();
      document.getElementById(list).children[place].click();
      document.getElementById("list").getBoundingClientRect();
      times.push(performance.now() - start);
    }
  }
  return times;
}"""
SEARCH = """() => {
  const start = performance.now(), field = document.getElementById("search");
  field.value = "17";
  field.dispatchEvent(new Event("input"));
  document.getElementById("list").getBoundingClientRect();
  return performance.now() - start;
}"""
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
READY = "() => performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


def made_up(contents: Any) -> Answer:
    """Return answers about a batch: most items certain, some in doubt, some in new groups."""
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.full(N_PRESENT, 0.02), size=N_ITEMS)
    table = np.concatenate([table, np.zeros((N_ITEMS, N_CLASSES - N_PRESENT))], axis=1)
    rejected = np.arange(N_ITEMS) % 25 == 0
    groups = np.array_split(np.flatnonzero(rejected), 4)
    codes, best = best_two(table)
    unknown = np.where(rejected, 0.9, 0.05)
    answer = Answer(
        classes=np.array([f"class {k}" for k in range(N_CLASSES)]),
        codes=codes,
        _certainties=certainty_of(best, unknown, 1.0),
        _table=table,
        expected_counts=table.sum(0),
        presence=np.minimum(table.sum(0), 0.99),
        joint_weight=0.9,
        prior_weight=None,
        unknown=unknown,
        rejected=rejected,
        _none_of_these=np.zeros(N_ITEMS, bool),
        unknown_interval=(0.02, 0.06),
        unknown_reason=None,
        proposals=tuple(Proposal(items, 0.9, "class 3", 1.0) for items in groups),
        diagnostics=(),
    )
    names = tuple(f"item {i}" for i in range(N_ITEMS))
    batch = Batch(range(N_ITEMS), names, contents, ())
    return replace(answer, about=About(batch, n_examples=5 * N_CLASSES, encoder=""))


def contents_of(kind: str, folder: Path) -> Any:
    """Return the items: None, sentences, or photographs of noise, which compress worse than real ones."""
    if kind == "vectors":
        return None
    if kind == "sentences":
        return tuple(f"A sentence about number {i} that is as long as many requests are." for i in range(N_ITEMS))
    rng = np.random.default_rng(0)
    (folder / "images").mkdir()
    for i in range(N_ITEMS):
        noise = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(noise).resize((160, 120), Image.Resampling.BICUBIC).save(folder / "images" / f"{i:05}.jpg")
    return list_items(folder / "images", labelled=False).source


def measured(kind: str, browser: Any) -> dict[str, Any]:
    """Write one page, open it and use it."""
    with tempfile.TemporaryDirectory() as work:
        place = Path(work) / "page.html"
        write_page(made_up(contents_of(kind, Path(work))), place, title=kind)
        page = browser.new_page(viewport={"width": 1360, "height": 850})
        page.set_default_timeout(MOST_MILLISECONDS)
        tools = page.context.new_cdp_session(page)
        tools.send("Performance.enable")
        before = _thread_ms(tools)
        page.goto(place.as_uri())
        page.wait_for_selector("html[data-ready]")
        page.wait_for_function(f"({PAINT})() !== null")
        opened = _thread_ms(tools)
        clicks = page.evaluate(CLICK_ALL)
        filtered = _thread_ms(tools)
        return {
            "items": kind,
            "megabytes": round(place.stat().st_size / 1e6, 1),
            "first_paint_ms": round(page.evaluate(PAINT)),
            "usable_ms": round(page.evaluate(READY)),
            "opened_cpu_ms": round(opened - before),
            "filters": len(clicks),
            "filter_cpu_ms": round((filtered - opened) / len(clicks), 1),
            "filter_median_ms": round(statistics.median(clicks), 1),
            "filter_longest_ms": round(max(clicks), 1),
            "search_ms": round(page.evaluate(SEARCH), 1),
        }


def _thread_ms(tools: Any) -> float:
    """Return the processor time that the page's main thread has taken: on a busy machine clocks run on."""
    metrics = {metric["name"]: metric["value"] for metric in tools.send("Performance.getMetrics")["metrics"]}
    return 1000 * float(metrics["ThreadTime"])


if __name__ == "__main__":
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "review_page.json")
    out = parser.parse_args().out
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise SystemExit("Chromium was not found; install it")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        results = [measured(kind, started) for kind in ("vectors", "sentences", "pictures")]
        started.close()
    out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))
