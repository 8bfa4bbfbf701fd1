// What a class, a group without a name, a group of rows or the items chosen on the map are, above the list.

import { amount, byId, counted, joined, make, percent } from "./elements.js";
import { onDraw } from "./drawing.js";
import { additions } from "./additions.js";
import { ANSWER, chooseGroup, filter, isListing, opened, picked, refilter } from "./filter.js";
import { examplesAt, placesOf } from "./item.js";
import { named } from "./names.js";
import { countedLabels, data, things } from "./state.js";

/** @typedef {import("./elements.js").Child} Child */

// Examples of a class; labels of chosen items, and classes of a group, that are named.
const EXAMPLES_ABOVE = 6;
const LABELS_NAMED = 8;
const CLASSES_NAMED = 12;
// A class is called present if its chance is at least this.
const LIKELY = 0.5;

/**
 * @param {Child} title
 * @param {Child} button
 */
const heading = (title, button) => make("div", { class: "head" }, make("h2", {}, title), button);

/**
 * @param {string} text
 * @param {() => void} does
 */
const clearing = (text, does) => make("button", { type: "button", onclick: does }, text);

/**
 * @param {number} place
 * @returns {Child[]}
 */
function aboutProposal(place) {
  const { name, items, cohesion, nearest } = data.proposals[place];
  const said = things(items.length) + " that look alike: two of them share a class with probability ";
  const places = nearest === null ? [] : placesOf(data.classes.indexOf(nearest), EXAMPLES_ABOVE);
  const likest = nearest === null ? [] : [" Nearest class: ", named(nearest, "b"), "."];
  return [
    heading(named(name), null),
    make("p", { class: "quiet" }, said + percent(cohesion) + ".", ...likest),
    ...additions.proposal(place),
    ...examplesAt(places, ["Examples of ", named(nearest)]),
  ];
}

/** @returns {Child[]} */
function aboutPicks() {
  const listed = [...countedLabels(picked)];
  const names = joined(listed.slice(0, LABELS_NAMED), ([label, count]) => [named(label), "\u00a0" + count]);
  const left = listed.length - LABELS_NAMED;
  const more = left > 0 ? ", and " + counted(left, "more class", "more classes") : "";
  return [
    heading(
      things(picked.size) + " chosen",
      clearing("Clear", () => clearPicks()),
    ),
    make("p", { class: "quiet" }, ...names, more, "."),
    ...additions.picks(),
  ];
}

export function clearPicks() {
  picked.clear();
  refilter(filter.show === "map" ? { show: "all", label: null, proposal: null } : {});
}

/**
 * @param {string} label
 * @returns {Child[]}
 */
function aboutClass(label) {
  const code = data.classes.indexOf(label);
  /** @type {Child[]} */
  const pieces = [
    heading(
      named(label),
      clearing("All classes", () => refilter({ label: null })),
    ),
  ];
  const present = filter.group === null ? data.present : data.present_by_group[filter.group];
  const told = present.find(([k]) => k === code);
  // A review says what the person saw instead, in its addition.
  if (told !== undefined && data.ask === undefined) {
    const parts = ["About " + things(Number(amount(told[1]))) + " expected"];
    if (told[2] !== null) parts.push("present with probability " + percent(told[2]));
    pieces.push(make("p", { class: "quiet" }, parts.join("; ") + "."));
  }
  pieces.push(...additions.label(label));
  pieces.push(...examplesAt(placesOf(code, EXAMPLES_ABOVE), ["In the catalogue"]));
  return pieces;
}

/**
 * @param {number} group
 * @param {string[]} groups
 * @returns {Child[]}
 */
function aboutGroup(group, groups) {
  const told = data.present_by_group[group].filter(([, , chance]) => chance !== null && chance >= LIKELY);
  const names = joined(told.slice(0, CLASSES_NAMED), ([k, count]) => [
    named(data.classes[k]),
    "\u00a0" + amount(count),
  ]);
  const left = told.length - CLASSES_NAMED;
  return [
    heading(
      named(groups[group]),
      clearing("All groups", () => chooseGroup(null)),
    ),
    make(
      "p",
      { class: "quiet" },
      told.length ? "Present: " : "No class is certain",
      ...names,
      left > 0 ? ", and " + left + " more" : "",
      ".",
    ),
    ...data.warnings[group].map((message) => make("p", { class: "alarm" }, message)),
  ];
}

/** @returns {Child[]} */
function aboutShown() {
  if (!isListing() || filter.words !== "") return [];
  if (picked.size && (filter.show === "map" || !data.map)) return aboutPicks();
  if (filter.show === ANSWER) return [heading(make("span", {}, ...opened.words), ""), ...additions.answer()];
  if (filter.proposal !== null) return aboutProposal(filter.proposal);
  if (filter.label !== null) return aboutClass(filter.label);
  if (filter.group !== null && data.groups) return aboutGroup(filter.group, data.groups);
  return [];
}

function drawAbout() {
  const about = byId("about");
  about.replaceChildren(...make("div", {}, ...aboutShown()).childNodes);
  about.hidden = !about.firstChild;
  // Items that are chosen on the map are told below it, so that it stays where it is; all else above.
  const map = document.getElementById("map-box");
  if (filter.show === "map" && filter.proposal === null) map?.after(about);
  else map?.before(about);
}

export const startAbout = () => onDraw(drawAbout);
