// The chosen item, beside the list.

import { byId, make } from "./elements.js";
import { choose, current, onChoose, onDraw } from "./drawing.js";
import { additions } from "./additions.js";
import { isListing } from "./filter.js";
import { contentOf, examplesBeside, labelsOf, whyOf } from "./item.js";
import { shown } from "./list.js";

function drawPanel() {
  const panel = byId("panel");
  const item = current;
  panel.hidden = !isListing();
  panel.classList.toggle("empty", item < 0);
  if (panel.hidden || item < 0) {
    const said = shown.length ? "Choose one, or press the down key." : "Nothing is listed.";
    panel.replaceChildren(make("p", { class: "quiet" }, said));
    return;
  }
  panel.replaceChildren(
    make("button", { type: "button", id: "close", onclick: () => choose(-1), "aria-label": "Close" }, "×"),
    ...contentOf(item),
    ...labelsOf(item),
    ...additions.item(item).filter((piece) => piece !== null && piece !== undefined),
    ...whyOf(item),
    ...examplesBeside(item),
  );
  panel.scrollTop = 0;
}

export function startPanel() {
  onDraw(drawPanel);
  onChoose(drawPanel);
}
