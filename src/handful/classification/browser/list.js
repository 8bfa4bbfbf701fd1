// The items that are listed, one of which may be chosen.

import { byId, counted, make, spelled } from "./elements.js";
import { choose, current, forgetCurrent, onChoose, onDraw } from "./drawing.js";
import { ASKED, chips, filter, isAsking, matching } from "./filter.js";
import { chanceOfLabel, labelHead, modelOf } from "./item.js";
import { image } from "./pictures.js";
import { data, decisions, isRejected, labelOf, nItems, saidOf, wordsOf } from "./state.js";

// Items added to the list at once; more follow when its end is near.
const PORTION = 60;

const DONE = {
  confirmed: "✓ confirmed",
  corrected: "✓ corrected",
  given: "✓ given",
  none: "✓ your answer",
  new: "✓ new class",
  bad: "✓ bad item",
  skip: "left open",
};

/** @param {import("./state.js").Kind} kind */
const doneOf = (kind) => (kind === "new" && data.from_nothing ? "✓ your answer" : DONE[kind]);

/** Items listed, in their order. @type {number[]} */
export let shown = [];
let drawn = 0;
/** @type {Map<number, HTMLElement>} */
const cards = new Map();

/** @param {number} item */
function card(item) {
  const told = make("div", { class: "told" });
  const element = make("li", { role: "option", id: "item-" + item, onclick: () => choose(item) });
  element.setAttribute("aria-selected", String(item === current));
  if (data.doubtful[item] || isRejected(item)) element.classList.add("doubt");
  if (data.changed?.includes(item)) element.classList.add("changed");
  if (data.pictures) {
    element.append(image(data.pictures[item], data.names[item]));
    const name = make("bdi", { dir: "auto" }, data.names[item]);
    told.append(make("small", { class: "quiet name", title: data.names[item] }, name));
  } else {
    element.append(make("div", { dir: "auto" }, wordsOf(item)));
  }
  element.append(told);
  const chance = saidOf(item) ? "" : chanceOfLabel(item);
  told.append(labelHead(labelOf(item), chance));
  const decision = decisions.get(item);
  if (decision) told.append(make("small", { class: "done" }, doneOf(decision.kind)));
  if (!saidOf(item)) told.append(...modelOf(item));
  return element;
}

function drawMore() {
  const next = shown.slice(drawn, drawn + PORTION);
  for (const item of next) {
    const element = card(item);
    cards.set(item, element);
    byId("list").append(element);
  }
  drawn += next.length;
  byId("more").hidden = drawn >= shown.length;
  byId("more-button").textContent = "Show more of " + spelled(shown.length);
}

function drawList() {
  const asks = isAsking();
  byId("listed").hidden = asks;
  shown = asks ? [] : matching();
  drawn = 0;
  cards.clear();
  byId("list").replaceChildren();
  byId("nothing").hidden = asks || shown.length > 0;
  const rest = " on this page; " + spelled(data.left_out) + " more certain ones are in the table of predictions";
  byId("matches").textContent =
    counted(shown.length, "item") + (data.left_out ? " of the " + spelled(nItems()) + rest : "");
  byId("chips").replaceChildren(...chips());
  if (!shown.includes(current)) forgetCurrent();
  drawMore();
}

/**
 * @param {number} before
 * @param {boolean} scrolls
 */
function follow(before, scrolls) {
  cards.get(before)?.setAttribute("aria-selected", "false");
  if (!shown.includes(current)) return;
  while (!cards.has(current) && drawn < shown.length) drawMore();
  const chosen = cards.get(current);
  if (chosen === undefined) return;
  chosen.setAttribute("aria-selected", "true");
  if (scrolls) chosen.scrollIntoView({ block: "nearest" });
}

/**
 * Choose an item some places on.
 * @param {number} steps
 */
export function move(steps) {
  if (!shown.length) return;
  const place = shown.indexOf(current);
  choose(shown[place < 0 ? 0 : Math.min(Math.max(place + steps, 0), shown.length - 1)]);
}

/** Items in a row of the list. */
export function perRow() {
  if (!data.pictures) return 1;
  return getComputedStyle(byId("list")).gridTemplateColumns.split(" ").length;
}

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
  byId("more-button").addEventListener("click", drawMore);
  if (!("IntersectionObserver" in window)) return;
  const near = new IntersectionObserver(
    (entries) => {
      if (entries.some((entry) => entry.isIntersecting) && drawn < shown.length) drawMore();
    },
    { rootMargin: "600px" },
  );
  near.observe(byId("more"));
}
