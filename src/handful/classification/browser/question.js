// What is asked now, and what an answer is about.

import { current } from "./drawing.js";
import { isAsking } from "./filter.js";
import { UNNAMED, answerOf, data, labelOf, secondOf } from "./state.js";

/** @typedef {import("./state.js").Ask} Ask */

// Classes that have a key of their own, 1 to 9.
const MOST_CHOICES = 9;

/**
 * The likeliest classes of an item, as far as the page knows: its label, its runner-up, and the classes of the batch.
 * @param {number} item
 */
export function choicesOf(item) {
  const labels = [labelOf(item), answerOf(item), secondOf(item), ...data.present.map(([code]) => data.classes[code])];
  const names = /** @type {string[]} */ ([...new Set(labels)].filter((label) => label !== null && label !== UNNAMED));
  return names.slice(0, MOST_CHOICES);
}

/**
 * What is asked now; null if nothing is.
 * @returns {Ask | null}
 */
export function askedNow() {
  return data.ask && data.ask.items.length ? data.ask : null;
}

/**
 * What an answer is about: what is asked, or the item that is chosen.
 * @returns {Ask | null}
 */
export function subject() {
  if (isAsking()) return askedNow();
  if (current < 0) return null;
  const label = labelOf(current);
  const asksName = label === UNNAMED;
  return {
    items: [current],
    label: asksName ? null : label,
    labels: [asksName ? null : label],
    choices: choicesOf(current),
    why: "",
    asks_name: asksName,
    oddest: false,
    waiting: [],
  };
}
