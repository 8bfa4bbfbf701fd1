// The colour and the mark of a class: functions of its name, so that they are the same in every batch, after every
// answer and after a restart.

import { byId } from "./elements.js";
import { UNNAMED } from "./state.js";

// Angles between two colours, and the shapes of marks.
const N_HUES = 24;
const FULL_CIRCLE = 360;
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

/**
 * The angle of the colour of a class, and the shape of its mark.
 * @param {string} label
 */
export function lookOf(label) {
  const hash = hashed(label) >>> 0;
  return { hue: ((hash % N_HUES) * FULL_CIRCLE) / N_HUES, shape: MARKS[Math.floor(hash / N_HUES) % MARKS.length] };
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
  const element = shape("path", { class: style, d: look.shape, "data-class": label, ...properties });
  /** @type {SVGElement} */ (element).style.setProperty("--hue", String(look.hue));
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
