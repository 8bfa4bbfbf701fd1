// Which items are listed.

import { byId, inputOf, make, spelled } from "./elements.js";
import { draw } from "./drawing.js";
import { named } from "./names.js";
import { UNNAMED, UNNAMED_WORDS, byDoubt, byUnknown, data, decisions, labelOf, noneWords, saidOf } from "./state.js";

/**
 * A new group is shown as a whole; a view, a class and a group of rows combine. Words search in all items, whatever
 * else is chosen.
 * @typedef {object} Filter
 * @property {string} show the key of a view
 * @property {string | null} label
 * @property {number | null} group
 * @property {number | null} proposal
 * @property {string} words
 */

/** @type {Filter} */
export const filter = { show: "all", label: null, group: null, proposal: null, words: "" };

/** Items that were chosen on the map. @type {Set<number>} */
export const picked = new Set();

/** Places without a list: what is asked now, and what was answered. */
export const ASKED = "asked";
export const HISTORY = "history";
/** The view of what one answer was about. */
export const ANSWER = "answer";

/** The answer that is looked at: its event, what it was about, and what it said. */
export const opened = {
  event: "",
  items: /** @type {number[]} */ ([]),
  words: /** @type {(Node | string)[]} */ ([]),
};

/** @typedef {{ key: string, name: string, test: (item: number) => boolean, order: () => number[] }} View */

const everyItem = () => true;

/** @type {View[]} */
export const VIEWS = [
  { key: ASKED, name: "Asked now", test: everyItem, order: () => data.ask?.items ?? [] },
  {
    key: "first",
    name: "Look at these first",
    test: everyItem,
    order: () => (data.ask === undefined ? data.first : []),
  },
  { key: ANSWER, name: "One answer", test: everyItem, order: () => (filter.show === ANSWER ? opened.items : []) },
  { key: "changed", name: "Changed by your answer", test: everyItem, order: () => data.changed ?? [] },
  { key: "map", name: "Chosen on the map", test: (item) => picked.has(item), order: () => byDoubt },
  { key: "doubt", name: "Doubtful", test: (item) => Boolean(data.doubtful[item]), order: () => byDoubt },
  { key: "unnamed", name: UNNAMED_WORDS, test: (item) => labelOf(item) === UNNAMED, order: () => byDoubt },
  { key: "unknown", name: "", test: (item) => labelOf(item) === null, order: () => byUnknown },
  {
    key: "todo",
    name: "Not seen yet",
    test: (item) => data.ask !== undefined && !decisions.has(item),
    order: () => byDoubt,
  },
  { key: "skipped", name: "Left open", test: (item) => decisions.get(item)?.kind === "skip", order: () => byDoubt },
  { key: "done", name: "Answered", test: (item) => saidOf(item) !== undefined, order: () => byDoubt },
  { key: "all", name: "Everything", test: everyItem, order: () => byDoubt },
];

/** @param {View} view */
export const nameOfView = ({ key, name }) => (key === "unknown" ? noneWords() : name);

/** @param {string} key */
export const viewOf = (key) => /** @type {View} */ (VIEWS.find((view) => view.key === key));

/** @param {number} item */
export const inGroup = (item) => filter.group === null || data.group[item] === filter.group;

/** @param {number} item */
export const hasLabel = (item) => filter.label === null || labelOf(item) === filter.label;

/** @type {string[]} */
let lowered = [];

/** @param {number} item */
function hasWords(item) {
  if (!lowered.length) {
    lowered = data.names.map((name, at) => (name + " " + (data.texts ? data.texts[at] : "")).toLowerCase());
  }
  return lowered[item].includes(filter.words);
}

/**
 * Items of a view.
 * @param {View} view
 */
export const ofView = (view) => view.order().filter((item) => view.test(item) && hasLabel(item) && inGroup(item));

/** @param {{ items: number[] }} proposal */
export const ofProposal = (proposal) => proposal.items.filter(inGroup);

