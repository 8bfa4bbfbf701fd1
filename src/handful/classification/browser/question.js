// What is asked now, and what an answer is about.

import { current } from "./drawing.js";
import { isAsking } from "./filter.js";
import { UNNAMED, answerOf, certaintyOf, data, isRejected, labelOf, secondCertaintyOf, secondOf } from "./state.js";

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
    corrects: 0,
    marked: false,
    asks_name: asksName,
    oddest: false,
    waiting: [],
  };
}

/**
 * The chance that an item is of a class; null if the page does not know it.
 * @param {number} item
 * @param {string} label
 */
export function chanceOf(item, label) {
  if (label === answerOf(item)) return certaintyOf(item);
  return label === secondOf(item) ? secondCertaintyOf(item) : null;
}

/**
 * The chance that an item is of none of the classes.
 * @param {number} item
 */
export const chanceOfNone = (item) => (isRejected(item) ? certaintyOf(item) : data.unknown[item]);
