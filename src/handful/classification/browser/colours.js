// The colour and the mark of a class. Its name chooses them, so that they are the same in every batch; a class that
// would look like another one on this page takes the next that is free.

import { byId } from "./elements.js";
import { UNNAMED, byDoubt, countedLabels } from "./state.js";

// Colours are angles of a circle; the next free one is this many steps away, which comes to each of them in turn.
const N_HUES = 24;
const FULL_CIRCLE = 360;
const STEP_OF_HUES = 7;
// Colours that can be told apart are more steps apart than this; marks of one shape, than that.
const ALIKE = 2;
const ALIKE_IN_SHAPE = 5;
const MARKS = [
  "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
  "M-4-4h8v8h-8z",
  "M0-5.2L5 3.8H-5z",
  "M0-5.6L5.6 0 0 5.6-5.6 0z",
  "M0 5.2L5-3.8H-5z",
  "M-1.8-5h3.6v3.2h3.2v3.6h-3.2v3.2h-3.6v-3.2h-3.2v-3.6h3.2z",
];
const CROSS = "M-4-4L4 4M4-4L-4 4";
// Of the hash of FNV-1a, which spreads names that differ in one letter.
const HASH_START = 0x811c9dc5;
const HASH_FACTOR = 0x01000193;

/** @param {string} name */
function hashed(name) {
  let hash = HASH_START;
  for (const byte of new TextEncoder().encode(name)) hash = Math.imul(hash ^ byte, HASH_FACTOR) >>> 0;
  return hash ^ (hash >>> 15);
}

/** @typedef {{ hue: number, shape: number }} Look which of the colours, and which of the marks */

/** @type {Map<string, Look>} */
const looks = new Map();

/**
 * Steps between two colours.
 * @param {Look} one
 * @param {Look} other
 */
function stepsBetween(one, other) {
  const steps = Math.abs(one.hue - other.hue);
  return Math.min(steps, N_HUES - steps);
}

/** @type {(one: Look, other: Look) => boolean} */
const isAlike = (one, other) => stepsBetween(one, other) <= (one.shape === other.shape ? ALIKE_IN_SHAPE : ALIKE);

/** @type {(one: Look, other: Look) => boolean} */
const isNearlySame = (one, other) => one.shape === other.shape && stepsBetween(one, other) <= ALIKE;

/**
 * The first look in the order of a name that is like no other; with many classes, one that is not nearly the same.
 * @param {string} label
 * @returns {Look}
 */
function freeLook(label) {
  const hash = hashed(label) >>> 0;
  const inOrder = Array.from({ length: N_HUES }, (_, step) => ({
    hue: (hash + STEP_OF_HUES * step) % N_HUES,
    shape: (Math.floor(hash / N_HUES) + step) % MARKS.length,
  }));
  const taken = [...looks.values()];
  const free = inOrder.find((look) => !taken.some((other) => isAlike(look, other)));
  return free ?? inOrder.find((look) => !taken.some((other) => isNearlySame(look, other))) ?? inOrder[0];
}

/**
 * The look of a class on this page, once chosen and then kept; classes that come together choose by name.
 * @param {string} label
 */
function lookOf(label) {
  const found = looks.get(label);
  if (found !== undefined) return found;
  const labels = [...countedLabels(byDoubt).keys()].filter((one) => one !== null && one !== UNNAMED);
  const here = /** @type {string[]} */ (labels).filter((one) => !looks.has(one)).sort();
  for (const one of here) looks.set(one, freeLook(one));
  const look = looks.get(label) ?? freeLook(label);
  looks.set(label, look);
  return look;
}

/**
 * An element of a drawing.
 * @param {string} tag
 * @param {Record<string, string | number>} properties
 * @param {string} [text]
 */
export function shape(tag, properties, text) {
  const element = document.createElementNS(byId("map").namespaceURI, tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
}

/**
 * The mark of a class, a cross for none of them and for items without a name.
 * @param {string | null} label
 * @param {string} style
 * @param {Record<string, string | number>} properties
 */
export function mark(label, style, properties) {
  if (label === null || label === UNNAMED) return shape("path", { class: "cross " + style, d: CROSS, ...properties });
  const look = lookOf(label);
  const element = shape("path", { class: style, d: MARKS[look.shape], "data-class": label, ...properties });
  const angle = (look.hue * FULL_CIRCLE) / N_HUES;
  /** @type {SVGElement} */ (element).style.setProperty("--hue", String(angle));
  return element;
}

/**
 * The mark by itself.
 * @param {string | null} label
 */
export function icon(label) {
  const element = shape("svg", { viewBox: "-7 -7 14 14", "aria-hidden": "true" });
  element.append(mark(label, "", {}));
  return element;
}
