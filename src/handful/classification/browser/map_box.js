// The map on the page: what it shows of the items, which of them are chosen on it, and what its marks mean.

import { byId, counted, make, spelled } from "./elements.js";
import { choose, current, onChoose, onDraw } from "./drawing.js";
import { ASKED, NARROW, filter, hasLabel, inGroup, isAsking, picked, refilter } from "./filter.js";
import { icon } from "./colours.js";
import { shown } from "./list.js";
import { makeMap } from "./map.js";
import { named } from "./names.js";
import { UNNAMED, byDoubt, countedLabels, data, labelOf, saidOf, wordsOf } from "./state.js";

// Classes in the key, the most frequent ones, and letters of an item that are read out.
const MOST_KEYS = 30;
const MOST_SAID = 80;

const drawable = () => byDoubt.filter(inGroup);

/** @param {number} item */
function isOfFilter(item) {
  if (filter.words !== "") return shown.includes(item);
  if (isAsking()) return true;
  if (filter.proposal !== null) return data.proposal[item] - 1 === filter.proposal;
  if (filter.show === "map" && picked.size) return picked.has(item);
  return hasLabel(item);
}

/** @param {number} item */
function styleOf(item) {
  const styles = [];
  if (data.doubtful[item] && !saidOf(item)) styles.push("doubtful");
  if (saidOf(item)) styles.push("decided");
  if (picked.has(item)) styles.push("picked");
  if (!isOfFilter(item)) styles.push("faint");
  return styles.join(" ");
}

function groupsOnMap() {
  const here = data.proposals.filter(({ group }) => filter.group === null || group === filter.group);
  return here.map(({ name, items }) => ({ name, members: items.filter((item) => !saidOf(item)) }));
}

/** @param {number[]} items */
export function pick(items) {
  picked.clear();
  for (const item of items) picked.add(item);
  const show = items.length || filter.show !== "map" ? "map" : "all";
  refilter({ show, label: null, proposal: null });
  byId("map-said").textContent = items.length ? counted(items.length, "item") + " chosen." : "No item is chosen.";
}

/**
 * @param {number} item
 * @param {boolean} scrolls
 */
function chooseOnMap(item, scrolls) {
  if (scrolls && filter.show === "map" && !picked.has(item)) picked.clear();
  if ((!shown.includes(item) && !picked.size) || filter.show === ASKED)
    refilter({ show: "all", label: null, proposal: null });
  choose(item, scrolls);
  byId("map-said").textContent = wordsOf(item).slice(0, MOST_SAID) + ": " + named(labelOf(item)).textContent;
}

/**
 * What the marks mean: the classes on the map, with their numbers of items.
 * @param {number} drawn
 * @param {number} all
 */
function drawKey(drawn, all) {
  const counts = countedLabels(drawable());
  const keys = [...counts].slice(0, MOST_KEYS).map(([label, count]) => {
    const isClass = label !== null && label !== UNNAMED;
    const isPressed = isClass && filter.label === label;
    const toClass = () => refilter({ label: isPressed ? null : label, show: "all", proposal: null });
    const view = label === null ? "unknown" : "unnamed";
    const toView = () => refilter({ show: view, label: null, proposal: null });
    const does = isClass ? toClass : toView;
    const about = { type: "button", class: "key", "aria-pressed": String(isPressed), onclick: does };
    return make("button", about, icon(label), named(label), make("small", { class: "quiet" }, spelled(count)));
  });
  const left = counts.size - keys.length;
  if (left > 0) keys.push(make("small", { class: "quiet" }, "and " + counted(left, "more class", "more classes")));
  byId("map-key").replaceChildren(...keys);
  const part = spelled(drawn) + " of " + spelled(all) + " items are drawn, the least certain ones.";
  byId("map-part").textContent = drawn < all ? part : "";
}

/** Go to the map. */
export function openMap() {
  if (!data.map) return;
  /** @type {HTMLDetailsElement} */ (byId("map-box")).open = true;
  byId("map").focus();
}

export function startMap() {
  byId("map-box").hidden = !data.map;
  if (!data.map) return;
  /** @type {HTMLDetailsElement} */ (byId("map-box")).open = innerWidth >= NARROW;
  const svg = /** @type {SVGSVGElement} */ (/** @type {unknown} */ (byId("map")));
  const map = makeMap(svg, data.map, {
    order: drawable,
    className: (code) => data.classes[code],
    labelOf,
    groups: groupsOnMap,
    styleOf,
    isFaint: (code) => !isAsking() && filter.label !== null && data.classes[code] !== filter.label,
    current: () => (isAsking() && data.ask?.items.length === 1 ? data.ask.items[0] : current),
    picks: picked,
    pick,
    choose: (item) => chooseOnMap(item, true),
    visit: (item) => chooseOnMap(item, false),
    draws: (on) => byId("map-draw").setAttribute("aria-pressed", String(on)),
    told: drawKey,
  });
  byId("map-draw").addEventListener("click", map.toggleDrawing);
  onDraw(map.draw);
  onChoose(map.ring);
}
