// Keys that every page has; a review adds those that answer.

import { dialogOf, byId, inputOf } from "./elements.js";
import { choose } from "./drawing.js";
import { move, perRow } from "./list.js";

/** @typedef {Record<string, () => unknown>} Keys */

/** @type {Keys} */
const SHARED = {
  ArrowDown: () => move(perRow()),
  ArrowUp: () => move(-perRow()),
  ArrowRight: () => move(1),
  ArrowLeft: () => move(-1),
  j: () => move(1),
  k: () => move(-1),
  "/": () => inputOf("search").focus(),
  "?": () => dialogOf("keys").showModal(),
  Escape: () => choose(-1),
};

/**
 * Listen to keys; `more` says which others there are now.
 * @param {() => Keys} more
 */
export function listenToKeys(more) {
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]") !== null) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) {
      if (event.key === "Escape") target.blur();
      return;
    }
    const isUndo = (event.ctrlKey || event.metaKey) && event.key === "z";
    if ((event.ctrlKey || event.metaKey || event.altKey) && !isUndo) return;
    // A button that has the focus keeps its own Enter and space.
    if ((event.key === "Enter" || event.key === " ") && target.closest("button, summary, a")) return;
    const does = { ...SHARED, ...more() }[isUndo ? "u" : event.key];
    if (does === undefined) return;
    event.preventDefault();
    does();
  });
  byId("help-open").addEventListener("click", () => dialogOf("keys").showModal());
}
