// A sheet: items with one label, to be accepted at a glance; a click or a key marks each exception.

import { counted, make } from "./elements.js";
import { enlargeItem, image, zoomButton } from "./pictures.js";
import { named } from "./names.js";
import { askedNow } from "./question.js";
import { UNNAMED, answerOf, data, wordsOf } from "./state.js";

/** @typedef {import("./state.js").Ask} Ask */

// Keys that mark a tile, in the order of the tiles: those that neither an answer nor Finish needs. Only the last one
// needs shift on some keyboards.
const TILE_KEYS = [..."abdefghijklmoqrtvwy0,.-+"];

// More tiles than this are smaller, so that all of them are seen at once.
const MANY_TILES = 12;

/** @type {Set<number>} */
const marked = new Set();
/** What the marks belong to. */
let sheetOf = "";
/** The tile that arrows have reached. */
let cursorOnSheet = 0;

/** @param {Ask | null} ask */
export const isSheet = (ask) => ask !== null && ask.items.length > 1;

/**
 * Items of a sheet that are exceptions, and those that are not.
 * @param {Ask} ask
 */
export function split(ask) {
  if (sheetOf !== nameOf(ask)) {
    sheetOf = nameOf(ask);
    marked.clear();
    cursorOnSheet = 0;
    // What has no label yet cannot be right.
    for (const item of ask.items) if (ask.oddest && answerOf(item) === UNNAMED) marked.add(item);
  }
  return {
    exceptions: ask.items.filter((item) => marked.has(item)),
    accepted: ask.items.filter((item) => !marked.has(item)),
  };
}

/** @param {Ask} ask */
const nameOf = (ask) => data.number + " " + ask.items.join(" ");

/**
 * Mark an item as an exception, or take the mark back.
 * @param {number} item
 * @param {() => void} redraw
 */
function toggle(item, redraw) {
  const ask = askedNow();
  if (ask === null) return;
  split(ask);
  if (marked.has(item)) marked.delete(item);
  else marked.add(item);
  cursorOnSheet = Math.max(0, ask.items.indexOf(item));
  redraw();
}

/**
 * The question above the tiles.
 * @param {Ask} ask
 */
export function sheetTitle(ask) {
  const n = ask.items.length;
  if (ask.oddest) return make("h2", {}, "Are the labels of these " + n + " right?");
  if (ask.asks_name) return make("h2", { id: "asked-title" }, "What are these " + n + "?");
  if (ask.label === null) {
    const said = data.from_nothing ? "Do these " + n + " all belong to no class?" : "";
    return make("h2", {}, said || "Are these " + n + " all none of your classes, and alike?");
  }
  if (ask.choices.length === 2) {
    return make(
      "h2",
      {},
      "Are these " + n + " all ",
      named(ask.label, "b"),
      ", or are some ",
      named(otherOf(ask), "b"),
      "?",
    );
  }
  return make("h2", {}, "Are these " + n + " all ", named(ask.label, "b"), "?");
}

/**
 * The class that a sheet between two classes does not accept.
 * @param {Ask} ask
 */
export const otherOf = (ask) => ask.choices.find((label) => label !== ask.label) ?? null;

/**
 * The tiles.
 * @param {Ask} ask
 * @param {() => void} redraw
 */
export function tiles(ask, redraw) {
  split(ask);
  const made = ask.items.map((item, place) => {
    const isMarked = marked.has(item);
    const key = TILE_KEYS[place];
    const inside = data.pictures
      ? image(data.pictures[item], data.names[item])
      : make("span", { dir: "auto" }, wordsOf(item));
    const state = make("span", { class: "state" }, isMarked ? "✗ exception" : "");
    const about = {
      type: "button",
      class: "tile",
      id: "tile-" + place,
      "aria-pressed": String(isMarked),
      "aria-keyshortcuts": key,
      title: isMarked ? "Take the mark back" : "Mark as an exception",
      onclick: () => toggle(item, redraw),
    };
    const label = ask.oddest ? make("b", { class: "label" }, named(answerOf(item))) : "";
    const tile = make("button", about, key === undefined ? "" : make("kbd", {}, key), inside, label, state);
    const piece = make("li", {}, tile, zoomButton(item));
    if (place === cursorOnSheet) piece.classList.add("at");
    return piece;
  });
  const kind = data.pictures ? "pictures" : "lines";
  const style = "tiles " + kind + (made.length > MANY_TILES ? " many" : "");
  return make("ul", { class: style, "aria-label": counted(made.length, "item") }, ...made);
}

/** @param {HTMLElement} list */
function columns(list) {
  return getComputedStyle(list).gridTemplateColumns.split(" ").length;
}

/**
 * Keys of a sheet: those on the tiles, arrows and space, z.
 * @param {Ask} ask
 * @param {() => void} redraw
 * @returns {Record<string, () => unknown>}
 */
export function sheetKeys(ask, redraw) {
  /** @type {(steps: number) => void} */
  const go = (steps) => {
    cursorOnSheet = Math.min(Math.max(cursorOnSheet + steps, 0), ask.items.length - 1);
    redraw();
    document.getElementById("tile-" + cursorOnSheet)?.scrollIntoView({ block: "nearest" });
  };
  const list = /** @type {HTMLElement | null} */ (document.querySelector(".tiles"));
  const row = list === null ? 1 : columns(list);
  /** @type {Record<string, () => unknown>} */
  const keys = {
    ArrowRight: () => go(1),
    ArrowLeft: () => go(-1),
    ArrowDown: () => go(row),
    ArrowUp: () => go(-row),
    " ": () => toggle(ask.items[cursorOnSheet], redraw),
    z: () => enlargeItem(ask.items[cursorOnSheet]),
  };
  ask.items.forEach((item, place) => {
    const key = TILE_KEYS[place];
    if (key !== undefined) keys[key] = () => toggle(item, redraw);
  });
  return keys;
}
