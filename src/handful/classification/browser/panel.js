// The chosen item, beside the list.

import { byId, make } from "./elements.js";
import { choose, current, onChoose, onDraw } from "./drawing.js";
import { additions } from "./additions.js";
import { isListing } from "./filter.js";
import { contentOf, examplesBeside, labelsOf, whyOf } from "./item.js";
import { refit } from "./list.js";

function drawPanel() {
  const panel = byId("panel");
  const item = current;
  const wasHidden = panel.hidden;
  panel.hidden = !isListing() || item < 0;
  // The list takes the room that it leaves.
  if (panel.hidden !== wasHidden && isListing()) refit();
  if (panel.hidden) {
    panel.replaceChildren();
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
