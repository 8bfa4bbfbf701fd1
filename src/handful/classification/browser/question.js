// What is asked now: what the server asks, or an exception of a sheet that a person just accepted.

import { current } from "./drawing.js";
import { isAsking } from "./filter.js";
import { UNNAMED, answerOf, data, decisions, labelOf, secondOf } from "./state.js";

/** @typedef {import("./state.js").Ask} Ask */

// Classes that have a key of their own, 1 to 9.
const MOST_CHOICES = 9;

/**
 * Exceptions of a sheet that nobody has answered, what the sheet was accepted as, and its classes.
 * @typedef {{ items: number[], label: string | null, choices: string[] }} Exceptions
 */

/** By the number of steps: undoing a step brings back those that waited then. @type {Map<number, Exceptions>} */
const waiting = new Map();

/** @type {Exceptions} */
const NO_EXCEPTIONS = { items: [], label: null, choices: [] };

/** @returns {Exceptions} */
export function exceptions() {
  const found = waiting.get(data.n_steps) ?? NO_EXCEPTIONS;
  return { ...found, items: found.items.filter((item) => !decisions.has(item)) };
}

/**
 * Remember which exceptions wait.
 * @param {Exceptions} found
 */
export function keepExceptions(found) {
  waiting.set(data.n_steps, found);
}

/** Another window has answered: exceptions of this one wait no longer. */
export const forgetExceptions = () => waiting.clear();

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
 * The question about the first exception: what it is, if not what the others of its sheet are.
 * @param {Exceptions} found
 * @returns {Ask}
 */
function aboutException({ items, label: wrong, choices: ofSheet }) {
  const [item] = items;
  const left = items.length;
  const answer = answerOf(item);
  const labels = [answer, secondOf(item), ...ofSheet, ...choicesOf(item)];
  const others = /** @type {string[]} */ (
    [...new Set(labels)].filter((label) => label !== null && label !== UNNAMED && label !== wrong)
  );
  const choices = others.slice(0, MOST_CHOICES);
  const asksName = answer === UNNAMED || (data.from_nothing && !choices.length);
  const label = asksName ? null : answer !== wrong ? answer : (choices[0] ?? null);
  const more = left > 1 ? " " + (left - 1) + " more " + (left === 2 ? "follows." : "follow.") : "";
  const why = "You marked this one as an exception. What is it?" + more;
  return { items: [item], label, choices, why, asks_name: asksName };
}

/**
 * What is asked now; null if nothing is.
 * @returns {Ask | null}
 */
export function askedNow() {
  const waits = exceptions();
  if (waits.items.length) return aboutException(waits);
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
    choices: choicesOf(current),
    why: "",
    asks_name: asksName,
  };
}
