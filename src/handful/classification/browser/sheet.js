// A sheet: tiles to be accepted at a glance; a click or a key marks what does not belong.

import { make, note } from "./elements.js";
import { layOutSheet } from "./grid.js";
import { enlargeItem, image, zoomButton } from "./pictures.js";
import { named } from "./names.js";
import { askedNow } from "./question.js";
import { UNNAMED, answerOf, data, things, wordsOf } from "./state.js";

/** @typedef {import("./state.js").Ask} Ask */

// Keys that mark a tile, in the order of the tiles: those that no answer needs. Only the last ones need shift on some
// keyboards.
const TILE_KEYS = [..."abdefghijklmoqrtvwy0,.;'"];

// So many pictures or fewer are large: all of each is shown.
const FEW = 6;

/** @type {Set<number>} */
const marked = new Set();
/** What the marks and the tiles belong to. */
let sheetOf = "";
/** The tile that arrows have reached. */
let cursorOnSheet = 0;
/** Tiles of the sheet, which stay while marks change: their pictures are there. @type {HTMLElement[]} */
let pieces = [];

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
    pieces = [];
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
  note(""); // on a phone, what is marked is said where it was
  cursorOnSheet = Math.max(0, ask.items.indexOf(item));
  redraw();
}

/**
 * The question above the tiles.
 * @param {Ask} ask
 * @returns {(Node | string)[]}
 */
export function sheetTitle(ask) {
  const n = ask.items.length;
  if (ask.oddest) return ["Are the labels of these " + n + " right?"];
  if (ask.asks_name) return ["What are these " + n + "?"];
  if (ask.label === null) {
    return [
      data.from_nothing ? "Do these " + n + " all belong to no class?" : "Are these " + n + " none of your classes?",
    ];
  }
  const first = ["Are these " + n + " all ", named(ask.label, "b")];
  const other = otherOf(ask);
  if (ask.choices.length === 2 && other !== null) return [...first, ", or are some ", named(other, "b"), "?"];
  return [...first, "?"];
}

/**
 * The class that a sheet between two classes does not accept.
 * @param {Ask} ask
 */
export const otherOf = (ask) => ask.choices.find((label) => label !== ask.label) ?? null;

/**
 * A tile, which is marked later.
 * @param {Ask} ask
 * @param {number} place
 * @param {() => void} redraw
 */
function piece(ask, place, redraw) {
  const item = ask.items[place];
  const key = TILE_KEYS[place];
  const inside = data.pictures
    ? image(data.pictures[item], data.names[item])
    : make("span", { class: "words", dir: "auto" }, wordsOf(item));
  const about = {
    type: "button",
    class: "tile",
    id: "tile-" + place,
    "aria-keyshortcuts": key,
    onclick: () => toggle(item, redraw),
  };
  const label = ask.oddest ? make("b", { class: "label" }, named(answerOf(item))) : "";
  const tile = make("button", about, key === undefined ? "" : make("kbd", {}, key), inside, label);
  tile.append(make("span", { class: "state" }));
  return make("li", {}, tile, zoomButton(item));
}

/**
 * The tiles.
 * @param {Ask} ask
 * @param {() => void} redraw
 */
export function tiles(ask, redraw) {
  split(ask);
  if (!pieces.length) pieces = ask.items.map((_, place) => piece(ask, place, redraw));
  pieces.forEach((element, place) => {
    const isMarked = marked.has(ask.items[place]);
    const tile = /** @type {HTMLElement} */ (element.firstElementChild);
    tile.setAttribute("aria-pressed", String(isMarked));
    tile.title = isMarked ? "Take the mark back" : "Mark: it does not belong";
    /** @type {HTMLElement} */ (tile.lastElementChild).textContent = isMarked ? "✗" : "";
    element.classList.toggle("at", place === cursorOnSheet);
  });
  const style = "tiles " + (data.pictures ? "pictures" : "lines") + (pieces.length <= FEW ? " few" : "");
  return make("ul", { class: style, "aria-label": things(pieces.length) }, ...pieces);
}

const shownTiles = () => /** @type {HTMLElement | null} */ (document.querySelector(".tiles"));

/** Let the tiles fill their place. */
export function fitTiles() {
  const list = shownTiles();
  if (list !== null) layOutSheet(list);
}

/**
 * Keys of a sheet: those on the tiles, arrows and space, z.
 * @param {Ask} ask
 * @param {() => void} redraw
 * @returns {Record<string, () => unknown>}
 */
export function sheetKeys(ask, redraw) {
  /** @type {(moves: number) => void} */
  const go = (moves) => {
    cursorOnSheet = Math.min(Math.max(cursorOnSheet + moves, 0), ask.items.length - 1);
    redraw();
    document.getElementById("tile-" + cursorOnSheet)?.scrollIntoView({ block: "nearest" });
  };
  const list = shownTiles();
  const row = list === null ? 1 : Number(list.style.getPropertyValue("--columns"));
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