/** Items that are listed. */
export function matching() {
  if (filter.words !== "") return byDoubt.filter(hasWords);
  if (filter.proposal !== null) return ofProposal(data.proposals[filter.proposal]);
  return ofView(viewOf(filter.show));
}

/** @param {string} place */
const isAt = (place) => filter.show === place && filter.proposal === null && filter.words === "";

/** Whether the page shows what is asked now, and no list. */
export const isAsking = () => isAt(ASKED);

/** Whether the page shows what was answered, and no list. */
export const isInHistory = () => isAt(HISTORY);

export const isListing = () => !isAsking() && !isInHistory();

/**
 * Choose what is listed; a search ends with it.
 * @param {Partial<Filter>} changes
 */
export function refilter(changes) {
  Object.assign(filter, { words: "" }, changes);
  if (filter.show !== "map") picked.clear();
  if (inputOf("search").value.trim().toLowerCase() !== filter.words) inputOf("search").value = "";
  draw();
}

/** @param {number | null} place */
export const chooseGroup = (place) => refilter({ group: place, proposal: null, label: null });

const clearAll = () => refilter({ show: "all", label: null, group: null, proposal: null });

/**
 * What is chosen, beside the number of items; a click on it clears it.
 * @returns {HTMLElement[]}
 */
export function chips() {
  /** @type {HTMLElement[]} */
  const made = [];
  /** @type {(text: string, clear: () => void) => void} */
  const chip = (text, clear) => {
    const cross = make("span", { "aria-hidden": "true" }, "×");
    made.push(make("button", { class: "chip", title: "Clear this filter", onclick: clear }, named(text), cross));
  };
  if (filter.words !== "") {
    chip("“" + filter.words + "”", () => refilter({}));
    return made;
  }
  if (filter.proposal !== null) {
    chip(data.proposals[filter.proposal].name, () => refilter({ proposal: null }));
  } else {
    if (filter.show !== "all") chip(nameOfView(viewOf(filter.show)), () => refilter({ show: "all" }));
    if (filter.label !== null) chip(filter.label, () => refilter({ label: null }));
  }
  if (filter.group !== null && data.groups) chip(data.groups[filter.group], () => chooseGroup(null));
  if (made.length > 1) made.push(make("button", { class: "chip", onclick: clearAll }, "Clear all"));
  return made;
}

/**
 * The field of the search: words show their items at once, Enter opens the first of them, Escape goes back.
 * @param {() => void} opens
 */
export function listenToSearch(opens) {
  const field = inputOf("search");
  field.addEventListener("input", () => {
    filter.words = field.value.trim().toLowerCase();
    draw();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      field.value = "";
      field.blur();
      refilter({});
    } else if (event.key === "Enter") {
      event.preventDefault();
      field.blur();
      opens();
    } else return;
    event.stopPropagation();
  });
}

/** The groups of rows, in a field and in the table above the items. */
export function listenToGroups() {
  const groups = data.groups;
  byId("groups-filter").hidden = groups === null;
  if (groups === null) return;
  const field = /** @type {HTMLSelectElement} */ (byId("group"));
  // On a phone, or with many groups, the table would push the items out of sight.
  const details = document.querySelector("table.groups")?.closest("details");
  if (details) details.open = innerWidth >= NARROW && groups.length <= MOST_GROUPS_OPEN;
  field.append(make("option", { value: "" }, "All " + spelled(groups.length)));
  groups.forEach((name, place) => field.append(make("option", { value: place }, name)));
  field.addEventListener("change", () => chooseGroup(field.value === "" ? null : Number(field.value)));
  for (const button of document.querySelectorAll("button[data-group]")) {
    button.addEventListener("click", () => {
      chooseGroup(Number(/** @type {HTMLElement} */ (button).dataset.group));
      byId("work").scrollIntoView();
    });
  }
}

// Pixels below which a page has one column, and groups above which their table is closed at first.
export const NARROW = 720;
const MOST_GROUPS_OPEN = 12;
