// How large tiles are: those of a sheet fill their place, those of a list have a width; + and - change both.

import { data } from "./state.js";

// Width of a tile divided by its height, at which a photograph loses little, and a sentence takes two lines or three.
const PICTURE_ASPECT = 1.2;
const LINE_ASPECT = 9;
// Pixels between tiles, and those that a tile of a list is wide, and the row of a sentence is high.
const GAP = 3;
const LIST_WIDTH = 180;
const LINE_HEIGHT = 76;
// Pixels that a tile of a sheet is high at least: a finger meets it.
const LEAST_HEIGHT = 44;
// A step makes tiles larger by this factor; there are so many steps up, and as many down.
const STEP = 1.25;
const MOST_STEPS = 5;
// Two fingers this much farther apart, or nearer, are a step.
const PINCH = 1.2;

let steps = 0;

/** @typedef {{ columns: number, height: number }} Grid columns, and pixels of a row without its gap */

/**
 * Columns and rows of tiles that fill a place, all of them seen: as much of their pictures as can be.
 * @param {number} n
 * @param {number} width
 * @param {number} height
 * @returns {Grid}
 */
function filling(n, width, height) {
  const aspect = data.pictures ? PICTURE_ASPECT : LINE_ASPECT;
  let best = { columns: 1, height: LEAST_HEIGHT };
  let most = -1;
  for (let columns = 1; columns <= n; columns++) {
    const rows = Math.ceil(n / columns);
    const across = (width - GAP * (columns - 1)) / columns;
    const down = (height - GAP * (rows - 1)) / rows;
    const seen = across * down * Math.min(across / down / aspect, (aspect * down) / across);
    if (across > 0 && down > 0 && seen > most) {
      most = seen;
      best = { columns, height: Math.max(LEAST_HEIGHT, down) };
    }
  }
  return best;
}

/**
 * Lay out the tiles of a sheet.
 * @param {HTMLElement} list
 */
export function layOutSheet(list) {
  const { columns, height } = filling(list.children.length, list.clientWidth, list.clientHeight);
  const scaled = Math.max(1, Math.round(columns / STEP ** steps));
  setGrid(list, { columns: data.pictures ? scaled : columns, height: steps ? height * STEP ** steps : height });
}

/**
 * Columns of a list, and the height of a row.
 * @param {HTMLElement} list
 * @returns {Grid}
 */
export function layOutList(list) {
  const width = list.clientWidth || LIST_WIDTH;
  const columns = data.pictures ? Math.max(2, Math.round(width / (LIST_WIDTH * STEP ** steps))) : 1;
  const across = (width - GAP * (columns - 1)) / columns;
  const grid = { columns, height: Math.round(data.pictures ? across / PICTURE_ASPECT : LINE_HEIGHT * STEP ** steps) };
  setGrid(list, grid);
  return grid;
}

/** @param {Grid} grid */
export const rowStep = (grid) => grid.height + GAP;

/**
 * @param {HTMLElement} list
 * @param {Grid} grid
 */
function setGrid(list, { columns, height }) {
  list.style.setProperty("--columns", String(columns));
  list.style.setProperty("--height", height + "px");
}

/**
 * Larger or smaller tiles.
 * @param {number} by
 */
function resize(by) {
  steps = Math.min(Math.max(steps + by, -MOST_STEPS), MOST_STEPS);
  dispatchEvent(new Event("resize"));
}

export const larger = () => resize(1);
export const smaller = () => resize(-1);

/**
 * Two fingers change the size of tiles.
 * @param {HTMLElement} place
 */
export function listenToPinch(place) {
  let before = 0;
  /** @param {TouchEvent} event */
  const apart = ({ touches: [one, other] }) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
  place.addEventListener("touchstart", (event) => {
    before = event.touches.length === 2 ? apart(event) : 0;
  });
  place.addEventListener(
    "touchmove",
    (event) => {
      if (event.touches.length !== 2 || !before) return;
      event.preventDefault();
      const now = apart(event);
      if (now > before * PINCH) larger();
      else if (now < before / PINCH) smaller();
      else return;
      before = now;
    },
    { passive: false },
  );
}
