// What is listed, as tiles of which only those near the window are in the page; one of them may be chosen.

import { byId, make, spelled } from "./elements.js";
import { choose, current, forgetCurrent, onChoose, onDraw } from "./drawing.js";
import { ASKED, chips, filter, isListing, matching } from "./filter.js";
import { layOutList, listenToPinch, rowStep } from "./grid.js";
import { additions } from "./additions.js";
import { chanceOfLabel, labelHead } from "./item.js";
import { image } from "./pictures.js";
import { UNNAMED, data, decisions, isRejected, labelOf, nItems, saidOf, things, wordsOf } from "./state.js";

// Rows drawn above and below those that are seen.
const ROWS_AROUND = 4;

const DONE = {
  confirmed: "✓ confirmed",
  corrected: "✓ corrected",
  given: "✓ given",
  none: "✓ your answer",
  new: "✓ new class",
  bad: "✓ bad",
  skip: "left open",
};

/** @param {import("./state.js").Kind} kind */
const doneOf = (kind) => (kind === "new" && data.from_nothing ? "✓ your answer" : DONE[kind]);

/** What is listed, in its order. @type {number[]} */
export let shown = [];
/** Tiles that are in the page. @type {Map<number, HTMLElement>} */
let cards = new Map();
let grid = { columns: 1, height: 1 };

/** @type {(child: import("./elements.js").Child) => child is Node | string} */
const isThere = (child) => child !== null && child !== undefined;

/** @param {number} item */
function card(item) {
  const element = make("li", { id: "item-" + item });
  const button = make("button", { type: "button", class: "card", onclick: () => choose(item) });
  if (data.doubtful[item] || isRejected(item)) element.classList.add("doubt");
  if (data.changed?.includes(item)) element.classList.add("changed");
  if (data.pictures) button.append(image(data.pictures[item], data.names[item]));
  else button.append(make("span", { class: "words", dir: "auto" }, wordsOf(item)));
  const decision = decisions.get(item);
  const said = decision ? make("small", { class: "done" }, doneOf(decision.kind)) : "";
  const label = labelOf(item);
  const told = label === UNNAMED ? "" : labelHead(label, saidOf(item) ? "" : chanceOfLabel(item));
  if (told || said) button.append(make("span", { class: "told" }, told, said));
  element.append(button, ...additions.card(item).filter(isThere));
  return element;
}

/** @param {number} item */
function markChosen(item) {
  const element = /** @type {HTMLElement} */ (cards.get(item));
  element.classList.toggle("chosen", item === current);
  if (item === current) element.firstElementChild?.setAttribute("aria-current", "true");
  else element.firstElementChild?.removeAttribute("aria-current");
  element.setAttribute("aria-posinset", String(shown.indexOf(item) + 1));
  element.setAttribute("aria-setsize", String(shown.length));
}

/** Draw the rows near the window; room is left for the others. */
function drawRows() {
  const list = byId("list");
  if (!isListing()) return;
  const row = rowStep(grid);
  const top = list.getBoundingClientRect().top;
  const nRows = Math.ceil(shown.length / grid.columns);
  // A list that has become short is still scrolled as far as the long one was.
  const lastFirst = Math.max(nRows - Math.ceil(innerHeight / row) - ROWS_AROUND, 0);
  const first = Math.min(Math.max(Math.floor(-top / row) - ROWS_AROUND, 0), lastFirst);
  const last = Math.max(Math.min(Math.ceil((innerHeight - top) / row) + ROWS_AROUND, nRows), first);
  const items = shown.slice(first * grid.columns, last * grid.columns);
  if (items.length === cards.size && items.every((item) => cards.has(item))) return;
  const before = cards;
  cards = new Map(items.map((item) => [item, before.get(item) ?? card(item)]));
  list.style.paddingTop = first * row + "px";
  list.style.paddingBottom = Math.max(nRows - last, 0) * row + "px";
  const there = [...list.children];
  const wanted = [...cards.values()];
  // What stays keeps its place, so that pictures are not drawn again.
  for (const element of there) if (!wanted.includes(/** @type {HTMLElement} */ (element))) element.remove();
  wanted.forEach((element, at) => {
    if (list.children[at] !== element) list.insertBefore(element, list.children[at] ?? null);
  });
  for (const item of items) markChosen(item);
}

/** Lay the list out again, and draw all of it. */
function relayout() {
  grid = layOutList(byId("list"));
  cards = new Map();
  byId("list").replaceChildren();
  drawRows();
}

function drawList() {
  byId("listed").hidden = !isListing();
  shown = isListing() ? matching() : [];
  byId("nothing").hidden = !isListing() || shown.length > 0;
  const rest = " on this page; " + spelled(data.left_out) + " more certain are in the table of predictions";
  byId("matches").textContent = things(shown.length) + (data.left_out ? " of the " + nItems() + rest : "");
  byId("chips").replaceChildren(...(isListing() ? chips() : []));
  if (!shown.includes(current)) forgetCurrent();
}

/**
 * @param {number} before
 * @param {boolean} scrolls
 */
function follow(before, scrolls) {
  if (cards.has(before)) markChosen(before);
  const place = shown.indexOf(current);
  if (place < 0) return;
  if (!cards.has(current) && scrolls) {
    const top = byId("list").getBoundingClientRect().top + Math.floor(place / grid.columns) * rowStep(grid);
    scroller().scrollBy(0, top - innerHeight / 2);
    drawRows();
  }
  if (!cards.has(current)) return;
  markChosen(current);
  if (scrolls) cards.get(current)?.scrollIntoView({ block: "nearest" });
}

/** What scrolls the list: its part of the page, or the page. */
function scroller() {
  const main = byId("main");
  return getComputedStyle(main).overflowY === "auto" ? main : window;
}

/** Lay the list out in the room that it has now; what is chosen stays in sight. */
export function refit() {
  relayout();
  follow(-1, true);
}

/**
 * Choose an item some places on.
 * @param {number} moves
 */
export function move(moves) {
  if (!shown.length) return;
  const place = shown.indexOf(current);
  choose(shown[place < 0 ? 0 : Math.min(Math.max(place + moves, 0), shown.length - 1)]);
}

/** Items in a row of the list. */
export const perRow = () => grid.columns;

/** Open the first item listed. */
export function openFirst() {
  if (shown.length) choose(shown[0]);
}

/** Where the list begins: a report at its first view that has items, a review at what is asked. */
export function startList() {
  byId("list").className = data.pictures ? "pictures" : "lines";
  if (data.ask !== undefined) filter.show = ASKED;
  onDraw(drawList);
  onChoose(follow);
}

/** Draw the tiles, after everything that decides how much room they have. */
export function startRows() {
  onDraw(relayout);
  addEventListener("resize", relayout);
  document.addEventListener("scroll", drawRows, { capture: true, passive: true });
  listenToPinch(byId("listed"));
}
